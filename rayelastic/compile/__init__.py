"""A Python function of one tuple becomes an operator function in one of the lanes (architecture section 4).

Where compiled code differs from CPython, by design: an integer beyond 64 bits is refused at run time, naming the tuple;
a variable that is once int and once float is a float; `hash(text)` is another number; a tuple's time zone isn't looked
at when it is compared; dicts, lists and sets outside the function are taken as they are at declaration; an attribute
error, a wrong type and the like are found at declaration. Everything else is the same, or refused with a reason, and
then runs in the python lane.

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
