"""The results of a function, read from its source: the tuples that it returns or yields, and their fields."""
