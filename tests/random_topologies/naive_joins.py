"""Joins, as the guide says them, over lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.random_topologies.flow import Flow, Row, fields_of
from tests.random_topologies.program import Node
from tests.random_topologies.values import Field, Schema

Made = dict[str, Flow]


def _added(left: Flow, right: Flow, names: list[str], *, nullable: bool, suffix: str) -> Schema:
    return tuple(
        Field(f.name + suffix if left.has(f.name) else f.name, f.kind, f.nullable or nullable, f.like)
        for f in fields_of(right, names)
    )


def _chooser(node: Node, left: Flow, right: Flow) -> Callable[[int, list[int]], list[int]]:
    """Which of the right rows of its key a left row is joined with."""
    kind = node.options["match"]
    if kind == "pairs":
        return lambda i, rights: rights
    here, there = left.times(), right.times()
    if kind == "interval":
        before, after = node.options["within"]
        return lambda i, rights: [n for n in rights if here[i] - before <= there[n] <= here[i] + after]
    if kind == "window":
        size = node.options["size"]
        return lambda i, rights: [n for n in rights if there[n] // size == here[i] // size]

    def as_of(i: int, rights: list[int]) -> list[int]:
        passed = [n for n in rights if there[n] <= here[i]]
        if kind == "latest":
            return passed and [max(passed, key=lambda n: (there[n], n))]
        return passed and [min(rights, key=lambda n: (there[n], n))] if kind == "first" else passed

    return as_of


def joined(node: Node, inputs: list[Flow], _: Mapping[str, Any]) -> Flow:
    left, right = inputs
    how, fields, right_fields = node.options["how"], node.options["keys"], node.options["right_keys"]
    others = [name for name in right.names if name not in right_fields]
    right_values, left_keys, right_keys = _values(right, others), left.keys(fields), right.keys(right_fields)
    choose, matched, rows = _chooser(node, left, right), set[int](), []
    for i, row in enumerate(left.rows):
        same = [n for n, key in enumerate(right_keys) if key == left_keys[i] and None not in key]
        found = choose(i, same)
        matched.update(found)
        rows += [(*row, *right_values[n]) for n in found]
        if not found and how in ("left", "full"):
            rows.append((*row, *[None] * len(others)))
    if how in ("right", "full"):
        for n in (n for n in range(len(right.rows)) if n not in matched):
            keys = dict(zip(fields, right_keys[n], strict=True))
            rows.append((*(keys.get(name) for name in left.names), *right_values[n]))
    of_right = how in ("right", "full")
    own = tuple(Field(f.name, f.kind, f.nullable or of_right, f.like) for f in left.schema)
    added = _added(left, right, others, nullable=how in ("left", "full"), suffix="_right")
    return Flow((*own, *added), rows, False)


def crossed(node: Node, inputs: list[Flow], _: Mapping[str, Any]) -> Flow:
    left, right = inputs
    right_keys, here, there, rows = right.keys(node.options["right_keys"]), left.times(), right.times(), []
    for i, row in enumerate(left.rows):
        latest: dict[Row, int] = {}
        for n in sorted((n for n in range(len(right.rows)) if there[n] <= here[i]), key=lambda n: (there[n], n)):
            latest[right_keys[n]] = n
        rows += [(*row, *right.rows[n]) for n in latest.values()]
        if not latest and node.options["how"] == "left":
            rows.append((*row, *[None] * len(right.names)))
    left_outer = node.options["how"] == "left"
    return Flow((*left.schema, *_added(left, right, right.names, nullable=left_outer, suffix="_right")), rows, False)


def enriched(node: Node, inputs: list[Flow], _: Mapping[str, Any]) -> Flow:
    (flow,), table, how = inputs, node.options["table"], node.options["how"]
    keys = flow.keys(node.options["keys"])
    added: Field = node.options["value"]

    def made(i: int) -> Any:
        if keys[i][0] is not None and keys[i][0] in table:
            yield (*flow.rows[i], table[keys[i][0]])
        elif how == "left":
            yield (*flow.rows[i], None)

    name = added.name + "_table" if flow.has(added.name) else added.name
    return flow.mapped(made, (*flow.schema, Field(name, added.kind, added.nullable or how == "left")))


def _values(flow: Flow, names: list[str]) -> list[Row]:
    return flow.keys(names)


JOINS: dict[str, Any] = {"join": joined, "cross": crossed, "enrich": enriched}
