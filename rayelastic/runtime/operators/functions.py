"""Makes native operators that call a user's code: a function, an operator class with ports, or a class with timers."""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from rayelastic import _native
from rayelastic.compile import Flags, OperatorCode, PortsFunction, load
from rayelastic.compile.code.answers import answers
from rayelastic.compile.code.process_code import ProcessCode
from rayelastic.compile.lanes.process_lane import ProcessFunction, why_moment, why_tuple
from rayelastic.compile.lanes.python_lane import error_text
from rayelastic.compile.lanes.tolerant_lane import tolerant
from rayelastic.compile.loading import load_process
from rayelastic.errors import ErrorCode, JobFailedError
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.spec.dead_letters import OnError
from rayelastic.graph.spec.operator_spec import Lane, StateKind
from rayelastic.runtime.operators.concurrent import Calls, concurrent_operator
from rayelastic.runtime.operators.native_schema import native_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rayelastic.compile import LoadedFunction, PortsCode
    from rayelastic.graph.operators.processes import KeyedProcess
    from rayelastic.graph.spec.operator_spec import CompiledFunction, OperatorSpec
    from rayelastic.runtime.loops.event_loop import EventLoop


@dataclass(frozen=True, slots=True)
class Resources:
    """What the operators of a PE share, and what of them is closed with it.

    Args:
        job: The name of the job, for messages.
        loop: The event loop of concurrent calls.
        calls: The concurrent calls, by operator.
        classes: The user's objects with ports, by operator.
        widths: The number of channels in use, by operator.
    """

    job: str
    loop: EventLoop
    calls: dict[str, Calls] = field(default_factory=dict)
    classes: dict[str, PortsFunction] = field(default_factory=dict)
    widths: dict[str, _native.ChannelWidth] = field(default_factory=dict)


class FunctionPort(NamedTuple):
    """An input port of a Python function, as the native layer takes it.

    Args:
        schema: The schema of its tuples.
        tuple_type: The type of its tuples; None for plain ones.
        keys: The key fields, where the function keeps state by key.
        demand: How many tuples a call takes: "exact" or "at least", and a count.
        time: Field and shift of the event time by which the keys of a further port live.
    """

    schema: _native.Schema
    tuple_type: type | None = None
    keys: Sequence[str] = ()
    demand: tuple[str, int] | None = None
    time: tuple[str, int] | None = None


def ttl_of(spec: OperatorSpec) -> tuple[int, str, int, str]:
    """Return the time to live of an operator's keys, as the native layer takes it."""
    return (0, "", 0, "last") if spec.ttl is None else spec.ttl.described


def function_operator(spec: OperatorSpec, code: OperatorCode, resources: Resources) -> _native.Operator:
    """Make the operator of a user's function in its execution mode."""
    if code.concurrent is not None:
        native, resources.calls[spec.name] = concurrent_operator(spec, code.concurrent, resources.loop)
        return native
    loaded = load(code)
    source, target = native_schema(code.input_schema), native_schema(code.output_schema)
    keys = list(code.keys)
    if code.lane is Lane.COMPILED:
        keyed = None
        if code.state_schema is not None:
            record = native_schema(code.state_schema)
            keyed = _native.KeyedState(source, keys, record, loaded.state_initial, ttl_of(spec))
        operator = _native.Operator.compiled(
            spec.name, loaded.address, loaded.flags, source, target, keyed, loaded.owner
        )
        if code.state is None:
            operator = _native.Operator.answered(operator, answers(code))
        return operator if spec.on_error is OnError.FAIL else _tolerant(spec, loaded, operator)
    keyed = _native.KeyedState.objects(source, keys, code.state, ttl_of(spec)) if code.state is not None else None
    if len(spec.outputs) > 1 or spec.on_error is not OnError.FAIL:
        return _of_ports(spec, code, None if code.lane is Lane.VECTORISED else keyed)
    assert loaded.function is not None
    return _native.Operator.python(
        spec.name,
        loaded.function,
        source,
        target,
        code.input_schema.tuple_type,
        view=code.view.value,
        flags=loaded.flags,
        keyed=keyed,
    )


def _tolerant(spec: OperatorSpec, loaded: LoadedFunction, native: _native.Operator) -> _native.Operator:
    """Make a compiled operator continue behind tuples on which its function fails."""

    def explain(record: tuple[Any, ...]) -> str:
        return loaded.explain(record).message

    letters = native_schema(spec.outputs[-1].schema) if spec.on_error is OnError.DIVERT else None
    return _native.Operator.tolerant(native, letters, explain)


def _of_ports(spec: OperatorSpec, code: OperatorCode, keyed: _native.KeyedState | None) -> _native.Operator:
    """Make the operator of a Python function with side outputs, or that continues behind tuples on which it fails."""
    schemas = [native_schema(port.schema) for port in spec.outputs]
    diverts = spec.on_error is OnError.DIVERT
    ports = spec.outputs[:-1] if diverts else spec.outputs
    checks = [_native.RecordCheck(spec.name, schema) for schema in schemas[: len(ports)]]
    return _native.Operator.python_ports(
        spec.name,
        tolerant(code, ports, spec.on_error, checks),
        [FunctionPort(native_schema(code.input_schema), code.input_schema.tuple_type)],
        schemas,
        code.view.value,
        state=keyed,
        letters=diverts,
    )


def inner_operator(name: str, code: CompiledFunction) -> _native.Operator:
    """Make the operator of a function that another operator calls."""
    assert isinstance(code, OperatorCode)
    loaded = load(code)
    source, target = native_schema(code.input_schema), native_schema(code.output_schema)
    if code.lane is Lane.COMPILED:
        return _native.Operator.compiled(name, loaded.address, loaded.flags, source, target, owner=loaded.owner)
    assert loaded.function is not None
    record = code.input_schema.tuple_type
    return _native.Operator.python(
        name, loaded.function, source, target, record, view=code.view.value, flags=loaded.flags
    )


def class_operator(spec: OperatorSpec, code: PortsCode, resources: Resources) -> _native.Operator:
    """Make the operator of a user's class, and initialize its instance.

    Raises:
        JobFailedError: The user's `initialize` raised.
    """
    function = resources.classes[spec.name] = PortsFunction(code)
    times = (None, *spec.ttl.further) if spec.ttl is not None else ()
    inputs = [
        FunctionPort(
            native_schema(port.schema),
            port.schema.tuple_type,
            port.keys,
            None if port.demand is None else (port.demand.kind.value, port.demand.count),
            None if time is None else (time.field, time.shift),
        )
        for port, time in zip_longest(code.inputs, times)
    ]
    state: Any = (function.kept.snapshot, function.kept.restore) if spec.state_kind is StateKind.STATEFUL else None
    if code.state is not None:
        state = _native.KeyedState.objects(inputs[0].schema, list(inputs[0].keys), code.state, ttl_of(spec))
    try:
        function.initialize()
    except Exception as error:
        shown = "".join(traceback.format_exception(error))
        raise JobFailedError(
            error_text(error),
            job=resources.job,
            operator=spec.name,
            traceback_text=shown,
            code=ErrorCode.FUNCTION_RAISED,
        ) from error
    outputs = [native_schema(port.schema) for port in spec.outputs]
    function.checks = [_native.RecordCheck(spec.name, native_schema(port.schema)) for port in code.outputs]
    return _native.Operator.python_ports(
        spec.name,
        function.call,
        inputs,
        outputs,
        code.view.value,
        Flags.ON_FINISH if code.ends else Flags(0),
        state,
        letters=code.on_error is OnError.DIVERT,
    )


def process_operator(spec: OperatorSpec, body: KeyedProcess, _: Resources) -> _native.Operator:
    """Make the operator of a user's class with timers."""
    if body.code is not None:
        return _compiled_process(spec, body)
    source = native_schema(body.input_schema)
    function = ProcessFunction(body, time.time)
    function.keys = keys = _native.KeyedState.objects(source, list(body.keys), function.new, told=True)
    flags = Flags.ON_FINISH | (Flags.ON_COMMAND if body.time is None else Flags.ON_WATERMARK)
    return _native.Operator.python_ports(
        spec.name,
        function.call,
        [FunctionPort(source, body.input_schema.tuple_type)],
        [native_schema(port.schema) for port in spec.outputs],
        flags=flags,
        state=keys,
    )


def _compiled_process(spec: OperatorSpec, body: KeyedProcess) -> _native.Operator:
    code = body.code
    assert isinstance(code, ProcessCode)
    loaded = load_process(code)
    texts = [each.offset for each in code.state_schema.fields if each.type.is_variable]
    field, shift = ("", 0) if body.time is None else (body.time.field, body.time.shift)
    binary = [each.offset for each in code.state_schema.fields if each.type.native == DataType.BINARY.value]
    return _native.Operator.process(
        spec.name,
        (native_schema(body.input_schema), native_schema(spec.outputs[0].schema), native_schema(code.moment)),
        list(body.keys),
        loaded.addresses,
        (code.state_initial, texts, binary),
        (field, shift, body.times.ticks_per_second, body.ttl_ticks, body.ttl is not None and body.ttl.since == "first"),
        (partial(why_tuple, body), partial(why_moment, body)),
        loaded.owner,
    )
