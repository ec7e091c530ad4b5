"""Tuples in memory."""
