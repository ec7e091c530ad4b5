"""How many scheduler threads a PE runs: PLDI'17 section 4.2, Figs 7 and 8.

Learns the curve of throughput over thread levels, trusts what it measured until the load changes, and climbs where
there is a trend. Must not know what a thread is, or who switches queues.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Self

from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.policy.element.decision import Decision
from rayelastic.policy.element.observation import Observation
from rayelastic.reasons import Code


class LevelSteps(Enum):
    """Which thread levels there are (P30)."""

    DOUBLING = "doubling"  # up to the next power of two, down by halving the way to the level below
    UNIT = "unit"  # up and down by one


@dataclass(frozen=True, slots=True)
class ThreadCountThresholds:
    """Constants of thread-count elasticity.

    Args:
        sensitivity: SENS, the relative difference of throughput that makes a trend (PLDI'17 4.2.2).
        load_change: the relative difference to the first throughput at a level that makes a change of load (E3).
        strikes: suspicious periods in a row that are taken for noise before a change of load is believed (E3).
        ignored: first periods at a level in which no change of load is looked for (E3).
        host_cpu: share of the CPUs of the host above which no thread is added (P32).
    """

    sensitivity: float = 0.05
    load_change: float = 0.2
    strikes: int = 5
    ignored: int = 2
    host_cpu: float = 0.8

    @classmethod
    def paper(cls) -> Self:
        """Return what the paper prints: one SENS for trends and for changes of load, believed at once (4.2.2)."""
        return cls(load_change=0.05, strikes=0, ignored=0)


@dataclass(slots=True)
class ThreadRecord:
    """What is known of a thread level (PLDI'17 Fig. 7; P26)."""

    last_time: int = 0
    first_throughput: float = 0.0
    last_throughput: float = 0.0
    trusted: bool = False
    periods: int = 0


class ThreadCountElasticity:
    """Seeks the thread level that maximises throughput, by trends between trusted levels (PLDI'17 Figs 7 and 8).

    The bottom level is the minimum of the graph, and not 1 as in Fig. 8. With a minimum of 2, rule 3 of the figure
    would never fire, and rule 4 would pin the level there for ever (E2).

    Args:
        variant: "paper": a change of load at 5 %, believed at once; "released": at 20 %, after five strikes (E3).
        steps: the thread levels; those of the released runtime by default (P30).
        thresholds: instead of those of the variant.
        queues: whether every operator gets a queue, which is the paper's dynamic threading model (P05).

    Raises:
        ValueError: there is no such variant.

    >>> controller = ThreadCountElasticity()
    >>> seen = Observation(time=5, period=5, throughput=1e6, thread_count=2, minimum_threads=2, maximum_threads=8)
    >>> controller.step(seen).thread_count
    4
    """

    def __init__(
        self,
        variant: str = "paper",
        *,
        steps: LevelSteps = LevelSteps.DOUBLING,
        thresholds: ThreadCountThresholds | None = None,
        queues: bool = True,
    ) -> None:
        if variant not in ("paper", "released"):
            raise ValueError(f"ThreadCountElasticity(variant={variant!r}): choose 'paper' or 'released'")
        by_variant = ThreadCountThresholds.paper() if variant == "paper" else ThreadCountThresholds()
        self._thresholds = thresholds or by_variant
        self._steps = steps
        self._queues = queues
        self.reset()

    def reset(self) -> None:
        """Forget all levels."""
        self._records: dict[int, ThreadRecord] = {}
        self._time = 0
        self._strikes = 0
        self.load_changed = False

    def untrust_from(self, level: int) -> None:
        """Distrust a level and all above, as after a change of queues (M16)."""
        for other, record in self._records.items():
            if other >= level:
                record.trusted = False

    def step(self, observation: Observation) -> Decision:
        """Return the next thread level; with `queues`, a queue for every operator that has none."""
        models = _all_queued(observation) if self._queues else {}
        if models:
            return Decision(observation.thread_count, models, (Code.EVERY_QUEUE(),), "PLDI'17 2.2 (P05)")
        return self.adjust(observation)

    def adjust(self, observation: Observation) -> Decision:
        """Do `updateThreadLevel` of Fig. 8."""
        level, throughput = observation.thread_count, observation.throughput
        self.load_changed = False
        if not observation.adapted:  # P25: wait for a period in which all that was asked for happened
            return Decision(level, {}, (Code.NOT_IN_FORCE(),), "PLDI'17 4.2.3 (P25)")
        self.load_changed = self._change_in_load(level, throughput)
        if self.load_changed:
            for record in self._records.values():
                record.trusted = False
        self._record(level, throughput)
        return _Rules(self._records, self._thresholds, self._steps, observation).decide()

    def _record(self, level: int, throughput: float) -> None:
        record = self._records.setdefault(level, ThreadRecord())
        self._time += 1
        record.last_time = self._time
        record.last_throughput = throughput
        if not record.trusted:
            record.first_throughput = throughput
            record.periods = 0
        record.periods += 1
        record.trusted = True

    def _change_in_load(self, level: int, throughput: float) -> bool:
        record = self._records.get(level)
        if record is None or not record.trusted or record.periods < self._thresholds.ignored:
            self._strikes = 0
            return False
        difference = abs(throughput - record.first_throughput)
        suspicious = difference > self._thresholds.load_change * record.first_throughput
        self._strikes = self._strikes + 1 if suspicious else 0
        if self._strikes <= self._thresholds.strikes:
            return False
        self._strikes = 0
        return True


@dataclass(frozen=True, slots=True)
class _Rules:
    """The rules of PLDI'17 4.2.2 for one period."""

    records: Mapping[int, ThreadRecord]
    thresholds: ThreadCountThresholds
    steps: LevelSteps
    seen: Observation

    def decide(self) -> Decision:
        level = self.seen.thread_count
        now, below, above = ({"threads": threads} for threads in (level, self.below, self.above))
        reasons = [Code.MEASURED(rate=self.seen.throughput, setting=now)]
        rule = 0
        if self.trend_below and not self.trust_above:
            rule = 1
            reasons += [Code.SLOWER(setting=below), Code.UNKNOWN(setting=above)]
        elif self.trend_above:
            rule = 2
            reasons.append(Code.FASTER(setting=above))
        elif level <= self.minimum and not self.trust_above:  # E2: Fig. 8 prints 1
            rule = 3
            reasons += [Code.FEWEST(setting=now), Code.UNKNOWN(setting=above)]
        if rule and self.seen.host_cpu <= self.thresholds.host_cpu:
            return Decision(self.up, {}, tuple(reasons), f"PLDI'17 Fig. 8 rule {rule}")
        if rule:
            reasons.append(Code.HOST_BUSY(busy=self.seen.host_cpu))
        if not self.trust_below:
            return Decision(self.down, {}, (*reasons, Code.UNKNOWN(setting=below)), "PLDI'17 Fig. 8 rule 4")
        if not self.trend_below:
            return Decision(self.down, {}, (*reasons, Code.NO_SLOWER(setting=below)), "PLDI'17 Fig. 8 rule 5")
        reasons += [Code.SLOWER(setting=below), Code.NO_FASTER(setting=above)]
        return Decision(level, {}, tuple(reasons), "PLDI'17 Fig. 8 rule 6")

    @property
    def maximum(self) -> int:
        return self.seen.maximum_threads

    @property
    def minimum(self) -> int:
        # P33: a minimum above the CPUs can't be reached
        return min(self.seen.minimum_threads + self.seen.thread_stuck, self.maximum)

    @property
    def below(self) -> int:
        """The level below: the nearest trusted one, else the next lower of the scale."""
        level = self.seen.thread_count
        if self.steps is LevelSteps.UNIT:
            return max(level - 1, self.minimum)
        trusted = [n for n, record in self.records.items() if self.minimum <= n < level and record.trusted]
        return max(trusted) if trusted else max(self.minimum, _power_below(level))

    @property
    def above(self) -> int:
        """The level above: the nearest trusted one, else the next higher of the scale."""
        level = self.seen.thread_count
        if self.steps is LevelSteps.UNIT:
            return min(level + 1, self.maximum)
        trusted = [n for n, record in self.records.items() if level < n <= self.maximum and record.trusted]
        return min(trusted) if trusted else min(self.maximum, _power_above(level))

    @property
    def up(self) -> int:
        return max(self.above, self.minimum)

    @property
    def down(self) -> int:
        level, below = self.seen.thread_count, self.below
        if self.steps is LevelSteps.DOUBLING and self.trust_below:
            return (below + level) // 2  # P30: by halves towards the level that is known
        return max(below, self.minimum)

    @property
    def trust_above(self) -> bool:
        if self.seen.thread_count >= self.maximum:
            return True  # nothing to explore there; Fig. 8 has false and then steps beyond its table
        return self._trusted(self.above)

    @property
    def trust_below(self) -> bool:
        return self.seen.thread_count > self.minimum and self._trusted(self.below)

    @property
    def trend_below(self) -> bool:
        if not self.trust_below:
            return False
        return self._more(self.seen.throughput, self.records[self.below].last_throughput)

    @property
    def trend_above(self) -> bool:
        if self.seen.thread_count >= self.maximum or not self._trusted(self.above):
            return False
        return self._more(self.records[self.above].last_throughput, self.seen.throughput)

    def _trusted(self, level: int) -> bool:
        record = self.records.get(level)
        return record is not None and record.trusted

    def _more(self, high: float, low: float) -> bool:
        return high - low > self.thresholds.sensitivity * low


def _power_above(level: int) -> int:
    return 1 << level.bit_length()


def _power_below(level: int) -> int:
    return max(1, 1 << (level - 1).bit_length() - 1) if level > 1 else 1


def _all_queued(observation: Observation) -> dict[str, ThreadingModel]:
    manual = ThreadingModel.MANUAL
    return {o.name: ThreadingModel.DYNAMIC for o in observation.operators if o.switchable and o.model is manual}
