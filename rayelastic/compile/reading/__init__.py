"""Reads the source of a user's function, and rewrites it as Python that Numba compiles. Knows no Numba."""
