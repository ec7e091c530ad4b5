"""A region with state by key, beside the same in WindFlow."""
