"""Rows and lists that checkpoints store in separate files."""
