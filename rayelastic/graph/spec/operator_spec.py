"""Operators as the layers below the graph see them: kind, execution mode, state, schemas, and a body to run.

Knows no threads, PEs or native code. The compiler is a Protocol: its result is opaque here except for lane, reason and
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
    """The execution mode of an operator.

    >>> Lane("compiled").needs_python, Lane.PYTHON.needs_python
    (False, True)
    """

    BUILT_IN = "built-in"  # C++ over records, never needs the GIL
    COMPILED = "compiled"  # a Python function compiled to machine code, never needs the GIL
    VECTORISED = "vectorised"  # a Python function of a whole run
    PYTHON = "python"  # a Python function of one tuple

    @property
    def needs_python(self) -> bool:
        """Whether it needs the GIL."""
        return self in (Lane.VECTORISED, Lane.PYTHON)


class OperatorKind(Enum):
    """What an operator does with its input."""

    SOURCE = "source"
    MAP = "map"
    FILTER = "filter"
    FLAT_MAP = "flat_map"
    AGGREGATE = "aggregate"
    OPERATOR = "operator"  # of a class, with ports
    PROCESS = "process"  # of a class, with timers of keys
    SPLIT = "split"
    CHANNELS = "channels"  # splits a stream over the channels of a stage
    IN_TURN = "in_turn"  # merges them in order
    THROTTLE = "throttle"
    DELAY = "delay"
    EVENT_TIME = "event_time"
    WINDOW = "window"
    JOIN = "join"
    MATCH = "match"  # sequences of tuples of a key
    MERGE = "merge_by_time"
    UNION = "union"  # upstream of an event time
    SINK = "sink"

    @property
    def is_passage(self) -> bool:
        """Whether it keeps no state once its input is processed, so that checkpoints save nothing of it."""
        return self in (OperatorKind.CHANNELS, OperatorKind.IN_TURN, OperatorKind.THROTTLE, OperatorKind.UNION)


class StateKind(Enum):
    """The state that an operator keeps between tuples (Joker section 2; J05)."""

    STATELESS = "stateless"
    PARTITIONED = "partitioned"  # independent state per key
    STATEFUL = "stateful"  # state that may depend on the whole stream


@dataclass(frozen=True, slots=True)
class FunctionRequest:
    """A user's function to compile into an operator function.

    Args:
        operator: The operator's name, for messages.
        kind: MAP, FILTER or FLAT_MAP.
        function: A function of one tuple, or of a tuple and the state of its key if there is a `state`.
        input_schema: The schema of its input.
        output: The declared schema of its output; None: infer it. FILTER keeps the input schema.
        keys: The key fields; empty if it isn't keyed.
        state: A NamedTuple class with defaults (fixed layout), or any callable without arguments that makes the initial
            state of a key; None: stateless.
        lane: 'auto', or the execution mode that the user requested.
        location: 'file.py:12' of the declaration.
        sides: Names of the output ports that it may send to with rel.to.
        concurrent: The limits of concurrent calls; None: one call after the other.
        drops_none: Whether a FLAT_MAP's function returns the one value that it emits, or None.
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
    drops_none: bool = False


@dataclass(frozen=True, slots=True)
class OperatorRequest:
    """An instance of a user's operator class to compile into an operator function.

    Args:
        operator: The operator's name, for messages.
        instance: The object, with `invoke` and the optional methods of @rel.operator.
        inputs: Its input ports.
        outputs: Its output ports; none for a sink.
        state: Makes the state of a key; None: it keeps none of keys.
        lane: 'auto', or the execution mode that the user requested.
        location: 'file.py:12' of the declaration.
        on_error: What happens to a tuple on which `invoke` raises.
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
    """An object with timers whose methods are to be compiled.

    Args:
        operator: The operator's name, for messages.
        instance: The object, with `on_tuple`, and perhaps `on_time` and `on_end`.
        input_schema: The schema of its input.
        output: The schema of its output.
        keys: The key fields.
        state: Makes the state of a key.
        time: The event time of its timers; None: the clock.
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
    """The compiled methods of an object with timers, as the graph sees them. Picklable."""

    @property
    def state_schema(self) -> Schema:
        """The schema of a key's state."""
        ...


@dataclass(frozen=True, slots=True)
class AggregateRequest:
    """An object that aggregates, whose methods are to be compiled.

    Args:
        operator: The operator's name, for messages.
        instance: The object, with `add(t, state)` and `result(state)`, and perhaps `merge(other, state)`.
        first: The initial state.
        input_schema: The schema of its input.
        output: The schema of its results; None: infer it.
        location: 'file.py:12' of the declaration.
    """

    operator: str
    instance: Any
    first: Any
    input_schema: Schema
    output: Schema | None
    location: str = ""


class CompiledAggregate(Protocol):
    """The compiled methods of an object that aggregates, as the graph sees them. Picklable."""

    @property
    def reason(self) -> str:
        """Describe the operator for `explain()`."""
        ...

    @property
    def state_schema(self) -> Schema:
        """The schema of the state."""
        ...

    @property
    def output_schema(self) -> Schema:
        """The schema of its results."""
        ...

    @property
    def merges(self) -> bool:
        """Whether states can be merged."""
        ...


class OperatorBody(Protocol):
    """The function of an operator class, or a native operator, as the graph sees it. Picklable."""

    @property
    def lane(self) -> Lane:
        """The execution mode."""
        ...

    @property
    def reason(self) -> str:
        """The reason for the execution mode."""
        ...


class CompiledFunction(Protocol):
    """A compiled function, as the graph sees it. Picklable."""

    @property
    def lane(self) -> Lane:
        """The execution mode."""
        ...

    @property
    def reason(self) -> str:
        """The reason for the execution mode."""
        ...

    @property
    def output_schema(self) -> Schema:
        """The schema of its output."""
        ...

    @property
    def kept(self) -> frozenset[str]:
        """The fields that every output tuple copies from its input tuple, as far as the code shows."""
        ...


class SourceDescription(Protocol):
    """Where tuples come from: a value that can be shipped and restarted, never a live iterator."""

    @property
    def schema(self) -> Schema:
        """The schema of its tuples."""
        ...

    @property
    def lane(self) -> Lane:
        """The execution mode."""
        ...

    @property
    def reason(self) -> str:
        """The reason for the execution mode."""
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
        """The reason for the execution mode."""
        ...

    def check(self, operator: str) -> None:
        """Raise SinkError, naming the operator, if it can't be written."""
        ...


@dataclass(frozen=True, slots=True)
class OperatorSpec:
    """One declared operator.

    Args:
        name: Unique in the topology; keys metrics, state and plans.
        kind: What it does.
        inputs: Its input ports, in order; none for a source.
        outputs: Its output ports, in order; none for a sink.
        state_kind: The kind of its state.
        body: A SourceDescription, SinkDescription, CompiledFunction, or OperatorBody, by kind.
        location: 'file.py:12' of the declaration.
        on_error: What happens to a tuple on which its function raises.
        ttl: The time without a tuple after which a key is dropped; None: never.
        remembers: What it changes outside its state, as the user writes it; then it has one replica.
        automatic: Whether its name is that of its function or method, because the program sets none.
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
        """The schema of its first input port; None for a source."""
        return self.inputs[0].schema if self.inputs else None

    @property
    def output_schema(self) -> Schema | None:
        """The schema of its first output port; None for a sink."""
        return self.outputs[0].schema if self.outputs else None

    @property
    def keys(self) -> tuple[str, ...]:
        """The key fields of the first input port of a PARTITIONED operator, else empty."""
        return self.inputs[0].keys if self.inputs else ()

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of its output streams."""
        return tuple(stream_name(self.name, port.name) for port in self.outputs)

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """(stream, endpoint) of all its inputs, port by port, without feedback."""
        return tuple((s, endpoint(self.name, port.name)) for port in self.inputs for s in port.streams)

    @property
    def loop_edges(self) -> tuple[tuple[str, str], ...]:
        """(stream, endpoint) of all its feedback inputs."""
        return tuple((s, endpoint(self.name, port.name)) for port in self.inputs for s in port.feedback)

    @property
    def taken(self) -> tuple[str, ...]:
        """The names of its input streams (ports.stream_name), without feedback."""
        return tuple(stream for port in self.inputs for stream in port.streams)

    @property
    def upstream(self) -> tuple[str, ...]:
        """The operators that feed it, one for each edge, without feedback."""
        return tuple(map(operator_of, self.taken))

    @property
    def lane(self) -> Lane:
        """The execution mode."""
        return self.body.lane

    @property
    def reason(self) -> str:
        """The reason for the execution mode."""
        return self.body.reason
