"""A Python function of one tuple becomes an operator function in one of the lanes (architecture section 4).

Compiled code gives what CPython gives, or refuses the function or the tuple with a reason. What is different by design
stands in one list, "What is different from CPython" in docs/reference/what_is_compiled.md, each with a test.

Knows no plans, no scheduling, no Ray. Importing it imports neither Numba nor llvmlite.
"""

from rayelastic.compile.code.explain import Explanation
from rayelastic.compile.code.loaded_function import LoadedFunction
from rayelastic.compile.code.operator_code import Flags, MachineCode, OperatorCode, View
from rayelastic.compile.code.ports_code import PortsCode
from rayelastic.compile.compiler import Compiler
from rayelastic.compile.lanes.ports_lane import PortsFunction
from rayelastic.compile.loading import load

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
