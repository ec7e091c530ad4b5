"""Operators of similar cost, grouped by powers of two: Middleware'19 section 3.1, observation O2.

Must not know queues, threads or throughput.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence

from rayelastic.policy.element.observation import OperatorObservation

GROUPS = 9  # as in the released runtime (M03)


def profiling_groups(operators: Sequence[OperatorObservation]) -> tuple[tuple[str, ...], ...]:
    """Return the names of operators in groups of like cost, the heaviest group first (M03).

    Group g holds the costs in (heaviest / 2**(g+1), heaviest / 2**g], in both directions of the search (E7); the last
    one holds whatever is cheaper. The order within a group is arbitrary, as in the paper (M07), yet the same each time.

    Args:
        operators: those that can be switched; their `samples` are their relative cost.

    >>> def operator(name, samples): return OperatorObservation(name, samples=samples)
    >>> profiling_groups([operator("a", 100), operator("b", 40), operator("c", 60), operator("d", 0)])
    (('c', 'a'), ('b',), ('d',))
    """
    heaviest = max((o.samples for o in operators), default=0)
    groups: list[list[str]] = [[] for _ in range(GROUPS)]
    for operator in operators:
        halvings = math.floor(math.log2(heaviest / operator.samples)) if operator.samples > 0 else GROUPS
        groups[min(halvings, GROUPS - 1)].append(operator.name)
    return tuple(tuple(sorted(group, key=_arbitrary)) for group in groups if group)


def _arbitrary(name: str) -> tuple[int, str]:
    return zlib.crc32(name.encode()), name
