"""Built-in operators that know time, windows or several streams become native operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rayelastic import _native
from rayelastic.compile import OperatorCode
from rayelastic.compile.code.answers import answers
from rayelastic.graph.operators.aligned import runs_of
from rayelastic.graph.operators.event_time import EventTime, Union
from rayelastic.graph.operators.joins.by_key import Join
from rayelastic.graph.operators.joins.merge import Merge
from rayelastic.graph.operators.pacing import Delay, Throttle
from rayelastic.graph.operators.windows import Window, Windowing
from rayelastic.graph.records.time_info import TICKS_PER_SECOND, TimeInfo
from rayelastic.graph.spec.operator_spec import Lane, OperatorKind
from rayelastic.runtime.operators.functions import inner_operator, match_operator, native_aggregates
from rayelastic.runtime.operators.native_schema import native_schema
from rayelastic.runtime.operators.own_aggregates import own_aggregate
from rayelastic.runtime.operators.tolerant import ttl_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rayelastic.graph.records.schema import Schema
    from rayelastic.graph.spec.operator_spec import CompiledFunction, OperatorSpec


NativeTimes = tuple[int, list[tuple[int, int]], int]  # offset, runs of days of 24 hours, ticks of a second


class NativeWindow(NamedTuple):
    """A window as the native layer takes it, but for the days of its zone."""

    kind: str
    size: int
    slide: int
    field: str
    shift: int
    rest: bool
    lateness: int
    offset: int = 0
    zone: str = ""
    ticks_per_second: int = 1

    @property
    def times(self) -> NativeTimes:
        """How its times are counted."""
        return native_times(self.offset, self.zone, self.ticks_per_second)


def native_window(window: Window) -> NativeWindow:
    """Return a window as the native layer takes it."""
    time = window.time or TimeInfo("", "us")
    return NativeWindow(
        window.kind.value, window.size, window.slide, time.field, time.shift, window.rest, window.lateness,
        window.offset, window.zone, TICKS_PER_SECOND[time.unit],
    )  # fmt: skip


def native_times(offset: int, zone: str, ticks_per_second: int) -> NativeTimes:
    """How times of windows are counted, as the native layer takes it."""
    return offset, list(runs_of(zone)) if zone else [], ticks_per_second


def _event_time(spec: OperatorSpec) -> _native.Operator:
    body = spec.body
    assert isinstance(body, EventTime)
    assert spec.input_schema is not None
    return _native.Operator.event_time(
        spec.name,
        native_schema(spec.input_schema),
        body.time.field,
        body.lateness,
        body.idle_after,
        TICKS_PER_SECOND[body.time.unit] if body.by_clock else 0,
        body.splits,
        body.ahead or 0.0,
        TICKS_PER_SECOND[body.time.unit] if body.ahead is not None else 0,
    )


def _union(spec: OperatorSpec) -> _native.Operator:
    body = spec.body
    assert isinstance(body, Union)
    assert spec.input_schema is not None
    return _native.Operator.union(spec.name, native_schema(spec.input_schema), list(body.announces))


def _window(spec: OperatorSpec) -> _native.Operator:
    body = spec.body
    assert isinstance(body, Windowing)
    assert spec.input_schema is not None
    assert spec.output_schema is not None
    return _native.Operator.window(
        spec.name,
        native_schema(spec.input_schema),
        native_schema(spec.output_schema),
        list(spec.keys),
        *native_window(body.window)[:7],
        native_window(body.window).times,
        native_aggregates(body.aggregates),
        own_aggregate(spec.name, body.own),
        ttl_of(spec),
        _assigner(spec.name, body.assigner),
    )


def _assigner(name: str, code: CompiledFunction | None) -> _native.Operator | None:
    if code is None:
        return None
    assigner = inner_operator(name, code)
    assert isinstance(code, OperatorCode)
    return _native.Operator.answered(assigner, answers(code)) if code.lane is Lane.COMPILED else assigner


def _join(spec: OperatorSpec) -> _native.Operator:
    assert spec.output_schema is not None
    left, right = (port.schema for port in spec.inputs)
    return native_join(spec.name, left, right, spec.output_schema, join_arguments(spec), ttl_of(spec))


def join_arguments(spec: OperatorSpec) -> dict[str, Any]:
    """Return the arguments of a native join by name, without its schemas; values that JSON has."""
    body = spec.body
    assert isinstance(body, Join)
    left_time, right_time = body.left_time or TimeInfo("", ""), body.right_time or TimeInfo("", "")
    return {
        "kind": body.kind.value,
        "left_keys": list(spec.keys),
        "right_keys": list(body.right_keys),
        "right_fields": list(body.right_fields),
        "left_time": left_time.field,
        "left_shift": left_time.shift,
        "right_time": right_time.field,
        "right_shift": right_time.shift,
        "before": body.before,
        "after": body.after,
        "left_outer": body.how.of_left,
        "right_outer": body.how.of_right,
        "symmetric": body.symmetric,
        "times": (body.offset, body.zone, TICKS_PER_SECOND[left_time.unit or "s"]),
    }


def native_join(
    name: str, left: Schema, right: Schema, output: Schema, arguments: Mapping[str, Any], ttl: tuple[int, str, int, str]
) -> _native.Operator:
    """Make a native join of such arguments."""
    times = native_times(*arguments["times"])
    schemas = native_schema(left), native_schema(right), native_schema(output)
    return _native.Operator.join(name, *schemas, **{**arguments, "times": times}, ttl=ttl)


def _merge(spec: OperatorSpec) -> _native.Operator:
    assert spec.input_schema is not None
    schema = native_schema(spec.input_schema)
    return _native.Operator.merge(spec.name, schema, len(spec.inputs), **merge_arguments(spec))


def merge_arguments(spec: OperatorSpec) -> dict[str, Any]:
    """Return further arguments of a native merge by name."""
    body = spec.body
    assert isinstance(body, Merge)
    return {"time": body.time.field, "shift": body.time.shift}


def _throttle(spec: OperatorSpec) -> _native.Operator:
    body = spec.body
    assert isinstance(body, Throttle)
    assert spec.input_schema is not None
    return _native.Operator.throttle(spec.name, native_schema(spec.input_schema), body.per_second)


def _delay(spec: OperatorSpec) -> _native.Operator:
    body = spec.body
    assert isinstance(body, Delay)
    assert spec.input_schema is not None
    return _native.Operator.delay(spec.name, native_schema(spec.input_schema), body.seconds, body.most)


TIMED_OPERATORS: Mapping[OperatorKind, Callable[[OperatorSpec], _native.Operator]] = {
    OperatorKind.EVENT_TIME: _event_time,
    OperatorKind.UNION: _union,
    OperatorKind.WINDOW: _window,
    OperatorKind.JOIN: _join,
    OperatorKind.MATCH: match_operator,
    OperatorKind.MERGE: _merge,
    OperatorKind.THROTTLE: _throttle,
    OperatorKind.DELAY: _delay,
}
