"""Functions of NumPy over one float with exactly NumPy's results; all others are rejected.

NumPy's own exp, log, sin and so on are vectorised, and sometimes differ from libm's in the last digit. Its integer and
float32 scalars calculate differently from Python's numbers.
"""

# mypy: allow-untyped-calls, no-warn-return-any

from __future__ import annotations

import types as python_types
from typing import Any

import numpy as np
from numba.core import types

from rayelastic.compile.lowering.numbers.builtins import stands_for
from rayelastic.compile.reasons import Code, packed

_OF_ONE = (
    np.sqrt,
    np.floor,
    np.ceil,
    np.trunc,
    np.rint,
    np.fabs,
    np.absolute,
    np.square,
    np.isnan,
    np.isinf,
    np.isfinite,
)
_OF_TWO: tuple[Any, ...] = (np.copysign,)  # maximum and minimum choose 0.0 or -0.0 by processor


def refusal(value: Any, name: str) -> str:
    """Return why something of NumPy's isn't compiled; empty if it isn't NumPy's.

    Args:
        value: The value of a name in the user's code.
        name: That name.
    """
    if isinstance(value, python_types.ModuleType):
        return packed(what=value.__name__) if value.__name__.startswith("numpy.") else ""
    if isinstance(value, np.ufunc):
        return packed(Code.LAST_DIGIT, what=f"numpy.{value.__name__}")
    if callable(value) and (getattr(value, "__module__", None) or "").partition(".")[0] == "numpy":
        return packed(what=f"numpy.{getattr(value, '__name__', name)}")
    return ""


def _declare(function: Any, count: int) -> None:
    def of_one(x: Any) -> Any:
        return (lambda x: function(x)) if isinstance(x, types.Float) else None

    def of_two(x: Any, y: Any) -> Any:
        return (lambda x, y: function(x, y)) if isinstance(x, types.Float) and isinstance(y, types.Float) else None

    stands_for(function)(of_one if count == 1 else of_two)


for _function in _OF_ONE:
    _declare(_function, 1)
for _function in _OF_TWO:
    _declare(_function, 2)
