"""Operators that run in several channels: a fixed number (`parallel`), or an elastic number (`elastic`).

A stage splits a stream into channels with the same operators, and merges their outputs. The operators are declared
once. The stage has a copy of them for each channel, named `STAGE.0.NAME`, `STAGE.1.NAME`, ... The descriptions here
are what the layers below receive. Knows no threads, PEs or native code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import NoReturn

from rayelastic.errors import ErrorCode, GraphError
from rayelastic.graph.operators.splits import Split, split_operator
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.records.shown import check_flag, counted, invalid, shown
from rayelastic.graph.spec.declaration import NewOperator, check_new
from rayelastic.graph.spec.operator_spec import (
    OperatorBody,
    OperatorSpec,
    SinkDescription,
    SourceDescription,
    StateKind,
)
from rayelastic.graph.spec.order import memory_of
from rayelastic.graph.spec.ports import IN, OUT, InputPort, OutputPort, operator_of, port_of, stream_name
from rayelastic.graph.spec.upstream import Upstream

ORDER = "order"  # the operator that restores the order of stage 'work' is named 'work.order'
MOST_CHANNELS = 1000  # of a stage: each channel has its own operators
MOST_THREADS = 256  # of elastic channels: each has a thread from the start


class Governor(Enum):
    """The policy that decides how many channels of a stage receive tuples."""

    NOBODY = "nobody"  # all channels do
    PEAK_RATE = "peak rate"  # the elastic operator of IPDPS'09
    CONGESTION = "congestion"  # the ElasticLoadBalance operator


@dataclass(frozen=True, slots=True)
class Channels(OperatorBody):
    """Distributes tuples over the active channels, round-robin or by the hash of their keys.

    Args:
        most: The number of channels; each is an output port.
        start: How many receive tuples at first.
        governor: The policy that changes this number.
        ordered: Whether the order is restored downstream.
        keys: Fields whose hash decides; then all channels receive tuples.
    """

    most: int
    start: int
    governor: Governor = Governor.NOBODY
    ordered: bool = False
    keys: tuple[str, ...] = ()
    operator_kind = "channels"
    aligns = False

    @property
    def reason(self) -> str:
        """Describe the operator for `explain()`."""
        if self.keys:
            return f"by the hash of {', '.join(self.keys)} to {counted(self.most, 'channel')}"
        if self.governor is Governor.NOBODY:
            return f"in turn to {counted(self.most, 'channel')}"
        return f"in turn to 1 to {self.most} channels, by {self.governor.value}"

    def state_kind(self, keys: tuple[str, ...]) -> StateKind:  # noqa: ARG002
        """Return STATELESS where the hash of keys decides."""
        return StateKind.STATELESS if self.keys else StateKind.STATEFUL


@dataclass(frozen=True, slots=True)
class InTurn(OperatorBody):
    """Merges channels in the order in which their tuples were distributed."""

    operator_kind = "in_turn"
    reason = "in the order before the channels"
    aligns = False
    ends = True  # it may emit when the input ends


@dataclass(frozen=True, slots=True)
class Section:
    """Operators in declared order, and their output streams: a whole stage, or the body of a channel."""

    operators: tuple[OperatorSpec, ...]
    inputs: tuple[str, ...]
    schema: Schema


Body = Callable[[Upstream], Section]


def parallel(up: Upstream, name: str, width: int, body: Body, by: str | Sequence[str] | None, order: bool) -> Section:
    """See ``Stream.parallel``; the body returns what it declares downstream of a channel's stream."""
    with NewOperator(name, up.operators) as location:
        channels = _count(width, "width", MOST_CHANNELS)
        keys = _keys(up, by)
        _check_flag(order)
        dealer: Channels | Split = Channels(channels, channels, ordered=order, keys=keys)
        if keys and not order:
            dealer = Split(channels, keys)
        return _stage(up, _dealer(up, name, dealer, location), body, lambda spec: _check_keyed(spec, keys))


def elastic(up: Upstream, name: str, body: Body, most: int, start: int, order: bool) -> Section:
    """See ``Stream.elastic``; the body is as for `parallel`."""
    with NewOperator(name, up.operators) as location:
        channels = _count(most, "most", MOST_THREADS)
        _check_flag(order)
        dealer = Channels(channels, _start(start, channels), Governor.PEAK_RATE, order)
        return _stage(up, _dealer(up, name, dealer, location), body, _check_stateless)


def elastic_split(up: Upstream, name: str, ways: int, start: int) -> OperatorSpec:
    """See ``Stream.elastic_split``."""
    with NewOperator(name, up.operators) as location:
        channels = _count(ways, "ways", MOST_THREADS)
        return _dealer(up, name, Channels(channels, _start(start, channels), Governor.CONGESTION), location)


def channel_heads(operators: Mapping[str, OperatorSpec]) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Find the first operators of each channel of operators with a governor: {name: operators by channel}."""
    dealers = {
        name: spec
        for name, spec in operators.items()
        if isinstance(spec.body, Channels) and spec.body.governor is not Governor.NOBODY
    }
    heads: dict[str, dict[str, list[str]]] = {
        name: {stream: [] for stream in spec.streams} for name, spec in dealers.items()
    }
    for spec in operators.values():
        dealt = [stream for stream, _ in spec.edges if operator_of(stream) in dealers]
        if len(dealt) == 1:  # an operator that merges channels is in none of them
            heads[operator_of(dealt[0])][dealt[0]].append(spec.name)
    return {name: tuple(map(tuple, takers.values())) for name, takers in heads.items()}


def channel_operators(operators: Mapping[str, OperatorSpec], heads: Iterable[Iterable[str]]) -> list[str]:
    """Return all operators in the channels that begin with these; one that merges channels is in none of them."""
    inside = {name for channel in heads for name in channel}
    while True:
        more = {s.name for s in operators.values() if len(s.upstream) == 1 and s.upstream[0] in inside} - inside
        if not more:
            return [name for name in operators if name in inside]
        inside |= more


def ordered_channels(operators: Mapping[str, OperatorSpec], order: Iterable[str]) -> frozenset[str]:
    """Return the operators in channels of stages that restore the order.

    Args:
        operators: By name.
        order: Their names, upstream before downstream.
    """
    inside: set[str] = set()
    stages = [name for name, spec in operators.items() if isinstance(spec.body, Channels) and spec.body.ordered]
    if not stages:
        return frozenset()
    for name in order:
        upstream = operators[name].upstream
        body = operators[upstream[0]].body if len(upstream) == 1 else None
        if (isinstance(body, Channels) and body.ordered) or (
            body is not None and upstream[0] in inside and not isinstance(body, Channels | InTurn)
        ):
            inside.add(name)
    return frozenset(inside)


def _dealer(up: Upstream, name: str, body: Channels | Split, location: str) -> OperatorSpec:
    channels = body.most if isinstance(body, Channels) else body.ports
    names = tuple(f"out{number}" for number in range(channels))
    if isinstance(body, Split):
        return split_operator(up, name, body, names, location)
    return up.operator(
        name,
        body,
        location,
        tuple(OutputPort(port, up.schema) for port in names),
    )


def _stage(up: Upstream, dealer: OperatorSpec, body: Body, check: Callable[[OperatorSpec], None]) -> Section:
    """Make the operators of a stage: a copy of the body for each channel."""
    dealt = dealer.body
    assert isinstance(dealt, Channels | Split)
    ordered = isinstance(dealt, Channels) and dealt.ordered
    inside = body(up.behind(dealer, dealt.keys))
    for spec in inside.operators:
        if isinstance(spec.body, SourceDescription | SinkDescription):
            _refuse(spec, f"a {spec.kind} can't stand in a channel", "Put it in front of the stage, or behind it")
        check(spec)
    if ordered:
        _check_chain(dealer, inside)
    names = {spec.name for spec in inside.operators}
    channels = [
        _Renamed(f"{dealer.name}.{n}.", names, dealer.streams[0], entry) for n, entry in enumerate(dealer.streams)
    ]
    copies = [channel.operator(spec) for channel in channels for spec in inside.operators]
    for taken in (f"{dealer.name}.{ORDER}", *(spec.name for spec in copies)):
        check_new(taken, up.operators)
    ends = [channel.streams(inside.inputs) for channel in channels]
    if not ordered:
        together = tuple(dict.fromkeys(end for each in ends for end in each))
        return Section((dealer, *copies), together, inside.schema)
    restored = _in_turn(f"{dealer.name}.{ORDER}", inside.schema, ends, dealer.location)
    return Section((dealer, *copies, restored), restored.streams, inside.schema)


def _in_turn(name: str, schema: Schema, ends: list[tuple[str, ...]], location: str) -> OperatorSpec:
    """Make the operator that restores the order of channels that end in these streams."""
    names = [f"in{number}" for number in range(len(ends))] if len(ends) > 1 else [IN]
    inputs = tuple(InputPort(port, schema, end) for port, end in zip(names, ends, strict=True))
    outputs = (OutputPort(OUT, schema),)
    return OperatorSpec(name, inputs, outputs, StateKind.STATEFUL, InTurn(), location)


@dataclass(frozen=True, slots=True)
class _Renamed:
    """The names that the operators of a draft have in a channel."""

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
        inputs = tuple(
            replace(port, streams=self.streams(port.streams), feedback=self.streams(port.feedback))
            for port in spec.inputs
        )
        return replace(spec, name=self.prefix + spec.name, inputs=inputs)


def _check_chain(dealer: OperatorSpec, inside: Section) -> None:
    """Reject a body from which tuples leave a channel on several paths, or on none."""
    operators = {spec.name: spec for spec in inside.operators}
    left = set(operators)
    inputs = inside.inputs
    while len(inputs) == 1 and operator_of(inputs[0]) in operators:
        spec = operators[operator_of(inputs[0])]
        left.discard(spec.name)
        if len(spec.inputs) > 1 or spec.loop_edges or spec.inputs[0].demand is not None:
            _refuse(spec, "with order=True a channel is a single chain, and this has several inputs", "Leave order out")
        inputs = spec.taken
    if inputs != dealer.streams[:1] or left:
        raise GraphError(
            "with order=True a channel is a single chain, and this body branches",
            hint="Leave order out, or branch downstream of the stage",
            code=ErrorCode.BRANCHING_STAGE,
        )


def _check_stateless(spec: OperatorSpec) -> None:
    _check_memory(spec)
    if spec.state_kind is not StateKind.STATELESS:
        _refuse(
            spec,
            "it keeps state, and a tuple of an elastic stage may go to any channel",
            "Use .parallel(width, body, by=key), put it behind the stage, or say stateless=True of a class",
        )


def _check_memory(spec: OperatorSpec) -> None:
    if spec.remembers:
        _refuse(spec, f"it {memory_of(spec)}", "Keep what it remembers in state=, or put it behind the stage")


def _check_keyed(spec: OperatorSpec, by: tuple[str, ...]) -> None:
    _check_memory(spec)
    if spec.keys and not (by and set(by) <= set(spec.keys)):
        dealt = f"by {', '.join(by)}" if by else "in turn"
        _refuse(
            spec,
            f"it keeps state of {', '.join(spec.keys)}, and tuples go to channels {dealt}: several would have a key",
            f"Give by='{spec.keys[0]}'",
        )


def _keys(up: Upstream, by: str | Sequence[str] | None) -> tuple[str, ...]:
    if by is None:
        return up.keys
    fields: object = (by,) if isinstance(by, str) else by
    if not isinstance(fields, Sequence) or not all(isinstance(field, str) for field in fields):
        raise invalid("by", by, "Pass a field, or several", ErrorCode.WRONG_TYPE)
    return up.keyed(tuple(fields)).keys if fields else ()


def _count(value: object, what: str, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise GraphError(
            f"{what}={shown(value)} channels", hint=f"Pass a whole number from 1 to {most}", code=ErrorCode.OUT_OF_RANGE
        )
    return value


def _check_flag(order: object) -> None:
    check_flag("order", order)


def _start(value: object, most: int) -> int:
    start = _count(value, "start", MOST_THREADS)
    if start > most:
        raise GraphError(
            f"start={start} of at most {most} channels", hint=f"Pass {most} or less", code=ErrorCode.OUT_OF_RANGE
        )
    return start


def _refuse(spec: OperatorSpec, problem: str, hint: str) -> NoReturn:
    raise GraphError(problem, operator=spec.name, location=spec.location, hint=hint, code=ErrorCode.BRANCHING_STAGE)
