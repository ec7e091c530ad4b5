"""What a search is bounded by, and what it puts on trial: values shared by those who propose and those who judge.

Must not know how either is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Self

from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.policy.element.guided.estimate import Configuration, Estimate
from rayelastic.policy.element.guided.explanation import Explanation
from rayelastic.policy.element.guided.measurement import Margin
from rayelastic.policy.element.observation import Observation
from rayelastic.reasons import Reason

__all__ = ["Bounds", "Purpose", "SearchThresholds", "Trial", "thread_limits"]


class Purpose(Enum):
    """Why a configuration is tried."""

    GROWTH = "growth"  # it must be better
    EXPLORATION = "exploration"  # the measurements suggest that it is better; a period will show
    SAVING = "saving"  # it mustn't be worse
    RECALL = "recall"  # it was the best under such a load before; it mustn't be worse


@dataclass(frozen=True, slots=True)
class SearchThresholds:
    """Constants of the search.

    Args:
        growth: margin of a trial that must be better, with nothing but measurements to go by.
        promised: margin of one that an estimate promises something of.
        saving: margin of a trial that mustn't be worse: of fewer threads, or of what was best under such a load.
        wide: factor between two thread counts from which on one between them is tried.
        promise: relative gain that must be possible for a trial to be worth its periods.
        nearly: share of the best estimate with which fewer threads are preferred.
        baseline: samples of the best configuration before fewer threads are judged against it.
        pays: relative throughput that a trial has to promise while others are withheld.
        step: factor by which threads grow (P30).
        doubt: relative error of an estimate of no difference, as a standard deviation.
        doubted: the same of an estimate of a difference, as a share of its logarithm.
        alike: relative difference in queues up to which two placements are alike.
        confirmed: samples of what is kept after an exploration, at least.
        explorations: trials of what may be better by all that was measured, until a try has to be worth more.
        periods: that a search may have taken until then.
        later: times as much that a try has to be worth from then on; where the host is shared there is none then.
        last_exploration: how many trials of that kind there are at most.
        last_period: that a search may have taken until nothing more is explored.
        reached: share of what the costs of operators allow, from which on nothing is explored.
        far: share of it below which a try may be worth less.
        worth: relative improvement to be expected of a try, from which on it is worth its period.
        price: least relative gain that justifies twice the threads, where no estimate promises one.
        slight: relative difference that isn't worth a thread, or a queue.
        little: share of threads that is a little more; one at least.
    """

    growth: Margin = field(default_factory=lambda: Margin(0.01, 0.08))
    promised: Margin = field(default_factory=lambda: Margin(-0.02, 0.05))
    saving: Margin = field(default_factory=lambda: Margin(-0.1, 0.0))
    wide: float = 1.25
    promise: float = 0.03
    nearly: float = 0.99
    baseline: int = 5
    pays: float = 1.12
    step: int = 2
    doubt: float = 0.03
    doubted: float = 0.5
    alike: float = 0.1
    confirmed: int = 3
    explorations: int = 18
    periods: int = 33
    later: float = 4.0
    last_exploration: int = 30
    last_period: int = 50
    reached: float = 1.0
    far: float = 0.92
    worth: float = 0.003
    price: float = 0.005
    slight: float = 0.01
    little: float = 0.125


@dataclass(frozen=True, slots=True)
class Bounds:
    """What limits a search in this period.

    Args:
        minimum: the fewest threads.
        maximum: the most.
        cpus: CPUs that others leave to this PE.
        movable: operators whose queue can be put in or taken away, in their order in the graph.
        fixed: operators that keep their queue.
        busy: scheduler threads that were busy; None: not measured.
        estimate: by the profile; None: there is none.
        used: CPUs that this PE kept busy; None: not measured.
        shared: whether other elements of the job have parts of the host: they are disturbed by each trial.
    """

    minimum: int
    maximum: int
    cpus: float
    movable: frozenset[str]
    fixed: frozenset[str]
    busy: float | None
    estimate: Estimate | None
    used: float | None = None
    shared: bool = False

    @classmethod
    def of(cls, observation: Observation, others: int, estimate: Estimate | None) -> Self:
        """Return the bounds in a period in which other processes use so many CPUs."""
        minimum, maximum = thread_limits(observation, others)
        operators = observation.operators
        movable = frozenset(o.name for o in operators if o.switchable and o.model is not ThreadingModel.DEDICATED)
        return cls(
            minimum=minimum,
            maximum=maximum,
            cpus=float(max(1, observation.cpu_count - others)),
            movable=movable,
            fixed=observation.queued - movable,
            busy=observation.thread_count * (1 - observation.idle) if observation.idle > 0 else None,
            used=observation.own_cpu if observation.own_cpu > 0 else None,
            estimate=estimate if movable else None,
            shared=observation.budget is not None,
        )

    def explained(self, explanations: Sequence[Explanation]) -> Self:
        """Return the same bounds with an estimate by the first of these explanations; none: with what it was."""
        if self.estimate is None or not explanations:
            return self
        return replace(self, estimate=self.estimate.explained(explanations[0]))


@dataclass(frozen=True, slots=True)
class Trial:
    """A configuration on trial.

    Args:
        configuration: what is tried.
        purpose: whether it has to be better, or just no worse.
        why: what promised it.
        promised: relative throughput to what it is compared with, by the estimate; None: no estimate.
    """

    configuration: Configuration
    purpose: Purpose
    why: Reason
    promised: float | None = None


def thread_limits(observation: Observation, others: int) -> tuple[int, int]:
    """Return the fewest and the most threads (P31, P33), leaving others the CPUs that they use.

    >>> thread_limits(Observation(time=1, period=1, throughput=1.0, thread_count=4, maximum_threads=9, cpu_count=8), 3)
    (1, 5)
    """
    most = observation.maximum_threads
    minimum = min(observation.minimum_threads + observation.thread_stuck, most)
    return minimum, max(minimum, min(most, observation.cpu_count - others) if others else most)
