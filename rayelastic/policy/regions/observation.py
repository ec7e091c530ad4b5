"""What the coordinator's policy sees of regions and nodes, as plain values: Joker section 4.1 (J18-J20).

Must not know who measured it, or what a policy makes of it. An observation carries the plan that is *in force*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.node_placement import Node
from rayelastic.reasons import Code, Reason

__all__ = ["ExponentialAverage", "ObservationWindow", "PipelineObservation", "PlanObservation", "RegionObservation"]


@dataclass(frozen=True, slots=True)
class ExponentialAverage:
    """An exponential average whose first values count in full, so that it is a mean until it has enough of them (J18).

    Args:
        weight: least share of a new value, 0..1.
        count: how many values there were.
        value: the average; 0 before the first value.

    >>> average = ExponentialAverage(weight=0.25)
    >>> for value in (10, 20, 30, 40, 50):
    ...     average = average.add(value)
    >>> average.value
    31.25
    """

    weight: float = 0.1
    count: int = 0
    value: float = 0.0

    def add(self, value: float) -> ExponentialAverage:
        """Return the average with one more value."""
        share = max(self.weight, 1 / (self.count + 1))
        return ExponentialAverage(self.weight, self.count + 1, self.value + share * (value - self.value))


@dataclass(frozen=True, slots=True)
class PipelineObservation:
    """One pipeline of a region during a period.

    Args:
        operators: in the order in which tuples pass them.
        cpu: of each replica, the share of the period in which its thread used a CPU, 0..1 (J19).
        costs: of each operator, the share of that CPU time spent in it, mean over the replicas (J19, J20).
        taken: of each operator, tuples/s that all replicas took.
        emitted: tuples/s that the last operator gave.
        waiting: of each replica, the share of the period in which its thread slept inside operators that ask for
            something outside the job; empty: never.
        waits: of each operator, the share of that time that passed in it; empty likewise.
        cpus: of each replica, the CPUs that all threads of its process used in it; empty: as many as `cpu` says.
        starved: of each replica, the share of the period in which its thread was inside operators without a CPU;
            empty: never. Its node is slow, or busy with something else.

    >>> seen = PipelineObservation(("parse", "count"), (0.9, 0.7), (0.5, 0.2), (1e5, 1e5), 1e5)
    >>> seen.utilisation, round(seen.overhead, 2)
    (0.8, 0.3)
    """

    operators: tuple[str, ...]
    cpu: tuple[float, ...]
    costs: tuple[float, ...]
    taken: tuple[float, ...]
    emitted: float = 0.0
    waiting: tuple[float, ...] = ()
    waits: tuple[float, ...] = ()
    cpus: tuple[float, ...] = ()
    starved: tuple[float, ...] = ()

    @property
    def used(self) -> tuple[float, ...]:
        """Of each replica, the CPUs that it used, of all its threads."""
        return self.cpus or self.cpu

    @property
    def utilisation(self) -> float:
        """CPU utilisation, averaged over the replicas (J20)."""
        return sum(self.cpu) / len(self.cpu)

    @property
    def useful(self) -> tuple[float, ...]:
        """Of each replica, the share of the period in which its thread could take nothing else (DS2)."""
        if not self.waiting:
            return self.cpu
        return tuple(min(1.0, cpu + wait) for cpu, wait in zip(self.cpu, self.waiting, strict=True))

    @property
    def occupied(self) -> tuple[float, ...]:
        """Of each replica, the share of the period in which its thread was inside operators, with a CPU or without."""
        if not self.starved:
            return self.useful
        return tuple(min(1.0, use + lack) for use, lack in zip(self.useful, self.starved, strict=True))

    @property
    def overhead(self) -> float:
        """Share of the CPU time outside operators: 1 - the sum of the costs (J19)."""
        return max(0.0, 1.0 - sum(self.costs))


@dataclass(frozen=True, slots=True)
class RegionObservation:
    """One region during a period.

    Args:
        region: its name in the plan.
        throughput: tuples/s that it took; of a source: that it made (J19).
        pipelines: in the order of the plan.
        offered: of a source, tuples/s that it would make without back-pressure; None: not known.
        blocked: share of the period in which it was blocked on output, 0..1.
        fill: share of its input queues that is full, 0..1; those of a bottleneck are.
        hot_key: the key that most of its tuples have, as text; empty: no key has many.
        hot_share: share of its tuples that have it, 0..1.
    """

    region: str
    throughput: float
    pipelines: tuple[PipelineObservation, ...]
    offered: float | None = None
    blocked: float = 0.0
    fill: float = 0.0
    hot_key: str = ""
    hot_share: float = 0.0


@dataclass(frozen=True, slots=True)
class PlanObservation:
    """A job during a period.

    Args:
        time: seconds since its start, at the end of the period.
        period: seconds that it covers.
        plan: in force during the whole period.
        regions: in the order of the plan.
        nodes: what may be used, with CPUs and memory for this job; empty: all stays on one host.
        settled: whether the local levels of all PEs have settled (architecture, section 1).
        adapted: whether the plan that was asked for last is in force.
        cost: of the last change, seconds of throughput that it took away; None: not measured.
        waits_for_cpus: share of their time inside operators in which an element's threads had no CPU, 0..1; of the
            element with the largest share. Other processes, such as starting ones, use the CPUs of its host.
        wanted: {PE: CPUs that its threads used, and those that they waited for}; empty: those that pipelines used.
        latencies: number of latency marks that reached sinks in the period, by their latency. Number i counts those of
            less than 2^i microseconds, and at least half of that; empty: none is known.
        bounds: {region: the fewest and the most replicas} of this time of the day; None: they never change.

    >>> plan = ExecPlan("empty", ())
    >>> seen = PlanObservation(time=30.0, period=30.0, plan=plan, regions=(), nodes=(Node("a", cpus=8.0),))
    >>> PlanObservation.from_dict(seen.as_dict()) == seen
    True
    """

    time: float
    period: float
    plan: ExecPlan
    regions: tuple[RegionObservation, ...]
    nodes: tuple[Node, ...] = ()
    settled: bool = True
    adapted: bool = True
    cost: float | None = None
    waits_for_cpus: float = 0.0
    wanted: Mapping[str, float] = field(default_factory=dict)
    latencies: tuple[int, ...] = ()
    bounds: Mapping[str, tuple[int, int]] | None = None

    @property
    def starving(self) -> Reason:
        """How much of their work threads had no CPU for."""
        return Code.NO_CPU(share=self.waits_for_cpus)

    def of(self, region: str) -> RegionObservation:
        """Return what was seen of a region; KeyError if nothing was."""
        for seen in self.regions:
            if seen.region == region:
                return seen
        raise KeyError(region)

    def as_dict(self) -> dict[str, Any]:
        """Return the same as JSON values, so that a journal can be replayed through a policy."""
        return _values(self) | {
            "plan": self.plan.to_dict(),
            "regions": [_values(r) | {"pipelines": [_values(p) for p in r.pipelines]} for r in self.regions],
            "nodes": [_values(node) for node in self.nodes],
            "bounds": None if self.bounds is None else [[region, *pair] for region, pair in self.bounds.items()],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the observation from the result of `as_dict`."""
        regions = tuple(
            RegionObservation(**{**told, "pipelines": tuple(_pipeline(p) for p in told["pipelines"])})
            for told in values["regions"]
        )
        nodes = tuple(Node(**node) for node in values["nodes"])
        latencies = tuple(values.get("latencies", ()))
        told = values.get("bounds")
        bounds = None if told is None else {region: (fewest, most) for region, fewest, most in told}
        made = {"plan": ExecPlan.from_dict(values["plan"]), "regions": regions, "nodes": nodes, "latencies": latencies}
        return cls(**{**values, **made, "bounds": bounds})


def _values(item: Any) -> dict[str, Any]:
    told = {f.name: getattr(item, f.name) for f in fields(item)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in told.items()}


def _pipeline(told: Mapping[str, Any]) -> PipelineObservation:
    return PipelineObservation(
        tuple(told["operators"]),
        tuple(told["cpu"]),
        tuple(told["costs"]),
        tuple(told["taken"]),
        told["emitted"],
        tuple(told["waiting"]),
        tuple(told["waits"]),
        tuple(told.get("cpus", ())),
        tuple(told.get("starved", ())),
    )


class ObservationWindow:
    """Makes one observation of several samples: exponential averages, after a warm-up (J18; 4.1, 4.3).

    Args:
        samples: how many make an observation; the paper takes one a second for 30 s (E10).
        warm_up: samples that are ignored after a change of plan; the paper says "for some time".
        weight: least share of a new sample in the average; the paper doesn't say.

    Raises:
        ValueError: no samples at all.

    >>> window = ObservationWindow(samples=2, warm_up=1)
    >>> plan = ExecPlan("empty", ())
    >>> samples = (PlanObservation(time=t, period=1.0, plan=plan, regions=()) for t in (1.0, 2.0, 3.0))
    >>> [seen and (seen.time, seen.period) for seen in map(window.add, samples)]
    [None, None, (3.0, 2.0)]
    """

    def __init__(self, samples: int = 30, warm_up: int = 5, weight: float = 0.1) -> None:
        if samples < 1 or warm_up < 0:
            raise ValueError(f"ObservationWindow(samples={samples}, warm_up={warm_up})")
        self._samples, self._warm_up, self._weight = samples, warm_up, weight
        self._epoch: int | None = None
        self._ignored = 0
        self._averages: list[ExponentialAverage] = []
        self._count = 0
        self._period = 0.0

    def add(self, sample: PlanObservation) -> PlanObservation | None:
        """Take a sample; return an observation when the window is full, and start the next one."""
        if sample.plan.epoch != self._epoch:
            self._epoch = sample.plan.epoch
            self._ignored = 0
            self._start()
        if self._ignored < self._warm_up:
            self._ignored += 1
            return None
        numbers = _numbers(sample.regions)
        if len(numbers) != len(self._averages):
            self._averages = [ExponentialAverage(self._weight)] * len(numbers)
        self._averages = [average.add(n) for average, n in zip(self._averages, numbers, strict=True)]
        self._count += 1
        self._period += sample.period
        if self._count < self._samples:
            return None
        averages = iter([average.value for average in self._averages])
        made = replace(
            sample, period=self._period, regions=tuple(_averaged(region, averages) for region in sample.regions)
        )
        self._start()
        return made

    def _start(self) -> None:
        self._averages, self._count, self._period = [], 0, 0.0


def _numbers(regions: Sequence[RegionObservation]) -> list[float]:
    """All measured numbers in a fixed order; `_averaged` reads them in the same."""
    numbers: list[float] = []
    for r in regions:
        numbers += (r.throughput, r.offered or 0.0, r.blocked, r.fill)
        for p in r.pipelines:
            numbers += (*p.cpu, *p.costs, *p.taken, *p.waiting, *p.waits, *p.cpus, *p.starved, p.emitted)
    return numbers


def _averaged(seen: RegionObservation, numbers: Any) -> RegionObservation:
    throughput, offered, blocked, fill = (next(numbers) for _ in range(4))
    pipelines = []
    for p in seen.pipelines:
        parts = (p.cpu, p.costs, p.taken, p.waiting, p.waits, p.cpus, p.starved)
        cpu, costs, taken, waiting, waits, cpus, starved = (tuple(next(numbers) for _ in part) for part in parts)
        made = (p.operators, cpu, costs, taken, next(numbers), waiting, waits, cpus, starved)
        pipelines.append(PipelineObservation(*made))
    offered = None if seen.offered is None else offered
    return RegionObservation(
        seen.region, throughput, tuple(pipelines), offered, blocked, fill, seen.hot_key, seen.hot_share
    )
