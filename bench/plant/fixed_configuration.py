"""Configurations that never change: the baselines of the papers, and what a user pins.

PLDI'17 section 5 and Middleware'19 Fig. 1 compare elastic runs with these. Must not know what is best.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.policy.element.decision import Decision
from rayelastic.policy.element.observation import Observation, OperatorObservation
from rayelastic.reasons import Code


@dataclass(frozen=True, slots=True)
class FixedConfiguration:
    """Asks for the same configuration in every period.

    Args:
        threads: scheduler threads; None: the fewest that are allowed.
        model: the threading model of the operators that have a queue.
        queues: how many operators have one, evenly spread over the graph; None: all.

    >>> seen = Observation(time=5, period=5, throughput=1e6, thread_count=1, maximum_threads=8,
    ...                    operators=tuple(OperatorObservation(name) for name in "abcd"))
    >>> list(FixedConfiguration.queued(2, queues=2).step(seen).models)
    ['b', 'd']
    """

    threads: int | None = None
    model: ThreadingModel = ThreadingModel.DYNAMIC
    queues: int | None = None

    @classmethod
    def manual(cls) -> Self:
        """Return direct calls everywhere (P03)."""
        return cls(queues=0)

    @classmethod
    def dedicated(cls) -> Self:
        """Return a thread and a queue for each port (P04)."""
        return cls(model=ThreadingModel.DEDICATED)

    @classmethod
    def dynamic(cls, threads: int) -> Self:
        """Return a queue for each port and a fixed number of threads: "dynamic static" (PLDI'17 section 5)."""
        return cls(threads)

    @classmethod
    def queued(cls, threads: int, queues: int) -> Self:
        """Return a number of threads and of queues (Middleware'19 Fig. 1)."""
        return cls(threads, queues=queues)

    def step(self, observation: Observation) -> Decision:
        """Return the configuration, within the bounds of the threads."""
        threads = observation.minimum_threads if self.threads is None else self.threads
        threads = max(observation.minimum_threads, min(threads, observation.maximum_threads))
        wanted = self._queued([o for o in observation.operators if o.switchable])
        models = {}
        for operator in observation.operators:
            model = self.model if operator.name in wanted else ThreadingModel.MANUAL
            if operator.switchable and operator.model is not model:
                models[operator.name] = model
        return Decision(threads, models, (Code.PINNED(),), "PLDI'17 section 5, baselines")

    def reset(self) -> None:
        """Forget nothing: there is nothing to forget."""

    def _queued(self, switchable: list[OperatorObservation]) -> frozenset[str]:
        ports = len(switchable)
        queues = ports if self.queues is None else min(self.queues, ports)
        return frozenset(switchable[(i + 1) * ports // queues - 1].name for i in range(queues))
