"""The controller of a PE, by variant: ours, or the paper's.

Must not know how either decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rayelastic.policy.element.decision import Controller, Decision
from rayelastic.policy.element.guided.controller import GuidedMultiLevelElasticity
from rayelastic.policy.element.observation import Observation
from rayelastic.policy.element.paper.controller import PaperMultiLevelElasticity

__all__ = ["MultiLevelElasticity"]


class MultiLevelElasticity:
    """Finds how many scheduler threads and which queues are best, and stays there (Middleware'19).

    Args:
        variant: "ours": few moves to where measured costs point, each verified (`GuidedMultiLevelElasticity`);
            "paper": Middleware'19 Figs 3-7 as printed (`PaperMultiLevelElasticity`).
        upstream: {operator: those that feed it}, of which ours makes use; None: a chain.

    Raises:
        ValueError: there is no such variant.

    >>> seen = Observation(time=5, period=5, throughput=1e6, thread_count=2, minimum_threads=2, maximum_threads=8)
    >>> MultiLevelElasticity().step(seen).thread_count
    2
    >>> MultiLevelElasticity("theirs")
    Traceback (most recent call last):
    ValueError: MultiLevelElasticity(variant='theirs'): choose 'ours' or 'paper'
    """

    def __init__(self, variant: str = "ours", upstream: Mapping[str, Sequence[str]] | None = None) -> None:
        if variant not in ("ours", "paper"):
            raise ValueError(f"MultiLevelElasticity(variant={variant!r}): choose 'ours' or 'paper'")
        ours = variant == "ours"
        self._controller: Controller = GuidedMultiLevelElasticity(upstream) if ours else PaperMultiLevelElasticity()

    def step(self, observation: Observation) -> Decision:
        """Return what shall be in force in the next period."""
        return self._controller.step(observation)

    def reset(self) -> None:
        """Forget what was learned, as after a change of regions."""
        self._controller.reset()
