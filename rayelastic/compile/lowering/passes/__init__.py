"""Passes over Numba's IR of a user function, and what they put in its place."""
