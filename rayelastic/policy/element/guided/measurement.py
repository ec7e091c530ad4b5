"""Deciding on noisy throughput: how much it varies, whether one configuration beats another, whether the load changed.

Sequential tests instead of a fixed 5 %: A. Wald, Sequential Analysis, 1947 (ratio test); E. S. Page, Continuous
Inspection Schemes, 1954 (cumulative sums). Works on logarithms, as throughput varies in proportion. Must not know what
was configured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

__all__ = ["Expected", "Margin", "MeasurementThresholds", "Series", "Shift", "Verdict", "compare", "noise_of"]


@dataclass(frozen=True, slots=True)
class MeasurementThresholds:
    """Constants of the tests.

    Args:
        usual_noise: relative standard deviation of throughput before anything is known.
        usual_weight: how many samples that is worth.
        least_noise: below this, differences are of no interest.
        evidence: log-likelihood ratio at which a comparison is decided; 2.2: nine to one.
        fewest: samples of a start or a trial before it is judged; the first may show the change itself, such as queues
            filling up.
        most: samples of a trial after which it is judged as it stands.
        outlier: standard deviations beyond which a sample counts as if it lay there.
        slack: standard deviations from the mean that a settled throughput may wander.
        alarm: sum of standard deviations beyond the slack that makes a change of load.
        contradiction: standard deviations between an estimate and what was measured, from which on it doesn't count.
        step: most that one sample adds to that sum, so that one sample alone never is a change of load.
    """

    usual_noise: float = 0.04
    usual_weight: float = 4.0
    least_noise: float = 0.015
    evidence: float = 2.2
    fewest: int = 2
    most: int = 6
    outlier: float = 4.0
    slack: float = 1.5
    alarm: float = 6.0
    contradiction: float = 3.0
    step: float = 4.0


@dataclass(frozen=True, slots=True)
class Margin:
    """Between which differences of log throughput it doesn't matter how a comparison ends.

    Args:
        worse: at this difference a trial should be rejected.
        better: at this difference it should be accepted.
    """

    worse: float
    better: float


@dataclass(frozen=True, slots=True)
class Expected:
    """A difference of log throughput that an estimate expects, and its standard deviation."""

    difference: float
    doubt: float


class Verdict(Enum):
    """The state of a comparison."""

    OPEN = "open"
    ACCEPT = "accept"
    REJECT = "reject"


@dataclass(slots=True)
class Series:
    """Throughput of one configuration under one load, as logarithms.

    >>> series = Series()
    >>> for throughput in (100.0, 100.0): series.add(throughput, noise=0.05, thresholds=MeasurementThresholds())
    >>> round(series.throughput, 6)
    100.0
    """

    values: list[float] = field(default_factory=list)

    def add(self, throughput: float, noise: float, thresholds: MeasurementThresholds) -> None:
        """Take a sample; an outlier is drawn in, and a first sample far from the second is dropped."""
        value, reach = math.log(throughput), thresholds.outlier * noise
        if len(self.values) == 1 and abs(value - self.values[0]) > reach:
            self.values.clear()
        elif len(self.values) > 2:
            value = min(max(value, self.mean - reach), self.mean + reach)
        self.values.append(value)

    @property
    def mean(self) -> float:
        """Mean logarithm."""
        return math.fsum(self.values) / len(self.values)

    @property
    def throughput(self) -> float:
        """Tuples/s."""
        return math.exp(self.mean)

    @property
    def squares(self) -> float:
        """Sum of squared deviations from the mean."""
        mean = self.mean
        return math.fsum((value - mean) ** 2 for value in self.values)


def noise_of(series: Iterable[Series], thresholds: MeasurementThresholds, *, cautious: bool = False) -> float:
    """Return the standard deviation of log throughput, pooled over configurations, starting from the usual one.

    Few samples may look calmer than their source is: `cautious` adds one standard error.

    >>> noise_of([], MeasurementThresholds())
    0.04
    """
    squares, freedom = [thresholds.usual_weight * thresholds.usual_noise**2], thresholds.usual_weight
    for one in series:
        if len(one.values) > 1:
            squares.append(one.squares)
            freedom += len(one.values) - 1
    caution = 1 + 1 / math.sqrt(2 * freedom) if cautious else 1.0
    return max(thresholds.least_noise, caution * math.sqrt(math.fsum(squares) / freedom))


def compare(
    trial: Series,
    base: Series,
    margin: Margin,
    noise: float,
    thresholds: MeasurementThresholds,
    expected: Expected | None = None,
) -> tuple[Verdict, float]:
    """Compare two configurations by Wald's ratio test, and return the verdict and the relative difference.

    What an estimate expected counts like measurements of its precision, unless these contradict it.

    >>> def series(*values): return Series([math.log(value) for value in values])
    >>> verdict, gain = compare(series(199, 201), series(99, 101), Margin(0.01, 0.05), 0.04, MeasurementThresholds())
    >>> verdict, round(gain, 2)
    (<Verdict.ACCEPT: 'accept'>, 1.0)
    """
    difference = trial.mean - base.mean
    count = len(trial.values)
    gain = math.expm1(difference)
    if count < thresholds.fewest:
        return Verdict.OPEN, gain
    variance = noise**2 * (1 / count + 1 / len(base.values))
    if expected is not None and _agrees(difference, variance, expected, thresholds):
        precision = 1 / variance + 1 / expected.doubt**2
        difference = (difference / variance + expected.difference / expected.doubt**2) / precision
        variance = 1 / precision
    middle = (margin.worse + margin.better) / 2
    evidence = (margin.better - margin.worse) * (difference - middle) / variance
    if abs(evidence) < thresholds.evidence and count < thresholds.most:
        return Verdict.OPEN, gain
    return (Verdict.ACCEPT if evidence > 0 else Verdict.REJECT), gain


def _agrees(difference: float, variance: float, expected: Expected, thresholds: MeasurementThresholds) -> bool:
    doubt = math.sqrt(variance + expected.doubt**2)
    return abs(difference - expected.difference) < thresholds.contradiction * doubt


@dataclass(slots=True)
class Shift:
    """Cumulative sums of a settled throughput, upwards and downwards (Page 1954)."""

    up: float = 0.0
    down: float = 0.0
    since: list[float] = field(default_factory=list)  # log throughput since it began to lean to one side

    def add(self, throughput: float, settled: Series, noise: float, thresholds: MeasurementThresholds) -> bool:
        """Take a sample and return whether the load changed."""
        spread = noise * math.sqrt(1 + 1 / len(settled.values))
        deviation = (math.log(throughput) - settled.mean) / spread
        self.up = self._sum(self.up, deviation, thresholds)
        self.down = self._sum(self.down, -deviation, thresholds)
        self.since = [*self.since, math.log(throughput)] if self.suspicious else []
        return max(self.up, self.down) >= thresholds.alarm

    @property
    def suspicious(self) -> bool:
        """Whether the last samples lean to one side."""
        return max(self.up, self.down) > 0

    @staticmethod
    def _sum(so_far: float, deviation: float, thresholds: MeasurementThresholds) -> float:
        return max(0.0, so_far + min(thresholds.step, deviation - thresholds.slack))
