"""The first two steps of a layered layout (Sugiyama, Tagawa, Toda 1981): loops are opened, nodes get their columns.

Then every edge that passes a column gets a bend there, one for all edges of its origin, so that fans share a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Bend:
    """Where the edges of one origin pass a column."""

    origin: str
    column: int
    back: bool = False


Slot = str | Bend


@dataclass(frozen=True, slots=True)
class Layers:
    """Columns, and the pieces of edges between neighbouring ones.

    Args:
        columns: nodes and bends of each column.
        pieces: (where from, where to) between a column and the next.
        ways: {edge: the slots it goes through, from left to right}.
        back: the edges that close a loop, whose ways go from their target to their origin.
    """

    columns: list[list[Slot]]
    pieces: list[tuple[Slot, Slot]]
    ways: dict[tuple[str, str], tuple[Slot, ...]]
    back: frozenset[tuple[str, str]]


def layers(nodes: Sequence[str], edges: Iterable[tuple[str, str]]) -> Layers:
    """Assign a column to each node, to the right of all its origins.

    Args:
        nodes: in the order that is to decide between equals.
        edges: (origin, target); those of a node to itself are left out.
    """
    wanted = list(dict.fromkeys((a, b) for a, b in edges if a != b))
    back = _closing(nodes, wanted)
    forward = list(dict.fromkeys((b, a) if (a, b) in back else (a, b) for a, b in wanted))
    column = _columns(nodes, forward)
    columns: list[list[Slot]] = [[] for _ in range(max(column.values(), default=-1) + 1)]
    for node in nodes:
        columns[column[node]].append(node)
    pieces: dict[tuple[Slot, Slot], None] = {}
    ways: dict[tuple[str, str], tuple[Slot, ...]] = {}
    for a, b in wanted:
        is_back = (a, b) in back
        left, right = (b, a) if is_back else (a, b)
        way: list[Slot] = [left]
        way += [Bend(left, number, is_back) for number in range(column[left] + 1, column[right])]
        way.append(right)
        for piece in pairwise(way):
            pieces[piece] = None
        ways[a, b] = tuple(way)
    for bend in dict.fromkeys(slot for piece in pieces for slot in piece if isinstance(slot, Bend)):
        columns[bend.column].append(bend)
    return Layers(columns, list(pieces), ways, frozenset(back))


def _closing(nodes: Sequence[str], edges: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return the edges that lead back to a node whose search hasn't ended (depth first, without recursion)."""
    following: dict[str, list[str]] = {node: [] for node in nodes}
    for a, b in edges:
        following[a].append(b)
    state = dict.fromkeys(nodes, 0)
    found: set[tuple[str, str]] = set()
    for root in nodes:
        stack = [(root, iter(following[root]))] if state[root] == 0 else []
        state[root] = state[root] or 1
        while stack:
            node, rest = stack[-1]
            target = next(rest, None)
            if target is None:
                state[node] = 2
                stack.pop()
            elif state[target] == 1:
                found.add((node, target))
            elif state[target] == 0:
                state[target] = 1
                stack.append((target, iter(following[target])))
    return found


def _columns(nodes: Sequence[str], edges: Sequence[tuple[str, str]]) -> Mapping[str, int]:
    """Return the length of the longest way to each node; what nothing feeds stands just before the first that it
    feeds.
    """
    following: dict[str, list[str]] = {node: [] for node in nodes}
    missing = dict.fromkeys(nodes, 0)
    for a, b in edges:
        following[a].append(b)
        missing[b] += 1
    sources = [node for node in nodes if missing[node] == 0]
    column, ready = dict.fromkeys(nodes, 0), list(sources)
    for node in ready:  # grows while it is read
        for target in following[node]:
            column[target] = max(column[target], column[node] + 1)
            missing[target] -= 1
            if missing[target] == 0:
                ready.append(target)
    for source in sources:
        if following[source]:
            column[source] = min(column[target] for target in following[source]) - 1
    return column
