"""Compiles a function of one tuple with Numba: types for records and text, passes over Numba's IR, the loop over a run.

Every file here imports Numba, and no file outside this folder does; import it only when something has to be compiled.
"""
