"""A Python function of one tuple becomes an operator function in one of the lanes (architecture section 4).

Where compiled code differs from CPython, by design: integers are 64-bit and wrap; an int to a negative int power is an
int; `hash(text)` is another number; a tuple's time zone isn't looked at; exceptions may be caught by `except Exception`
only; an attribute error, a wrong type and the like are found at declaration. Everything else is the same, or refused
with a reason, and then runs in the python lane.

Knows no plans, no scheduling, no Ray. Importing it imports neither Numba nor llvmlite.
"""

from rayelastic.compile.code import Explanation, Flags, LoadedFunction, MachineCode, OperatorCode, View
from rayelastic.compile.compiler import Compiler
from rayelastic.compile.loading import load
from rayelastic.compile.ports_code import PortsCode
from rayelastic.compile.ports_lane import PortsFunction

__all__ = [
    "Compiler",
    "Explanation",
    "Flags",
    "LoadedFunction",
    "MachineCode",
    "OperatorCode",
    "PortsCode",
    "PortsFunction",
    "View",
    "load",
]
