"""The search for the best configuration under one load: what was measured, what is on trial, and how it is judged.

An estimate or, without one, what is known of thread counts proposes a move. A sequential test decides whether it is
kept or reverted. Must not know whether the load changes, or what was best under another one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from rayelastic.policy.element.guided.estimate import Configuration
from rayelastic.policy.element.guided.explanation import Explanation
from rayelastic.policy.element.guided.exploration.tries import kept
from rayelastic.policy.element.guided.known import Known
from rayelastic.policy.element.guided.measurement import (
    Expected,
    MeasurementThresholds,
    Series,
    Verdict,
    compare,
    noise_of,
)
from rayelastic.policy.element.guided.proposals import propose
from rayelastic.policy.element.guided.trial import Bounds, Purpose, SearchThresholds, Trial
from rayelastic.reasons import Code, Reason

__all__ = ["ConfigurationSearch"]

FITTED = 12  # configurations that an explanation has to fit, the last ones


@dataclass(slots=True)
class ConfigurationSearch:
    """One search, under one load.

    Args:
        best: the configuration to start from; later the best one found.
        thresholds: its constants.
        tests: constants of its tests.
    """

    best: Configuration
    thresholds: SearchThresholds
    tests: MeasurementThresholds
    measured: dict[Configuration, Series] = field(default_factory=dict)
    trial: Trial | None = None
    rejected: set[Configuration] = field(default_factory=set)
    explorations: int = 0
    explanations: tuple[Explanation, ...] = ()  # of what was measured, the best first

    @property
    def noise(self) -> float:
        """Relative standard deviation of throughput."""
        return noise_of(self.measured.values(), self.tests)

    def add(self, configuration: Configuration, throughput: float) -> Series:
        """Take a sample of what is in force."""
        series = self.measured.setdefault(configuration, Series())
        series.add(throughput, self.noise, self.tests)
        return series

    def judge(self, bounds: Bounds) -> tuple[Verdict, Reason]:
        """Judge the trial by what was measured of it so far."""
        trial = self.trial
        assert trial is not None
        if trial.purpose is Purpose.EXPLORATION:
            return self._explored(trial, bounds)
        base, no_worse = self.best, trial.purpose is not Purpose.GROWTH
        margin, expected = self.thresholds.saving if no_worse else self.thresholds.growth, None
        if trial.promised is not None:
            margin = margin if no_worse else self.thresholds.promised
            difference = math.log(trial.promised)
            doubt = math.hypot(self.thresholds.doubt, self.thresholds.doubted * difference)
            expected = Expected(difference, doubt)
        verdict, gain = compare(
            self.measured[trial.configuration], self.measured[base], margin, self.noise, self.tests, expected
        )
        if verdict is Verdict.OPEN:
            return verdict, Code.UNDECIDED(tried=trial.configuration.counts, base=base.counts, change=gain)
        self.trial, reason = None, self._reason(verdict, trial, base, gain)
        self._calibrate(trial, bounds)
        if verdict is Verdict.REJECT:
            self.rejected.add(trial.configuration)
            return verdict, reason
        self.best = trial.configuration
        return verdict, reason

    def _reason(self, verdict: Verdict, trial: Trial, base: Configuration, gain: float) -> Reason:
        tried, rate = trial.configuration.counts, self.measured[trial.configuration].throughput
        if trial.configuration == base:  # it was measured once more
            return Code.MEASURED(rate=rate, setting=tried)
        code, base_rate = Code.NOT_ENOUGH if gain > 0 else Code.REVERTED, self.measured[base].throughput
        if verdict is Verdict.ACCEPT:
            code = Code.KEPT
        return code(tried=tried, base=base.counts, change=gain, rate=rate, base_rate=base_rate)

    def _explored(self, trial: Trial, bounds: Bounds) -> tuple[Verdict, Reason]:
        """Keep what is best by all that was measured: the trial, what was best before it, or something before that."""
        gain = math.expm1(self.measured[trial.configuration].mean - self.measured[self.best].mean)
        base, verdict, self.trial = self.best, Verdict.REJECT, None
        if bounds.estimate is not None:
            self._calibrate(trial, bounds)
            self.best = kept(self._known(), bounds, self.thresholds)
            verdict = Verdict.ACCEPT if self.best == trial.configuration else Verdict.REJECT
        return verdict, self._reason(verdict, trial, base, gain)

    def _calibrate(self, trial: Trial, bounds: Bounds) -> None:
        """Learn what holds threads back."""
        if bounds.estimate is None:
            return
        measured = []
        for configuration, series in list(self.measured.items())[-FITTED:]:
            away = math.log2(configuration.threads / trial.configuration.threads)  # hops cost more among more threads
            measured.append((configuration, series.mean, 1 / (1 + away**2)))
        if len(measured) > 1:
            self.explanations = bounds.estimate.fitted(measured, bounds.cpus)

    def propose(self, bounds: Bounds, *, only_what_pays: bool = False) -> Trial | None:
        """Return what to try next, only_what_pays: if it promises much; None: nothing does."""
        if self.explorations and not only_what_pays and bounds.estimate is not None:
            self.best = kept(self._known(), bounds, self.thresholds)
        trial = propose(self._known(), bounds, self.thresholds)
        if only_what_pays and trial is not None and (trial.promised or 0.0) < self.thresholds.pays:
            return None
        return trial

    def _known(self) -> Known:
        return Known(self.best, self.measured, self.rejected, self.explanations, self.noise, self.explorations)

    def start(self, trial: Trial) -> None:
        """Put a configuration on trial."""
        self.trial = trial
        self.explorations += trial.purpose is Purpose.EXPLORATION

    def cannot(self, in_force: Configuration) -> None:
        """Judge what is in force instead of what was to be tried, unless that is the best one already."""
        assert self.trial is not None
        self.rejected.add(self.trial.configuration)
        self.trial = None if in_force == self.best else replace(self.trial, configuration=in_force, promised=None)

    def needs_baseline(self, trial: Trial) -> bool:
        """Return whether the best configuration has to be measured longer, to judge a small difference."""
        base = self.measured.get(self.best)
        return trial.purpose is Purpose.SAVING and base is not None and len(base.values) < self.thresholds.baseline
