"""What a user's function became: values that are shipped, and what tells why one failed."""
