"""Saves the state of a PE's operators, and restores it. Knows no job."""
