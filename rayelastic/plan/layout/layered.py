"""A layered layout from left to right, with ports, and with horizontal and vertical lines.

Lines turn only in the gaps between columns, which have no boxes. They pass a column only at a bend, which has space of
its own. So no line crosses a box, whatever the graph. In a gap, the lines of one origin share an upright piece, on a
track that no other of the same height has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from rayelastic.plan.layout.heights import heights
from rayelastic.plan.layout.layers import Bend, Layers, Slot, layers
from rayelastic.plan.layout.ordering import ordered
from rayelastic.plan.layout.placed import Box, Layout, Line

APART = 34.0  # pixels between two boxes of a column
BEND = 4.0  # pixels that a line takes beside boxes
TRACK = 7.0  # pixels between two upright pieces
GAP = 24.0  # pixels on both sides of them
PORT = 7.0  # pixels between two lines that enter a box
ENTRY = 30.0  # pixels of a box's side that lines may enter at
LEVEL = 0.01  # pixels that count as none
MARGIN = 12.0


def layered(sizes: Mapping[str, tuple[float, float]], edges: Iterable[tuple[str, str]]) -> Layout:
    """Place the nodes of a graph and route its edges.

    Args:
        sizes: {node: its width and height in pixels}, in the order that is to decide between equals.
        edges: (origin, target), as many as there are; loops are allowed.

    >>> drawn = layered({"a": (50, 20), "b": (50, 20), "c": (50, 20)}, [("a", "b"), ("b", "c"), ("a", "c")])
    >>> drawn.boxes["a"].x < drawn.boxes["b"].x < drawn.boxes["c"].x
    True
    >>> any(line.crosses(box) for line in drawn.lines for box in drawn.boxes.values())
    False
    """
    found = layers(list(sizes), edges)
    columns = ordered(found)
    middle = heights(found, columns, lambda slot: BEND if isinstance(slot, Bend) else sizes[slot][1], APART)
    entries = _entries(found, middle)
    uprights, tracks = _tracks(found, columns, middle, entries)
    number = {slot: at for at, column in enumerate(columns) for slot in column}
    left, right, at = [], [], MARGIN
    for column, used in zip(columns, tracks, strict=True):
        width = max(sizes[slot][0] for slot in column if not isinstance(slot, Bend))  # each has a node
        left.append(at)
        right.append(at + width)
        at += width + 2 * GAP + used * TRACK
    boxes = {
        node: Box(left[number[node]], MARGIN + middle[node] - height / 2, width, height)
        for node, (width, height) in sizes.items()
    }
    lines = []
    for (origin, target), way in found.ways.items():
        start = boxes[origin if way[0] == origin else target]
        points = [(start.x + start.width, MARGIN + middle[way[0]])]
        for a, b in pairwise(way):
            if (a, b) in uprights:
                x = right[number[a]] + GAP + uprights[a, b] * TRACK
                points += [(x, MARGIN + middle[a]), (x, MARGIN + entries[a, b])]
        points.append((boxes[str(way[-1])].x, MARGIN + entries[way[-2], way[-1]]))
        is_back = (origin, target) in found.back
        lines.append(Line(origin, target, tuple(reversed(points) if is_back else points), is_back))
    low = [y for line in lines for _, y in line.points] + [box.y + box.height for box in boxes.values()]
    wide = max((box.x + box.width for box in boxes.values()), default=0.0)
    return Layout(boxes, tuple(lines), wide + MARGIN, max(low, default=0.0) + MARGIN)


def _entries(found: Layers, middle: Mapping[Slot, float]) -> dict[tuple[Slot, Slot], float]:
    """Return the height at which each piece ends: lines enter a box in the vertical order of their starts."""
    coming: dict[Slot, list[Slot]] = {}
    for a, b in found.pieces:
        coming.setdefault(b, []).append(a)
    ends = {}
    for target, origins in coming.items():
        origins.sort(key=lambda slot: middle[slot])
        apart = min(PORT, ENTRY / max(len(origins) - 1, 1)) if not isinstance(target, Bend) else 0.0
        for place, origin in enumerate(origins):
            ends[origin, target] = middle[target] + (place - (len(origins) - 1) / 2) * apart
    return ends


def _tracks(
    found: Layers,
    columns: Sequence[Sequence[Slot]],
    middle: Mapping[Slot, float],
    entries: Mapping[tuple[Slot, Slot], float],
) -> tuple[dict[tuple[Slot, Slot], int], list[int]]:
    """Return the track of each piece that isn't level, and the number of tracks in the gap after each column."""
    leaving: dict[Slot, list[Slot]] = {}
    for a, b in found.pieces:
        if abs(middle[a] - entries[a, b]) > LEVEL:
            leaving.setdefault(a, []).append(b)
    uprights: dict[tuple[Slot, Slot], int] = {}
    counts = []
    for column in columns:
        used: list[list[tuple[float, float]]] = []
        for _, low, high, origin in sorted(_nets(column, leaving, middle, entries), key=lambda net: net[0]):
            free = (n for n, taken in enumerate(used) if all(high + BEND < a or b < low - BEND for a, b in taken))
            track = next(free, len(used))
            if track == len(used):
                used.append([])
            used[track].append((low, high))
            uprights |= {(origin, target): track for target in leaving[origin]}
        counts.append(len(used))
    return uprights, counts


def _nets(
    column: Sequence[Slot],
    leaving: Mapping[Slot, Sequence[Slot]],
    middle: Mapping[Slot, float],
    entries: Mapping[tuple[Slot, Slot], float],
) -> Iterator[tuple[float, float, float, Slot]]:
    """Return what leaves each slot: its turn, from how high to how low its upright piece goes, and the slot.

    Of those that go down the lowest turns first, of those that go up the highest: so they don't cross each other.
    """
    for origin in column:
        if origin in leaving:
            ends = [entries[origin, target] for target in leaving[origin]]
            down = sum(ends) / len(ends) > middle[origin]
            yield (
                (-middle[origin] if down else middle[origin]),
                min(*ends, middle[origin]),
                max(*ends, middle[origin]),
                origin,
            )
