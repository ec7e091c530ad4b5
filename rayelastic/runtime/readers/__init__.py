"""Rows of files as Arrow batches of a schema of a source."""
