"""A user's function as source: what it is made of, and the Python that is compiled in its place. Knows no Numba."""
