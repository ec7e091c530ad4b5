"""Names that not every way gives a value: where they are read, and flags that say so there. Knows no Numba."""
