"""Connects streams to the ports of an operator class, checks that they fit (J04), and derives the output schemas.

Knows no threads, PEs or native code.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rayelastic.errors import ErrorCode, GraphError
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.records.shown import conflict, shown
from rayelastic.graph.records.time_info import TimeToLive
from rayelastic.graph.spec.dead_letters import OnError, dead_letters, on_error_of
from rayelastic.graph.spec.declaration import NewOperator
from rayelastic.graph.spec.operator_class import OperatorDefinition, definition_of
from rayelastic.graph.spec.operator_spec import OperatorSpec, StateKind
from rayelastic.graph.spec.ordering import with_order
from rayelastic.graph.spec.ports import IN, OUT, InputPort, OutputPort
from rayelastic.graph.spec.requests import FunctionCompiler, OperatorRequest
from rayelastic.graph.spec.upstream import Upstream


def class_operator(
    name: str,
    instance: Any,
    streams: Mapping[str, Upstream | None],
    operators: Mapping[str, OperatorSpec],
    compiler: FunctionCompiler,
    on_error: object = OnError.FAIL,
    ordered: object = None,
) -> OperatorSpec:
    """Make an operator of a class that is decorated with @rel.operator.

    Args:
        name: The operator's name.
        instance: An object of the class; each job copies it.
        streams: {input port: its stream}.
        operators: The operators declared before.
        compiler: Chooses the execution mode.
        on_error: What happens to a tuple on which `invoke` raises.
        ordered: The order that its replicas keep.

    Raises:
        GraphError: Ports, streams, keys or output ports don't fit.
        SchemaError: A stream lacks a field that the operator requires.
        LaneError: The requested execution mode is unsupported.
    """
    with NewOperator(name, operators) as location:
        definition = definition_of(instance)
        inputs = _inputs(definition, streams)
        outputs = _outputs(definition, instance, {port.name: port.schema for port in inputs})
        policy = on_error_of(on_error)
        _check_policy(policy, inputs, outputs)
        request = OperatorRequest(
            name, _copied(instance), inputs, outputs, definition.state, definition.lane, location, policy
        )
        body = compiler.compile_operator(request)
        lives = _lives(definition, streams)
        if len(inputs) == 1:
            inputs = (replace(inputs[0], name=IN),)
        if len(outputs) == 1:
            outputs = (replace(outputs[0], name=OUT),)
        if policy is OnError.DIVERT:
            outputs += (dead_letters(inputs[0].schema),)
        kept = definition.state_kind
        remembers = () if kept is StateKind.STATEFUL or not body.lane.needs_python else compiler.remembered(body)
        spec = OperatorSpec(name, inputs, outputs, kept, body, location, policy, lives)
        first = next(iter(streams.values()), None)
        return with_order(replace(spec, remembers=remembers), ordered, first.keys if first else (), operators)


def _lives(definition: OperatorDefinition, streams: Mapping[str, Upstream | None]) -> TimeToLive | None:
    up = next(iter(streams.values()), None)
    if definition.ttl is None or up is None:
        return None
    times = [None if one is None else one.event_time for one in streams.values()]
    units = {time.unit for time in times if time is not None}
    clock = None in times
    if not clock and len(units) > 1:
        raise GraphError(
            f"ttl={shown(definition.ttl)}, and the event times of its inputs are in {' and '.join(sorted(units))}",
            hint="Map them to times of the same unit",
            code=ErrorCode.EVENT_TIME_MISMATCH,
        )
    lives = up.time_to_live(
        definition.ttl,
        None if definition.state is not None else "state=",
        clock=clock,
        changes="invoke may change its state at any time",
    )
    return lives if clock or lives is None else replace(lives, further=tuple(time for time in times[1:] if time))


def _inputs(definition: OperatorDefinition, streams: Mapping[str, Upstream | None]) -> tuple[InputPort, ...]:
    unknown = next((port for port in streams if port not in definition.inputs), None)
    if unknown is not None:
        raise GraphError(
            f"it has no input port {unknown!r}",
            hint=f"Its input ports are {', '.join(definition.inputs)}",
            code=ErrorCode.UNKNOWN_PORT,
        )
    ports = []
    for port, wanted in definition.inputs.items():
        up = streams.get(port)
        if up is None:
            raise GraphError(
                f"its input port '{port}' has no stream",
                hint=f"Pass {port}=stream, or remove the port",
                code=ErrorCode.UNCONNECTED_PORT,
            )
        if wanted.schema is not None:
            _check_fields(port, wanted.schema, up.schema)
        ports.append(InputPort(port, up.schema, up.inputs, _keys(port, definition, up), wanted.demand))
    _check_keys(ports)
    return tuple(ports)


def _check_fields(port: str, wanted: Schema, given: Schema) -> None:
    for field in wanted.fields:
        field_given = given.field(field.name)
        if field_given.type is not field.type or field_given.nullable > field.nullable:
            raise GraphError(
                f"input port '{port}' expects {field}, but its stream has {field_given}",
                hint=f"Map the stream to {wanted}",
                code=ErrorCode.SCHEMA_MISMATCH,
            )


def _check_policy(policy: OnError, inputs: tuple[InputPort, ...], outputs: tuple[OutputPort, ...]) -> None:
    if policy is not OnError.FAIL and inputs[0].demand is not None:
        raise conflict(
            f"on_error='{policy.value}' of an operator that waits for all its ports: no single tuple fails",
            "Catch exceptions in invoke",
        )
    if policy is OnError.DIVERT and (len(inputs) > 1 or not outputs):
        raise conflict(
            "on_error='divert' needs a single input port, and an output port", "Use 'skip', or catch in invoke"
        )


def _keys(port: str, definition: OperatorDefinition, up: Upstream) -> tuple[str, ...]:
    if definition.state_kind is not StateKind.PARTITIONED:
        return ()  # an operator without keyed state doesn't depend on keys
    if not up.keys:
        raise GraphError(
            f"it keeps state of keys, but the stream of input port '{port}' has no key",
            hint="Write .key_by(field, ...) on it",
            code=ErrorCode.NO_KEY,
        )
    return up.keys


def _check_keys(ports: list[InputPort]) -> None:
    def formats(port: InputPort) -> list[str]:
        return [port.schema.field(key).format for key in port.keys]

    for port in ports[1:]:
        if formats(port) != formats(ports[0]):
            shown_keys = [f"'{one.name}' has {', '.join(str(one.schema.field(k)) for k in one.keys)}" for one in ports]
            raise GraphError(
                f"its input ports have keys of different types: {'; '.join(shown_keys)}",
                hint="Use key_by with as many fields, of the same types, on each",
                code=ErrorCode.KEY_MISMATCH,
            )


def _outputs(definition: OperatorDefinition, instance: Any, inputs: Mapping[str, Schema]) -> tuple[OutputPort, ...]:
    ports: Any = definition.outputs
    if ports is None:
        ports = instance.output_schemas(dict(inputs))
        if not isinstance(ports, Mapping) or not all(isinstance(port, str) and port.isidentifier() for port in ports):
            raise GraphError(
                f"output_schemas returned {shown(ports)}",
                hint="Return {output port: schema}, the names being identifiers",
                code=ErrorCode.BAD_RETURN,
            )
    return tuple(
        OutputPort(port, inputs[given] if isinstance(given, str) else Schema.of(given)) for port, given in ports.items()
    )


def _copied(instance: Any) -> Any:
    """Copy the instance, so that a job can't change the user's object."""
    try:
        return copy.deepcopy(instance)
    except Exception as error:  # whatever a user's object raises
        raise GraphError(
            f"it can't be copied: {error}",
            hint="Open files, locks and connections in initialize(), not in __init__()",
            code=ErrorCode.NOT_COPYABLE,
        ) from error
