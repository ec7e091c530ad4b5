"""Per-run callables of functions that run in Python."""
