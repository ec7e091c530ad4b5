"""What is the most of a tuple, wherever it goes: between processing elements, and into one from Spark or a Ray task."""

__all__ = ["MOST_TEXT"]

MOST_TEXT = 512 << 20  # bytes of all texts and bytes of a tuple; inside a processing element 4 GiB of each field
