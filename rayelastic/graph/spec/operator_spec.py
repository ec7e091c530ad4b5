"""Operators as the layers below the graph see them: kind, execution mode, state, schemas, and a body to run.

Knows no threads, PEs or native code.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

from rayelastic.errors import ErrorCode, StateError
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.records.time_info import TimeInfo, TimeToLive
from rayelastic.graph.spec.concurrency import Concurrency
from rayelastic.graph.spec.dead_letters import OnError
from rayelastic.graph.spec.ports import InputPort, OutputPort, endpoint, operator_of, stream_name

PICKLED = "python values"  # the end of the form of pickled state


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


class StateKind(Enum):
    """The state that an operator keeps between tuples (Joker section 2; J05)."""

    STATELESS = "stateless"
    PARTITIONED = "partitioned"  # independent state per key
    STATEFUL = "stateful"  # state that may depend on the whole stream


class Ordered(Enum):
    """What the `ordered=` of an operator without state asks for; the value is what the program writes."""

    AS_INPUT = True  # the order of the input is restored
    BY_KEY = "key"  # tuples of a key keep their order
    ANY = False  # tuples may overtake each other


class OperatorBody:
    """What an operator does: a description that answers for itself, so that nobody else asks of which kind it is.

    A kind of operator is a frozen dataclass with slots. It derives from this class and overrides the answers that
    differ. It is picklable, and knows neither threads nor native code. `runtime/operators/natives.py` lists the
    function that makes its native operator.
    """

    __slots__ = ()

    if TYPE_CHECKING:  # a dataclass would take a property of its base for the default of its field

        @property
        def operator_kind(self) -> str:
            """The name of its kind, for people."""

        @property
        def reason(self) -> str:
            """What it does and the reason for its execution mode, for `explain()`."""

    @property
    def lane(self) -> Lane:
        """The execution mode."""
        return Lane.BUILT_IN

    @property
    def refusal(self) -> Mapping[str, Any] | None:
        """The code and values of why it isn't compiled, if that was tried."""
        return None

    # --- what the graph asks ---

    @property
    def output_time(self) -> TimeInfo | None:
        """The event time of its output; None: that of its first input, if it keeps the field."""
        return None

    @property
    def assigned_time(self) -> TimeInfo | None:
        """The event time that it assigns to its output."""
        return None

    @property
    def ends_time(self) -> bool:
        """Whether its output has no event time, although its input may have one."""
        return False

    @property
    def has_splits(self) -> bool:
        """Whether it announces in its output which split the next tuples belong to."""
        return False

    def keeps_splits(self, spec: OperatorSpec) -> bool:  # noqa: ARG002
        """Return whether it emits the tuples of its input in their order, and so forwards announced splits."""
        return False

    @property
    def one_to_one(self) -> bool:
        """Whether it emits one tuple for each of its input, sooner or later, unless its function raises."""
        return False

    @property
    def ends(self) -> bool:
        """Whether it may emit when its input ends."""
        return False

    @property
    def takes_turns(self) -> bool:
        """Whether replicas may take turns at its input, if it is stateless: it emits at once what a tuple makes."""
        return False

    def reads(self, spec: OperatorSpec, port: int) -> Collection[str] | None:  # noqa: ARG002
        """Return the fields of an input port, beside its keys, that what it emits or keeps depends on; None: all."""
        return None

    def passes(self, spec: OperatorSpec) -> Sequence[str]:  # noqa: ARG002
        """Return the output ports at which it emits tuples of its input as they are."""
        return ()

    # --- what the plan asks ---

    def state_kind(self, keys: tuple[str, ...]) -> StateKind:
        """Return the kind of the state that it keeps of a stream with these keys."""
        return StateKind.PARTITIONED if keys else StateKind.STATEFUL

    def keeps_keys(self, keys: tuple[str, ...]) -> bool:  # noqa: ARG002
        """Return whether these fields of its input are known to pass it unchanged."""
        return True

    @property
    def takes_rules(self) -> bool:
        """Whether any replica may run it on any tuple, if the replica receives the whole of its other stream."""
        return False

    @property
    def orders_rules(self) -> bool:
        """Whether only the event times of tuples and rules keep it from having replicas."""
        return False

    @property
    def routes_inputs(self) -> bool:
        """Whether each of its input ports may have a router, so that it may have several and replicas."""
        return False

    @property
    def keeps_object(self) -> bool:
        """Whether its state, unless that is of keys, is an object of the user's class."""
        return False

    def notes(self, side_first: str, sources: Sequence[str]) -> list[str]:  # noqa: ARG002
        """List what `explain()` adds about the state that it keeps.

        Args:
            side_first: The side whose sources are read first; empty: none.
            sources: The sources of the other side, which begin when that has ended.
        """
        return []

    # --- what runs it asks ---

    @property
    def uses_clock(self) -> bool:
        """Whether the clock wakes it between its tuples."""
        return False

    @property
    def paces(self) -> bool:
        """Whether it holds its input back to a rate: its time asleep is no load, and its sources could emit more."""
        return False

    @property
    def aligns(self) -> bool:
        """Whether checkpoint barriers can pass it in order with the tuples."""
        return True

    @property
    def concurrent(self) -> Concurrency | None:
        """The limits of concurrent calls; None: one call after the other."""
        return None

    @property
    def object_field(self) -> str:
        """The field with the user's object, which each PE initializes, or copies and initializes; empty: none."""
        return ""

    @property
    def passes_objects(self) -> bool:
        """Whether its Python code takes or makes one tuple after the other."""
        return False

    @property
    def user_function(self) -> CompiledFunction | None:
        """The user's function that explains a tuple on which the operator fails."""
        return None

    @property
    def runs_user_code(self) -> bool:
        """Whether a failure of it is one of the user's code."""
        return self.user_function is not None

    def state_form(self, spec: OperatorSpec) -> str | None:
        """Describe its state, for people and to check whether a topology fits a snapshot; None if it keeps none."""
        return None if spec.state_kind is StateKind.STATELESS else self.kept_form(spec)

    def kept_form(self, spec: OperatorSpec) -> str | None:  # noqa: ARG002
        """Describe the state of an operator that isn't stateless."""
        return None


class CompiledFunction(OperatorBody):
    """A compiled function, as the graph sees it."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def output_schema(self) -> Schema:
            """The schema of its output."""


class SourceDescription(OperatorBody):
    """Where tuples come from: a value that can be shipped and restarted, never a live iterator."""

    __slots__ = ()
    operator_kind = "source"
    ends_time = True
    omits_unread: ClassVar[bool] = False  # whether it leaves fields without values that nobody reads

    if TYPE_CHECKING:

        @property
        def schema(self) -> Schema:
            """The schema of its tuples."""

    def check(self, operator: str) -> None:
        """Raise SourceError, naming the operator, if it can't be read."""

    @property
    def is_endless(self) -> bool:
        """Whether it never ends by itself."""
        return False

    @property
    def is_fed(self) -> bool:
        """Whether clients push its tuples."""
        return False

    @property
    def side_sources(self) -> Mapping[str, SourceDescription]:
        """The sources of its side outputs, by port."""
        return {}


class SinkDescription(OperatorBody):
    """Where tuples go."""

    __slots__ = ()
    operator_kind = "sink"

    def check(self, operator: str) -> None:
        """Raise SinkError, naming the operator, if it can't be written."""


_STREAMS = attrgetter("streams")


@dataclass(frozen=True, slots=True)
class OperatorSpec:
    """One declared operator.

    Args:
        name: Unique in the topology; keys metrics, state and plans.
        inputs: Its input ports, in order; none for a source.
        outputs: Its output ports, in order; none for a sink.
        state_kind: The kind of its state.
        body: What it does.
        location: 'file.py:12' of the declaration.
        on_error: What happens to a tuple on which its function raises.
        ttl: The time without a tuple after which a key is dropped; None: never.
        remembers: What it changes outside its state, as the user writes it; then it has one replica.
        ordered: The order that its replicas keep, as the program sets it; None: the default.
        automatic: Whether its name is that of its function or method, because the program sets none.
        unread: Fields without values in its first input, or in a source's output, since nobody reads them.
    """

    name: str
    inputs: tuple[InputPort, ...]
    outputs: tuple[OutputPort, ...]
    state_kind: StateKind
    body: OperatorBody
    location: str = ""
    on_error: OnError = OnError.FAIL
    ttl: TimeToLive | None = None
    remembers: tuple[str, ...] = ()
    ordered: Ordered | None = None
    automatic: bool = False
    unread: tuple[str, ...] = ()

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
        """The key fields of the first input port, if replicas would share keys; else empty."""
        return self.inputs[0].keys if self.inputs else ()

    @property
    def has_state(self) -> bool:
        """Whether it keeps state between tuples."""
        return self.state_kind is not StateKind.STATELESS

    @property
    def replicas_share_keys(self) -> bool:
        """Whether each of its replicas would own keys: their state, or only their order."""
        return self.state_kind is StateKind.PARTITIONED or self.ordered is Ordered.BY_KEY

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
        return tuple(chain.from_iterable(map(_STREAMS, self.inputs)))

    @property
    def upstream(self) -> tuple[str, ...]:
        """The operators that feed it, one for each edge, without feedback."""
        return tuple(map(operator_of, self.taken))

    @property
    def kind(self) -> str:
        """What it does, in a word."""
        return self.body.operator_kind

    @property
    def is_source(self) -> bool:
        """Whether it is a source."""
        return not self.inputs

    def state_error(self, problem: str, hint: str = "", code: ErrorCode | None = None) -> StateError:
        """Return an error about its state, or its position in the input."""
        return StateError(problem, operator=self.name, location=self.location, hint=hint, code=code)

    @property
    def state_form(self) -> str | None:
        """What its state is, for people and to check whether a topology fits a snapshot; None if it keeps none."""
        return self.body.state_form(self)

    @property
    def key_form(self) -> str:
        """Describe what its state of keys is kept by, and for how long."""
        return f"by key ({fields_form(self.inputs[0].schema, self.keys)})" + (f", {self.ttl.form}" if self.ttl else "")

    @property
    def lane(self) -> Lane:
        """The execution mode."""
        return self.body.lane

    @property
    def reason(self) -> str:
        """The reason for the execution mode."""
        return self.body.reason


def fields_form(schema: Schema, names: Container[str] | None = None) -> str:
    """Describe fields of a schema, all by default, with their formats."""
    return ", ".join(f"{f.name}: {f.format}" for f in schema.fields if names is None or f.name in names)
