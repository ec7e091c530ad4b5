"""`stream.split`: each tuple to one of several streams, in turn, by the hash of its key, or by what a function says.

The description is what the layers below get. Knows no threads, PEs or native code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rayelastic.errors import DeclarationError, GraphError
from rayelastic.graph.composition import Streams
from rayelastic.graph.declaration import LaneChoice, check_function, check_new, lane_of
from rayelastic.graph.location import caller_location
from rayelastic.graph.operator_spec import (
    CompiledFunction,
    FunctionRequest,
    Lane,
    OperatorKind,
    OperatorSpec,
    StateKind,
)
from rayelastic.graph.ports import OutputPort, check_port
from rayelastic.graph.schema import Schema
from rayelastic.graph.shown import shown
from rayelastic.graph.stream import Stream, check_at

if TYPE_CHECKING:
    from rayelastic.graph.keyed_stream import KeyedStream

__all__ = ["REST", "Split", "split"]

REST = "rest"  # the output port of tuples for which no predicate holds
_MOST = 1000  # outputs of a split: each has connections and a name of its own


@dataclass(frozen=True, slots=True)
class Split:
    """Gives each tuple to one output port.

    Args:
        ports: how many there are.
        keys: fields whose hash decides; none: in turn, or by choice.
        choice: a function from a tuple to the number of the port; None: in turn, or by hash.
    """

    ports: int
    keys: tuple[str, ...] = ()
    choice: CompiledFunction | None = None

    @property
    def lane(self) -> Lane:
        """How it runs."""
        return Lane.BUILT_IN if self.choice is None else self.choice.lane

    @property
    def reason(self) -> str:
        """What runs, in words."""
        if self.choice is not None:
            return f"by a function: {self.choice.reason}"
        return f"by the hash of {', '.join(self.keys)}" if self.keys else "in turn"


def split(
    stream: Stream | KeyedStream,
    name: str,
    ways: int | None,
    by: Callable[..., Any] | None,
    lane: LaneChoice,
    predicates: Mapping[str, Callable[..., Any]],
) -> Streams:
    """Declare a split; see Stream.split."""
    location = caller_location()
    topology = stream.topology
    check_at(name, location)
    try:
        check_new(name, topology.operators)
        if (ways is None) == (not predicates):
            raise GraphError(
                "split needs a number of streams or a predicate for each",
                way_out="Write .split(name, 4), or .split(name, even=lambda t: t.n % 2 == 0)",
            )
        if ways is not None:
            names = tuple(f"out{number}" for number in range(_checked(ways)))
        else:
            for port in predicates:
                check_port(port, "output")
            names = (*predicates, REST)
            by = _chooser(predicates)
        choice = None
        if by is not None:
            check_function(by, OperatorKind.MAP, None)
            request = FunctionRequest(
                name, OperatorKind.MAP, by, stream.schema, Schema.of(int), lane=lane_of(lane), location=location
            )
            choice = topology.compiler.compile(request)
            if choice.lane is Lane.VECTORISED:
                raise GraphError("split chooses for one tuple, not for a run", way_out="Take the annotation away")
        keys = () if choice is not None else stream.keys
        body = Split(len(names), keys, choice)
    except DeclarationError as error:
        error.at(name, location)
        raise
    ports = tuple(OutputPort(port, stream.schema, optional=port == REST) for port in names)
    state = StateKind.STATEFUL if choice is None and not keys else StateKind.STATELESS
    spec = OperatorSpec(
        name, OperatorKind.SPLIT, stream.inputs, stream.schema, stream.schema, (), state, body, location,
        first_output=ports[0].name, further_outputs=ports[1:],
    )  # fmt: skip
    topology._add(spec)
    given = zip(spec.streams, ports, strict=True)
    return Streams(name, {port.name: Stream(topology, (made,), port.schema) for made, port in given})


def _checked(ways: object) -> int:
    if not isinstance(ways, int) or isinstance(ways, bool) or not 1 <= ways <= _MOST:
        raise GraphError(f"split into {shown(ways)} streams", way_out=f"Give a whole number from 1 to {_MOST}")
    return ways


def _chooser(predicates: Mapping[str, Callable[..., Any]]) -> Callable[[Any], int]:
    """Build the function that gives the number of the first predicate that holds, or else of the rest."""
    names = list(predicates)
    for port in names:
        check_function(predicates[port], OperatorKind.FILTER, None)
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
