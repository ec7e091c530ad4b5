"""The fourth step: how high the slots of each column stand, near those that they are joined to and never too close."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rayelastic.plan.layout.layers import Bend, Layers, Slot

ROUNDS = 6  # of sweeps there and back
BEND_WEIGHT = 4.0  # against 1 of a box: long lines shall be straight


def heights(
    found: Layers, columns: Sequence[Sequence[Slot]], room: Callable[[Slot], float], apart: float
) -> dict[Slot, float]:
    """Return the middle of each slot, in pixels below the top of the first one.

    Args:
        found: who is joined to whom.
        columns: in order.
        room: the height of a slot, pixels.
        apart: pixels between two of them.
    """
    after: dict[Slot, list[Slot]] = {}
    before: dict[Slot, list[Slot]] = {}
    for a, b in found.pieces:
        after.setdefault(a, []).append(b)
        before.setdefault(b, []).append(a)
    middle: dict[Slot, float] = {}
    for column in columns:
        at = 0.0
        for slot in column:
            middle[slot] = at + room(slot) / 2
            at += room(slot) + apart
    for _ in range(ROUNDS):
        for column in columns[1:]:
            _settle(column, middle, before, room, apart)
        for column in reversed(columns[:-1]):
            _settle(column, middle, after, room, apart)
    top = min((middle[slot] - room(slot) / 2 for slot in middle), default=0.0)
    return {slot: at - top for slot, at in middle.items()}


def _settle(
    column: Sequence[Slot],
    middle: dict[Slot, float],
    neighbours: Mapping[Slot, Sequence[Slot]],
    room: Callable[[Slot], float],
    apart: float,
) -> None:
    """Move a column to where its neighbours want it: least squares in a fixed order, by pooling adjacent violators."""
    blocks: list[tuple[float, float, int]] = []  # where it starts, its weight, how many slots
    offset, offsets = 0.0, []
    for number, slot in enumerate(column):
        if number:
            offset += (room(column[number - 1]) + room(slot)) / 2 + apart
        offsets.append(offset)
        near = sorted(middle[one] for one in neighbours.get(slot, ()))
        wanted = (near[(len(near) - 1) // 2] + near[len(near) // 2]) / 2 if near else middle[slot]
        weight = (BEND_WEIGHT if isinstance(slot, Bend) else 1.0) if near else 0.1
        at, count = wanted - offset, 1
        while blocks and blocks[-1][0] >= at:
            start, other, more = blocks.pop()
            at, weight, count = (start * other + at * weight) / (other + weight), other + weight, count + more
        blocks.append((at, weight, count))
    number = 0
    for at, _, count in blocks:
        for _ in range(count):
            middle[column[number]] = at + offsets[number]
            number += 1
