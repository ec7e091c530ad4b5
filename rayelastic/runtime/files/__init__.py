"""Reads files as batches, and writes batches as files. Knows no scheduler."""
