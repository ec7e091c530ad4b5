"""The cache of machine code, and its loader. Knows no types of Numba's."""
