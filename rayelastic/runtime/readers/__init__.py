"""Reads rows of files as Arrow batches of a source's schema."""
