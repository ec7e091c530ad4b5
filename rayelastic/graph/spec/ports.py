"""Ports: the names of an operator's inputs and outputs, and how many tuples a firing consumes (Joker 3.1).

An operator with one input and one output has the ports 'in' and 'out', and its stream has the operator's name. Other
streams are named 'operator/port' (J08). Knows no threads, PEs or native code.
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from rayelastic.errors import ErrorCode, GraphError
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.records.shown import invalid, shown

IN = "in"
OUT = "out"
LATE = "late"  # the output port of late tuples


class DemandKind(Enum):
    """Whether a firing consumes a number of tuples of a port, or all that are queued once there are so many."""

    EXACT = "exact"
    AT_LEAST = "at least"


@dataclass(frozen=True, slots=True)
class Demand:
    """How many tuples of a port a conjunctive operator consumes at each firing (J02)."""

    count: int = 1
    kind: DemandKind = DemandKind.EXACT

    def __str__(self) -> str:
        return f"{self.kind.value} {self.count}"


@dataclass(frozen=True, slots=True)
class InputPort:
    """An input of an operator.

    Args:
        name: Unique among the operator's input ports.
        schema: The schema of its tuples.
        streams: The names of its streams, see stream_name; several are a union.
        keys: Fields by which the operator partitions the tuples of this port; empty if it doesn't.
        demand: Of a conjunctive operator; None: the operator fires for each tuple.
        feedback: Feedback streams of a loop.
    """

    name: str
    schema: Schema
    streams: tuple[str, ...]
    keys: tuple[str, ...] = ()
    demand: Demand | None = None
    feedback: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OutputPort:
    """An output of an operator.

    Args:
        name: Unique among the operator's output ports.
        schema: The schema of its tuples.
        optional: Whether it needs no consumer, such as that of late tuples.
    """

    name: str
    schema: Schema
    optional: bool = False


def check_port(name: object, what: str) -> None:
    """Reject an invalid name of a port.

    Raises:
        GraphError: It isn't a Python name, or starts with an underscore.
    """
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        raise GraphError(
            f"{shown(name)} can't name an {what} port",
            hint="Use a Python name that doesn't start with an underscore",
            code=ErrorCode.BAD_NAME,
        )


def side_ports(sides: object) -> tuple[OutputPort, ...]:
    """Make the ports of side outputs that a user declared: {port: schema}.

    Raises:
        GraphError: Not a mapping, or an invalid name of a side output.
        SchemaError: A schema can't be laid out.
    """
    if not isinstance(sides, Mapping):
        raise invalid("sides", sides, "Pass {port: schema}", ErrorCode.WRONG_TYPE)
    for name in sides:
        check_port(name, "output")
        if name in (OUT, "errors"):
            raise GraphError(f"a side output can't be called '{name}'", hint="Rename it", code=ErrorCode.BAD_NAME)
    return tuple(OutputPort(name, Schema.of(schema)) for name, schema in sides.items())


def stream_name(operator: str, port: str = OUT) -> str:
    """Name the output stream of an operator's port.

    >>> stream_name("words"), stream_name("split", "odd")
    ('words', 'split/odd')
    """
    return operator if port == OUT else f"{operator}/{port}"


def side_source(source: str, port: str) -> str:
    """Name a side source, which reads the same files as a source, such as their bad rows.

    >>> side_source("trades", "errors")
    'trades_errors'
    """
    return f"{source}_{port}"


def endpoint(operator: str, port: str = IN) -> str:
    """Name the end of an edge: an input port of an operator.

    >>> endpoint("counts"), endpoint("join", "right")
    ('counts', 'join/right')
    """
    return operator if port == IN else f"{operator}/{port}"


def operator_of(name: str) -> str:
    """Return the operator of a stream or endpoint.

    >>> operator_of("split/odd")
    'split'
    """
    return name.partition("/")[0]


def port_of(name: str, default: str) -> str:
    """Return the port of a stream (`default` is OUT) or of an endpoint (`default` is IN).

    >>> port_of("split/odd", OUT), port_of("words", OUT)
    ('odd', 'out')
    """
    return name.partition("/")[2] or default
