"""Machine code kept, and brought into a process. Knows no types of Numba's."""
