"""Names that may be unassigned on some path: where they are read, and flags that detect it there. Knows no Numba."""
