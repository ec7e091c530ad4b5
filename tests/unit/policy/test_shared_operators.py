"""Operators that whoever fills their queue runs, too: the controller puts one queue in front of the first of them."""

from __future__ import annotations

import numpy as np

from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.policy.element.guided.controller import GuidedMultiLevelElasticity
from rayelastic.policy.element.observation import Observation, OperatorObservation
from rayelastic.policy.element.pieces import OperatorGraph

COSTS = {"lines": 3.3, "words": 7.0, "counts": 9.0, "out": 0.0}  # ns a word, as measured of a file of text
RATES = {"lines": 0.1, "words": 0.1, "counts": 1.0, "out": 0.0}  # tuples for each word
SHARED = frozenset({"words", "counts"})
HOP = 1.5  # ns of a word that goes through a queue
CPUS = 2
PERIOD = 1.0


class WordCount:
    """One source, and two CPUs that nobody else uses; 5 % noise."""

    def __init__(self, shared: frozenset[str]) -> None:
        self.shared = shared
        self.queued: frozenset[str] = frozenset()
        self.threads = 1
        self._graph = OperatorGraph(list(COSTS), shared=shared)
        self._random = np.random.default_rng(4)

    def words(self) -> float:
        """A second, without noise."""
        hops = self._graph.crossings(RATES, self.queued)
        pieces = self._graph.piece_costs(COSTS, self.queued)
        lanes = min(CPUS, 1 + min(self.threads, len(self.queued)))
        slowest = max(cost + HOP * hops.get(head, 0.0) for head, cost in pieces.items())
        return 1e9 / max(slowest, (sum(COSTS.values()) + HOP * sum(hops.values())) / lanes)

    def seen(self, time: float) -> Observation:
        words = self.words() * float(np.exp(0.05 * self._random.standard_normal()))
        busy = min(float(CPUS), words * sum(COSTS.values()) * 1e-9)
        operators = tuple(
            OperatorObservation(
                name,
                ThreadingModel.DYNAMIC if name in self.queued else ThreadingModel.MANUAL,
                name != "lines",
                words * RATES[name],
                int(self._random.poisson(100 * PERIOD * busy * cost / sum(COSTS.values()))),
                given=words * {"lines": 0.1, "words": 1.0}.get(name, 0.0),
                shared=name in self.shared,
            )
            for name, cost in COSTS.items()
        )
        return Observation(
            time=time,
            period=PERIOD,
            throughput=sum(operator.rate for operator in operators),
            thread_count=self.threads,
            maximum_threads=CPUS,
            operators=operators,
            source_wait=0.0,
            cpu_count=CPUS,
            own_cpu=busy,
            host_cpu=busy / CPUS,
        )

    def adapted(self, periods: int) -> list[float]:
        """Words a second in each period."""
        controller, given = GuidedMultiLevelElasticity(), []
        for period in range(periods):
            decision = controller.step(self.seen(period * PERIOD))
            for name, model in decision.models.items():
                change = frozenset({name})
                self.queued = self.queued | change if model is ThreadingModel.DYNAMIC else self.queued - change
            self.threads = decision.thread_count
            given.append(self.words())
        return given


def test_word_count_has_its_second_core_from_the_fourth_period_on() -> None:
    """The first ten periods of a job are over within four seconds; this many in less than one."""
    job = WordCount(SHARED)
    alone = job.words()
    assert max(job.adapted(4)) >= 1.8 * alone
    job.adapted(40)
    assert "words" in job.queued
    assert "counts" not in job.queued
    assert job.words() >= 1.8 * alone


def test_without_shares_it_needs_more_queues() -> None:
    job = WordCount(frozenset())
    job.adapted(40)
    assert "counts" in job.queued
