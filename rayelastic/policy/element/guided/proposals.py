"""What to try next in a search: threads and queues by an estimate, or, without one, threads alone.

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
from rayelastic.policy.element.guided.trial import Bounds, Purpose, SearchThresholds, Trial
from rayelastic.reasons import Code, Reason

__all__ = ["propose"]


def propose(known: Known, bounds: Bounds, thresholds: SearchThresholds) -> Trial | None:
    """Return what to try next; None: nothing promises anything."""
    one = _Proposal(known, bounds, thresholds)
    if bounds.estimate is None:
        trial = one.level()
    else:
        trial = one.growth(bounds.estimate) or exploration(known, bounds, thresholds)
    return trial if trial is not None and trial.configuration.threads <= bounds.maximum else None


@dataclass(frozen=True, slots=True)
class _Proposal:
    known: Known
    bounds: Bounds
    thresholds: SearchThresholds

    def level(self) -> Trial | None:
        """Double the threads as long as that pays, then halve the gaps beside the best, above and below."""
        now, least, wide = self.known.best.threads, self.bounds.minimum, self.thresholds.wide
        tried = {one.threads for one in [*self.known.measured, *self.known.rejected]}
        above = min((n for n in tried if n > now), default=None)
        if above is None and now < self.bounds.maximum:
            why = Code.UNKNOWN_ABOVE(threads=now)
            return self._at(min(self.bounds.maximum, now * self.thresholds.step), Purpose.GROWTH, why)
        between = round(math.sqrt(now * above)) if above else now
        if above and above > wide * now and between not in tried:
            return self._at(between, Purpose.GROWTH, Code.PEAK_PASSED(low=now, high=above))
        below = max((n for n in tried if n < now), default=None)
        fewer = max(least, round(math.sqrt(now * below)) if below else round(math.sqrt(now * least)))
        if (below is None or now > wide * below) and fewer not in tried:
            return self._at(fewer, Purpose.SAVING, Code.FEWER_MAY_DO(threads=now))
        return None

    def _at(self, threads: int, purpose: Purpose, why: Reason) -> Trial:
        return Trial(Configuration(threads, self.known.best.queued), purpose, why)

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
        above = (one.threads for one in self.known.measured if one.threads > level)
        tried = min(above, default=self.bounds.maximum + 1)
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
