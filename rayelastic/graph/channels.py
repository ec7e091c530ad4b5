"""Operators that run in several channels: a fixed number (`parallel`), or more and fewer while they run (`elastic`).

A stage deals a stream out to channels, each with the same operators, and brings together what they give. The operators
are declared once; the stage has a copy of them for each channel, named `STAGE.0.NAME`, `STAGE.1.NAME`, ... The
descriptions here are what the layers below get. Knows no threads, PEs or native code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, NoReturn

from rayelastic.errors import DeclarationError, GraphError
from rayelastic.graph.composition import Streams
from rayelastic.graph.declaration import binds, check_new
from rayelastic.graph.keyed_stream import KeyedStream
from rayelastic.graph.location import caller_location
from rayelastic.graph.operator_spec import Lane, OperatorKind, OperatorSpec, StateKind
from rayelastic.graph.ports import IN, InputPort, OutputPort, operator_of, port_of, stream_name
from rayelastic.graph.shown import shown
from rayelastic.graph.splits import Split
from rayelastic.graph.stream import Stream, check_at

if TYPE_CHECKING:
    pass

__all__ = ["Channels", "Governor", "InTurn", "channel_heads", "elastic", "elastic_split", "is_in_turn", "parallel"]

ORDER = "order"  # what restores the order of stage 'work' is called 'work.order'
MOST_CHANNELS = 1000  # of a stage: each has operators of its own
MOST_THREADS = 256  # elastic channels, which have a thread each from the start

Body = Callable[[Stream], Stream]


class Governor(Enum):
    """Who decides how many channels of a stage get tuples."""

    NOBODY = "nobody"  # all do
    PEAK_RATE = "peak rate"  # the elastic operator of IPDPS'09
    CONGESTION = "congestion"  # the ElasticLoadBalance operator


@dataclass(frozen=True, slots=True)
class Channels:
    """Deals tuples out to the first channels, in turn, or by the hash of their keys.

    Args:
        most: how many channels there are; each is an output port.
        start: how many get tuples at first.
        governor: who changes that.
        ordered: whether the order is restored behind them.
        keys: fields whose hash decides; then all channels get tuples.
        lane: how it runs.
    """

    most: int
    start: int
    governor: Governor = Governor.NOBODY
    ordered: bool = False
    keys: tuple[str, ...] = ()
    lane: Lane = Lane.BUILT_IN

    @property
    def reason(self) -> str:
        """What runs, in words."""
        if self.keys:
            return f"by the hash of {', '.join(self.keys)} to {self.most} channels"
        if self.governor is Governor.NOBODY:
            return f"in turn to {self.most} channels"
        return f"in turn to 1 to {self.most} channels, by {self.governor.value}"


@dataclass(frozen=True, slots=True)
class InTurn:
    """Brings channels together in the order in which they were dealt out."""

    lane: Lane = Lane.BUILT_IN
    reason: str = "in the order before the channels"
    ends: bool = True  # it may give more at the end


def parallel(stream: Stream, name: str, width: int, body: Body, by: str | Sequence[str] | None, order: bool) -> Stream:
    """See ``Stream.parallel``."""
    location = caller_location()
    check_at(name, location)
    try:
        check_new(name, stream.topology.operators)
        channels = _count(width, "width", MOST_CHANNELS)
        keys = _keys(stream, by)
        _check_flag(order)
        dealer: Channels | Split = Channels(channels, channels, ordered=order, keys=keys)
        if keys and not order:
            dealer = Split(channels, keys)
        return _stage(stream, name, dealer, body, location, lambda spec: _check_keyed(spec, keys))
    except DeclarationError as error:
        error.at(name, location)
        raise


def elastic(stream: Stream, name: str, body: Body, most: int, start: int, order: bool) -> Stream:
    """See ``Stream.elastic``."""
    location = caller_location()
    check_at(name, location)
    try:
        check_new(name, stream.topology.operators)
        channels = _count(most, "most", MOST_THREADS)
        _check_flag(order)
        dealer = Channels(channels, _start(start, channels), Governor.PEAK_RATE, order)
        return _stage(stream, name, dealer, body, location, _check_stateless)
    except DeclarationError as error:
        error.at(name, location)
        raise


def elastic_split(stream: Stream, name: str, ways: int, start: int) -> Streams:
    """See ``Stream.elastic_split``."""
    location = caller_location()
    check_at(name, location)
    try:
        check_new(name, stream.topology.operators)
        channels = _count(ways, "ways", MOST_THREADS)
        dealer = Channels(channels, _start(start, channels), Governor.CONGESTION)
    except DeclarationError as error:
        error.at(name, location)
        raise
    spec = _dealer(stream, name, dealer, location)
    topology = stream.topology
    topology._add(spec)
    ports = zip(spec.output_ports, spec.streams, strict=True)
    return Streams(name, {port.name: Stream(topology, (made,), port.schema) for port, made in ports})


def channel_heads(operators: Mapping[str, OperatorSpec]) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Find for each operator with a governor those that take one of its streams: {name: operators by channel}."""
    dealers = {
        name: spec
        for name, spec in operators.items()
        if isinstance(spec.body, Channels) and spec.body.governor is not Governor.NOBODY
    }
    found: dict[str, dict[str, list[str]]] = {
        name: {stream: [] for stream in spec.streams} for name, spec in dealers.items()
    }
    for spec in operators.values():
        dealt = [stream for stream, _ in spec.edges if operator_of(stream) in dealers]
        if len(dealt) == 1:  # what unites channels is no part of them
            found[operator_of(dealt[0])][dealt[0]].append(spec.name)
    return {name: tuple(map(tuple, takers.values())) for name, takers in found.items()}


def is_in_turn(operators: Mapping[str, OperatorSpec], name: str) -> bool:
    """Tell whether an operator stands in a channel of a stage that restores the order."""
    spec = operators[name]
    while len(spec.upstream) == 1:
        spec = operators[spec.upstream[0]]
        if isinstance(spec.body, InTurn):
            return False
        if isinstance(spec.body, Channels):
            return spec.body.ordered
    return False


def _dealer(stream: Stream, name: str, body: Channels | Split, location: str) -> OperatorSpec:
    channels = body.most if isinstance(body, Channels) else body.ports
    ports = tuple(OutputPort(f"out{number}", stream.schema) for number in range(channels))
    return OperatorSpec(
        name,
        OperatorKind.CHANNELS if isinstance(body, Channels) else OperatorKind.SPLIT,
        stream.inputs,
        stream.schema,
        stream.schema,
        (),
        StateKind.STATELESS if body.keys else StateKind.STATEFUL,
        body,
        location,
        first_output=ports[0].name,
        further_outputs=ports[1:],
    )


def _stage(
    stream: Stream,
    name: str,
    dealer: Channels | Split,
    body: Body,
    location: str,
    check: Callable[[OperatorSpec], None],
) -> Stream:
    """Declare the operators of a stage: the body once, in a draft of the topology, and copies for each channel."""
    from rayelastic.graph.topology import Topology

    _check_body(body)
    topology = stream.topology
    spec = _dealer(stream, name, dealer, location)
    draft = Topology(topology.name, compiler=topology.compiler)
    draft._operators = {**topology.operators, name: spec}
    before = set(draft.operators)
    given = Stream(draft, spec.streams[:1], stream.schema)
    made: object = body(KeyedStream(draft, given.inputs, given.schema, dealer.keys) if dealer.keys else given)
    if not isinstance(made, Stream) or made.topology is not draft:
        raise GraphError(
            f"the body of the stage gave {shown(made)}", way_out="Return the stream that its last operator gives"
        )
    inside = [one for one in draft.operators.values() if one.name not in before]
    for one in inside:
        if one.kind in (OperatorKind.SOURCE, OperatorKind.SINK):
            _refuse(one, f"a {one.kind.value} can't stand in a channel", "Put it in front of the stage, or behind it")
        check(one)
    ordered = isinstance(dealer, Channels) and dealer.ordered
    if ordered:
        _check_chain(draft.operators, name, made, inside)
    names = {one.name for one in inside}
    channels = [_Renamed(f"{name}.{n}.", names, spec.streams[0], entry) for n, entry in enumerate(spec.streams)]
    copies = [channel.operator(one) for channel in channels for one in inside]
    for taken in (f"{name}.{ORDER}", *(one.name for one in copies)):
        check_new(taken, topology.operators)
    for one in (spec, *copies):
        topology._add(one)
    ends = [channel.streams(made.inputs) for channel in channels]
    if not ordered:
        return Stream(topology, tuple(dict.fromkeys(end for each in ends for end in each)), made.schema)
    ports = tuple(InputPort(f"in{number}", made.schema, end) for number, end in enumerate(ends))
    restored = OperatorSpec(
        f"{name}.{ORDER}",
        OperatorKind.IN_TURN,
        ports[0].streams,
        made.schema,
        made.schema,
        (),
        StateKind.STATEFUL,
        InTurn(),
        location,
        first_input=ports[0].name if len(ports) > 1 else IN,
        further_inputs=ports[1:],
    )
    return topology._add(restored)


@dataclass(frozen=True, slots=True)
class _Renamed:
    """How the operators of a draft are called in a channel."""

    prefix: str
    names: set[str]
    entry: str  # the stream of the draft that enters the body
    channel: str  # the stream that enters this channel

    def streams(self, given: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self._stream(stream) for stream in given)

    def _stream(self, stream: str) -> str:
        if stream == self.entry:
            return self.channel
        operator = operator_of(stream)
        if operator not in self.names:
            return stream
        return stream_name(self.prefix + operator, port_of(stream, "out"))

    def operator(self, spec: OperatorSpec) -> OperatorSpec:
        further = tuple(
            replace(port, streams=self.streams(port.streams), feedback=self.streams(port.feedback))
            for port in spec.further_inputs
        )
        return replace(
            spec,
            name=self.prefix + spec.name,
            inputs=self.streams(spec.inputs),
            further_inputs=further,
            feedback=self.streams(spec.feedback),
        )


def _check_chain(operators: Mapping[str, OperatorSpec], dealer: str, made: Stream, inside: list[OperatorSpec]) -> None:
    """Refuse what lets turns out of a channel in several ways, or not at all."""
    left = {spec.name for spec in inside}
    inputs = made.inputs
    while len(inputs) == 1 and operator_of(inputs[0]) != dealer:
        spec = operators[operator_of(inputs[0])]
        left.discard(spec.name)
        if len(spec.input_ports) > 1 or spec.loop_edges or spec.demand is not None:
            _refuse(spec, "with order=True a channel is a single chain, and this has several inputs", "Leave order out")
        inputs = spec.inputs
    if len(inputs) > 1 or left:
        raise GraphError(
            "with order=True a channel is a single chain, and this body branches",
            way_out="Leave order out, or branch behind the stage",
        )


def _check_stateless(spec: OperatorSpec) -> None:
    if spec.state_kind is not StateKind.STATELESS:
        _refuse(
            spec,
            "it keeps state, and a tuple of an elastic stage may go to any channel",
            "Use .parallel(name, width, body, by=key), put it behind the stage, or say stateless=True of a class",
        )


def _check_keyed(spec: OperatorSpec, by: tuple[str, ...]) -> None:
    if spec.keys and not (by and set(by) <= set(spec.keys)):
        dealt = f"by {', '.join(by)}" if by else "in turn"
        _refuse(
            spec,
            f"it keeps state of {', '.join(spec.keys)}, and tuples go to channels {dealt}: several would have a key",
            f"Give by='{spec.keys[0]}'",
        )


def _keys(stream: Stream, by: str | Sequence[str] | None) -> tuple[str, ...]:
    if by is None:
        return stream.keys
    fields: object = (by,) if isinstance(by, str) else by
    if not isinstance(fields, Sequence) or not all(isinstance(field, str) for field in fields):
        raise GraphError(f"by={shown(by)}", way_out="Give a field, or several")
    return stream.key_by(*fields).keys if fields else ()


def _count(value: object, what: str, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise GraphError(f"{what}={shown(value)} channels", way_out=f"Give a whole number from 1 to {most}")
    return value


def _check_body(body: object) -> None:
    if not callable(body) or not binds(body, (None,)):
        raise GraphError(
            f"the body of a stage is a function from a stream to a stream, not {shown(body)}",
            way_out="Write lambda s: s.map(name, function)",
        )


def _check_flag(order: object) -> None:
    if not isinstance(order, bool):
        raise GraphError(f"order={shown(order)}", way_out="Give True or False")


def _start(value: object, most: int) -> int:
    start = _count(value, "start", MOST_THREADS)
    if start > most:
        raise GraphError(f"start={start} of at most {most} channels", way_out=f"Give {most} or less")
    return start


def _refuse(spec: OperatorSpec, problem: str, way_out: str) -> NoReturn:
    raise GraphError(problem, operator=spec.name, location=spec.location, way_out=way_out)
