"""Graphs written by hand, in one line an operator, without a compiler."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from rayelastic.graph import FunctionKind, Lane, OperatorSpec, Schema, StateKind
from rayelastic.graph.spec.ports import IN, OUT, InputPort, OutputPort
from tests.unit.graph.fakes import CHANGES, FakeCode

STATELESS, PARTITIONED, STATEFUL = StateKind.STATELESS, StateKind.PARTITIONED, StateKind.STATEFUL


@dataclass(frozen=True)
class FakeGraph:
    name: str
    operators: dict[str, OperatorSpec]


def graph(*lines: str) -> FakeGraph:
    """Each line: `name kind[keys] <- inputs | input fields`.

    The kind is source, map, change, filter, state, part or sink; all but change leave the fields as they are.

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
    kinds: dict[str, tuple[FunctionKind | None, StateKind]] = {
        "source": (None, STATEFUL),
        "sink": (None, STATEFUL),
        "map": (FunctionKind.MAP, STATELESS),
        "change": (FunctionKind.MAP, STATELESS),
        "filter": (FunctionKind.FILTER, STATELESS),
        "state": (FunctionKind.MAP, STATEFUL),
        "part": (FunctionKind.FLAT_MAP, PARTITIONED),
    }
    function, state = kinds[kind]
    body = FakeCode(Lane.COMPILED, CHANGES if kind == "change" else "made by hand", schema, kind=function, word=kind)
    taken = (InputPort(IN, schema, inputs, keys),) if inputs else ()
    return OperatorSpec(name, taken, (OutputPort(OUT, schema),), state, body)


@st.composite
def graphs(draw: st.DrawFn) -> FakeGraph:
    lines = ["o0 source"]
    for i in range(1, draw(st.integers(1, 14))):
        kind = draw(
            st.sampled_from(
                ["source", "map", "map", "change", "filter", "state", "part[a]", "part[b]", "part[a b]", "sink"]
            )
        )
        if kind == "source":
            lines.append(f"o{i} source")
            continue
        fields = "a b" if "part" in kind else draw(st.sampled_from(["a b", "a", "b", "A b"]))
        candidates = [line.split()[0] for line in lines if " sink" not in line]
        near = candidates[-draw(st.integers(1, 3)) :]
        inputs = draw(st.lists(st.sampled_from(near), min_size=1, max_size=2, unique=True))
        lines.append(f"o{i} {kind} <- {' '.join(inputs)} | {fields}")
    return graph(*lines)
