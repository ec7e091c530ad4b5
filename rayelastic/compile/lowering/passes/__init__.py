"""Passes over Numba's IR of a user function, and the functions that they insert."""
