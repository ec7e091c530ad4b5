"""Rows and lists that checkpoints keep in files of their own."""
