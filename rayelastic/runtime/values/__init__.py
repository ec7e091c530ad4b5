"""What is shipped and published: specifications, status, and what was adapted. Values that start nothing."""
