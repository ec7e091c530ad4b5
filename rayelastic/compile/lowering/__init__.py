"""How Numba compiles a function of one tuple: own types for records and text, passes over Numba's IR, the loop.

Every file here imports Numba, and nothing outside this folder does; import it only when something has to be compiled.
"""
