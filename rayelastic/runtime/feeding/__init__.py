"""Sources whose rows a client pushes, as the coordinator sees them."""
