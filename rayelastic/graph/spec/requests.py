"""Code that a compiler of user-defined functions receives and returns, as the graph sees it.

The compiler is a Protocol: its results are opaque here, except for their schemas and what they answer as bodies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, Protocol

from rayelastic.graph.records.schema import Schema
from rayelastic.graph.records.time_info import TimeInfo
from rayelastic.graph.spec.concurrency import Concurrency
from rayelastic.graph.spec.dead_letters import OnError
from rayelastic.graph.spec.operator_spec import CompiledFunction, Lane, OperatorBody
from rayelastic.graph.spec.ports import InputPort, OutputPort


class FunctionKind(Enum):
    """What a function of one tuple returns."""

    MAP = "map"  # a tuple
    FILTER = "filter"  # whether its tuple is kept
    FLAT_MAP = "flat_map"  # any number of tuples


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
    kind: FunctionKind
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
        instance: The object, with `add(t, state)`, and perhaps `merge(other, state)` and `result(state)`.
        first: The initial state.
        input_schema: The schema of its input.
        output: The schema of its results; None: infer it. Without `result` they are fields of the state, by name.
        location: 'file.py:12' of the declaration.
        what: What `explain()` calls it once it is compiled; '': an object of its class.
    """

    operator: str
    instance: Any
    first: Any
    input_schema: Schema
    output: Schema | None
    location: str = ""
    what: str = ""

    def called(self, method: str) -> str:
        """Return what messages call a method: `fn` where it only calls a user's function."""
        return "fn" if self.what else method


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


class FunctionCompiler(Protocol):
    """The compiler as the graph sees it: it makes operator functions of Python functions."""

    def compile(self, request: FunctionRequest) -> CompiledFunction:
        """Compile a function, or fall back to Python. Raises LaneError or SchemaError naming the operator."""
        ...

    def compile_operator(self, request: OperatorRequest) -> OperatorBody:
        """Choose the execution mode of an operator class. Raises LaneError or SchemaError naming the operator."""
        ...

    def compile_process(self, request: ProcessRequest) -> CompiledProcess:
        """Compile an object with timers. Raises LaneError if it doesn't, or SchemaError, naming the operator."""
        ...

    def compile_aggregate(self, request: AggregateRequest) -> CompiledAggregate:
        """Compile an object that aggregates. Raises LaneError if it doesn't, or SchemaError, naming the operator."""
        ...

    def remembered(self, body: OperatorBody) -> tuple[str, ...]:
        """Name what the functions and objects of a body are known to change outside their state."""
        ...

    def of_record(self, function: Callable[..., Any], schema: Schema, given: int) -> Callable[..., Any]:
        """Return a function of a record, for one with so many arguments that may be of the record's only value."""
        ...
