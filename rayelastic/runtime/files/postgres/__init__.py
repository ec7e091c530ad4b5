"""Writes rows to tables of PostgreSQL."""
