"""What to try next in a search: more threads, other queues, or fewer threads, by an estimate or by the measured curve.

Must not know noise tests, or how a trial goes on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rayelastic.policy.element.guided.estimate import Configuration, Estimate
from rayelastic.policy.element.guided.explanation import Explanation
from rayelastic.policy.element.guided.exploration.tries import exploration
from rayelastic.policy.element.guided.known import Known
from rayelastic.policy.element.guided.levels import LevelTry, Purpose, fewer_threads, hidden_peak, more_threads
from rayelastic.policy.element.guided.measurement import Series
from rayelastic.policy.element.guided.trial import Bounds, SearchThresholds, Trial
from rayelastic.reasons import Code

__all__ = ["propose"]


def propose(known: Known, bounds: Bounds, thresholds: SearchThresholds) -> Trial | None:
    """Return what to try next; None: nothing promises anything."""
    one = _Proposal(known, bounds, thresholds)
    if bounds.estimate is None:
        trial = one.level_above() or one.peak() or one.level_below()
    else:
        trial = one.growth(bounds.estimate) or exploration(known, bounds, thresholds)
    return trial if trial is not None and trial.configuration.threads <= bounds.maximum else None


@dataclass(frozen=True, slots=True)
class _Proposal:
    known: Known
    bounds: Bounds
    thresholds: SearchThresholds

    # --- by the measured curve alone ---

    def level_above(self) -> Trial | None:
        factor = self.thresholds.step
        level = more_threads(self.known.levels(), self.known.best.threads, self.bounds.maximum, factor)
        return self._at(level)

    def peak(self) -> Trial | None:
        return self._at(hidden_peak(self.known.levels(), self.known.best.threads, self.thresholds.peak))

    def level_below(self) -> Trial | None:
        if self.known.savings >= self.thresholds.savings:
            return None
        known, best = self.known.levels(), self.known.best
        peak = self.known.measured[self.known.peak]
        # a level that isn't clearly worse says nothing about those below it
        unclear = [n for n in known if n < best.threads and not self._clearly_worse(known[n], peak)]
        for n in unclear:
            del known[n]
        threads, busy = best.threads, self.bounds.busy
        while True:
            level = fewer_threads(known, threads, self.bounds.minimum, peak.throughput, self.thresholds.loss, busy)
            if level is None or level.threads not in unclear:
                return self._at(level)
            threads, busy = level.threads, None

    def _clearly_worse(self, throughput: float, peak: Series) -> bool:
        error = self.known.noise * math.sqrt(2 / len(peak.values))
        return math.log(throughput) < peak.mean + math.log1p(-self.thresholds.loss) - error

    def _at(self, level: LevelTry | None) -> Trial | None:
        if level is None:
            return None
        configuration = Configuration(level.threads, self.known.best.queued)
        if configuration in self.known.measured or configuration in self.known.rejected:
            return None
        return Trial(configuration, level.purpose, level.why)

    # --- by an estimate ---

    def growth(self, estimate: Estimate) -> Trial | None:
        """Go towards the thread count that promises the most, no further than one step."""
        best = self.known.best
        if not self.bounds.fixed and not best.queued:
            return self._first(estimate)
        for by in self.known.explanations or (estimate.explanation,):
            trial = self._towards(estimate, by)
            if trial is not None:
                return trial
        return None

    def _towards(self, estimate: Estimate, by: Explanation) -> Trial | None:
        best = self.known.best
        now = estimate.throughput(best, self.bounds.cpus, by)
        options = self._options(estimate, by, self._levels_above(best.threads))
        most = max((throughput for throughput, _ in options), default=0.0)
        if most < now * (1 + self.thresholds.promise):
            return None
        at = next(at for at, option in enumerate(options) if option[0] >= self.thresholds.nearly * most)
        furthest = self.thresholds.step * best.threads
        reach = [option for option in options[: at + 1] if option[1].threads <= furthest]
        throughput, configuration = reach[-1] if reach else options[0]
        if not self._new(configuration, by):
            return None
        why = Code.COSTS_ALLOW(factor=most / now, threads=options[at][1].threads)
        return Trial(configuration, Purpose.GROWTH, why, throughput / now)

    def _options(self, estimate: Estimate, by: Explanation, levels: Iterable[int]) -> list[tuple[float, Configuration]]:
        configurations = (Configuration(threads, self._placed(estimate, threads, by)) for threads in levels)
        return [(estimate.throughput(one, self.bounds.cpus, by), one) for one in configurations]

    def _first(self, estimate: Estimate) -> Trial | None:
        """Put in the first queues, at the fewest threads."""
        threads = self.bounds.minimum
        by = estimate.explanation
        configuration = Configuration(threads, self._placed(estimate, threads, by))
        then = self._ratio(estimate, configuration, self.known.best, by)
        if then < 1 + self.thresholds.promise or not self._new(configuration, by):
            return None
        return Trial(configuration, Purpose.GROWTH, Code.COSTS_ALLOW_QUEUES(factor=then), then)

    def _levels_above(self, level: int) -> Iterator[int]:
        """Yield doublings of the thread count, no further than one that was tried."""
        tried = min((n for n in self.known.levels() if n > level), default=self.bounds.maximum + 1)
        while level < self.bounds.maximum:
            level = min(self.bounds.maximum, max(1, level) * self.thresholds.step)
            if level > tried:
                return
            yield level

    def _placed(self, estimate: Estimate, threads: int, by: Explanation | None = None) -> frozenset[str]:
        bounds = self.bounds
        return estimate.place(threads, bounds.cpus, bounds.movable, bounds.fixed, by)

    def _ratio(
        self, estimate: Estimate, then: Configuration, now: Configuration, by: Explanation | None = None
    ) -> float:
        cpus = self.bounds.cpus
        return estimate.throughput(then, cpus, by) / estimate.throughput(now, cpus, by)

    def _new(self, configuration: Configuration, by: Explanation) -> bool:
        """Return whether neither a configuration nor one with the same estimate was measured."""
        known, estimate = self.known, self.bounds.estimate
        if configuration in known.measured or configuration in known.rejected:
            return False
        if estimate is None:
            return True
        queues = len(configuration.queued)
        for other in known.measured:
            like = other.threads == configuration.threads
            like = like and abs(len(other.queued) - queues) <= self.thresholds.alike * queues
            if like and self._ratio(estimate, configuration, other, by) < 1 + self.thresholds.promise:
                return False
        return True
