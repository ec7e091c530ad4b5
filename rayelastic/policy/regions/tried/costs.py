"""What changes of plan cost: guesses until they were measured, then averages of what they took. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Collection

from rayelastic.policy.regions.parting import PARTINGS
from rayelastic.policy.regions.thresholds import OrganicThresholds
from rayelastic.policy.regions.tried.trial import Trial

__all__ = ["SHARE", "Costs"]

SHARE = "share"  # the kind of change that moves partitions to other replicas


class Costs:
    """Seconds of throughput that each kind of change costs.

    Args:
        thresholds: what they cost until they were measured, and how much a measurement counts.
        going_on: seconds on top of what a change costs that ends all elements.

    >>> costs = Costs(OrganicThresholds(rebalance_cost=1.0))
    >>> costs.of(["split", "rebalance"])
    1.0
    """

    def __init__(self, thresholds: OrganicThresholds, going_on: float = 0.0) -> None:
        self._weight, self._going_on = thresholds.cost_weight, going_on
        self._of = {
            "split": 0.0,
            "merge": 0.0,
            "rebalance": thresholds.rebalance_cost,
            SHARE: thresholds.rebalance_cost,
            PARTINGS: thresholds.restart_cost,
        }

    def of(self, kinds: Collection[str]) -> float:
        """Return what a change costs: as much as its most expensive action."""
        return max(self._of[kind] + (self._going_on if kind == PARTINGS else 0.0) for kind in kinds)

    def charge(self, trial: Trial, cost: float) -> None:
        """Remember what a change has cost, by its most expensive kind of action."""
        kinds = {action.kind for action in trial.actions}
        if trial.parting is not None:
            kinds, cost = {PARTINGS}, max(0.0, cost - self._going_on)
        kind = "rebalance" if "rebalance" in kinds else min(kinds)
        self._of[kind] += self._weight * (cost - self._of[kind])
