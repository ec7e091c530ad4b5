"""A Python function of one tuple becomes an operator function in one of the lanes (architecture section 4).

Knows no plans, no scheduling, no Ray. Importing it imports neither Numba nor llvmlite.
"""

from rayelastic.compile.code import Explanation, Flags, LoadedFunction, MachineCode, OperatorCode, View
from rayelastic.compile.compiler import Compiler
from rayelastic.compile.loading import load

__all__ = ["Compiler", "Explanation", "Flags", "LoadedFunction", "MachineCode", "OperatorCode", "View", "load"]
