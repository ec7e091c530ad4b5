"""Whether what keys begin with can be saved at all: seen before a job starts.

What comes to be in it later is seen at the first checkpoint; objects of classes are copied at their declaration. Knows
declarations, and makes one first value of each.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from rayelastic.compile.code.operator_code import OperatorCode
from rayelastic.compile.code.ports_code import PortsCode
from rayelastic.compile.code.state import state_factory
from rayelastic.errors import StateError
from rayelastic.graph.operators.processes import KeyedProcess

if TYPE_CHECKING:
    from rayelastic.graph.spec.operator_spec import OperatorSpec

__all__ = ["check_first_values"]


def check_first_values(operators: Iterable[OperatorSpec]) -> None:
    """Reject operators that keep what can't be pickled from their first tuple on.

    Args:
        operators: of a job that is to take checkpoints.

    Raises:
        StateError: there is one; names it.
    """
    for spec in operators:
        if why := _why_unsavable(spec):
            raise StateError(
                f"no checkpoint can be taken: {why}",
                operator=spec.name,
                location=spec.location,
                hint="Keep values that can be pickled, or say JobConfig(checkpoint=False)",
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
    except Exception:  # whatever a user's function raises: that is told when the first key comes
        return ""
    try:
        pickle.dumps(first, pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # whatever a user's object raises
        return f"what a key begins with can't be pickled: {type(error).__name__}: {error}"
    return ""
