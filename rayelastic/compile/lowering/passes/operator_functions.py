"""Functions of the module `operator` as operators: helper functions with exact arithmetic.

Numba's own ones wrap integers around and compare an int with a float as two floats.
"""

from __future__ import annotations

import functools
import operator
import types
from typing import Any

_OF_TWO = {
    "add": "a + b", "sub": "a - b", "mul": "a * b", "truediv": "a / b", "floordiv": "a // b", "mod": "a % b",
    "pow": "a ** b", "lshift": "a << b", "rshift": "a >> b", "and_": "a & b", "or_": "a | b", "xor": "a ^ b",
    "eq": "a == b", "ne": "a != b", "lt": "a < b", "le": "a <= b", "gt": "a > b", "ge": "a >= b", "concat": "a + b",
    "contains": "b in a", "getitem": "a[b]",
}  # fmt: skip
_OF_ONE = {"neg": "-a", "pos": "+a", "invert": "~a", "not_": "not a", "truth": "bool(a)", "abs": "abs(a)"}
_WRITTEN = {
    **{getattr(operator, name): ("a, b", expression) for name, expression in _OF_TWO.items()},
    **{getattr(operator, name): ("a", expression) for name, expression in _OF_ONE.items()},
}


def is_operator_function(value: Any) -> bool:
    """Return whether it is a function of the module."""
    return isinstance(value, types.BuiltinFunctionType) and value.__module__ == operator.add.__module__


@functools.cache
def written(function: Any) -> Any:
    """Return the Python function for one of the module; None for one that isn't compiled."""
    if function not in _WRITTEN:
        return None
    parameters, expression = _WRITTEN[function]
    space: dict[str, Any] = {}
    exec(f"def {function.__name__}({parameters}): return {expression}", space)
    return space[function.__name__]
