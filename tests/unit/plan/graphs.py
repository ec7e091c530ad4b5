"""Graphs written by hand, in one line an operator, without a compiler."""

from __future__ import annotations

from dataclasses import dataclass

from rayelastic.graph import Lane, OperatorKind, OperatorSpec, Schema, StateKind
from tests.unit.graph.fakes import FakeCode

STATELESS, PARTITIONED, STATEFUL = StateKind.STATELESS, StateKind.PARTITIONED, StateKind.STATEFUL


@dataclass(frozen=True)
class FakeGraph:
    name: str
    operators: dict[str, OperatorSpec]


def graph(*lines: str) -> FakeGraph:
    """Each line: `name kind[keys] <- inputs | input fields`, kind one of source, map, filter, state, part, sink.

    Fields are single letters of type int; an upper-case letter is the same field as text.
    """
    specs = {}
    for line in lines:
        head, _, fields = line.partition("|")
        head, _, inputs = head.partition("<-")
        name, kind = head.split(maxsplit=1)
        kind, _, keys = kind.strip().rstrip("]").partition("[")
        schema = (
            Schema.of({f.lower(): str if f.isupper() else int for f in fields.split()}, name="R") if fields else None
        )
        specs[name] = _spec(name, kind, tuple(inputs.split()), tuple(keys.split()), schema or Schema.of({"a": int}))
    return FakeGraph("g", specs)


def _spec(name: str, kind: str, inputs: tuple[str, ...], keys: tuple[str, ...], schema: Schema) -> OperatorSpec:
    kinds = {
        "source": (OperatorKind.SOURCE, STATEFUL),
        "sink": (OperatorKind.SINK, STATEFUL),
        "map": (OperatorKind.MAP, STATELESS),
        "filter": (OperatorKind.FILTER, STATELESS),
        "state": (OperatorKind.MAP, STATEFUL),
        "part": (OperatorKind.FLAT_MAP, PARTITIONED),
    }
    operator_kind, state = kinds[kind]
    body = FakeCode(Lane.COMPILED, "made by hand", schema)
    return OperatorSpec(name, operator_kind, inputs, schema if inputs else None, schema, keys, state, body)
