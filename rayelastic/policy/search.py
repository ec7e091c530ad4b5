"""The search for the best configuration under one load: what was measured, what is on trial, what to try next.

A move is proposed by an estimate or by the shape of the measured curve, kept if a sequential test says so, and taken
back otherwise. Must not know whether the load changes, or what was best under another one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from rayelastic.policy.estimate import NEARLY_BEST, Configuration, Estimate, Explanation
from rayelastic.policy.levels import LevelTry, Purpose, fewer_threads, more_threads, peak_above
from rayelastic.policy.measurement import Margin, MeasurementThresholds, Series, Verdict, compare, noise_of

__all__ = ["Bounds", "ConfigurationSearch", "SearchThresholds", "Trial"]


@dataclass(frozen=True, slots=True)
class SearchThresholds:
    """Constants of the search.

    Args:
        growth: margin of a trial that must be better.
        saving: margin of a trial that mustn't be worse.
        loss: share of the best throughput that a smaller configuration is aimed at losing, at most.
        promise: relative gain that must be possible for a trial to be worth its periods.
        baseline: samples of the best configuration before small differences are judged against it.
        step: factor by which threads grow at first (P30), and once an estimate came true.
        stride: that factor, once it came true.
        true: share of an estimate that has to come true for it.
        optimism: share of the usual cost of a hop that is hoped for before one was measured.
        alike: relative difference in queues up to which two placements are alike.
        few: share of the best estimate with which fewer queues are tried, after many more were too many.
        efficiency: share of the throughput of so many single threads above which no other queues are explored.
        waiting: share of idle time from which on threads lack pieces rather than throughput.
        finer: factor of queues from one exploration to the next.
        placements: trials of other queues at the thread count that was found.
        savings: trials of fewer threads that may fail.
    """

    growth: Margin = field(default_factory=lambda: Margin(0.01, 0.08))
    saving: Margin = field(default_factory=lambda: Margin(-0.055, 0.0))
    loss: float = 0.03
    promise: float = 0.04
    baseline: int = 5
    step: int = 2
    stride: int = 4
    true: float = 0.9
    optimism: float = 0.1
    alike: float = 0.1
    few: float = 0.85
    efficiency: float = 0.85
    waiting: float = 0.15
    finer: float = 1.5
    placements: int = 5
    savings: int = 3


@dataclass(frozen=True, slots=True)
class Bounds:
    """What limits a search in this period.

    Args:
        minimum: the fewest threads.
        maximum: the most.
        cpus: CPUs that others leave to this processing element.
        movable: operators whose queue can be put in or taken away, in their order in the graph.
        fixed: operators that keep their queue.
        busy: scheduler threads that were busy; None: not told.
        estimate: by the profile; None: there is none.
    """

    minimum: int
    maximum: int
    cpus: float
    movable: frozenset[str]
    fixed: frozenset[str]
    busy: float | None
    estimate: Estimate | None


@dataclass(frozen=True, slots=True)
class Trial:
    """A configuration on trial.

    Args:
        configuration: what is tried.
        purpose: whether it has to be better, or just no worse.
        why: what promised it.
        promised: relative throughput to the configuration before, by the estimate; None: no estimate.
    """

    configuration: Configuration
    purpose: Purpose
    why: str
    promised: float | None = None


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
    peak: Configuration | None = None  # the best throughput, of which savings may lose a little
    refused: set[Configuration] = field(default_factory=set)
    savings: int = 0
    placements: int = 0
    trusted: bool = False  # the estimate came true
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

    def judge(self, bounds: Bounds) -> tuple[Verdict, str]:
        """Judge the trial by what was measured of it so far."""
        trial = self.trial
        assert trial is not None
        base = self.peak if trial.purpose is Purpose.SAVING and self.peak is not None else self.best
        margin = self.thresholds.saving if trial.purpose is Purpose.SAVING else self.thresholds.growth
        verdict, gain = compare(self.measured[trial.configuration], self.measured[base], margin, self.noise, self.tests)
        if verdict is Verdict.OPEN:
            return verdict, f"{gain:+.1%}, not sure yet"
        self.trial = None
        self._calibrate(trial, bounds, gain)
        if verdict is Verdict.REJECT:
            self.refused.add(trial.configuration)
            self.savings += trial.purpose is Purpose.SAVING
            return verdict, f"{gain:+.1%}: back to {shown(self.best)}"
        self.best = trial.configuration
        if trial.purpose is not Purpose.SAVING or gain > 0:
            self.peak = trial.configuration
        return verdict, f"{gain:+.1%}: kept"

    def _calibrate(self, trial: Trial, bounds: Bounds, gain: float) -> None:
        """Learn the cost of a hop, and whether estimates can be trusted."""
        if trial.promised is not None:
            self.trusted = 1 + gain >= self.thresholds.true * trial.promised
        if bounds.estimate is None:
            return
        measured = []
        for configuration, series in self.measured.items():
            away = math.log2(configuration.threads / trial.configuration.threads)  # hops cost more among more threads
            measured.append((configuration, series.mean, 1 / (1 + away**2)))
        if len(measured) > 1:
            self.explanations = bounds.estimate.fitted(measured, bounds.cpus)

    def propose(self, bounds: Bounds) -> Trial | None:
        """Return what to try next; None: nothing promises anything."""
        return self._growth(bounds) or self._peak(bounds) or self._placement(bounds) or self._saving(bounds)

    def start(self, trial: Trial) -> None:
        """Put a configuration on trial."""
        self.trial = trial
        self.placements += trial.purpose is Purpose.PLACEMENT

    def cannot(self, in_force: Configuration) -> None:
        """Judge what is in force instead of what was to be tried, unless that is the best one already."""
        assert self.trial is not None
        self.refused.add(self.trial.configuration)
        self.trial = None if in_force == self.best else replace(self.trial, configuration=in_force, promised=None)

    def needs_baseline(self, trial: Trial) -> bool:
        """Return whether the best configuration has to be measured longer before a trial of small differences."""
        if trial.purpose in (Purpose.SAVING, Purpose.PLACEMENT):
            base = self.measured.get(self.best)
            return (
                self.best == (self.peak or self.best)
                and base is not None
                and len(base.values) < self.thresholds.baseline
            )
        return False

    # --- proposals ---

    def _growth(self, bounds: Bounds) -> Trial | None:
        factor = self.thresholds.stride if self.trusted else self.thresholds.step
        known = self._levels()
        level = more_threads(known, self.best.threads, bounds.maximum, factor)
        above = min((n for n in known if n > self.best.threads), default=0)
        cautious = False
        if level is None and above > self.thresholds.step * self.best.threads:  # a stride was too long
            threads = self.thresholds.step * self.best.threads
            level, cautious = LevelTry(threads, Purpose.GROWTH, f"{above} threads were too many"), True
        if bounds.estimate is None:
            return self._trial(level, self.best.queued, bounds)
        first = not bounds.fixed and not self.best.queued  # no queue yet: at the fewest threads
        if first:
            level = LevelTry(bounds.minimum, Purpose.GROWTH, "no operator has a queue")
            optimism = 1.0 if self.explanations else self.thresholds.optimism
            return self._estimated(level, bounds, bounds.minimum, optimism)
        if level is None:
            return None
        return self._estimated(
            level, bounds, self.best.threads, nearly=self.thresholds.few if cautious else NEARLY_BEST
        )

    def _estimated(
        self, level: LevelTry, bounds: Bounds, least: int, optimism: float = 1.0, nearly: float = NEARLY_BEST
    ) -> Trial | None:
        """Go no further than the estimate promises anything, and put the queues where it says."""
        estimate = bounds.estimate
        assert estimate is not None
        by = replace(estimate.explanation, hop=estimate.explanation.hop * optimism)
        now = estimate.throughput(self.best, bounds.cpus, by)
        fixed = bounds.fixed | (estimate.joins & self.best.queued)
        options = []
        threads = level.threads
        while threads >= least:
            queued = estimate.place(threads, bounds.cpus, bounds.movable, fixed, by, nearly)
            configuration = Configuration(threads, queued)
            options.append((estimate.throughput(configuration, bounds.cpus, by), configuration))
            if threads == least:
                break
            threads = max(least, (threads + 1) // 2)
        options = [option for option in options if self._new(option[1], bounds, by)]
        if not options:
            return None
        most = max(throughput for throughput, _ in options)
        throughput, configuration = next(
            o for o in reversed(options) if o[0] >= (1 - self.thresholds.promise / 2) * most
        )
        if throughput < now * (1 + self.thresholds.promise):
            return None
        why = f"{throughput / now:.2f} times as much is possible by the costs of operators"
        return Trial(configuration, level.purpose, why, throughput / now)

    def _peak(self, bounds: Bounds) -> Trial | None:
        level = peak_above(self._levels(), self.best.threads, self.thresholds.promise)
        if level is None or bounds.estimate is None:
            return self._trial(level, self.best.queued, bounds)
        return self._estimated(level, bounds, level.threads)

    def _placement(self, bounds: Bounds) -> Trial | None:
        """Try other queues at the same thread count, where the estimate, corrected by what was measured, says so."""
        estimate = bounds.estimate
        if estimate is None or self.placements >= self.thresholds.placements:
            return None
        fixed = bounds.fixed | (estimate.joins & self.best.queued)
        for by in self.explanations or (estimate.explanation,):
            queued = estimate.place(self.best.threads, bounds.cpus, bounds.movable, fixed, by)
            configuration = Configuration(self.best.threads, queued)
            now = estimate.throughput(self.best, bounds.cpus, by)
            then = estimate.throughput(configuration, bounds.cpus, by)
            if then >= now * (1 + self.thresholds.promise) and self._new(configuration, bounds, by):
                why = f"{len(queued)} queues instead of {len(self.best.queued)} may give {then / now - 1:+.0%}"
                return Trial(configuration, Purpose.PLACEMENT, why)
        return self._exploration(estimate, bounds)

    def _exploration(self, estimate: Estimate, bounds: Bounds) -> Trial | None:
        """Where much less is had than threads could give, try what no estimate promises: finer pieces, or coarser."""
        base = min(self.measured, key=lambda known: len(known.queued))
        gain = math.exp(self.measured[self.best].mean - self.measured[base].mean)
        lanes = estimate.lanes(self.best, bounds.cpus)
        queues = len(self.best.queued)
        if bounds.busy is None or not queues or gain >= self.thresholds.efficiency * lanes:
            return None
        joins = estimate.joins & bounds.movable
        met = self.best.queued - joins if joins <= self.best.queued else self.best.queued | joins
        meeting = Configuration(self.best.threads, met)
        if joins and meeting not in self.measured and meeting not in self.refused:
            return Trial(meeting, Purpose.PLACEMENT, "threads may meet at operators that several feed")
        idle = 1 - bounds.busy / self.best.threads
        finer = idle >= self.thresholds.waiting
        fixed = bounds.fixed | (joins & self.best.queued)
        cuts = [cut for cut in estimate.cuts(self.best.threads, bounds.cpus, bounds.movable, fixed) if cut]
        if finer:
            cut = next((cut for cut in cuts if len(cut) >= self.thresholds.finer * queues), None)
            why = f"threads idle {idle:.0%} of the time: finer pieces"
        else:
            cut = next((cut for cut in reversed(cuts) if len(cut) * self.thresholds.finer <= queues), None)
            why = f"threads idle {idle:.0%} of the time, for {gain:.2f} times the throughput: coarser pieces"
        if cut is None or any(known.threads == self.best.threads and known.queued == cut for known in self.measured):
            return None
        configuration = Configuration(self.best.threads, cut)
        return Trial(configuration, Purpose.PLACEMENT, why) if self._new(configuration, bounds) else None

    def _saving(self, bounds: Bounds) -> Trial | None:
        if self.savings >= self.thresholds.savings:
            return None
        peak = self.measured[self.peak or self.best]
        known = self._levels()
        # a level that isn't clearly worse says nothing about those below it
        unclear = [n for n in known if n < self.best.threads and not self._clearly_worse(known[n], peak)]
        for n in unclear:
            del known[n]
        threads, busy = self.best.threads, bounds.busy
        while True:
            level = fewer_threads(known, threads, bounds.minimum, peak.throughput, self.thresholds.loss, busy)
            if level is None or level.threads not in unclear:
                return self._trial(level, self.best.queued, bounds)
            threads, busy = level.threads, None

    def _clearly_worse(self, throughput: float, peak: Series) -> bool:
        error = self.noise * math.sqrt(2 / len(peak.values))
        return math.log(throughput) < peak.mean + math.log1p(-self.thresholds.loss) - error

    def _trial(self, level: LevelTry | None, queued: frozenset[str], bounds: Bounds) -> Trial | None:
        if level is None:
            return None
        configuration = Configuration(level.threads, queued)
        return Trial(configuration, level.purpose, level.why) if self._new(configuration, bounds) else None

    def _new(self, configuration: Configuration, bounds: Bounds, by: Explanation | None = None) -> bool:
        """Return whether neither a configuration nor one that must give the same was measured."""
        if configuration in self.measured or configuration in self.refused:
            return False
        if bounds.estimate is None:
            return True
        queues = len(configuration.queued)
        then = bounds.estimate.throughput(configuration, bounds.cpus, by)
        for known in self.measured:
            like = known.threads == configuration.threads
            like = like and abs(len(known.queued) - queues) <= self.thresholds.alike * queues
            if like and then < bounds.estimate.throughput(known, bounds.cpus, by) * (1 + self.thresholds.promise):
                return False
        return True

    def _levels(self) -> dict[int, float]:
        """Return the best throughput of each thread count."""
        levels: dict[int, float] = {}
        for configuration, series in self.measured.items():
            levels[configuration.threads] = max(levels.get(configuration.threads, 0.0), series.throughput)
        return levels


def shown(configuration: Configuration) -> str:
    """Return a configuration in words."""
    return f"{configuration.threads} threads and {len(configuration.queued)} queues"
