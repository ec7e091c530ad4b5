"""Every constant of organic adaptation: Joker sections 4.4 and 5.1, and those of what goes beyond the paper."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Self

from rayelastic.plan.hash_ring import MAX_REPLICAS, PARTITIONS

__all__ = ["ActionOrder", "OrganicThresholds"]

SETTLE_PERIODS = 3  # of running jobs: 6 s in which all local loops could have begun something


class ActionOrder(Enum):
    """Which actions may be tried, and which first (Joker section 5.1, Fig. 5; J23)."""

    SPLIT_FIRST = "fusion first"
    EXPAND_FIRST = "fission first"
    SPLIT_ONLY = "fusion only"
    EXPAND_ONLY = "fission only"


@dataclass(frozen=True, slots=True)
class OrganicThresholds:
    """Constants of organic adaptation.

    The first six are the paper's; the others belong to the default variant alone.

    Args:
        cpu_bottleneck: CPU utilisation above which a pipeline is a bottleneck (5.1; J22).
        split_gain: split utility - 1 that a split needs at least (5.1; J25, E5: the paper's formula is never below 1,
            so that its threshold of 0.2 means the gain).
        throughput_gain: relative increase of throughput that a change needs (5.1; J27).
        load_change: relative difference of throughput or CPU utilisation that makes a change of load (4.3; the paper
            has no number: 0.2 as in its released source; J29).
        max_replicas: of a region; 16 as in the released source (J12).
        order: which action is tried first (J23); the default variant knows of it only whether pipelines may be cut.
        stable_periods: periods without a change after which a job counts as stable; 3 as in the released source (J31).
        aim: utilisation that a change of plan sizes for; the bottleneck threshold of the paper.
        grow_above: utilisation above which a region grows; the distance to `aim` keeps noise from starting changes.
        grow_stable_above: the same for a stable job without back-pressure on its sources: what was enough for long is
            enough until something has changed.
        shrink_below: utilisation that a smaller shape may have for a region to shrink to it.
        grow_periods: periods in a row that must ask for growth; windows, not samples (reliability, complaint 1).
        shrink_periods: periods in a row in which less must suffice; longer, as too little hurts more than too much.
        warm_up: periods after a change that are ignored.
        verify: periods after the warm-up on which a change is judged.
        settle_periods: periods to wait for local levels at most; a bound, so that one noisy element starves nobody.
        others: share of their work time in which an element's threads had no CPU. Above it a change isn't judged yet,
            as other processes use the CPUs, such as those that the change starts; for `settle_periods` at most.
        guessed_growth: bound of the load that a source is believed to be offered, as a multiple of what it makes, if it
            doesn't report it. A blocked source with a rate looks like one without, and twice the load mustn't cause 16
            replicas.
        carried: share of the offered load that counts as all of it.
        weight: least share of a period in averages.
        shift: relative deviation from the average that makes a change of load, if it lasts.
        shift_periods: how many periods in a row it has to last.
        skew: how much more than the mean the busiest replica may have before it counts; 5 % as in the released source.
        full: fill of a region's input queues from which it may be a bottleneck.
        rebalance_cost: seconds of throughput that a rebalance costs until it was measured; Fig. 16: more than 30 % for
            3 s. A split costs none until then (C003-8).
        restart_cost: the same of a change that ends all elements and starts others in their places.
        cost_weight: share of a new measurement in the cost of a kind of change.
        payback: seconds in which a change has to earn what it costs.
        busy: share of the CPUs of all nodes that may be planned for.
        reject_periods: periods that the second rejection of a region's shape lasts at least; further ones twice as long
            as the one before.
    """

    cpu_bottleneck: float = 0.8
    split_gain: float = 0.2
    throughput_gain: float = 0.1
    load_change: float = 0.2
    max_replicas: int = MAX_REPLICAS
    order: ActionOrder = ActionOrder.SPLIT_FIRST
    stable_periods: int = 3
    aim: float = 0.8
    grow_above: float = 0.9
    grow_stable_above: float = 0.95
    shrink_below: float = 0.7
    grow_periods: int = 2
    shrink_periods: int = 8
    warm_up: int = 1
    verify: int = 2
    settle_periods: int = 6
    others: float = 0.25
    guessed_growth: float = 4.0
    carried: float = 0.95
    weight: float = 0.1
    shift: float = 0.15
    shift_periods: int = 3
    skew: float = 0.05
    full: float = 0.9
    rebalance_cost: float = 1.0
    restart_cost: float = 5.0
    cost_weight: float = 0.5
    payback: float = 60.0
    busy: float = 0.95
    reject_periods: int = 24

    @property
    def cuts(self) -> bool:
        """Whether regions may have more and fewer pipelines."""
        return self.order is not ActionOrder.EXPAND_ONLY

    @classmethod
    def of_running_jobs(cls, target: float, max_replicas: int = PARTITIONS) -> Self:
        """Return those for jobs whose local levels decide on pipelines: where queues go is where pipelines are cut.

        Args:
            target: utilisation that a change of plan sizes for, 0..1; what lies around it keeps its distance.
            max_replicas: of a region; what bounds them is the number of processes, and what pays.

        >>> made = OrganicThresholds.of_running_jobs(0.8)
        >>> round(made.grow_above, 3), round(made.grow_stable_above, 3), round(made.shrink_below, 3)
        (0.9, 0.95, 0.7)
        """
        return cls(
            order=ActionOrder.EXPAND_ONLY,
            settle_periods=SETTLE_PERIODS,
            max_replicas=max_replicas,
            cpu_bottleneck=target,
        ).aiming(target)

    def aiming(self, target: float) -> Self:
        """Return the same that size for another utilisation; what lies around it keeps its distance."""
        usual = OrganicThresholds()
        factor = target / usual.aim
        return replace(
            self,
            aim=target,
            grow_above=min(factor * usual.grow_above, (1.0 + target) / 2),
            grow_stable_above=min(factor * usual.grow_stable_above, (3.0 + target) / 4),
            shrink_below=factor * usual.shrink_below,
        )
