"""What throughput a configuration should give, by the measured costs of operators, and which queues fit a thread count.

In the manner of DS2 (V. Kalavri et al., Three Steps Is All You Need, OSDI 2018): true costs instead of trial and error.
An estimate only says what to try next; whether it is kept is measured. Must not know time, noise or history.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from rayelastic.policy.observation import Observation
from rayelastic.policy.pieces import OperatorGraph

__all__ = ["NEARLY_BEST", "Configuration", "Estimate", "Explanation", "Profile"]

HOP_SECONDS = 1e-7  # s; a tuple of 128 B through a queue between two threads, with finding work (findings, section 1)
PIECES_PER_THREAD = (0.85, 0.9, 0.95, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 8.0)  # how finely graphs are cut, coarse to fine
BALANCE = 0.15  # of Graham's bound; two cores gave 1.7-1.9 times one with many pieces (findings, section 4)
NEARLY_BEST = 0.98  # a coarser cut is taken if it should give this share of the best
HOP_RANGE = 1e3  # the cost of a hop is sought within this factor of the usual one
HOP_STEPS = 24  # each way
HOP_WONDER = 30.0  # the factor to the usual one that is as unlikely as a standard deviation
BALANCES = (0.0, 0.15, 0.3, 0.5, 0.75, 1.0)  # among which the balance is sought
BALANCE_WONDER = 0.5  # the difference to the usual one that is as unlikely as a standard deviation
PLAUSIBLE = 4.0  # an explanation is worth a look while it is less than two standard deviations from the best one
MISS = 0.05  # relative error of an estimate that is as unlikely as a standard deviation


@dataclass(frozen=True, slots=True)
class Configuration:
    """What can be chosen in a processing element.

    Args:
        threads: scheduler threads.
        queued: operators with a scheduler queue in front.
    """

    threads: int
    queued: frozenset[str]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why more threads don't give as many times the throughput.

    Args:
        hop: cost of a tuple's way through a queue, as a share of all work for one source tuple.
        balance: share of Graham's bound by which threads wait for each other, 0..1 (R. L. Graham, Bounds on
            Multiprocessing Timing Anomalies, SIAM J. Applied Mathematics 17(2), 1969).
    """

    hop: float
    balance: float


@dataclass(slots=True)
class Profile:
    """Samples and rates of the operators under one load."""

    samples: dict[str, float] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)
    total: float = 0.0
    busy: float = 0.0  # CPUs that were busy, in the last period
    reference: float = 0.0  # tuples/s of the sources, in the last period
    effort: float = 0.0  # s of CPU time per tuple, in the last period

    def add(self, observation: Observation, sources: Sequence[str]) -> None:
        """Take the samples of a period."""
        for operator in observation.operators:
            self.samples[operator.name] = self.samples.get(operator.name, 0.0) + operator.samples
            self.rates[operator.name] = operator.rate
        self.total = math.fsum(self.samples.values())
        self.busy = observation.own_cpu
        self.effort = observation.own_cpu / observation.throughput if observation.throughput > 0 else 0.0
        self.reference = max((self.rates.get(source, 0.0) for source in sources), default=0.0)

    @property
    def known(self) -> bool:
        """Whether the profiler told anything."""
        return self.total > 0 and self.busy > 0 and self.reference > 0

    def costs(self) -> dict[str, float]:
        """Return the share of each operator in all work; one sample in all is spread over those never seen."""
        floor = 1.0 / max(1, len(self.samples))
        return {name: (count + floor) / (self.total + 1.0) for name, count in self.samples.items()}

    def hop(self) -> float:
        """Return the usual cost of a hop, as a share of the work that all operators do for one source tuple."""
        return HOP_SECONDS * self.reference / self.busy


class Estimate:
    """Relative throughput of configurations: 1 is one thread that does all work without queues.

    Args:
        profile: costs and rates.
        graph: who feeds whom.
        explanation: cost of hops and balance; None: the usual ones.

    >>> profile = Profile(samples={"source": 0.0, "a": 500.0, "b": 500.0}, total=1000.0, busy=1.0, reference=1e4)
    >>> estimate = Estimate(profile, OperatorGraph(["source", "a", "b"]), Explanation(0.0, 0.0))
    >>> round(estimate.throughput(Configuration(2, frozenset({"b"})), cpus=4))
    2
    """

    def __init__(self, profile: Profile, graph: OperatorGraph, explanation: Explanation | None = None) -> None:
        self._graph = graph
        self.joins = graph.joins  # where pieces meet, and wait for each other if they have no queue
        self._costs = profile.costs()
        self._total = profile.total
        self._rates = {name: rate / profile.reference for name, rate in profile.rates.items()}
        self._pieces: dict[frozenset[str], tuple[tuple[tuple[float, float], ...], float]] = {}
        self._cuts: dict[tuple[float, frozenset[str], frozenset[str]], list[frozenset[str]]] = {}
        self._usual_hop = profile.hop()
        self.explanation = explanation or Explanation(self._usual_hop, BALANCE)

    def throughput(self, configuration: Configuration, cpus: float, by: Explanation | None = None) -> float:
        """Return the estimate: one thread at a time in a piece, so many threads on so many CPUs, none quite in step."""
        by = by or self.explanation
        pieces, hops = self._pieces_of(configuration.queued)
        slowest = max(cost + by.hop * own for cost, own in pieces)
        lanes = self.lanes(configuration, cpus)
        low, high = sorted((slowest, (1 + by.hop * hops) / lanes))
        return 1 / (high + by.balance * (1 - 1 / lanes) * low)

    def lanes(self, configuration: Configuration, cpus: float) -> float:
        """Return how many threads can run at once: those of sources, and scheduler threads that find a queue."""
        threads = len(self._graph.sources) + min(configuration.threads, len(configuration.queued))
        return max(1.0, min(float(threads), cpus))

    def place(
        self,
        threads: int,
        cpus: float,
        movable: frozenset[str],
        fixed: frozenset[str],
        by: Explanation | None = None,
        nearly: float = NEARLY_BEST,
    ) -> frozenset[str]:
        """Return the queues for a number of threads: pieces of equal cost, as few as nearly give the best."""
        options = self.cuts(threads, cpus, movable, fixed)
        given = [self.throughput(Configuration(threads, queued), cpus, by) for queued in options]
        return next(queued for queued, best in zip(options, given, strict=True) if best >= nearly * max(given))

    def cuts(
        self, threads: int, cpus: float, movable: frozenset[str], fixed: frozenset[str]
    ) -> Sequence[frozenset[str]]:
        """Return queues from none to all, coarse to fine."""
        key = (min(len(self._graph.sources) + threads, max(1.0, cpus)), movable, fixed)
        if key not in self._cuts:
            options = [fixed]
            for factor in PIECES_PER_THREAD:
                queued = self._graph.cut(self._costs, 1.0 / (key[0] * factor), movable.__contains__, fixed)
                if queued not in options:
                    options.append(queued)
            if movable | fixed not in options:
                options.append(movable | fixed)
            self._cuts[key] = options
        return self._cuts[key]

    def fitted(self, measured: Sequence[tuple[Configuration, float, float]], cpus: float) -> tuple[Explanation, ...]:
        """Return what explains the measured throughputs and is no wonder, the best first, each with another balance.

        Args:
            measured: configurations, with the logarithm of their throughput and their weight.
            cpus: that there are.
        """
        weights = math.fsum(weight for _, _, weight in measured)
        found = []
        for balance in BALANCES:
            best, explanation = math.inf, Explanation(self._usual_hop, balance)
            for step in range(-HOP_STEPS, HOP_STEPS + 1):
                factor = HOP_RANGE ** (step / HOP_STEPS)
                hop = self._usual_hop * factor
                off = [
                    (value - math.log(self.throughput(configuration, cpus, Explanation(hop, balance))), weight)
                    for configuration, value, weight in measured
                ]
                unit = math.fsum(value * weight for value, weight in off) / weights  # what one thread gives
                misses = math.fsum(weight * (value - unit) ** 2 for value, weight in off) / MISS**2
                misses += (math.log(factor) / math.log(HOP_WONDER)) ** 2 + ((balance - BALANCE) / BALANCE_WONDER) ** 2
                if misses < best:
                    best, explanation = misses, Explanation(hop, balance)
            found.append((best, explanation))
        found.sort(key=lambda one: one[0])
        return tuple(explanation for misses, explanation in found if misses < found[0][0] + PLAUSIBLE)

    def _pieces_of(self, queued: frozenset[str]) -> tuple[tuple[tuple[float, float], ...], float]:
        """Return (cost, hops) of the pieces that can be the dearest, and all hops."""
        if queued not in self._pieces:
            pieces = self._graph.piece_costs(self._costs, queued)
            crossings = self._graph.crossings(self._rates, queued)
            # a piece of few samples may be dearer than it looks: half a standard deviation of their number
            caution = 0.5 if len(pieces) > 1 else 0.0
            ends = [
                (cost * (1 + caution / math.sqrt(cost * self._total + 1)), crossings.get(head, 0.0))
                for head, cost in pieces.items()
            ]
            front: list[tuple[float, float]] = []
            for cost, hops in sorted(ends, reverse=True):  # cheaper ones count only if they hop more
                if not front or hops > front[-1][1]:
                    front.append((cost, hops))
            self._pieces[queued] = (tuple(front), math.fsum(crossings.values()))
        return self._pieces[queued]
