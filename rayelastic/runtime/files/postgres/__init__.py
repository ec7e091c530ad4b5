"""Rows in tables of PostgreSQL."""
