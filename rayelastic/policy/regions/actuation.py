"""Plan changes that the executor supports: the vocabulary of the plans that a policy may request.

A policy that requests an unsupported change never sees it in force, so it can neither judge nor revert it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from rayelastic.plan.exec_plan import RegionPlan
from rayelastic.plan.node_placement import Node
from rayelastic.reasons import Reason

__all__ = ["Actuation"]

LINK_SECONDS = 80e-9  # of CPU at each end of a link between hosts for a tuple whose size is unknown


@dataclass(frozen=True, slots=True)
class Actuation:
    """What can be changed.

    Args:
        regions: names of those that can get another number of replicas; None: all whose kind allows it.
        moves: whether a replica can go to another PE.
        shares: whether two replicas can run in one PE, or a new one in an element that runs already.
        processes: the most PEs of the job; None: as many as there are CPUs, where replicas have
            elements of their own.
        restarts: whether operators without replicas can go to other PEs, at the cost of a pause of all.
        bounds: {region: the fewest and the most replicas}, of those that have some of their own.
        together: why operators without replicas stay in their PEs; None: they may move.
        going_on: seconds from a restart until sources emit new tuples, beside the measured cost of restarts.
        in_steps: {region: its aggregate that could be declared in two steps, and no key would be too hot for it}.
        links: {operator: s of CPU at each end of a link between hosts for a tuple that it emits}.

    >>> live = Actuation.of_running_jobs(["r1"], processes=4)
    >>> live.moves, live.shares, live.processes
    (False, False, 4)
    """

    regions: frozenset[str] | None = None
    moves: bool = True
    shares: bool = True
    processes: int | None = None
    restarts: bool = False
    bounds: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    together: Reason | None = None
    going_on: float = 0.0
    in_steps: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of_running_jobs(
        cls,
        elastic: Collection[str],
        processes: int | None = None,
        *,
        restarts: bool = False,
        bounds: Mapping[str, tuple[int, int]] | None = None,
        together: Reason | None = None,
        going_on: float = 0.0,
        in_steps: Mapping[str, str] | None = None,
        links: Mapping[str, float] | None = None,
    ) -> Self:
        """Return the changes that a live job supports: replicas stay where they start, each in an element of its own.

        Args:
            elastic: names of the regions that can get another number of replicas.
            processes: the most PEs of the job; None: as many as there are CPUs.
            restarts: whether it may restore from a checkpoint with a plan that has operators in other elements.
            bounds: {region: the fewest and the most replicas}; None: no region has bounds of its own.
            together: why it may not; None: it may.
            going_on: seconds from such a restart until sources emit new tuples.
            in_steps: {region: its aggregate that could be in two steps}; None: there is none.
            links: {operator: s of CPU at each end of a link for a tuple that it emits}; None: nothing is known.
        """
        return cls(
            frozenset(elastic),
            moves=False,
            shares=False,
            processes=processes,
            restarts=restarts,
            bounds=bounds or {},
            together=together,
            going_on=going_on,
            in_steps=in_steps or {},
            links=links or {},
        )

    def link_seconds(self, operator: str) -> float:
        """Return the s of CPU at each end of a link between hosts for a tuple that an operator emits."""
        return self.links.get(operator, LINK_SECONDS)

    def bounds_of(self, region: str, most: int) -> tuple[int, int]:
        """Return the fewest and the most replicas of a region, where nobody has said so from 1 to `most`."""
        return self.bounds.get(region, (1, most))

    def most_processes(self, nodes: Sequence[Node]) -> int | None:
        """Return the most PEs on some nodes; None: any number."""
        if self.processes is not None or self.shares or not nodes:
            return self.processes
        return max(1, math.floor(sum(node.cpus for node in nodes)))

    def replicates(self, planned: RegionPlan) -> bool:
        """Tell whether a region can get another number of replicas."""
        return (
            planned.region.kind.is_replicable
            and planned.is_together
            and (self.regions is None or planned.region.name in self.regions)
        )
