"""A program: sources and operators as text, and beside it what the naive interpreter needs to know of each."""

from __future__ import annotations

import linecache
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.random_topologies.functions import FUNCTIONS
from tests.random_topologies.values import CLASSES, IMPORTS, Schema, literal, schema_text

Row = tuple[Any, ...]
OWN = "from tests.random_topologies.values import Color, Point\n"  # whose members the rows have


@dataclass(frozen=True, slots=True)
class Node:
    """A source or an operator.

    Args:
        name: of the operator, and of the variable that has its stream.
        kind: of the interpreter's functions.
        text: what declares it; LANE stands for the execution mode.
        inputs: names of streams.
        options: for the interpreter.
        uses: names of functions and classes.
        outputs: {stream: expression}, beside its own.
        is_stream: whether it has a stream of its own.
    """

    name: str
    kind: str
    text: str
    inputs: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    uses: tuple[str, ...] = ()
    outputs: Mapping[str, str] = field(default_factory=dict)
    is_stream: bool = True


@dataclass(frozen=True, slots=True)
class Program:
    """A topology.

    Args:
        nodes: in the order of their declarations; sources have `schema` and `rows` among their options.
    """

    nodes: tuple[Node, ...]

    @property
    def sources(self) -> list[Node]:
        return [node for node in self.nodes if node.kind == "source"]

    @property
    def streams(self) -> list[str]:
        """Those that have a sink."""
        return [name for node in self.nodes for name in (*([node.name] if node.is_stream else []), *node.outputs)]

    def behind(self, stream: str) -> Program:
        """What one stream needs."""
        needed, kept = {stream}, []
        for node in reversed(self.nodes):
            if node.name in needed or needed & set(node.outputs):
                needed |= set(node.inputs)
                kept.append(node)
        return Program(tuple(reversed(kept)))

    def with_rows(self, rows: Mapping[str, list[Row]]) -> Program:
        """The same over other rows."""
        return Program(
            tuple(
                replace(node, options={**node.options, "rows": rows[node.name]}) if node.name in rows else node
                for node in self.nodes
            )
        )

    def body(self, *, with_rows: bool, classes: str = CLASSES) -> str:
        """Functions and rows, and `declare(source)`, which gives the streams by name."""
        used = dict.fromkeys(name for node in self.nodes for name in node.uses)
        parts = [IMPORTS, classes, *(FUNCTIONS[name] for name in used)]
        lines = []
        for node in self.sources if with_rows else ():
            rows = "".join(f"    {literal(row)},\n" for row in node.options["rows"])
            lines.append(f"{node.name.upper()} = [\n{rows}]")
        if lines:
            parts.append("\n".join(lines) + "\n")
        steps = []
        for node in self.nodes:
            steps.append(f"    {node.text}")
            steps += [f"    {name} = {expression}" for name, expression in node.outputs.items()]
        kept = ", ".join(f'"{name}": {name}' for name in self.streams)
        parts.append("def declare(source, LANE):\n" + "\n".join(steps) + f"\n    return {{{kept}}}\n")
        return "\n\n".join(parts)

    def text(self, lane: str, config: str, stream: str) -> str:
        """A module to run."""
        sources = ", ".join(f'"{node.name}": {node.name.upper()}' for node in self.sources)
        return (
            self.body(with_rows=True)
            + f"""

ROWS = {{{sources}}}
top = rel.Topology("found")
streams = declare(lambda name, schema: top.source(rel.rows(ROWS[name], schema=schema), name=name), {lane!r})
for name, stream in streams.items():
    stream.sink(rel.list(), name=f"out_{{name}}")
result = rel.run(top, {config})
print(*(tuple(t) for t in result["out_{stream}"]), sep="\\n")
"""
        )

    def module(self, name: str) -> dict[str, Any]:
        """The names that executing it gives; its lines are known to whoever asks for source."""
        source, file = self.body(with_rows=False, classes=OWN), f"<{name}>"
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        names: dict[str, Any] = {"__name__": "random_topology"}
        exec(compile(source, file, "exec", dont_inherit=True), names)
        return names


def source_text(name: str, schema: Schema) -> str:
    return f'{name} = source("{name}", {schema_text(schema)})'
