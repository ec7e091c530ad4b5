"""Limits of a tuple that hold wherever it flows: between PEs, and in from Spark or a Ray task."""

MOST_TEXT = 512 << 20  # bytes of all texts and bytes of a tuple; inside a PE 4 GiB of each field
