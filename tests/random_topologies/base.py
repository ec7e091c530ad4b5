"""What all makers of programs have: nodes, and the tuples that the interpreter has of them so far."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from tests.random_topologies.flow import Flow
from tests.random_topologies.functions import BASE, FUNCTIONS
from tests.random_topologies.naive import result_of
from tests.random_topologies.program import Node, source_text
from tests.random_topologies.values import CLASSES, IMPORTS, Field, Schema

AGGREGATES: list[dict[str, tuple[str, str | None]]] = [
    {"n": ("count", None)},
    {"n": ("count", "x"), "total": ("sum", "x"), "low": ("min", "x"), "high": ("max", "x")},
    {"mean": ("mean", "y"), "u": ("distinct", "s")},
    {"lo": ("min", "s"), "hi": ("max", "s"), "sy": ("sum", "y")},
    {"f": ("first", "s"), "l": ("last", "x"), "n": ("count", None)},
]


class Names(Mapping[str, Any]):
    """All functions, executed when they are asked for."""

    def __init__(self) -> None:
        self._names: dict[str, Any] = {}
        exec(IMPORTS + CLASSES, self._names)

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            for text in FUNCTIONS.values():
                if f" {name}(" in text or f"class {name}" in text:
                    exec(text, self._names)
        return self._names[name]

    def __iter__(self) -> Any:
        return iter(FUNCTIONS)

    def __len__(self) -> int:
        return len(FUNCTIONS)


NAMES = Names()


class BaseMaker:
    """Nodes, and the tuples that the interpreter has of them so far."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.nodes: list[Node] = []
        self.flows: dict[str, Flow] = {}

    def add(self, kind: str, inputs: Sequence[str], text: str, **known: Any) -> str:
        """Declare an operator; `{n}` in its text is its name, `{0}`, `{1}`, ... are its inputs."""
        name = f"{'s' if kind == 'source' else 'o'}{len(self.nodes)}"
        outputs = {name + key: value.format(n=name) for key, value in known.pop("outputs", {}).items()}
        uses, own = tuple(known.pop("uses", ())), known.pop("own", True)
        written = f"{name} = " + text.format(*inputs, n=name)
        node = Node(name, kind, written, tuple(inputs), known, uses, outputs, own)
        self.nodes.append(node)
        self.flows.update(result_of(node, [self.flows[one] for one in inputs], NAMES))
        return name

    def source(self, schema: Schema, rows: list[Any]) -> str:
        name = f"s{len(self.nodes)}"
        text = source_text(name, schema)
        self.nodes.append(Node(name, "source", text, (), {"schema": schema, "rows": rows}))
        self.flows.update(result_of(self.nodes[-1], [], NAMES))
        return name

    def origins(self, stream: str) -> list[str]:
        """What a union is made of."""
        node = next((one for one in self.nodes if one.name == stream), None)
        if node is None or node.kind != "union":
            return [stream]
        return [one for name in node.inputs for one in self.origins(name)]

    def keys(self) -> tuple[str, ...]:
        return self.chance.choice([("k",), ("k",), ("g",), ("k", "g"), ("s",)])

    def wanted(self, flow: Flow) -> dict[str, tuple[str, str | None]]:
        return self.chance.choice(AGGREGATES if flow.ordered else AGGREGATES[:-1])

    def value(self, fn: str) -> Field:
        return Field("v", "str" if fn == "f_text" else "int", nullable=fn == "f_latest")


def aggregates_text(wanted: Mapping[str, tuple[str, str | None]]) -> str:
    made = [f"{name}=rel.{fn}({'' if of is None else repr(of)})" for name, (fn, of) in wanted.items()]
    return ", ".join(made)


def keyed(keys: Sequence[str], stream: str = "{0}") -> str:
    return f"{stream}.key_by({', '.join(map(repr, keys))})" if keys else stream


def key_types(keys: Sequence[str]) -> str:
    """Key fields of BASE, as a schema has them."""
    return ", ".join(f'"{key}": {next(f.annotation for f in BASE if f.name == key)}' for key in keys)
