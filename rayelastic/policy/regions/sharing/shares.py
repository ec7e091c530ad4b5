"""Partitions go from replicas that are busier than others to these, before more replicas are asked for.

A replica is busier because its keys are warmer, or its machine is slower, or busy with something else. The same helps:
what a partition costs it, useful time by partitions, says how many it can have for all to be as busy. One hot key can't
be shared out: its share of the work bounds what a change promises. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.regions import RegionKind
from rayelastic.policy.regions.actions import ShareRegion
from rayelastic.policy.regions.model import Shape, shape_of
from rayelastic.policy.regions.sizing import Sizing

__all__ = ["ANY", "MOST_SHARINGS", "Sharing", "even_use", "shared_out", "sharing_of"]

UNEVEN = 1.15  # of what it can come down to: how busy the busiest replica is, from which on a change pays
MOST_SHARINGS = 2  # with one number of replicas: the first finds what each can take; of a region twice as many
FURTHEST = 3.0  # times, in one change: costs are measured at what each replica has now


@dataclass(frozen=True, slots=True)
class Sharing:
    """A plan in which partitions have moved.

    Args:
        plan: with them.
        actions: that lead there.
        gain: relative throughput that it promises.
    """

    plan: ExecPlan
    actions: tuple[ShareRegion, ...]
    gain: float


def sharing_of(region: str) -> str:
    """Return the name under which sharings of a region are rejected."""
    return f"{region}/shares"


ANY: Shape = ((), 0)  # how sharings are rejected whatever the shape of their region


def shared_out(sizing: Sizing, wanted: Collection[str], *, stable: bool = False) -> Sharing | None:
    """Return the plan in which regions that fall short have their keys where they are best off; None: nothing to gain.

    Args:
        sizing: what is known, and the plan in force.
        wanted: regions that get more replicas otherwise; of these, those that it would be enough for.
        stable: whether nothing has changed for long.
    """
    plan, actions, gain = sizing.plan, [], 0.0
    for planned in sizing.short(stable=stable):
        name, use = planned.region.name, sizing.replica_use.get(planned.region.name, ())
        movable = planned.region.kind is RegionKind.DATA_PARALLEL and sizing.can.replicates(planned)
        if not movable or len(use) < 2 or {ANY, shape_of(planned)} & set(sizing.rejected.get(sharing_of(name), ())):
            continue
        model = sizing.models.get(name)
        hot = model.hot if model is not None and model.key else 0.0
        least = max(1 / len(use), hot) * sum(use)  # the replica with the hottest key keeps that key's work
        shares = even_use(planned.ring.loads(), use)
        if name in wanted and sizing.use(name) * least > sizing.thresholds.grow_above * max(use):
            continue
        if max(use) < UNEVEN * least or shares == tuple(planned.ring.loads()):
            continue
        action = ShareRegion(name, shares, planned.shares)
        plan, gain = action.apply(plan), max(gain, max(use) / least - 1.0)
        actions.append(action)
    return Sharing(plan, tuple(actions), gain) if actions else None


def even_use(loads: Sequence[int], use: Sequence[float]) -> tuple[int, ...]:
    """Return the partitions that each replica is to have for all to be as busy.

    Args:
        loads: partitions that each one has.
        use: share of its time that each one is busy.

    >>> even_use([136, 135], [1.0, 0.5])
    (91, 180)
    >>> even_use([136, 135], [0.0, 1.0])  # not all at once: nobody knows what it would make of them
    (233, 38)
    """
    most, partitions = max(use), sum(loads)
    wanted = [
        load * min(FURTHEST, max(1 / FURTHEST, (sum(use) / len(use)) / max(busy, most / partitions)))
        for load, busy in zip(loads, use, strict=True)
    ]
    exact = [share * partitions / sum(wanted) for share in wanted]
    whole = [max(1, math.floor(share)) for share in exact]
    by_rest = sorted(range(len(exact)), key=lambda replica: exact[replica] - math.floor(exact[replica]), reverse=True)
    for turn in range(partitions - sum(whole)):
        whole[by_rest[turn % len(whole)]] += 1
    while sum(whole) > partitions:  # those that got one though they were to have less
        whole[whole.index(max(whole))] -= 1
    return tuple(whole)
