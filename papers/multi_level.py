"""Thread count and threading models in tandem, as the paper does it: Middleware'19 sections 3.2 and 3.3, Figs 5-7.

The thread count is the primary adjustment; each change of it starts a search of queues, unless what is known makes that
needless. `elasticity="paper"` runs it, and figures compare with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from rayelastic.papers.thread_count import ThreadCountElasticity, ThreadCountThresholds
from rayelastic.papers.threading_model import (
    AdjustDecision,
    Direction,
    ThreadingModelElasticity,
    ThreadingModelThresholds,
)
from rayelastic.plan.settings.paper import PaperElasticity
from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.policy.element.decision import Decision
from rayelastic.policy.element.observation import Observation
from rayelastic.reasons import Code

RELEASED_LEAST_GAIN = 1.05  # E6: the released code's floor of new / old throughput


class Satisfaction(Enum):
    """When a gain by threads alone makes the search of queues needless (M12, E6)."""

    FORMULA = "gain over sf x growth of threads"  # Middleware'19 section 3.3
    RELEASED = "ratio over max(1.05, sf x ratio of threads)"
    NEVER = "never"  # Fig. 6(a, b)


@dataclass(frozen=True, slots=True)
class PaperMultiLevelThresholds:
    """Constants of the paper's multi-level elasticity.

    Args:
        satisfaction_factor: sf, 0..1; 0.6 in Fig. 6(c).
        satisfaction: how sf is used.
        history: whether thread ranges of a placement are remembered, Fig. 6(b) (M11).
        validate_at_maximum: search queues at the most threads even if satisfied, as the released code does (M17).
        threads: constants of the thread-count elasticity inside.
        models: constants of the threading-model elasticity inside.
    """

    satisfaction_factor: float = 0.6
    satisfaction: Satisfaction = Satisfaction.FORMULA
    history: bool = True
    validate_at_maximum: bool = False
    threads: ThreadCountThresholds = field(default_factory=ThreadCountThresholds)
    models: ThreadingModelThresholds = field(default_factory=ThreadingModelThresholds)


@dataclass(slots=True)
class _History:
    """The range of thread counts for which the placement of queues held (M11)."""

    fewest: int
    most: int

    def direction(self, threads: int) -> Direction | None:
        if threads > self.most:
            return Direction.UP
        return Direction.DOWN if threads < self.fewest else None


@dataclass(frozen=True, slots=True)
class _Primary:
    """A change of the thread count whose effect has still to be seen."""

    threads: int
    throughput: float


class PaperMultiLevelElasticity:
    """Adapts threading models at a fixed thread count, then the thread count, and so on (Middleware'19 Fig. 7).

    Begins at the fewest threads without queues (M10). A change of load, as thread-count elasticity sees it, takes all
    queues off, forgets the history and searches again at the same thread count (M14).

    Args:
        thresholds: its constants.

    >>> from rayelastic.policy.element.observation import OperatorObservation
    >>> operators = (OperatorObservation("light", samples=1), OperatorObservation("heavy", samples=99))
    >>> seen = Observation(time=5, period=5, throughput=1e6, thread_count=2, minimum_threads=2, maximum_threads=8,
    ...                    operators=operators)
    >>> PaperMultiLevelElasticity().step(seen).rule
    "Middleware'19 Fig. 4 line 6 (M04), more queues"
    """

    def __init__(self, thresholds: PaperMultiLevelThresholds | None = None) -> None:
        self._thresholds = thresholds or PaperMultiLevelThresholds()
        self._threads = ThreadCountElasticity(thresholds=self._thresholds.threads, queues=False)
        self._models = ThreadingModelElasticity(self._thresholds.models)
        self.reset()

    def reset(self) -> None:
        """Forget everything and begin with a search of queues (Fig. 7, init)."""
        self._threads.reset()
        self._models.reset()
        self._searching: Direction | None = Direction.UP
        self._history: _History | None = None
        self._primary: _Primary | None = None

    def step(self, observation: Observation) -> Decision:
        """Do `adapt` of Fig. 7."""
        if self._searching is not None:
            return self._search(observation, self._searching)
        if observation.adapted and self._primary is not None:
            direction = self._secondary(observation, self._primary)
            self._primary = None
            if direction is not None:
                return self._search(observation, direction)
        decision = self._threads.adjust(observation)
        if self._threads.load_changed:
            return self._forget(observation)
        if decision.thread_count != observation.thread_count:
            self._primary = _Primary(observation.thread_count, observation.throughput)
        return decision

    def _secondary(self, observation: Observation, before: _Primary) -> Direction | None:
        """Return in which direction queues are to be searched after a change of threads (Fig. 7, lines 8-14)."""
        if self._satisfied(observation, before):
            return None
        if not self._thresholds.history or self._history is None:
            return Direction.UP if observation.thread_count > before.threads else Direction.DOWN
        return self._history.direction(observation.thread_count)

    def _satisfied(self, observation: Observation, before: _Primary) -> bool:
        threads = observation.thread_count / before.threads
        if threads <= 1 or before.throughput <= 0:  # E6: for fewer threads the ratio has no meaning
            return False
        if self._thresholds.validate_at_maximum and observation.thread_count >= observation.maximum_threads:
            return False
        gain = observation.throughput / before.throughput
        match self._thresholds.satisfaction:
            case Satisfaction.FORMULA:
                return gain - 1 > self._thresholds.satisfaction_factor * (threads - 1)
            case Satisfaction.RELEASED:
                return gain > max(RELEASED_LEAST_GAIN, self._thresholds.satisfaction_factor * threads)
            case Satisfaction.NEVER:
                return False

    def _search(self, observation: Observation, direction: Direction) -> Decision:
        outcome, decision = self._models.adjust(observation, direction)
        if outcome is AdjustDecision.CONTINUE:  # line 20
            self._searching = direction
            return decision
        self._searching = None  # lines 21-22
        threads = observation.thread_count
        if self._history is None or outcome is AdjustDecision.CHANGE:  # line 18
            self._history = _History(threads, threads)
        else:  # line 19
            self._history.fewest = min(self._history.fewest, threads)
            self._history.most = max(self._history.most, threads)
        if outcome is AdjustDecision.CHANGE:
            self._threads.untrust_from(threads)  # M16
        return decision

    def _forget(self, observation: Observation) -> Decision:
        self.reset()
        operators = observation.operators
        models = {o.name: ThreadingModel.MANUAL for o in operators if o.switchable and o.name in observation.queued}
        seen = Code.MEASURED(rate=observation.throughput, setting={"threads": observation.thread_count})
        return Decision(observation.thread_count, models, (seen, Code.OTHER_LOAD()), "Middleware'19 3.2 (M14)")


def controller_of(paper: PaperElasticity) -> PaperMultiLevelElasticity:
    """Return the controller with the parameters that a user has set."""
    return PaperMultiLevelElasticity(
        PaperMultiLevelThresholds(
            satisfaction_factor=paper.satisfaction_factor,
            history=paper.history,
            threads=ThreadCountThresholds(sensitivity=paper.sensitivity, host_cpu=paper.host_cpu),
            models=ThreadingModelThresholds(sensitivity=paper.sensitivity),
        )
    )
