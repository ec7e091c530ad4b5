"""`stream.split`: sends each tuple to one of several streams, round-robin, by key hash, or by a function.

The description is what the layers below receive. Knows no threads, PEs or native code.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from rayelastic.errors import ErrorCode, GraphError
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.records.shown import shown
from rayelastic.graph.spec.declaration import LaneChoice, NewOperator, check_function, lane_of
from rayelastic.graph.spec.operator_spec import CompiledFunction, Lane, OperatorBody, OperatorSpec, StateKind
from rayelastic.graph.spec.ports import OutputPort, check_port
from rayelastic.graph.spec.requests import FunctionKind, FunctionRequest
from rayelastic.graph.spec.upstream import Upstream
from rayelastic.graph.spec.user_objects import check_object

REST = "rest"  # the output port of tuples for which no predicate holds
_MOST = 1000  # outputs of a split: each has its own connections and name


@dataclass(frozen=True, slots=True)
class Split(OperatorBody):
    """Sends each tuple to one output port.

    Args:
        ports: The number of output ports.
        keys: Fields whose hash decides; none: round-robin, or by `choice`.
        choice: A function from a tuple to a port number; None: round-robin, or by hash.
    """

    ports: int
    keys: tuple[str, ...] = ()
    choice: CompiledFunction | None = None
    operator_kind = "split"

    @property
    def lane(self) -> Lane:
        """The execution mode."""
        return Lane.BUILT_IN if self.choice is None else self.choice.lane

    @property
    def reason(self) -> str:
        """Describe the operator for `explain()`."""
        if self.choice is not None:
            return f"by a function: {self.choice.reason}"
        return f"by the hash of {', '.join(self.keys)}" if self.keys else "in turn"

    @property
    def user_function(self) -> CompiledFunction | None:
        """The function that decides."""
        return self.choice

    def state_kind(self, keys: tuple[str, ...]) -> StateKind:  # noqa: ARG002
        """Return STATEFUL where it distributes round-robin."""
        return StateKind.STATEFUL if self.choice is None and not self.keys else StateKind.STATELESS

    def keeps_splits(self, spec: OperatorSpec) -> bool:
        """Forward announced splits, unless it distributes round-robin."""
        return spec.state_kind is StateKind.STATELESS and not spec.loop_edges

    def reads(self, spec: OperatorSpec, port: int) -> Collection[str] | None:
        """Return the fields that decide."""
        return self.keys if self.choice is None else self.choice.reads(spec, port)

    def passes(self, spec: OperatorSpec) -> tuple[str, ...]:
        """Return all its output ports."""
        return tuple(port.name for port in spec.outputs)

    def kept_form(self, spec: OperatorSpec) -> str:
        """Describe its state."""
        return f"whose turn of {len(spec.outputs)} outputs it is"


def split(
    up: Upstream,
    name: str,
    ways: int | None,
    by: Callable[..., Any] | None,
    lane: LaneChoice,
    predicates: Mapping[str, Callable[..., Any]],
) -> OperatorSpec:
    """See ``Stream.split``."""
    with NewOperator(name, up.operators) as location:
        if (ways is None) == (not predicates):
            raise GraphError(
                "split needs a number of streams or a predicate for each",
                hint="Write .split(4), or .split(even=lambda t: t.n % 2 == 0)",
                code=ErrorCode.MISSING_ARGUMENT,
            )
        if ways is not None:
            names = tuple(f"out{number}" for number in range(_checked(ways)))
        else:
            for port in predicates:
                check_port(port, "output")
            names = (*predicates, REST)
            by = _chooser(predicates)
        choice = None if by is None else _choice(up, name, by, lane, location)
        return split_operator(
            up, name, Split(len(names), () if choice is not None else up.keys, choice), names, location
        )


def split_operator(up: Upstream, name: str, body: Split, names: tuple[str, ...], location: str) -> OperatorSpec:
    """Make the operator, with output ports of these names."""
    ports = tuple(OutputPort(port, up.schema, optional=port == REST) for port in names)
    return up.operator(name, body, location, ports)


def _choice(up: Upstream, name: str, by: Callable[..., Any], lane: LaneChoice, location: str) -> CompiledFunction:
    check_function(by, FunctionKind.MAP, None)
    check_object(by)
    request = FunctionRequest(
        name, FunctionKind.MAP, by, up.schema, Schema.of(int), lane=lane_of(lane), location=location
    )
    choice = up.compiler.compile(request)
    if choice.lane is Lane.VECTORISED:
        raise GraphError("split decides for one tuple, not for a batch", hint="Remove the annotation")
    return choice


def _checked(ways: object) -> int:
    if not isinstance(ways, int) or isinstance(ways, bool) or not 1 <= ways <= _MOST:
        raise GraphError(
            f"split into {shown(ways)} streams",
            hint=f"Pass a whole number from 1 to {_MOST}",
            code=ErrorCode.OUT_OF_RANGE,
        )
    return ways


def _chooser(predicates: Mapping[str, Callable[..., Any]]) -> Callable[[Any], int]:
    """Build the function that returns the number of the first predicate that holds, or else that of the rest."""
    names = list(predicates)
    for port in names:
        check_function(predicates[port], FunctionKind.FILTER, None)
        check_object(predicates[port])
    chosen = _last(predicates[names[-1]], len(names) - 1, len(names))
    for number in range(len(names) - 2, -1, -1):
        chosen = _before(predicates[names[number]], number, chosen)
    return chosen


def _last(predicate: Callable[..., Any], number: int, rest: int) -> Callable[[Any], int]:
    def choose(t: Any) -> int:
        if predicate(t):
            return number
        return rest

    return choose


def _before(predicate: Callable[..., Any], number: int, following: Callable[[Any], int]) -> Callable[[Any], int]:
    def choose(t: Any) -> int:
        if predicate(t):
            return number
        return following(t)

    return choose
