"""What an operator is, as the layers below the graph see it: kind, lane, state, schemas, and what it runs.

Knows no threads, PEs or native code. The compiler is a Protocol: what it makes is opaque here but for lane, reason and
output schema.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, Protocol

from rayelastic.graph.records.schema import Schema
from rayelastic.graph.records.time_info import TimeInfo, TimeToLive
from rayelastic.graph.spec.concurrency import Concurrency
from rayelastic.graph.spec.dead_letters import OnError
from rayelastic.graph.spec.ports import InputPort, OutputPort, endpoint, operator_of, stream_name

__all__ = [
    "AggregateRequest",
    "CompiledAggregate",
    "CompiledFunction",
    "CompiledProcess",
    "FunctionRequest",
    "Lane",
    "OperatorBody",
    "OperatorKind",
    "OperatorRequest",
    "OperatorSpec",
    "ProcessRequest",
    "SinkDescription",
    "SourceDescription",
    "StateKind",
]


class Lane(Enum):
    """How an operator runs."""

    BUILT_IN = "built-in"  # C++ over records, never needs the GIL
    COMPILED = "compiled"  # a Python function compiled to machine code, never needs the GIL
    VECTORISED = "vectorised"  # a Python function of a whole run
    PYTHON = "python"  # a Python function of one tuple

    @property
    def needs_python(self) -> bool:
        """Whether it runs under the Python token."""
        return self in (Lane.VECTORISED, Lane.PYTHON)


class OperatorKind(Enum):
    """What an operator does to its input."""

    SOURCE = "source"
    MAP = "map"
    FILTER = "filter"
    FLAT_MAP = "flat_map"
    AGGREGATE = "aggregate"
    OPERATOR = "operator"  # of a class, with ports
    PROCESS = "process"  # of a class, with timers of keys
    SPLIT = "split"
    CHANNELS = "channels"  # deals out to those of a stage
    IN_TURN = "in_turn"  # and brings them together in order
    THROTTLE = "throttle"
    DELAY = "delay"
    EVENT_TIME = "event_time"
    WINDOW = "window"
    JOIN = "join"
    MATCH = "match"  # sequences of tuples of a key
    MERGE = "merge_by_time"
    UNION = "union"  # in front of an event time
    SINK = "sink"

    @property
    def is_passage(self) -> bool:
        """Whether it keeps nothing once all that came has been processed, so that there is nothing to save of it."""
        return self in (OperatorKind.CHANNELS, OperatorKind.IN_TURN, OperatorKind.THROTTLE, OperatorKind.UNION)


class StateKind(Enum):
    """What an operator remembers between tuples (Joker section 2; J05)."""

    STATELESS = "stateless"
    PARTITIONED = "partitioned"  # independent state per key
    STATEFUL = "stateful"  # state that may depend on the whole stream


@dataclass(frozen=True, slots=True)
class FunctionRequest:
    """A user's function to be made into an operator function.

    Args:
        operator: name of the operator, for messages.
        kind: MAP, FILTER or FLAT_MAP.
        function: of one tuple, or of a tuple and the state of its key where `state` is given.
        input_schema: of the tuples that it gets.
        output: what it gives, where declared; None: find out. FILTER keeps the input schema.
        keys: the key fields where it is keyed, else empty.
        state: NamedTuple class with defaults (fixed layout), or any callable without arguments that makes the initial
            state of a key; None: stateless.
        lane: 'auto', or the lane that the user asked for.
        location: 'file.py:12' of the declaration.
        sides: names of the output ports that it may send to with rel.to.
        concurrent: how many calls wait at the same time; None: one comes after the other.
    """

    operator: str
    kind: OperatorKind
    function: Callable[..., Any]
    input_schema: Schema
    output: Schema | None = None
    keys: tuple[str, ...] = ()
    state: Callable[[], Any] | None = None
    lane: Literal["auto"] | Lane = "auto"
    location: str = ""
    sides: tuple[str, ...] = ()
    concurrent: Concurrency | None = None


@dataclass(frozen=True, slots=True)
class OperatorRequest:
    """An instance of a user's operator class to be made into an operator function.

    Args:
        operator: its name, for messages.
        instance: with `invoke` and what else @rel.operator knows.
        inputs: its input ports.
        outputs: its output ports; none of an operator that only takes.
        state: makes the state of a key; None: it keeps none of keys.
        lane: 'auto', or the lane that the user asked for.
        location: 'file.py:12' of the declaration.
        on_error: what happens to a tuple on which `invoke` raises.
    """

    operator: str
    instance: Any
    inputs: tuple[InputPort, ...]
    outputs: tuple[OutputPort, ...]
    state: Callable[[], Any] | None
    lane: Literal["auto"] | Lane = "auto"
    location: str = ""
    on_error: OnError = OnError.FAIL


@dataclass(frozen=True, slots=True)
class ProcessRequest:
    """An object with timers of keys whose methods are to be compiled.

    Args:
        operator: its name, for messages.
        instance: with `on_tuple`, and perhaps `on_time` and `on_end`.
        input_schema: of the tuples that it gets.
        output: of what it gives.
        keys: the key fields.
        state: makes the state of a key.
        time: the event time by which it goes; None: the clock.
        location: 'file.py:12' of the declaration.
    """

    operator: str
    instance: Any
    input_schema: Schema
    output: Schema
    keys: tuple[str, ...]
    state: Callable[[], Any]
    time: TimeInfo | None
    location: str = ""


class CompiledProcess(Protocol):
    """What the graph knows of the compiled methods of an object with timers. Picklable."""

    @property
    def state_schema(self) -> Schema:
        """Of the state of a key."""
        ...


@dataclass(frozen=True, slots=True)
class AggregateRequest:
    """An object that aggregates, whose methods are to be compiled.

    Args:
        operator: its name, for messages.
        instance: with `add(t, state)` and `result(state)`, and perhaps `merge(other, state)`.
        first: the state of nothing.
        input_schema: of the tuples that it gets.
        output: of its results; None: find out.
        location: 'file.py:12' of the declaration.
    """

    operator: str
    instance: Any
    first: Any
    input_schema: Schema
    output: Schema | None
    location: str = ""


class CompiledAggregate(Protocol):
    """What the graph knows of the compiled methods of an object that aggregates. Picklable."""

    @property
    def reason(self) -> str:
        """Describe the operator for `explain()`."""
        ...

    @property
    def state_schema(self) -> Schema:
        """Of the state."""
        ...

    @property
    def output_schema(self) -> Schema:
        """Of its results."""
        ...

    @property
    def merges(self) -> bool:
        """Whether states can be merged."""
        ...


class OperatorBody(Protocol):
    """What the graph knows of an operator class's function, or of a native operator. Picklable."""

    @property
    def lane(self) -> Lane:
        """The lane that it was given."""
        ...

    @property
    def reason(self) -> str:
        """Why that lane, in words."""
        ...


class CompiledFunction(Protocol):
    """What the graph knows of a compiled function. Picklable."""

    @property
    def lane(self) -> Lane:
        """The lane that it was given."""
        ...

    @property
    def reason(self) -> str:
        """Why that lane, in words."""
        ...

    @property
    def output_schema(self) -> Schema:
        """Of the tuples that it emits."""
        ...

    @property
    def kept(self) -> frozenset[str]:
        """The fields that every tuple has as the one had that it was made of, as far as can be told."""
        ...


class SourceDescription(Protocol):
    """Where tuples come from: a value that can be shipped and started again, never a live iterator."""

    @property
    def schema(self) -> Schema:
        """Of the tuples that it gives."""
        ...

    @property
    def lane(self) -> Lane:
        """The execution mode."""
        ...

    @property
    def reason(self) -> str:
        """Why that lane, in words."""
        ...

    def check(self, operator: str) -> None:
        """Raise SourceError, naming the operator, if it can't be read."""
        ...


class SinkDescription(Protocol):
    """Where tuples go."""

    @property
    def lane(self) -> Lane:
        """The execution mode."""
        ...

    @property
    def reason(self) -> str:
        """Why that lane, in words."""
        ...

    def check(self, operator: str) -> None:
        """Raise SinkError, naming the operator, if it can't be written."""
        ...


@dataclass(frozen=True, slots=True)
class OperatorSpec:
    """One declared operator.

    Args:
        name: unique in the topology; keys metrics, state and plans.
        kind: what it does.
        inputs: its input ports, in order; none of a source.
        outputs: its output ports, in order; none of a sink.
        state_kind: what it remembers.
        body: SourceDescription, SinkDescription, CompiledFunction, or OperatorBody, by kind.
        location: 'file.py:12' of the declaration.
        on_error: what happens to a tuple on which its function raises.
        ttl: after how long without a tuple a key of it is forgotten; None: never.
        remembers: what it is known to change outside its state, as the user writes it; then it has one replica.
        automatic: whether its name is that of its function or method, as the program sets none.
    """

    name: str
    kind: OperatorKind
    inputs: tuple[InputPort, ...]
    outputs: tuple[OutputPort, ...]
    state_kind: StateKind
    body: SourceDescription | SinkDescription | CompiledFunction | OperatorBody
    location: str = ""
    on_error: OnError = OnError.FAIL
    ttl: TimeToLive | None = None
    remembers: tuple[str, ...] = ()
    automatic: bool = False

    @property
    def input_schema(self) -> Schema | None:
        """Of its first input port; None of a source."""
        return self.inputs[0].schema if self.inputs else None

    @property
    def output_schema(self) -> Schema | None:
        """Of its first output port; None of a sink."""
        return self.outputs[0].schema if self.outputs else None

    @property
    def keys(self) -> tuple[str, ...]:
        """The key fields of the first input port of a PARTITIONED operator, else empty."""
        return self.inputs[0].keys if self.inputs else ()

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of the streams that it gives."""
        return tuple(stream_name(self.name, port.name) for port in self.outputs)

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """(stream, endpoint) of all that it takes, port by port; without what comes back in a loop."""
        return tuple((s, endpoint(self.name, port.name)) for port in self.inputs for s in port.streams)

    @property
    def loop_edges(self) -> tuple[tuple[str, str], ...]:
        """(stream, endpoint) of all that comes back to it in a loop."""
        return tuple((s, endpoint(self.name, port.name)) for port in self.inputs for s in port.feedback)

    @property
    def taken(self) -> tuple[str, ...]:
        """The names of the streams that it takes (ports.stream_name); without what comes back in a loop."""
        return tuple(stream for port in self.inputs for stream in port.streams)

    @property
    def upstream(self) -> tuple[str, ...]:
        """The operators that feed it, one for each edge; without what comes back in a loop."""
        return tuple(map(operator_of, self.taken))

    @property
    def lane(self) -> Lane:
        """The execution mode."""
        return self.body.lane

    @property
    def reason(self) -> str:
        """Why in that lane, in words."""
        return self.body.reason
