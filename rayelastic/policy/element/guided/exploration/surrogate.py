"""Predict the throughput of untried configurations from the measured ones: a Gaussian process around the estimate.

Similar configurations, with about as many threads and mostly the same queues, miss their estimates by similar factors.
So each measurement says something about similar configurations. The expected improvement decides which one is worth
trying (D. R. Jones et al., Efficient Global Optimization, 1998). Past misses determine how far estimates are expected
to miss. Must not know where estimates come from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rayelastic.policy.element.guided.estimate import Configuration
from rayelastic.policy.element.guided.measurement import Series

__all__ = ["Belief", "Surrogate", "expected_improvement"]

UNIT = 1.0  # variance of one thread's log throughput: a vague prior
MISSES = (0.05, 0.1, 0.2, 0.4)  # candidate standard deviations of the estimates' errors, in log throughput
USUAL_MISS = 0.1
REACHES = (0.33, 1.0, 3.0)  # how fast a miss says less about other configurations; 1: as the three numbers below say
WONDER = 0.7  # of the logarithm of both, which is as unlikely as a standard deviation
DOUBLINGS = 1.0  # of the thread count, behind which a miss says little
QUEUES = 0.5  # share of the queues that differs, behind which a miss says little
UNLIKELY = 0.005  # odds below which a model is left out
MEETINGS = 1.0  # share of the places where streams meet with a queue in the one only, likewise
DECIMALS = 7  # of beliefs: what lies behind them differs with how a CPU adds up, and must not decide between equals

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Belief:
    """Expected log throughput of a configuration, and the standard deviation of that."""

    mean: float
    doubt: float


class Surrogate:
    """Beliefs about configurations under one load, averaged over what may be behind them by how likely each is.

    Args:
        measured: {configuration: its samples}; at least one.
        estimates: each returns the logarithm of an estimate, in any unit; at least one.
        noise: standard deviation of the logarithm of a sample.
        meetings: operators that several feed.

    >>> measured = {Configuration(1, frozenset()): Series([0.0]), Configuration(2, frozenset("b")): Series([0.7, 0.6])}
    >>> surrogate = Surrogate(measured, [lambda one: math.log(one.threads)], noise=0.05)
    >>> tried, new = Configuration(2, frozenset("b")), Configuration(4, frozenset())
    >>> beliefs = surrogate.beliefs([tried, new])
    >>> beliefs[tried].doubt < beliefs[new].doubt
    True
    """

    def __init__(
        self,
        measured: Mapping[Configuration, Series],
        estimates: Sequence[Callable[[Configuration], float]],
        noise: float,
        meetings: frozenset[str] = frozenset(),
    ) -> None:
        self._estimates = estimates
        self._meetings = meetings
        self._measured = list(measured)
        missed: Floats = np.array([[measured[one].mean - by(one) for one in self._measured] for by in estimates])
        errors = np.diag([noise**2 / len(measured[one].values) for one in self._measured])
        apart = self._apart(self._measured)
        self._units: Floats = missed.mean(1)
        off = missed - self._units[:, None]
        models, likely = [], []
        for miss in MISSES:
            for reach in REACHES:
                covariance = UNIT + miss**2 * np.exp(-reach * apart) + errors
                inverse = np.linalg.inv(covariance)
                known = -0.5 * float(np.linalg.slogdet(covariance)[1])
                known -= (math.log(miss / USUAL_MISS) ** 2 + math.log(reach) ** 2) / (2 * WONDER**2)
                models.append((miss, reach, inverse, off @ inverse))
                likely.append(known - 0.5 * np.einsum("ij,jk,ik->i", off, inverse, off))
        odds = np.exp(np.array(likely) - np.max(likely))
        self._odds: Floats = odds / odds.sum()  # of each model, with each estimate
        self._models = [one for one in zip(models, self._odds, strict=True) if one[1].sum() > UNLIKELY]

    def beliefs(self, ones: Sequence[Configuration]) -> dict[Configuration, Belief]:
        """Return what to expect of configurations, measured or not."""
        apart = self._apart(ones)
        estimates: Floats = np.array([[by(one) for one in ones] for by in self._estimates]) + self._units[:, None]
        total, means, squares = 0.0, np.zeros(len(ones)), np.zeros(len(ones))
        for (miss, reach, inverse, weights), odds in self._models:
            like = UNIT + miss**2 * np.exp(-reach * apart)
            expected = estimates + weights @ like.T
            variance = np.maximum(UNIT + miss**2 - np.einsum("ij,jk,ik->i", like, inverse, like), 0.0)
            total += odds.sum()
            means += odds @ expected
            squares += odds @ (expected**2 + variance)
        means, squares = means / total, squares / total
        doubts = np.sqrt(np.maximum(squares - means**2, 0.0))
        means, doubts = means.round(DECIMALS), doubts.round(DECIMALS)
        return {one: Belief(float(mean), float(doubt)) for one, mean, doubt in zip(ones, means, doubts, strict=True)}

    def _apart(self, ones: Sequence[Configuration]) -> Floats:
        """Return how far each is from each that was measured: by threads, by queues, by queues where streams meet."""
        ways = list(dict.fromkeys(one.queued for one in ones))
        number = {way: at for at, way in enumerate(ways)}
        which = [number[one.queued] for one in ones]
        known_ways = [one.queued for one in self._measured]
        every = sorted(frozenset().union(*ways, *known_ways))
        rows, columns = (_queues(some, every) for some in (ways, known_ways))
        both = rows @ columns.T
        either = rows.sum(1)[:, None] + columns.sum(1) - both
        queues = (1 - both / np.maximum(either, 1.0)) * (either > 0) / QUEUES
        meets = np.array([name in self._meetings for name in every], float)
        differ = (rows @ meets)[:, None] + columns @ meets - 2 * (rows * meets) @ columns.T
        levels, known = (np.log2([one.threads for one in some]) / DOUBLINGS for some in (ones, self._measured))
        apart: Floats = (levels[:, None] - known) ** 2 / 2 + queues[which]
        apart += differ[which] / max(1, len(self._meetings)) / MEETINGS
        return apart


def _queues(ways: Sequence[frozenset[str]], every: Sequence[str]) -> Floats:
    column = {name: at for at, name in enumerate(every)}
    found: Floats = np.zeros((len(ways), len(every)))
    for row, way in zip(found, ways, strict=True):
        row[[column[name] for name in way]] = 1.0
    return found


def expected_improvement(one: Belief, others: float, noise: float) -> float:
    """Return by how much the log throughput of what is kept should rise by one more sample of a configuration.

    This is the knowledge gradient (P. Frazier et al., The Knowledge-Gradient Policy for Correlated Normal Beliefs,
    2009) for independent beliefs. For the best configuration so far, it is the value of learning that another is
    better.

    Args:
        one: the belief about the configuration.
        others: the best mean of the others; -inf if it is the only one: no sample can then change the choice.
        noise: standard deviation of the logarithm of a sample.

    >>> round(expected_improvement(Belief(0.0, 0.1), 0.0, noise=0.0), 3)
    0.04
    >>> expected_improvement(Belief(0.0, 0.1), -math.inf, noise=0.0)
    0.0
    """
    if one.doubt <= 0 or math.isinf(others):
        return 0.0
    learned = one.doubt**2 / math.hypot(one.doubt, noise)  # standard deviation of the mean that will be believed
    z = -abs(one.mean - others) / learned
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return learned * (z * (1 + math.erf(z / math.sqrt(2))) / 2 + density)
