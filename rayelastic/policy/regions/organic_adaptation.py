"""Organic adaptation, Joker section 4: how many pipelines and replicas each region has, found while the job runs."""

from __future__ import annotations

from rayelastic.policy.regions.actions import AdaptationDecision
from rayelastic.policy.regions.actuation import Actuation
from rayelastic.policy.regions.goal.latency import LatencyAim
from rayelastic.policy.regions.observation import ObservationWindow, PlanObservation
from rayelastic.policy.regions.paper.algorithms import PaperAdaptation
from rayelastic.policy.regions.rates import RateAdaptation
from rayelastic.policy.regions.thresholds import OrganicThresholds
from rayelastic.policy.regions.tried.earlier import Earlier
from rayelastic.reasons import Code

__all__ = ["OrganicAdaptation"]


class OrganicAdaptation:
    """Decides, period by period, which plan a job runs.

    Args:
        variant: "rates": jumps to the shapes that true processing rates ask for, shrinks too, knows nodes; the default.
            "paper": Algorithms 1 to 7 as printed.
        thresholds: constants.
        actuation: what of a plan can be changed; nothing else is asked for.
        latency: what decides on the utilisation that "rates" sizes for.
        earlier: what paid in an earlier run, where "rates" begins.
        window: makes one observation of several samples; None: each sample is one.

    Raises:
        ValueError: there is no such variant.

    >>> from rayelastic.plan.exec_plan import ExecPlan
    >>> seen = PlanObservation(time=30.0, period=30.0, plan=ExecPlan("empty", ()), regions=())
    >>> OrganicAdaptation("paper").step(seen).changes
    False
    """

    def __init__(
        self,
        variant: str = "rates",
        *,
        thresholds: OrganicThresholds | None = None,
        actuation: Actuation | None = None,
        latency: LatencyAim | None = None,
        earlier: Earlier | None = None,
        window: ObservationWindow | None = None,
    ) -> None:
        if variant not in ("rates", "paper"):
            raise ValueError(f"OrganicAdaptation(variant={variant!r}): choose 'rates' or 'paper'")
        self._window = window
        self._algorithm: RateAdaptation | PaperAdaptation = (
            PaperAdaptation(thresholds, actuation)
            if variant == "paper"
            else RateAdaptation(thresholds, actuation, latency, earlier)
        )

    @property
    def learned(self) -> Earlier:
        """What has been found to pay, in this run and before."""
        return self._algorithm.learned if isinstance(self._algorithm, RateAdaptation) else Earlier()

    def step(self, seen: PlanObservation) -> AdaptationDecision:
        """Take one period's averages and return the plan for the next one, with the reason."""
        whole = seen if self._window is None else self._window.add(seen)
        if whole is None:
            return AdaptationDecision(seen.plan, reasons=(Code.MEASURING_REGIONS(),), rule="Joker 4.1")
        return self._algorithm.step(whole)

    def reset(self) -> None:
        """Forget what was learned."""
        self._algorithm.reset()
