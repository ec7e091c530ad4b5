"""Callables for a run, for functions that stay in Python."""
