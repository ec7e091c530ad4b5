"""Makes an operator function of a Python function of one tuple, in one of the execution modes (architecture section 4).

Compiled code returns what CPython returns, or rejects the function or the tuple with a reason. Deliberate differences
are in one list, "What is different from CPython" in docs/reference/what_is_compiled.md, each with a test.

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
