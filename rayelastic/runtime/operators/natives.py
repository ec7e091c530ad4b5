"""The native operator of each description: one table, from the class of the description to the function that makes it.

A new kind of operator is a class in `graph/operators` and a row here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rayelastic import _native
from rayelastic.compile import OperatorCode, PortsCode
from rayelastic.compile.code.answers import answers
from rayelastic.compile.lanes.ports_lane import chosen
from rayelastic.graph.operators.aggregation import Aggregation
from rayelastic.graph.operators.aligned import runs_of
from rayelastic.graph.operators.channels import Channels, InTurn
from rayelastic.graph.operators.event_time import EventTime, Union
from rayelastic.graph.operators.joins.by_key import Join
from rayelastic.graph.operators.joins.merge import Merge
from rayelastic.graph.operators.pacing import Delay, Throttle
from rayelastic.graph.operators.patterns import Matching
from rayelastic.graph.operators.processes import KeyedProcess
from rayelastic.graph.operators.splits import Split
from rayelastic.graph.operators.windows import Window, Windowing
from rayelastic.graph.records.time_info import TICKS_PER_SECOND, TimeInfo
from rayelastic.graph.spec.operator_spec import Lane
from rayelastic.runtime.operators.functions import (
    FunctionPort,
    Resources,
    class_operator,
    function_operator,
    inner_operator,
    process_operator,
    ttl_of,
)
from rayelastic.runtime.operators.native_schema import native_schema
from rayelastic.runtime.operators.own_aggregates import own_aggregate
from rayelastic.runtime.operators.window_functions import window_function

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rayelastic.graph.operators.aggregates import AggregateSpec
    from rayelastic.graph.records.schema import Schema
    from rayelastic.graph.spec.operator_spec import CompiledFunction, OperatorBody, OperatorSpec

NativeAggregate = tuple[str, str, str, float, float]  # function, field, field of the weights, two parameters
NativeSchemas = tuple[str, _native.Schema, _native.Schema, list[str]]  # name, input, output, and the key fields
NativeTimes = tuple[int, list[tuple[int, int]], int]  # offset, runs of days of 24 hours, ticks of a second


def window_arguments(window: Window) -> dict[str, Any]:
    """Return the options of native windows by name; values that JSON has."""
    time = window.time or TimeInfo("", "us")
    return {
        "kind": window.kind.value,
        "size": max(1, window.size),
        "slide": max(1, window.slide),
        "time": time.field,
        "shift": time.shift,
        "rest": window.rest,
        "lateness": window.lateness,
        "within": window.within,
        "tick": max(1, TICKS_PER_SECOND[time.unit] // 1_000_000),  # the resolution of Python's times
        "times": (window.offset, window.zone, TICKS_PER_SECOND[time.unit]),
    }


def native_windows(schemas: NativeSchemas, arguments: Mapping[str, Any], **parts: Any) -> _native.Operator:
    """Make native windows of such arguments.

    Args:
        schemas: Name, input, output, and the key fields.
        arguments: What `window_arguments` returns, and perhaps more options.
        parts: What is emitted of a window, and further options.
    """
    return _native.Operator.window(*schemas, {**arguments, "times": native_times(*arguments["times"])}, **parts)


def native_times(offset: int, zone: str, ticks_per_second: int) -> NativeTimes:
    """How times of windows are counted, as the native layer takes it."""
    return offset, list(runs_of(zone)) if zone else [], ticks_per_second


def _event_time(spec: OperatorSpec, body: EventTime, _: Resources) -> _native.Operator:
    schema, ticks = native_schema(spec.inputs[0].schema), TICKS_PER_SECOND[body.time.unit]
    idle = (body.idle_after, ticks if body.by_clock else 0)
    ahead = (body.ahead, ticks) if body.ahead is not None else (0, 0)
    return _native.Operator.event_time(spec.name, schema, body.time.field, body.lateness, idle, ahead, body.splits)


def _union(spec: OperatorSpec, body: Union, _: Resources) -> _native.Operator:
    return _native.Operator.union(spec.name, native_schema(spec.inputs[0].schema), list(body.announces))


def native_aggregates(aggregates: tuple[tuple[str, AggregateSpec], ...]) -> list[NativeAggregate]:
    """Return aggregates for the native layer."""
    return [(a.function.value, a.field or "", a.weight or "", a.first, a.second) for _, a in aggregates]


def _aggregate(spec: OperatorSpec, body: Aggregation, _: Resources) -> _native.Operator:
    return _native.Operator.aggregate(
        spec.name,
        native_schema(spec.inputs[0].schema),
        native_schema(spec.outputs[0].schema),
        list(spec.keys),
        native_aggregates(body.aggregates),
        "run" if body.partial else body.emit.value,
        ttl_of(spec),
        own_aggregate(spec.name, body.own),
    )


def _window(spec: OperatorSpec, body: Windowing, _: Resources) -> _native.Operator:
    source, target = (port.schema for port in (spec.inputs[0], spec.outputs[0]))
    options = window_arguments(body.window) | {"ttl": ttl_of(spec), "assigner": _assigner(spec.name, body.assigner)}
    options |= {"punctual": body.punctual, "in_order": body.in_order}
    if body.function is not None:
        options |= {"every": body.function.early.every, "update": body.function.early.update}
    return native_windows(
        (spec.name, native_schema(source), native_schema(target), list(spec.keys)),
        options,
        aggregates=native_aggregates(body.aggregates),
        own=own_aggregate(spec.name, body.own),
        function=window_function(spec.name, body.window, body.function, target),
    )


def _assigner(name: str, code: CompiledFunction | None) -> _native.Operator | None:
    if code is None:
        return None
    assigner = inner_operator(name, code)
    assert isinstance(code, OperatorCode)
    return _native.Operator.answered(assigner, answers(code)) if code.lane is Lane.COMPILED else assigner


def _join(spec: OperatorSpec, _body: Join, _: Resources) -> _native.Operator:
    left, right = (port.schema for port in spec.inputs)
    return native_join(spec.name, left, right, spec.outputs[0].schema, join_arguments(spec), ttl_of(spec))


def join_arguments(spec: OperatorSpec) -> dict[str, Any]:
    """Return the arguments of a native join by name, without its schemas; values that JSON has."""
    body: Any = spec.body
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
    return _native.Operator.join(name, *schemas, {**arguments, "times": times, "ttl": ttl})


def _merge(spec: OperatorSpec, _body: Merge, _: Resources) -> _native.Operator:
    schema = native_schema(spec.inputs[0].schema)
    return _native.Operator.merge(spec.name, schema, len(spec.inputs), **merge_arguments(spec))


def merge_arguments(spec: OperatorSpec) -> dict[str, Any]:
    """Return further arguments of a native merge by name."""
    body: Any = spec.body
    return {"time": body.time.field, "shift": body.time.shift}


def _throttle(spec: OperatorSpec, body: Throttle, _: Resources) -> _native.Operator:
    return _native.Operator.throttle(spec.name, native_schema(spec.inputs[0].schema), body.per_second)


def _delay(spec: OperatorSpec, body: Delay, _: Resources) -> _native.Operator:
    return _native.Operator.delay(spec.name, native_schema(spec.inputs[0].schema), body.seconds, body.most)


def _split(spec: OperatorSpec, body: Split, _: Resources) -> _native.Operator:
    schema, code = native_schema(spec.inputs[0].schema), body.choice
    if code is None:
        return _native.Operator.split(spec.name, schema, body.ports, list(body.keys))
    assert isinstance(code, OperatorCode)
    if code.lane is Lane.COMPILED:
        return _native.Operator.choice(inner_operator(spec.name, code), body.ports)
    port = FunctionPort(schema, code.input_schema.tuple_type)
    return _native.Operator.python_ports(spec.name, chosen(code.function, body.ports), [port], [schema] * body.ports)


def _channels(spec: OperatorSpec, body: Channels, resources: Resources) -> _native.Operator:
    schema = native_schema(spec.inputs[0].schema)
    width = resources.widths[spec.name] = _native.ChannelWidth(body.most, body.start)
    if body.keys and body.ordered:
        return _native.Operator.keyed_channels(spec.name, schema, list(body.keys), body.most)
    return _native.Operator.channels(spec.name, schema, width, body.ordered)


def _in_turn(spec: OperatorSpec, _body: InTurn, _: Resources) -> _native.Operator:
    return _native.Operator.in_turn(spec.name, native_schema(spec.inputs[0].schema), len(spec.inputs))


def _match(spec: OperatorSpec, body: Matching, _: Resources) -> _native.Operator:
    return _native.Operator.pattern(
        inner_operator(spec.name, body.marks),
        native_schema(spec.outputs[0].schema),
        list(spec.keys),
        fields=list(body.fields),
        outer=body.outer,
        **pattern_arguments(spec),
    )


def pattern_arguments(spec: OperatorSpec) -> dict[str, Any]:
    """Return the arguments of a native pattern by name that its state depends on."""
    body: Any = spec.body
    return {"time": body.time.field, "shift": body.time.shift, "steps": list(body.steps)}


_MAKERS: Mapping[type[OperatorBody], Callable[[OperatorSpec, Any, Resources], _native.Operator]] = {
    Aggregation: _aggregate,
    Channels: _channels,
    Delay: _delay,
    EventTime: _event_time,
    InTurn: _in_turn,
    Join: _join,
    KeyedProcess: process_operator,
    Matching: _match,
    Merge: _merge,
    OperatorCode: function_operator,
    PortsCode: class_operator,
    Split: _split,
    Throttle: _throttle,
    Union: _union,
    Windowing: _window,
}


def native_operator(spec: OperatorSpec, resources: Resources) -> _native.Operator:
    """Make the native operator of a description that is neither a source nor a sink.

    Args:
        spec: The operator.
        resources: What it shares with others of its PE; what has to be closed with the PE is added.

    Raises:
        JobFailedError: The `initialize` of a user's class raised.
    """
    return _MAKERS[type(spec.body)](spec, spec.body, resources)
