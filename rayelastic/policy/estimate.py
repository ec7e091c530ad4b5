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

__all__ = ["Configuration", "Estimate", "Profile"]

HOP_SECONDS = 1e-7  # s; a tuple of 128 B through a queue between two threads, with finding work (findings, section 1)
PIECES_PER_THREAD = (0.85, 0.9, 0.95, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 8.0)  # how finely graphs are cut, coarse to fine
BALANCE = 0.15  # of Graham's bound; two cores gave 1.7-1.9 times one with many pieces (findings, section 4)
NEARLY_BEST = 0.98  # a coarser cut is taken if it should give this share of the best
HALVINGS = 24  # of the interval in which the cost of a hop is sought
HOP_RANGE = 1e3  # the cost of a hop is sought within this factor of the usual one


@dataclass(frozen=True, slots=True)
class Configuration:
    """What can be chosen in a processing element.

    Args:
        threads: scheduler threads.
        queued: operators with a scheduler queue in front.
    """

    threads: int
    queued: frozenset[str]


@dataclass(slots=True)
class Profile:
    """Samples and rates of the operators under one load."""

    samples: dict[str, float] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)
    total: float = 0.0
    busy: float = 0.0  # CPUs that were busy, in the last period
    reference: float = 0.0  # tuples/s of the sources, in the last period

    def add(self, observation: Observation, sources: Sequence[str]) -> None:
        """Take the samples of a period."""
        for operator in observation.operators:
            self.samples[operator.name] = self.samples.get(operator.name, 0.0) + operator.samples
            self.rates[operator.name] = operator.rate
        self.total = math.fsum(self.samples.values())
        self.busy = observation.own_cpu
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
        hop: cost of a hop as a share of all work for one source tuple; None: the usual one.
        balance: share of Graham's bound by which threads wait for each other, 0..1 (R. L. Graham, Bounds on
            Multiprocessing Timing Anomalies, SIAM J. Applied Mathematics 17(2), 1969).

    >>> profile = Profile(samples={"source": 0.0, "a": 500.0, "b": 500.0}, total=1000.0, busy=1.0, reference=1e4)
    >>> estimate = Estimate(profile, OperatorGraph(["source", "a", "b"]), hop=0.0, balance=0.0)
    >>> round(estimate.throughput(Configuration(2, frozenset({"b"})), cpus=4))
    2
    """

    def __init__(
        self, profile: Profile, graph: OperatorGraph, hop: float | None = None, balance: float = BALANCE
    ) -> None:
        self._graph = graph
        self._costs = profile.costs()
        self._total = profile.total
        self._rates = {name: rate / profile.reference for name, rate in profile.rates.items()}
        self._pieces: dict[frozenset[str], tuple[dict[str, float], dict[str, float]]] = {}
        self._usual_hop = profile.hop()
        self.hop = self._usual_hop if hop is None else hop
        self.balance = balance

    def throughput(
        self, configuration: Configuration, cpus: float, hop: float | None = None, balance: float | None = None
    ) -> float:
        """Return the estimate: one thread at a time in a piece, so many threads on so many CPUs, none quite in step."""
        hop = self.hop if hop is None else hop
        balance = self.balance if balance is None else balance
        pieces, crossings = self._pieces_of(configuration.queued)
        slowest = max(cost + hop * crossings.get(head, 0.0) for head, cost in pieces.items())
        lanes = self.lanes(configuration, cpus)
        low, high = sorted((slowest, (1 + hop * math.fsum(crossings.values())) / lanes))
        return 1 / (high + balance * (1 - 1 / lanes) * low)

    def lanes(self, configuration: Configuration, cpus: float) -> float:
        """Return how many threads can run at once: those of sources, and scheduler threads that find a queue."""
        threads = len(self._graph.sources) + min(configuration.threads, len(configuration.queued))
        return max(1.0, min(float(threads), cpus))

    def place(
        self, threads: int, cpus: float, movable: frozenset[str], fixed: frozenset[str], hop: float | None = None
    ) -> frozenset[str]:
        """Return the queues for a number of threads: pieces of equal cost, as few as nearly give the best."""
        lanes = min(len(self._graph.sources) + threads, max(1.0, cpus))
        options = [fixed]
        for factor in PIECES_PER_THREAD:
            queued = self._graph.cut(self._costs, 1.0 / (lanes * factor), movable.__contains__, fixed)
            if queued not in options:
                options.append(queued)
        everything = movable | fixed
        if everything not in options:
            options.append(everything)
        given = [self.throughput(Configuration(threads, queued), cpus, hop) for queued in options]
        return next(queued for queued, best in zip(options, given, strict=True) if best >= NEARLY_BEST * max(given))

    def calibrated(
        self, base: Configuration, seen: Configuration, ratio: float, effort: float | None, cpus: float
    ) -> tuple[float, float]:
        """Return the cost of a hop and the balance that explain two measured throughputs.

        Args:
            base: the configuration with fewer queues.
            seen: the other one.
            ratio: throughput of `seen` to that of `base`.
            effort: CPU time per tuple of `seen` to that of `base`; None: not told. What throughput misses beyond it is
                put down to threads that wait for each other.
            cpus: that there are.
        """
        hop = self._hop_for(base, seen, ratio, 0.0, cpus)
        if effort is None:
            return hop, self.balance
        more = math.fsum(self._pieces_of(seen.queued)[1].values()) - math.fsum(self._pieces_of(base.queued)[1].values())
        least = self._usual_hop / HOP_RANGE
        hop = min(hop, max(least, (effort - 1) / more)) if more > 0 else hop
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            balance = (low + high) / 2
            if self.throughput(seen, cpus, hop, balance) / self.throughput(base, cpus, hop, balance) > ratio:
                low = balance
            else:
                high = balance
        return (hop, low) if high < 1.0 else (self._hop_for(base, seen, ratio, 1.0, cpus), 1.0)

    def _hop_for(self, base: Configuration, seen: Configuration, ratio: float, balance: float, cpus: float) -> float:
        low, high = math.log(self._usual_hop / HOP_RANGE), math.log(self._usual_hop * HOP_RANGE)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            hop = math.exp(middle)
            if self.throughput(seen, cpus, hop, balance) / self.throughput(base, cpus, hop, balance) > ratio:
                low = middle
            else:
                high = middle
        return math.exp(low)

    def _pieces_of(self, queued: frozenset[str]) -> tuple[dict[str, float], dict[str, float]]:
        """Return the cost of each piece and its hops."""
        if queued not in self._pieces:
            pieces = self._graph.piece_costs(self._costs, queued)
            # a piece of few samples may be dearer than it looks: half a standard deviation of their number
            costs = {head: cost * (1 + 0.5 / math.sqrt(cost * self._total + 1)) for head, cost in pieces.items()}
            crossings = self._graph.crossings(self._rates, queued)
            self._pieces[queued] = (costs if len(pieces) > 1 else pieces, crossings)
        return self._pieces[queued]
