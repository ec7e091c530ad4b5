"""Which operators get a scheduler queue, at a fixed number of threads: Middleware'19 section 3.1, Figs 3 and 4.

Groups of like cost, heaviest first; a whole group at once, and a binary search inside the group in which it gets worse.
Must not know how many threads there are or should be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from rayelastic.papers.profiling_groups import profiling_groups
from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.policy.element.decision import Decision
from rayelastic.policy.element.observation import Observation
from rayelastic.reasons import Code, Reason


class AdjustDecision(Enum):
    """How a search goes on (Middleware'19 Fig. 4; M06)."""

    CONTINUE = "continue"
    STAY = "stay"  # over; the placement is what it was before
    CHANGE = "change"  # over; the placement is another


class Direction(Enum):
    """Whether a search adds queues, from the heaviest group, or takes them away, from the lightest (M11)."""

    UP = "more queues"
    DOWN = "fewer queues"


@dataclass(frozen=True, slots=True)
class ThreadingModelThresholds:
    """Constants of threading-model elasticity.

    Args:
        sensitivity: SENS, the relative difference of throughput that makes a trend (M08).
        smallest_step: the search in a group ends with steps of fewer operators (M09).
        smallest_share: groups with less than this share of the ports aren't searched inside (M09).
    """

    sensitivity: float = 0.05
    smallest_step: int = 2
    smallest_share: float = 0.1


class ThreadingModelElasticity:
    """Searches the operators that shall have a queue, by Fig. 3's rules R1-R5 (M04-M09).

    Fig. 4 line 4 compares with `binSize - 1`; what the text asks for, and what is done, is every operator (E8).

    Args:
        thresholds: its constants.

    >>> from rayelastic.policy.element.observation import OperatorObservation
    >>> operators = (OperatorObservation("light", samples=1), OperatorObservation("heavy", samples=99))
    >>> seen = Observation(time=5, period=5, throughput=1e6, thread_count=2, operators=operators)
    >>> dict(ThreadingModelElasticity().step(seen).models)
    {'heavy': <ThreadingModel.DYNAMIC: 'dynamic'>}
    """

    def __init__(self, thresholds: ThreadingModelThresholds | None = None) -> None:
        self._thresholds = thresholds or ThreadingModelThresholds()
        self.reset()

    def reset(self) -> None:
        """Forget the search."""
        self._search: _Search | None = None
        self._settled = False

    def step(self, observation: Observation) -> Decision:
        """Search upwards from what is in force; once settled, stay."""
        if self._settled:
            return Decision(
                observation.thread_count,
                {},
                (Code.SETTLED(setting=_queues(observation)),),
                "Middleware'19 Fig. 4 line 13",
            )
        outcome, decision = self.adjust(observation)
        self._settled = outcome is not AdjustDecision.CONTINUE
        return decision

    def adjust(self, observation: Observation, direction: Direction = Direction.UP) -> tuple[AdjustDecision, Decision]:
        """Do `threadingModelAdjustement` of Fig. 4: begin a search, or go on with the one that runs."""
        if self._search is None:
            self._search = _Search(observation, direction, self._thresholds)
            outcome, why, rule = self._search.begin(observation.throughput)
        elif not observation.adapted:  # M15: no adaptation while ports drain
            return AdjustDecision.CONTINUE, Decision(observation.thread_count, {}, (Code.SWITCHING(),), "M15")
        else:
            outcome, why, rule = self._search.go_on(observation.throughput)
        models = _differences(observation, self._search.queued)
        if outcome is not AdjustDecision.CONTINUE:
            self._search = None
        seen = Code.MEASURED(rate=observation.throughput, setting=_queues(observation))
        return outcome, Decision(observation.thread_count, models, (seen, *why), f"Middleware'19 {rule}")


Step = tuple[AdjustDecision, tuple[Reason, ...], str]


class _Search:
    """One search, from its first to its last adjustment."""

    def __init__(self, observation: Observation, direction: Direction, thresholds: ThreadingModelThresholds) -> None:
        manual = direction is Direction.UP
        ports = [o for o in observation.operators if o.switchable]
        movable = {o.name for o in ports if (o.model is ThreadingModel.MANUAL) is manual}
        groups: Sequence[tuple[str, ...]] = profiling_groups(ports)
        if direction is Direction.DOWN:
            groups = groups[::-1]  # section 3.3: start with the group of the lowest relative cost
        members = (tuple(name for name in group if name in movable) for group in groups)
        self._groups = [group for group in members if group]
        self._ports = len(ports)
        self._direction = direction
        self._thresholds = thresholds
        self._start = observation.queued
        self._group = -1
        self._tried: dict[int, float] = {}
        self._count = 0
        self.queued = self._start

    def begin(self, throughput: float) -> Step:
        return self._next_group(throughput, Code.GROUP_FIRST())

    def go_on(self, throughput: float) -> Step:
        size = len(self._groups[self._group])
        self._tried[self._count] = throughput
        if self._count == size and self._more(throughput, self._tried[0]):  # line 4; E8: every operator of the group
            return self._next_group(throughput, Code.GROUP_BETTER(gain=self._gain()))
        below = max(count for count in self._tried if count < self._count) if self._count else 0
        above = min((count for count in self._tried if count > self._count), default=size + 1)
        small = size < self._thresholds.smallest_share * self._ports  # M09
        if self._count == size and not small and self._more(self._tried[0], throughput):  # M04: worse, look inside
            return self._move((below + size) // 2, "R3", Code.GROUP_WORSE())
        if self._count == size:
            return self._stop()
        if self._more(self._tried[above], throughput):
            return self._move((self._count + above) // 2, "R2", Code.PART_WORSE(operators=above))
        if self._more(throughput, self._tried[below]):  # the peak is here or between here and above
            return self._move((self._count + above) // 2, "R1", Code.PART_BETTER(operators=below))
        if self._more(self._tried[below], throughput):
            return self._move((below + self._count) // 2, "R3", Code.PART_WORSE(operators=below))
        if self._more(throughput, self._tried[above]):
            why = Code.PART_NO_BETTER(operators=below), Code.PART_BETTER(operators=above)
            return self._move((below + self._count) // 2, "R4", *why)
        return self._stop()

    def _next_group(self, throughput: float, why: Reason) -> Step:
        self._group += 1
        if self._group == len(self._groups):
            return self._outcome((why, Code.LAST_GROUP()), "Fig. 4 line 6")
        self._tried = {0: throughput}
        size = len(self._groups[self._group])
        self._place(size)
        group = Code.NEXT_GROUP(group=self._group + 1, groups=len(self._groups), operators=size)
        return AdjustDecision.CONTINUE, (why, group), f"Fig. 4 line 6 (M04), {self._direction.value}"

    def _move(self, count: int, rule: str, *why: Reason) -> Step:
        if count in self._tried or abs(count - self._count) < self._thresholds.smallest_step:
            return self._stop()
        self._place(count)
        reasons = *why, Code.NEXT_PART(operators=count)
        return AdjustDecision.CONTINUE, reasons, f"Fig. 3 {rule}, {self._direction.value}"

    def _stop(self) -> Step:
        """Keep the fewest operators that gave the most (R5), taking back what was no improvement (M09, Fig. 5f)."""
        best = min(self._tried)
        for count in sorted(self._tried):
            if self._more(self._tried[count], self._tried[best]):
                best = count
        self._place(best)
        return self._outcome((Code.PART_BEST(operators=best),), "Fig. 3 R5")

    def _outcome(self, why: tuple[Reason, ...], rule: str) -> Step:
        changed = (
            self.queued != self._start
        )  # line 12 asks whether the count is 0, which is the same in the first group
        return (AdjustDecision.CHANGE if changed else AdjustDecision.STAY), why, f"{rule}, {self._direction.value}"

    def _place(self, count: int) -> None:
        up = self._direction is Direction.UP
        done = frozenset(name for group in self._groups[: self._group] for name in group)
        done |= frozenset(self._groups[self._group][:count])
        self._count = count
        self.queued = self._start | done if up else self._start - done

    def _gain(self) -> float:
        base = self._tried[0]
        return self._tried[self._count] / base - 1 if base > 0 else 0.0

    def _more(self, high: float, low: float) -> bool:
        return high - low > self._thresholds.sensitivity * low


def _queues(observation: Observation) -> dict[str, int]:
    return {"queues": len(observation.queued)}


def _differences(observation: Observation, queued: frozenset[str]) -> dict[str, ThreadingModel]:
    models = {}
    for operator in observation.operators:
        if operator.switchable and (operator.model is ThreadingModel.DYNAMIC) != (operator.name in queued):
            models[operator.name] = ThreadingModel.DYNAMIC if operator.name in queued else ThreadingModel.MANUAL
    return models
