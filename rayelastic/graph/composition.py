"""Where streams meet the ports of an operator class: the composition-time part of its checks (J04), and what comes out.

Knows no threads, PEs or native code.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from rayelastic.errors import DeclarationError, GraphError
from rayelastic.graph.dead_letters import OnError, dead_letters, on_error_of
from rayelastic.graph.declaration import check_new
from rayelastic.graph.keyed_stream import KeyedStream
from rayelastic.graph.location import caller_location
from rayelastic.graph.operator_class import OperatorDefinition, definition_of
from rayelastic.graph.operator_spec import OperatorKind, OperatorRequest, OperatorSpec, StateKind
from rayelastic.graph.ports import IN, OUT, InputPort, OutputPort, stream_name
from rayelastic.graph.schema import Schema
from rayelastic.graph.shown import shown
from rayelastic.graph.stream import Stream, SunkStream, check_at

if TYPE_CHECKING:
    from rayelastic.graph.topology import Topology

__all__ = ["Streams", "apply"]


class Streams:
    """The streams of an operator with several outputs, by port: `streams.late`, `streams["late"]`, or by number."""

    __slots__ = ("_name", "_streams")

    def __init__(self, name: str, streams: Mapping[str, Stream]) -> None:
        self._name = name
        self._streams = dict(streams)

    def __getitem__(self, port: str | int) -> Stream:
        if isinstance(port, int) and 0 <= port < len(self):
            return list(self)[port]
        if not isinstance(port, str) or port not in self._streams:
            self._refuse(port)
        return self._streams[port]

    def __getattr__(self, port: str) -> Stream:
        if port.startswith("__"):
            raise AttributeError(port)
        return self[port]

    def __iter__(self) -> Iterator[Stream]:
        return iter(self._streams.values())

    def __len__(self) -> int:
        return len(self._streams)

    def __repr__(self) -> str:
        return f"<streams of {self._name}: {', '.join(self._streams)}>"

    def _refuse(self, port: object) -> NoReturn:
        raise GraphError(
            f"it has no output port {port!r}",
            operator=self._name,
            location=caller_location(),
            way_out=f"Its output ports are {', '.join(self._streams)}",
        )


def apply(
    topology: Topology, name: str, instance: Any, streams: Mapping[str, object], on_error: object = OnError.FAIL
) -> Stream | Streams | SunkStream:
    """Declare an operator of a class that @rel.operator made.

    Args:
        topology: that it belongs to.
        name: of the operator.
        instance: of the class; it is copied for each job.
        streams: {input port: stream}.
        on_error: what happens to a tuple on which `invoke` raises.

    Raises:
        GraphError: ports, streams, keys or output ports don't fit.
        SchemaError: a stream lacks a field that the operator's design wants.
        LaneError: the lane can't be had.
    """
    location = caller_location()
    check_at(name, location)
    try:
        check_new(name, topology.operators)
        definition = definition_of(instance)
        inputs = _inputs(topology, definition, streams)
        outputs = _outputs(definition, instance, {port.name: port.schema for port in inputs})
        policy = on_error_of(on_error)
        _check_policy(policy, inputs, outputs)
        request = OperatorRequest(
            name, _copied(instance), inputs, outputs, definition.state, definition.lane, location, policy
        )
        body = topology.compiler.compile_operator(request)
        if policy is OnError.DIVERT:
            outputs += (dead_letters(inputs[0].schema),)
    except DeclarationError as error:
        error.at(name, location)
        raise
    first = inputs[0]
    spec = OperatorSpec(
        name,
        OperatorKind.OPERATOR,
        first.streams,
        first.schema,
        outputs[0].schema if outputs else None,
        first.keys,
        definition.state_kind,
        body,
        location,
        first_input=first.name if len(inputs) > 1 else IN,
        first_output=outputs[0].name if len(outputs) > 1 + (policy is OnError.DIVERT) else OUT,
        further_inputs=inputs[1:],
        further_outputs=outputs[1:],
        demand=first.demand,
        on_error=policy,
    )
    topology._add(spec)
    made = {port.name: Stream(topology, (stream_name(name, port.name),), port.schema) for port in spec.output_ports}
    if not made:
        return SunkStream(name)
    few = len(made) == 1 + (policy is OnError.DIVERT)
    return next(iter(made.values())) if few else Streams(name, made)


def _inputs(topology: Topology, definition: OperatorDefinition, streams: Mapping[str, object]) -> tuple[InputPort, ...]:
    unknown = next((port for port in streams if port not in definition.inputs), None)
    if unknown is not None:
        raise GraphError(
            f"it has no input port {unknown!r}", way_out=f"Its input ports are {', '.join(definition.inputs)}"
        )
    ports = []
    for port, wanted in definition.inputs.items():
        stream = streams.get(port)
        if stream is None:
            raise GraphError(
                f"nothing is given to its input port '{port}'", way_out=f"Pass {port}=stream, or take the port away"
            )
        if not isinstance(stream, Stream):
            raise GraphError(f"{port}={shown(stream)} is no stream", way_out="Pass what map, source or union return")
        if stream.topology is not topology:
            raise GraphError(
                f"{port}= is a stream of another topology, '{stream.topology.name}'",
                way_out=f"Declare both in '{topology.name}'",
            )
        if wanted.schema is not None:
            _check_fields(port, wanted.schema, stream.schema)
        keys = _keys(port, definition, stream)
        ports.append(InputPort(port, stream.schema, stream.inputs, keys, wanted.demand))
    _check_keys(ports)
    return tuple(ports)


def _check_fields(port: str, wanted: Schema, given: Schema) -> None:
    for field in wanted.fields:
        found = given.field(field.name)
        if found.type is not field.type or found.nullable > field.nullable:
            raise GraphError(
                f"input port '{port}' wants {field}, but its stream has {found}",
                way_out=f"Map the stream to {wanted}",
            )


def _check_policy(policy: OnError, inputs: tuple[InputPort, ...], outputs: tuple[OutputPort, ...]) -> None:
    if policy is not OnError.FAIL and inputs[0].demand is not None:
        raise GraphError(
            f"on_error='{policy.value}' of an operator that waits for all its ports: which tuple would it be?",
            way_out="Catch what can happen in invoke",
        )
    if policy is OnError.DIVERT and (len(inputs) > 1 or not outputs):
        raise GraphError(
            "on_error='divert' needs a single input port, and an output port", way_out="Use 'skip', or catch in invoke"
        )


def _keys(port: str, definition: OperatorDefinition, stream: Stream) -> tuple[str, ...]:
    if definition.state_kind is not StateKind.PARTITIONED:
        return ()  # what doesn't keep state of keys doesn't depend on them
    if not isinstance(stream, KeyedStream):
        raise GraphError(
            f"it keeps state of keys, but the stream of input port '{port}' has none",
            way_out="Write .key_by(field, ...) on it",
        )
    return stream.keys


def _check_keys(ports: list[InputPort]) -> None:
    def formats(port: InputPort) -> list[str]:
        return [port.schema.field(key).format for key in port.keys]

    for port in ports[1:]:
        if formats(port) != formats(ports[0]):
            shown_keys = [f"'{one.name}' has {', '.join(str(one.schema.field(k)) for k in one.keys)}" for one in ports]
            raise GraphError(
                f"its input ports have keys of different types: {'; '.join(shown_keys)}",
                way_out="Use key_by with as many fields, of the same types, on each",
            )


def _outputs(definition: OperatorDefinition, instance: Any, inputs: Mapping[str, Schema]) -> tuple[OutputPort, ...]:
    told: Any = definition.outputs
    if told is None:
        told = instance.output_schemas(dict(inputs))
        if not isinstance(told, Mapping) or not all(isinstance(port, str) and port.isidentifier() for port in told):
            raise GraphError(
                f"output_schemas gave {shown(told)}",
                way_out="Return {output port: schema}, the names being identifiers",
            )
    return tuple(
        OutputPort(port, inputs[given] if isinstance(given, str) else Schema.of(given)) for port, given in told.items()
    )


def _copied(instance: Any) -> Any:
    """Each operator has its own: what a job does to it doesn't come back."""
    try:
        return copy.deepcopy(instance)
    except Exception as error:  # whatever a user's object raises
        raise GraphError(
            f"it can't be copied: {error}",
            way_out="Open files, locks and connections in initialize(), not in __init__()",
        ) from error
