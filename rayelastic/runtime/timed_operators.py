"""Built-in operators that know event time, windows or several streams become native operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayelastic import _native
from rayelastic.graph.event_time import EventTime
from rayelastic.graph.operator_spec import OperatorKind
from rayelastic.graph.windows import Windowing
from rayelastic.runtime.function_operators import native_aggregates
from rayelastic.runtime.native_schema import native_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rayelastic.graph.operator_spec import OperatorSpec


def _event_time(spec: OperatorSpec) -> _native.Operator:
    body = spec.body
    assert isinstance(body, EventTime)
    assert spec.input_schema is not None
    return _native.Operator.event_time(spec.name, native_schema(spec.input_schema), body.time.field, body.lateness)


def _window(spec: OperatorSpec) -> _native.Operator:
    body = spec.body
    assert isinstance(body, Windowing)
    assert spec.input_schema is not None
    assert spec.output_schema is not None
    window = body.window
    return _native.Operator.window(
        spec.name,
        native_schema(spec.input_schema),
        native_schema(spec.output_schema),
        list(spec.keys),
        window.kind.value,
        window.size,
        window.slide,
        window.time.field if window.time is not None else "",
        window.time.shift if window.time is not None else 0,
        window.rest,
        native_aggregates(body.aggregates),
    )


TIMED_OPERATORS: Mapping[OperatorKind, Callable[[OperatorSpec], _native.Operator]] = {
    OperatorKind.EVENT_TIME: _event_time,
    OperatorKind.WINDOW: _window,
}
