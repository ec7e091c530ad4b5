"""Checks before a job starts whether the initial state of keys can be saved.

Later values are checked at the first checkpoint; objects of classes are copied at their declaration. Knows
declarations, and makes one initial value of each.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from rayelastic.compile.code.operator_code import OperatorCode
from rayelastic.compile.code.ports_code import PortsCode
from rayelastic.compile.code.state import state_factory
from rayelastic.errors import ErrorCode, StateError
from rayelastic.graph.operators.processes import KeyedProcess

if TYPE_CHECKING:
    from rayelastic.graph.spec.operator_spec import OperatorSpec

__all__ = ["check_first_values"]


def check_first_values(operators: Iterable[OperatorSpec]) -> None:
    """Reject operators whose initial state can't be pickled.

    Args:
        operators: The operators of a job with checkpoints.

    Raises:
        StateError: There is one; the message names it.
    """
    for spec in operators:
        if why := _why_unsavable(spec):
            raise StateError(
                f"no checkpoint can be taken: {why}",
                operator=spec.name,
                location=spec.location,
                hint="Keep values that can be pickled, or say JobConfig(checkpoint=False)",
                code=ErrorCode.NOT_SAVEABLE,
            )


def _why_unsavable(spec: OperatorSpec) -> str:
    match spec.body:
        case OperatorCode(state_schema=None, state=make) if make is not None:
            return _why_unpicklable(make)
        case KeyedProcess(code=None, state=state):
            make = state_factory(state)
            return "" if make is None else _why_unpicklable(make)
        case PortsCode(state=make) if make is not None:
            return _why_unpicklable(make)
    return ""


def _why_unpicklable(make: Callable[[], Any]) -> str:
    try:
        first = make()
    except Exception:  # a user's function may raise anything, which is reported at the first key
        return ""
    try:
        pickle.dumps(first, pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # a user's object may raise anything
        return f"what a key begins with can't be pickled: {type(error).__name__}: {error}"
    return ""
