"""Tables of PostgreSQL."""
