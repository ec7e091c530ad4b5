"""Saves the state of a processing element's operators, and restores it. Knows no job."""
