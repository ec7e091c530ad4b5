"""The third step: in which order the slots of a column stand, so that few edges cross: barycentres, both ways."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from itertools import pairwise

from rayelastic.plan.layout.layers import Layers, Slot

SWEEPS = 12  # more change little: Gansner et al. 1993 take 24
LARGE = 1_500  # slots from which on fewer sweeps have to do
FEW = 3


def ordered(found: Layers) -> list[list[Slot]]:
    """Give the columns in the best order that was found."""
    after: dict[Slot, list[Slot]] = {}
    before: dict[Slot, list[Slot]] = {}
    for a, b in found.pieces:
        after.setdefault(a, []).append(b)
        before.setdefault(b, []).append(a)
    columns = [list(column) for column in found.columns]
    best, least = [list(column) for column in columns], _crossings(columns, after)
    sweeps = SWEEPS if sum(map(len, columns)) < LARGE else FEW
    for number in range(sweeps):
        if least == 0:
            break
        forward = number % 2 == 0
        steps = range(1, len(columns)) if forward else range(len(columns) - 2, -1, -1)
        for at in steps:
            beside = columns[at - 1] if forward else columns[at + 1]
            _sort(columns[at], beside, before if forward else after)
        crossings = _crossings(columns, after)
        if crossings < least:
            best, least = [list(column) for column in columns], crossings
    return best


def _sort(column: list[Slot], beside: Sequence[Slot], neighbours: Mapping[Slot, Sequence[Slot]]) -> None:
    place = {slot: number for number, slot in enumerate(beside)}
    wanted = {}
    for number, slot in enumerate(column):
        near = [place[one] for one in neighbours.get(slot, ()) if one in place]
        wanted[slot] = sum(near) / len(near) if near else float(number)
    column.sort(key=lambda slot: wanted[slot])  # stable: equals stay as they are


def _crossings(columns: Sequence[Sequence[Slot]], after: Mapping[Slot, Sequence[Slot]]) -> int:
    """How many pairs of pieces cross, counted by insertion as Barth, Juenger and Mutzel 2002 do."""
    total = 0
    for left, right in pairwise(columns):
        place = {slot: number for number, slot in enumerate(right)}
        ends: list[int] = []
        for slot in left:
            here = sorted(place[one] for one in after.get(slot, ()))
            total += sum(len(ends) - bisect_right(ends, end) for end in here)
            for end in here:
                insort(ends, end)
    return total
