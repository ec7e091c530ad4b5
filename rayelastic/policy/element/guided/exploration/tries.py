"""Which configuration is worth a try once no estimate promises much, and which of those that were tried is kept.

Estimates are least certain about the time that threads lose by waiting for each other. So measurements guide the search
if the throughput stays far below what the operators' costs allow. What may be better is tried for a period.
Must not know noise tests, or how a trial goes on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from rayelastic.policy.element.guided.estimate import Configuration, Estimate
from rayelastic.policy.element.guided.explanation import Explanation
from rayelastic.policy.element.guided.exploration.surrogate import Belief, Surrogate, expected_improvement
from rayelastic.policy.element.guided.known import Known
from rayelastic.policy.element.guided.trial import Bounds, Purpose, SearchThresholds, Trial
from rayelastic.reasons import Code

__all__ = ["exploration", "kept"]

AROUND = 8  # queues that are put in or taken away one by one, of each
EXPLANATIONS = 3  # of what was measured, beside the usual one
HOPE = 0.3  # of what a try is to be worth otherwise, where costs allow much more
FEWER = 0.7  # of the threads, which may do as well
CROWD = 3  # times the threads that could be busy at once are too many
MORE = (1, 2, 4)  # queues in the costliest pieces
COSTLY_HOPS = 20.0  # hops; beside an operator of this cost a queue before it costs little
CHEAP = 3  # tries where no operator costs that much and no queue has paid: what a hop costs is only estimated


def exploration(known: Known, bounds: Bounds, thresholds: SearchThresholds) -> Trial | None:
    """Return what is worth a try by all that was measured; None: nothing, or nobody knows."""
    estimate = bounds.estimate
    if estimate is None or bounds.used is None:
        return None
    cheap = not (known.best.queued or estimate.costly(COSTLY_HOPS) & bounds.movable)
    if cheap and known.explorations >= CHEAP:
        return _once_more(known, thresholds)
    base = min(known.measured, key=lambda one: len(one.queued))
    gain = math.exp(known.measured[known.best].mean - known.measured[base].mean)
    reached = gain / estimate.most(bounds.cpus)
    if reached >= thresholds.reached:
        return None
    spent = sum(len(series.values) for series in known.measured.values())
    late = known.explorations >= thresholds.explorations or spent >= thresholds.periods
    last = known.explorations >= thresholds.last_exploration or spent >= thresholds.last_period
    if last or (late and bounds.shared):
        return _once_more(known, thresholds)
    candidates = _candidates(known, bounds, thresholds)
    beliefs = _worth(known, bounds, estimate, thresholds, list(dict.fromkeys([*known.measured, *candidates])))
    first, second = _two_best(beliefs[one].mean for one in known.measured)

    def gain_of(one: Configuration) -> float:
        is_best = one in known.measured and beliefs[one].mean == first
        return expected_improvement(beliefs[one], second if is_best else first, known.noise)

    gains = {one: gain_of(one) for one in candidates}
    names = {one.queued: sorted(one.queued) for one in gains}
    configuration = max(gains, key=lambda one: (gains[one], -one.threads, names[one.queued]), default=None)
    worth = thresholds.worth * (HOPE if reached < thresholds.far else 1.0) * (thresholds.later if late else 1.0)
    if configuration is None or gains[configuration] < worth:
        return _once_more(known, thresholds)
    return Trial(configuration, Purpose.EXPLORATION, Code.WORTH_A_TRY(gain=gains[configuration]))


def _once_more(known: Known, thresholds: SearchThresholds) -> Trial | None:
    """Return the best one until it was measured often enough: of many that were tried the luckiest looks best."""
    if not known.explorations or len(known.measured[known.best].values) >= thresholds.confirmed:
        return None
    return Trial(known.best, Purpose.EXPLORATION, Code.ONCE_MORE())


def kept(known: Known, bounds: Bounds, thresholds: SearchThresholds) -> Configuration:
    """Return the smallest configuration of those that were measured and are worth nearly the most."""
    assert bounds.estimate is not None
    beliefs = _worth(known, bounds, bounds.estimate, thresholds, list(known.measured))
    enough = max(one.mean for one in beliefs.values()) - thresholds.slight
    good = [one for one in beliefs if beliefs[one].mean >= enough]
    return min(good, key=lambda one: (one.threads, len(one.queued), -beliefs[one].mean))


def _worth(
    known: Known, bounds: Bounds, estimate: Estimate, thresholds: SearchThresholds, ones: Sequence[Configuration]
) -> dict[Configuration, Belief]:
    """Return beliefs about the log throughput of configurations, less the price of their threads."""
    beliefs = _surrogate(known, bounds, estimate).beliefs(ones)
    return {
        one: Belief(belief.mean - thresholds.price * math.log2(max(1, one.threads)), belief.doubt)
        for one, belief in beliefs.items()
    }


def _surrogate(known: Known, bounds: Bounds, estimate: Estimate) -> Surrogate:
    def estimated(by: Explanation) -> Callable[[Configuration], float]:
        return lambda one: math.log(estimate.throughput(one, bounds.cpus, by))

    explanations = dict.fromkeys((*known.explanations[:EXPLANATIONS], estimate.usual))
    return Surrogate(known.measured, [estimated(by) for by in explanations], known.noise, estimate.joins)


def _two_best(values: Iterable[float]) -> tuple[float, float]:
    first, second, *_ = (*sorted(values, reverse=True), -math.inf)
    return first, second


def _useful(bounds: Bounds, estimate: Estimate) -> int:
    """Return how many threads may be of use: not many more than what an operator that one thread runs leaves to do."""
    return max(bounds.minimum, min(bounds.maximum, math.ceil(CROWD * estimate.most(bounds.cpus))))


def _candidates(known: Known, bounds: Bounds, thresholds: SearchThresholds) -> list[Configuration]:
    """Return what was measured, what differs from the best by a little, and other cuts, in an order of their own."""
    estimate, best, movable, fixed = bounds.estimate, known.best, bounds.movable, bounds.fixed
    assert estimate is not None
    little = max(1, int(thresholds.little * best.threads))
    middle = round(math.sqrt(best.threads * bounds.maximum))
    fewer = math.ceil(FEWER * best.threads)
    most = max(best.threads, _useful(bounds, estimate))
    levels = {best.threads, fewer, best.threads - little, best.threads + little, min(middle, most), most}
    queued = {best.queued, *(estimate.finer(best.queued, movable, more) for more in MORE)}
    for threads in (best.threads, most):
        queued.update(estimate.cuts(threads, bounds.cpus, movable, fixed))
    queued.update(best.queued - {name} for name in estimate.costliest(best.queued & movable)[-AROUND:])
    queued.update(best.queued | {name} for name in estimate.costliest(movable - best.queued)[:AROUND])
    joins = estimate.joins & movable
    queued.update((best.queued | joins, best.queued - joins))
    found = {
        Configuration(threads, way)
        for threads in levels
        for way in queued
        if way and bounds.minimum <= threads <= min(bounds.maximum, max(len(way), bounds.minimum))
    }
    found.add(Configuration(bounds.minimum, fixed))  # no queues at all: where a hop costs more than operators do
    allowed = (found | known.measured.keys()) - set(known.rejected)
    names = {one.queued: sorted(one.queued) for one in allowed}
    return sorted(allowed, key=lambda one: (one.threads, names[one.queued]))
