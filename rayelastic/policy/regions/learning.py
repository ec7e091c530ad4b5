"""Averages of regions and sources over the periods since the plan changed, which notice a change of load.

Decisions rest on averages, never on one sample (reliability, complaint 1). An average restarts when several periods in
a row deviate from it to the same side. So it is steady under noise and quick after a step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from rayelastic.plan.exec_plan import ExecPlan, RegionPlan
from rayelastic.plan.regions import RegionKind
from rayelastic.policy.regions.model import RegionModel, shape_of
from rayelastic.policy.regions.observation import ExponentialAverage, PlanObservation, RegionObservation
from rayelastic.policy.regions.thresholds import OrganicThresholds

__all__ = ["Known", "SteadyAverage"]

FEW = 3.0  # root of the number of periods from which the configured threshold for skew applies
NAMED = 0.5  # of what can't be divided: the least that the most frequent key has of the tuples to be called its cause
SMALLEST_EFFICIENCY = 0.1  # a region that waits nine tenths of its time is as far as the model is believed


class SteadyAverage:
    """An exponential average that starts again when its value has changed.

    Args:
        thresholds: what counts as a change, and how long it has to last.

    >>> average = SteadyAverage(OrganicThresholds())
    >>> [round(average.add(value)) for value in (10, 10, 10, 20, 20, 20)]
    [10, 10, 10, 12, 14, 20]
    """

    __slots__ = ("_average", "_deviating", "_thresholds", "changed")

    def __init__(self, thresholds: OrganicThresholds) -> None:
        self._thresholds = thresholds
        self._average = ExponentialAverage(thresholds.weight)
        self._deviating: list[float] = []
        self.changed = False

    @property
    def value(self) -> float:
        """The average."""
        return self._average.value

    @property
    def latest(self) -> float:
        """The average, or the mean of the values that deviated last, in case that it lasts."""
        return math.fsum(self._deviating) / len(self._deviating) if self._deviating else self._average.value

    @property
    def doubtful(self) -> bool:
        """Whether the last value deviated: a change that may be, or may be noise."""
        return bool(self._deviating)

    def restart(self) -> None:
        """Keep the value until the next one comes, which then counts in full."""
        self._average = replace(self._average, count=0)
        self._deviating = []

    def add(self, value: float) -> float:
        """Add a value and return the average; `changed` is then True if it has just restarted."""
        mean, t = self._average.value, self._thresholds
        self.changed = False
        off = self._average.count > 0 and abs(value - mean) > t.shift * mean
        if off and self._deviating and (value > mean) != (self._deviating[-1] > mean):
            self._deviating = []
        self._deviating = [*self._deviating, value] if off else []
        if len(self._deviating) >= t.shift_periods:
            self.changed = True
            self._average = ExponentialAverage(t.weight)
            for late in self._deviating:
                self._average = self._average.add(late)
            self._deviating = []
        else:
            self._average = self._average.add(value)
        return self._average.value


class _Offered:
    """Tuples/s that a source would make without back-pressure: as it reports, or a guess from its time blocked.

    A source that is blocked nearly always is believed to be offered `guessed_growth` times what it makes. This guess is
    a lower bound: it may be offered any amount more. As long as the source is blocked so much, the bottleneck
    determines what it makes, and its remaining time is noise. A change of either is no change of load.
    If a change of plan leaves it behind, the next guess is the square root of that bound, until it catches up.
    """

    __slots__ = ("_t", "at_least", "average", "growth", "guessed")

    def __init__(self, thresholds: OrganicThresholds) -> None:
        self._t = thresholds
        self.average = SteadyAverage(thresholds)
        self.guessed = False  # whether the source doesn't report it
        self.at_least = False  # whether the guess is a lower bound
        self.growth = thresholds.guessed_growth  # the most that is guessed, as a multiple of what it makes

    def plan_changed(self) -> None:
        """Start again: a source runs faster or slower beside other threads. The next guess is smaller."""
        if self.guessed:
            self.average.restart()
            self.growth = math.sqrt(self._t.guessed_growth) if self.at_least else self.growth

    def add(self, seen: RegionObservation) -> None:
        """Take one period."""
        if seen.offered is not None:
            self.average.add(max(seen.offered, seen.throughput))
            return
        self.guessed = True
        if seen.blocked <= 1.0 - self._t.carried:
            self.growth = self._t.guessed_growth
        least = 1.0 / self._t.guessed_growth  # of its time that it works, for the guess to be more than a lower bound
        at_least = 1.0 - seen.blocked <= least
        if at_least and self.at_least:
            self.average.restart()
        self.average.add(seen.throughput / max(1.0 - seen.blocked, least))
        if not self.average.doubtful:  # else it stays what it was, until that has lasted
            self.at_least = at_least


@dataclass(slots=True)
class _Region:
    """Averages of one region; per-tuple times are ratios of averages, which a change of load leaves alone."""

    planned: RegionPlan
    work: SteadyAverage  # s of useful time per tuple
    limit: ExponentialAverage  # what it took as a bottleneck
    busy: list[float]  # CPUs of each operator
    waits: list[float]  # threads that sleep in each operator, mean
    replicas: list[float]  # useful share of each replica's busiest thread
    threads: list[list[float]]  # of each pipeline, CPUs of each replica, all its threads
    passes: list[float]  # tuples/s that each operator takes
    occupied: list[float]  # share of each replica's busiest thread, with the time in which it waits for a CPU
    taken: float = 0.0
    given: float = 0.0
    overhead: float = 0.0  # CPUs of a pipeline outside operators, mean
    counted: float = 0.0  # CPUs of a thread for each pipeline replica
    count: int = 0
    hot_key: str = ""  # as it was seen last: whoever counts it makes the mean
    hot_share: float = 0.0

    def add(self, observed: RegionObservation, weight: float) -> None:
        """Take one period; the averages are those of ExponentialAverage, with one count for all."""
        self.count += 1
        self.hot_key, self.hot_share = observed.hot_key, observed.hot_share
        share = max(weight, 1 / self.count)
        pipelines = observed.pipelines
        cpus = [sum(p.cpu) for p in pipelines]
        busy = [cpu * cost for p, cpu in zip(pipelines, cpus, strict=True) for cost in p.costs]
        outside = sum(cpu * p.overhead for p, cpu in zip(pipelines, cpus, strict=True)) / len(pipelines)
        waits = [sum(p.waiting) * share for p in pipelines for share in (p.waits or [0.0] * len(p.operators))]
        useful = list(zip(*(p.useful for p in pipelines), strict=True))
        occupied = list(zip(*(p.occupied for p in pipelines), strict=True))
        self.taken += share * (observed.throughput - self.taken)
        self.given += share * (pipelines[-1].emitted - self.given)
        self.overhead += share * (outside - self.overhead)
        self.busy = [old + share * (new - old) for old, new in zip(self.busy, busy, strict=True)]
        self.waits = [old + share * (new - old) for old, new in zip(self.waits, waits, strict=True)]
        self.replicas = [old + share * (max(new) - old) for old, new in zip(self.replicas, useful, strict=True)]
        self.counted += share * (sum(cpus) - self.counted)
        self.threads = [
            [old + share * (new - old) for old, new in zip(before, p.used, strict=True)]
            for before, p in zip(self.threads, pipelines, strict=True)
        ]
        taken = [taken for p in pipelines for taken in p.taken]
        self.passes = [old + share * (new - old) for old, new in zip(self.passes, taken, strict=True)]
        self.occupied = [old + share * (max(new) - old) for old, new in zip(self.occupied, occupied, strict=True)]


class Known:
    """Averages of a job since its plan changed.

    Args:
        thresholds: of the policy.
    """

    def __init__(self, thresholds: OrganicThresholds) -> None:
        self._t = thresholds
        self._regions: dict[str, _Region] = {}
        self._offered: dict[str, _Offered] = {}
        self._made: dict[str, SteadyAverage] = {}
        self._passed: dict[str, SteadyAverage] = {}
        self._blocked: dict[str, ExponentialAverage] = {}
        self._wanted: dict[str, ExponentialAverage] = {}
        self.load_changed = False

    @property
    def offered(self) -> dict[str, float]:
        """{source: tuples/s that it would make without back-pressure}; what it makes bounds a guess."""
        found = {name: offered.average.value for name, offered in self._offered.items()}
        for name in self._made:
            most = self._t.guessed_growth * self._made[name].latest
            if self._offered[name].guessed:
                found[name] = most if self._offered[name].at_least else min(found[name], most)
        return found

    @property
    def sized_for(self) -> dict[str, float]:
        """{source: tuples/s that the next plan is to carry}: what it is offered, or less if that is a second guess."""
        found = self.offered
        for name in self._made:
            if self._offered[name].guessed:
                found[name] = min(found[name], self._offered[name].growth * self._made[name].latest)
        return found

    @property
    def guesses(self) -> bool:
        """Whether what some source is offered is a guess."""
        return any(offered.guessed for offered in self._offered.values())

    @property
    def at_least(self) -> bool:
        """Whether what some source is offered is a lower bound: it hardly ever has room."""
        return any(offered.at_least for offered in self._offered.values())

    @property
    def carried(self) -> float:
        """Tuples/s that all sources make: all that they are offered, unless they are blocked on output."""
        return sum(
            offered if self._blocked[name].value <= 1.0 - self._t.carried else min(offered, self._made[name].latest)
            for name, offered in self.offered.items()
        )

    @property
    def stands(self) -> bool:
        """Whether sources are blocked on output and make nothing, so that the load offered to them can't be guessed."""
        return sum(self.offered.values()) <= 0 and any(
            blocked.value > 1.0 - self._t.carried for blocked in self._blocked.values()
        )

    @property
    def passed(self) -> dict[str, float]:
        """{region: tuples/s that its last operator takes}."""
        return {name: passed.latest for name, passed in self._passed.items()}

    @property
    def doubtful(self) -> bool:
        """Whether a load deviated in the last period."""
        return any(offered.average.doubtful for offered in self._offered.values())

    def forget(self, plan: ExecPlan) -> None:
        """Start again with what a change of plan touches: its regions, what limits whom, and what sources make."""
        for name in [n for n, region in self._regions.items() if region.planned != plan.region(n)]:
            del self._regions[name]
        for region in self._regions.values():
            region.limit = ExponentialAverage(self._t.weight)
            region.work = SteadyAverage(self._t)  # what the change did to it is no change of load
        self._made.clear()
        self._passed.clear()
        self._blocked.clear()
        self._wanted.clear()
        for offered in self._offered.values():
            offered.plan_changed()

    def learn(self, seen: PlanObservation) -> None:
        """Take one period."""
        self.load_changed = False
        full = {region.region for region in seen.regions if region.fill >= self._t.full}
        leads_to_full = {up for name in full for up in seen.plan.upstream(name)}
        for observed in seen.regions:
            name = observed.region
            planned = seen.plan.region(name)
            if planned.region.kind.is_fixed:
                self._learn_source(observed)
            if observed.throughput > 0:
                self._learn_region(observed, planned, limits=name in full and name not in leads_to_full)
        if self.load_changed:
            self._passed.clear()
        for pe, cpus in seen.wanted.items():
            self._wanted[pe] = self._wanted.get(pe, ExponentialAverage(self._t.weight)).add(cpus)
        for observed in seen.regions:
            passed = self._passed.setdefault(observed.region, SteadyAverage(self._t))
            passed.add(observed.pipelines[-1].taken[-1])

    def models(self) -> dict[str, RegionModel]:
        """Return the regions of which something is known."""
        return {name: self._model(region) for name, region in self._regions.items()}

    def replica_cpus(self) -> dict[str, tuple[float, ...]]:
        """Return the CPUs that each replica of each region was seen to use."""
        return {name: tuple(map(sum, zip(*of.threads, strict=True))) for name, of in self._regions.items()}

    def pe_cpus(self) -> dict[str, float]:
        """Return the CPUs that each PE was seen to use, and those that its threads waited for as others used them."""
        found: dict[str, float] = {}
        for region in self._regions.values():
            for pipeline, threads in zip(region.planned.pipelines, region.threads, strict=True):
                for pe, cpus in zip(pipeline.pes, threads, strict=True):
                    found[pe] = found.get(pe, 0.0) + cpus
        return {pe: max(cpus, self._wanted[pe].value) if pe in self._wanted else cpus for pe, cpus in found.items()}

    def replica_use(self) -> dict[str, tuple[float, ...]]:
        """Return the share of its time that each replica of each region has something to do."""
        return {name: tuple(region.occupied) for name, region in self._regions.items()}

    def _learn_source(self, observed: RegionObservation) -> None:
        name = observed.region
        offered = self._offered.setdefault(name, _Offered(self._t))
        offered.add(observed)
        if offered.average.changed:
            self.load_changed = True
            self._made.pop(name, None)
            self._blocked.pop(name, None)
        self._made.setdefault(name, SteadyAverage(self._t)).add(observed.throughput)
        self._blocked[name] = self._blocked.get(name, ExponentialAverage(self._t.weight)).add(observed.blocked)

    def _learn_region(self, observed: RegionObservation, planned: RegionPlan, *, limits: bool) -> None:
        name, weight = observed.region, self._t.weight
        work = sum(sum(p.useful) for p in observed.pipelines) / observed.throughput
        region = self._regions.get(name)
        if region is not None:
            region.work.add(work)
            if region.work.changed:
                offered = self._offered.get(name)
                if offered is None or not offered.at_least:  # else the little that such a source works is noise
                    self.load_changed = True
                region = None
        if region is None or region.planned != planned:
            idle = [0.0] * planned.replicas
            none = [0.0] * len(planned.region.operators)
            threads = [idle for _ in planned.pipelines]
            limit = ExponentialAverage(weight)
            region = _Region(planned, SteadyAverage(self._t), limit, none, none, idle, threads, none, idle)
            region.work.add(work)
            self._regions[name] = region
        region.add(observed, weight)
        if limits:
            region.limit = region.limit.add(observed.throughput)

    def _model(self, known: _Region) -> RegionModel:
        replicas, skew = known.planned.replicas, 1.0
        if replicas > 1:
            mean = sum(known.replicas) / replicas
            busiest = max(known.replicas) / mean if mean > 0 else 1.0
            few = max(1.0, FEW / math.sqrt(known.count))  # the busiest of young averages is busy by noise
            skew = busiest if busiest > 1.0 + self._t.skew * few else 1.0
        hot = known.hot_share if replicas == 1 else 0.0  # nobody has seen yet what it is of the load
        if skew > 1.0 and known.planned.region.kind is RegionKind.DATA_PARALLEL:
            even = known.planned.ring.loads()[known.replicas.index(max(known.replicas))] / known.planned.partitions
            hot = max(0.0, skew / replicas - even) / (1.0 - even)  # beside its part of what can be divided
        model = RegionModel(
            known.planned.region,
            tuple(cpus / known.taken for cpus in known.busy),
            known.overhead / known.taken,
            known.given / known.taken,
            skew,
            hot,
            key=known.hot_key if known.hot_share >= NAMED * hot else "",
            waits=tuple(sleeping / known.taken for sleeping in known.waits),
            spread=max(1.0, sum(map(sum, known.threads)) / known.counted) if known.counted > 0 else 1.0,
            passes=tuple(taken / known.taken for taken in known.passes),
            partitions=known.planned.partitions,
        )
        if not known.limit.count or known.planned.region.token_bound:
            return model
        reached = known.limit.value / model.capacity(shape_of(known.planned))
        if reached > 1.0 - self._t.shift:  # within what noise explains
            return model
        return replace(model, efficiency=max(reached, SMALLEST_EFFICIENCY))
