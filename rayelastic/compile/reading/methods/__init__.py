"""Methods of objects that the engine calls, as functions of a record and a state. Knows no Numba."""
