"""CPUs of one process for its elastic stages: fair shares, as elements of a job on one host have them.

IPDPS'09 closes with competing elastic operators that settle fairly (S10). Its algorithm alone doesn't do that. A stage
with more channels has more of the CPUs, so each further channel pays. The other stages pay for it. Must not know who
measures, nor how a stage finds its number of channels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from rayelastic.policy.element.cpu_budgets import CpuBudgets
from rayelastic.policy.element.decision import Decision
from rayelastic.policy.element.observation import Observation
from rayelastic.reasons import Code

__all__ = ["SharedCpus", "too_wide"]


class SharedCpus:
    """Bounds the channels of each stage by its fair share of the CPUs, once the stages use them all.

    >>> seen = Observation(time=1, period=1, throughput=1.0, thread_count=4, maximum_threads=8, own_cpu=1.0,
    ...                    waiting_cpu=3.0)
    >>> shared = SharedCpus()
    >>> for _ in range(2): parts = shared.step(4, {"a": seen, "b": seen})
    >>> parts["a"].maximum_threads, parts["a"].budget
    (2, 2)
    """

    def __init__(self) -> None:
        self._budgets = CpuBudgets(1)

    def step(self, cpus: int, stages: Mapping[str, Observation]) -> dict[str, Observation]:
        """Return the observations with the most channels that each stage may have.

        Args:
            cpus: of the process.
            stages: {stage: its period}, with `own_cpu`, the CPUs of its channels, and `waiting_cpu`, those that they
                were ready for besides.
        """
        budgets = self._budgets
        budgets.cpus = cpus
        waiting = math.fsum(seen.waiting_cpu or 0.0 for seen in stages.values())
        parts = budgets.step({name: seen.own_cpu for name, seen in stages.items()}, waiting)
        return {name: _within(seen, parts.get(name), budgets.thresholds.headroom) for name, seen in stages.items()}


def too_wide(seen: Observation) -> Decision | None:
    """Return the decision to go down to the most channels that are allowed; None: there are no more than these."""
    if seen.thread_count <= seen.maximum_threads or seen.budget is None:
        return None
    return Decision(seen.maximum_threads, {}, (Code.STAGE_BUDGET(cpus=seen.budget),), "fair shares")


def _within(seen: Observation, part: int | None, headroom: float) -> Observation:
    if part is None:
        return seen
    each = (seen.own_cpu + (seen.waiting_cpu or 0.0)) / max(1, seen.thread_count)  # CPUs that a channel would use
    most = max(1, math.floor(part / each)) if each > 0 else seen.maximum_threads
    if most < seen.thread_count and seen.thread_count * each <= headroom * part:
        most = seen.thread_count  # what a channel uses is measured, and differs from period to period
    return replace(seen, maximum_threads=min(seen.maximum_threads, most), budget=part)
