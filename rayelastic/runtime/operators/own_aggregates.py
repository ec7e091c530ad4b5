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
    from rayelastic.graph.records.schema import Schema
    from rayelastic.graph.spec.requests import CompiledAggregate

_UNKNOWN = "it went beyond 64 bits, or its machine code rejected what Python allows"


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


def read_only(source: Schema, state: Schema, results: Schema) -> _native.OwnAggregate:
    """Describe states whose results are fields of them, without the methods: such states are only read."""
    schemas = native_schema(source), native_schema(state), native_schema(results)
    return _native.OwnAggregate("state", *schemas, (0, 0, 0), bytes(state.record_size), (None, None), None)


def _why_add(code: AggregateCode, record: tuple[Any, ...], held: tuple[Any, ...]) -> str:
    """Return what add raises in Python for a tuple, and a state or a new one."""
    made: Any = code.request.input_schema.tuple_type
    t = made._make(record)
    combined = Combined(code.request.instance, Shown(), len(code.output_schema.fields))
    state = MutableState(**dict(zip(code.state_schema.names, held, strict=True)))
    raised = _raised(lambda: combined.add(state, t)) or _raised(lambda: combined.add(combined.new(), t))
    return f"{code.request.called('add')}: {raised or _UNKNOWN}; the tuple was {t!r}"


def _why_result(code: AggregateCode, record: tuple[Any, ...]) -> str:
    """Return what result raises in Python for a state."""
    state = MutableState(**dict(zip(code.state_schema.names, record, strict=True)))
    return (
        f"result: {_raised(lambda: code.request.instance.result(state)) or _UNKNOWN}; the state was {tuple(record)!r}"
    )


def _raised(call: Callable[[], Any]) -> str:
    try:
        call()
    except Exception as error:
        return traceback.format_exception_only(error)[0].strip()
    return ""
