"""A PE played by events, observed and adapted like `bench.plant.plant.Plant`, which has a formula.

A configuration is played once, until it runs steadily; what is seen of it in a period is that, with noise on the
throughput and profiler samples drawn as a 100 Hz profiler draws them (M02). Seeded: equal arguments give equal runs.
Must not know any controller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bench.plant.events.loop import BLOCKED, IDLE, NAPPING, RUNNING, TOKEN_WAIT, simulate
from bench.plant.events.program import RUNS, Program, program
from bench.plant.graph import PlantGraph
from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.policy.element.decision import Decision
from rayelastic.policy.element.observation import Observation, OperatorObservation

PROFILE_RATE = 100.0  # samples/s of a busy thread
FILLING = 1.2  # times the work that all queues hold passes before what counts
LEAST = 40e6  # ns that count, at least
TURNS = 200  # times the work of a source's run that counts, at least
STEADY = 0.01  # share of tuples that may pile up in queues while it counts, or be taken from what did before
DOUBLINGS = 8  # of the time, for want of that


@dataclass(frozen=True, slots=True)
class Configuration:
    """Scheduler threads, and the numbers of the operators with a queue."""

    threads: int
    queued: frozenset[int]


@dataclass(frozen=True, slots=True)
class Played:
    """What a configuration gave.

    Args:
        rate: tuples/s over all operators (P27).
        rates: tuples/s that each operator took.
        work: CPUs that each operator kept busy.
        cpus: CPUs that all threads kept busy.
        fill: {operator with a queue: mean share of it that was full}.
        idle: share of the scheduler threads' time asleep for want of work.
        blocked: share of all threads' time that they waited for room or for each other.
        token_wait: share of all threads' time that they waited for the token.
        source_wait: share of its time that the busiest source waited for input.
    """

    rate: float
    rates: tuple[float, ...]
    work: tuple[float, ...]
    cpus: float
    fill: Mapping[int, float]
    idle: float
    blocked: float
    token_wait: float
    source_wait: float


@dataclass(frozen=True, slots=True)
class EventSettings:
    """How a plant is run and seen.

    Args:
        cores: CPUs of the machine.
        paced: {number of a source: tuples/s that it is given}; the others give as many as are taken.
        period: s between observations.
        noise: standard deviation of the logarithm of a period's throughput; 0.05 is 5 %.
        seed: of noise, profiler samples, and differences between runs.
        deaf: what is asked for never comes into force: the fault of a loop that is cut off from its scheduler.
    """

    cores: int
    paced: Mapping[int, float] = field(default_factory=dict)
    period: float = 1.0
    noise: float = 0.0
    seed: int = 0
    deaf: bool = False


class EventPlant:
    """One PE on a simulated machine; all operators begin manual, with one scheduler thread.

    Args:
        graph: what it runs.
        settings: on what, and how it is seen.

    >>> from bench.plant.graph import pipeline
    >>> plant = EventPlant(pipeline([1000.0] * 8), EventSettings(cores=2))
    >>> alone = plant.play().throughput
    >>> plant.apply(Decision(1, {"op4": ThreadingModel.DYNAMIC}))
    >>> 1.8 < plant.play().throughput / alone < 2.1
    True
    """

    def __init__(self, graph: PlantGraph, settings: EventSettings) -> None:
        self.graph = graph
        self.settings = settings
        self.time = 0.0
        self.others = 0.0
        self.configuration = Configuration(1, frozenset())
        self._numbers = {operator.name: number for number, operator in enumerate(graph.operators)}
        self._random = np.random.default_rng(settings.seed)
        self._work_behind = _behind(graph, graph.costs)
        self._tuples_behind = _behind(graph, np.ones(len(graph.costs)))
        self._played: dict[tuple[Configuration, float, int], Played] = {}

    @property
    def thread_count(self) -> int:
        """Scheduler threads in force."""
        return self.configuration.threads

    @property
    def queues(self) -> int:
        """Operators with a queue in front."""
        return len(self.configuration.queued)

    @property
    def placement(self) -> frozenset[int]:
        """Numbers of those operators."""
        return self.configuration.queued

    @property
    def true_rate(self) -> float:
        """Tuples/s over all operators that the present configuration gives, without noise."""
        return self.played(self.configuration).rate

    @property
    def tuples_per_source_tuple(self) -> float:
        """1: rates are told over all operators, as sources needn't keep step."""
        return 1.0

    @property
    def movable(self) -> tuple[int, ...]:
        """Operators that may have a queue."""
        return tuple(number for number, operator in enumerate(self.graph.operators) if not operator.source)

    def apply(self, decision: Decision) -> None:
        """Bring about what is desired; KeyError for an operator that isn't there, ValueError for a source."""
        queued = set(self.configuration.queued)
        for name, model in decision.models.items():
            number = self._numbers[name]
            if self.graph.operators[number].source:
                raise ValueError(f"operator {name!r} is a source: it has no threading model")
            (queued.discard if model is ThreadingModel.MANUAL else queued.add)(number)
        threads = max(1, min(decision.thread_count, self.settings.cores))
        if not self.settings.deaf:
            self.configuration = Configuration(threads, frozenset(queued))

    def played(self, configuration: Configuration, longer: float = 1.0, seed: int = 0) -> Played:
        """Return what a configuration gives, measured so many times longer than usual."""
        key = (configuration, longer, seed)
        if key not in self._played:
            self._played[key] = self._measure(configuration, longer, seed)
        return self._played[key]

    def play(self) -> Observation:
        """Let a period pass and return what is seen of it."""
        settings, played = self.settings, self.played(self.configuration)
        self.time += settings.period
        noise = float(np.exp(settings.noise * self._random.standard_normal())) if settings.noise else 1.0
        samples = self._samples(played)
        operators = tuple(
            OperatorObservation(
                operator.name,
                ThreadingModel.DYNAMIC if number in self.configuration.queued else ThreadingModel.MANUAL,
                not operator.source,
                played.rates[number] * noise,
                samples[number],
                played.fill.get(number, 0.0),
                played.rates[number] * operator.selectivity * noise,
            )
            for number, operator in enumerate(self.graph.operators)
        )
        return Observation(
            time=self.time,
            period=settings.period,
            throughput=played.rate * noise,
            thread_count=self.configuration.threads,
            minimum_threads=1,
            maximum_threads=settings.cores,
            operators=operators,
            system_samples=samples[-1],
            idle=played.idle,
            blocked=played.blocked,
            token_wait=played.token_wait,
            source_wait=played.source_wait,
            cpu_count=settings.cores,
            own_cpu=played.cpus,
            host_cpu=min(1.0, played.cpus / settings.cores),
        )

    def _samples(self, played: Played) -> list[int]:
        """Return the samples of each operator, and at last of those that fell outside of operators."""
        system = max(0.0, played.cpus - sum(played.work))
        share = np.array([*played.work, system])
        total = PROFILE_RATE * self.settings.period * played.cpus
        drawn = self._random.multinomial(int(total), share / share.sum()) if share.sum() > 0 else share
        return [int(count) for count in drawn]

    def _measure(self, configuration: Configuration, longer: float, seed: int) -> Played:
        """Play a configuration, for longer and longer until queues that fill up no longer look like throughput.

        In front of a bottleneck they take long to fill where what feeds it isn't much faster. What isn't steady
        after `DOUBLINGS` counts as it is.
        """
        settings = self.settings
        cut = program(self.graph, configuration.queued, settings.paced)
        lanes = min(settings.cores, cut.sources + configuration.threads)
        warm = FILLING * self._waiting(cut) / lanes + LEAST / 4
        turn = float(cut.run[: cut.sources].max() * self._work_behind[list(self.graph.sources)].max()) / lanes
        span = longer * max(LEAST, warm / 2, TURNS * turn)
        for doubling in range(DOUBLINGS + 1):
            played = self._simulated(cut, configuration, warm * 2**doubling, span * 2**doubling, seed)
            if self._steady(cut, played, span * 2**doubling * 1e-9):
                break
        return played

    def _steady(self, cut: Program, played: Played, seconds: float) -> bool:
        """Return whether queues hold about as much as before: each, and all with what would have come of it."""
        piled = 0.0
        for head, run in zip(cut.heads[cut.sources :], cut.run[cut.sources :], strict=True):
            given = sum(
                played.rates[stream.tail] * self.graph.operators[stream.tail].selectivity * stream.share
                for stream in self.graph.incoming[head]
            )
            more = given - played.rates[head]
            if abs(more) > max(STEADY * given, run / seconds):
                return False
            piled += more * self._tuples_behind[head]
        return abs(piled) <= STEADY * played.rate

    def _simulated(self, cut: Program, configuration: Configuration, warm: float, span: float, seed: int) -> Played:
        settings = self.settings
        took, spent, fill, span = simulate(
            cut.sources,
            cut.start,
            cut.kind,
            cut.what,
            cut.amount,
            cut.run,
            cut.rate,
            cut.next_port,
            cut.ahead,
            cut.token,
            cut.locks,
            configuration.threads,
            settings.cores,
            warm,
            span,
            settings.seed + 1000 * seed,
        )
        rates = took @ cut.taken / span * 1e9
        shares: NDArray[np.float64] = spent / span
        workers = shares[cut.sources :]
        waiting = float(shares[: cut.sources, NAPPING].min()) if settings.paced else 0.0
        return Played(
            rate=float(rates.sum()),
            rates=tuple(rates.tolist()),
            work=tuple((rates * self.graph.costs * 1e-9).tolist()),
            cpus=float(shares[:, RUNNING].sum()),
            fill={int(head): float(full) for head, full in zip(cut.heads[cut.sources :], fill, strict=True)},
            idle=min(1.0, float(workers[:, IDLE].mean())),
            blocked=float(shares[:, BLOCKED].mean()),
            token_wait=float(shares[:, TOKEN_WAIT].mean()),
            source_wait=waiting,
        )

    def _waiting(self, cut: Program) -> float:
        """Return the ns of work that full queues hold, at most: of what waits, and of all that will come of it."""
        return float((RUNS * cut.run * self._work_behind[cut.heads])[cut.sources :].sum())


def _behind(graph: PlantGraph, each: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what a tuple of each operator is with all that comes of it: ns of work, or tuples, by `each` alone."""
    total = each.copy()
    for number in range(len(total) - 1, -1, -1):
        for stream in graph.outgoing[number]:
            total[number] += graph.operators[number].selectivity * stream.share * total[stream.head]
    return total
