"""Values that are shipped and published: specifications, status, and adaptations. They start nothing."""
