"""Makes native parts of aggregates and windows of users' own compiled aggregates."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from rayelastic import _native
from rayelastic.compile.code.aggregate_code import AggregateCode
from rayelastic.compile.loading import load_aggregate
from rayelastic.graph.operators.gathering.combined import Combined
from rayelastic.graph.operators.window_function import Shown
from rayelastic.graph.records.mutable_state import MutableState
from rayelastic.runtime.operators.native_schema import native_schema

if TYPE_CHECKING:
    from rayelastic.graph.spec.requests import CompiledAggregate

__all__ = ["own_aggregate"]


def own_aggregate(operator: str, code: CompiledAggregate | None) -> _native.OwnAggregate | None:
    """Link the methods into this process; None if there is no such aggregate."""
    if code is None:
        return None
    assert isinstance(code, AggregateCode)
    loaded = load_aggregate(code)
    return _native.OwnAggregate(
        operator,
        native_schema(code.request.input_schema),
        native_schema(code.state_schema),
        native_schema(code.output_schema),
        loaded.addresses,
        code.state_initial,
        (partial(_why_add, code), partial(_why_result, code)),
        loaded.owner,
    )


def _why_add(code: AggregateCode, record: tuple[Any, ...]) -> str:
    """Return what add raises in Python for a tuple, and a new state."""
    made: Any = code.request.input_schema.tuple_type
    t = made._make(record)
    combined = Combined(code.request.instance, Shown(), len(code.output_schema.fields))
    return f"{_raised(lambda: combined.add(combined.new(), t))}; the tuple was {t!r}"


def _why_result(code: AggregateCode, record: tuple[Any, ...]) -> str:
    """Return what result raises in Python for a state."""
    state = MutableState(**dict(zip(code.state_schema.names, record, strict=True)))
    return f"{_raised(lambda: code.request.instance.result(state))}; the state was {tuple(record)!r}"


def _raised(call: Callable[[], Any]) -> str:
    try:
        call()
    except Exception as error:
        return traceback.format_exception_only(error)[0].strip()
    return "it failed in another state, or went beyond 64 bits; lane='python' shows more"
