"""Estimate the throughput of a configuration from the operators' measured costs; place queues for a thread count.

In the manner of DS2 (V. Kalavri et al., Three Steps Is All You Need, OSDI 2018): true costs instead of trial and error.
An estimate only says what to try next; whether it is kept is measured. Must not know time, noise or history.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Self

from rayelastic.policy.element.guided.explanation import (
    HOP_SECONDS,
    LOCK_SECONDS,
    USUAL_BALANCE,
    USUAL_GROWTH,
    Explanation,
    plausible,
)
from rayelastic.policy.element.observation import Observation
from rayelastic.policy.element.pieces import Meeting, OperatorGraph

__all__ = ["Configuration", "Estimate", "Profile"]

PIECES_PER_THREAD = (
    0.5,
    0.65,
    0.85,
    0.9,
    0.95,
    1.0,
    1.25,
    1.5,
    2.0,
    3.0,
    4.0,
    8.0,
)  # how finely graphs are cut, coarse to fine
HELD = 0.25  # share of a hop during which other producers of the queue wait
RANDOM = 4.0  # norm of two times of which either may be the longer one for a while; a fifth longer if they are equal
NEARLY_BEST = 0.98  # a coarser cut is taken if its estimate is at least this share of the best


@dataclass(frozen=True, slots=True)
class Configuration:
    """What can be chosen in a PE.

    Args:
        threads: scheduler threads.
        queued: operators with a scheduler queue in front.
    """

    threads: int
    queued: frozenset[str]

    @property
    def counts(self) -> dict[str, int]:
        """How many threads and queues there are, as reasons have them."""
        return {"threads": self.threads, "queues": len(self.queued)}


@dataclass(slots=True)
class Profile:
    """Samples and rates of the operators under one load."""

    samples: dict[str, float] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)
    total: float = 0.0
    busy: float = 0.0  # CPUs that were busy, in the last period
    reference: float = 0.0  # tuples/s of the sources, in the last period
    effort: float = 0.0  # samples per tuple, in the last period: the work of operators, hops left out
    given: dict[str, float] = field(default_factory=dict)  # tuples/s that each emits, where measured

    def add(self, observation: Observation, sources: Sequence[str]) -> None:
        """Take the samples of a period."""
        for operator in observation.operators:
            self.samples[operator.name] = self.samples.get(operator.name, 0.0) + operator.samples
            self.rates[operator.name] = operator.rate
            if operator.given is not None:
                self.given[operator.name] = operator.given
        self.total = math.fsum(self.samples.values())
        self.busy = observation.own_cpu
        tuples = observation.throughput * observation.period
        self.effort = observation.samples / tuples if tuples > 0 else 0.0
        self.reference = max((self.rates.get(source, 0.0) for source in sources), default=0.0)

    @property
    def known(self) -> bool:
        """Whether the profile has costs and rates to estimate from."""
        return self.total > 0 and self.busy > 0 and self.reference > 0

    def costs(self) -> dict[str, float]:
        """Return the share of each operator in all work; one sample in all is spread over those never seen."""
        floor = 1.0 / max(1, len(self.samples))
        return {name: (count + floor) / (self.total + 1.0) for name, count in self.samples.items()}

    def usual(self) -> Explanation:
        """Return the usual costs of running on several threads, as shares of all work for one source tuple."""
        share = self.reference / self.busy
        return Explanation(HOP_SECONDS * share, USUAL_BALANCE, USUAL_GROWTH, LOCK_SECONDS * share)


@dataclass(frozen=True, slots=True)
class _Pieces:
    """What a placement of queues makes of a graph.

    Args:
        costliest: (cost, hops) of the pieces that can be the most expensive one.
        hops: of all pieces.
        meetings: where several pieces take their turns.
    """

    costliest: tuple[tuple[float, float], ...]
    hops: float
    meetings: tuple[Meeting, ...]


class Estimate:
    """Relative throughput of configurations: 1 is one thread that does all work without queues.

    Args:
        profile: costs and rates.
        graph: who feeds whom.
        explanation: what holds threads back; None: the usual.

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
        self._pieces: dict[frozenset[str], _Pieces] = {}
        self._cuts: dict[tuple[float, frozenset[str], frozenset[str]], list[frozenset[str]]] = {}
        self._splits: dict[tuple[frozenset[str], frozenset[str]], str | None] = {}
        self.usual = profile.usual()
        self.explanation = explanation or self.usual

    def explained(self, explanation: Explanation) -> Self:
        """Return the same with another explanation; what is known of placements is shared."""
        other = copy(self)
        other.explanation = explanation
        return other

    def throughput(self, configuration: Configuration, cpus: float, by: Explanation | None = None) -> float:
        """Return the estimate: one thread at a time in a piece, so many threads on so many CPUs, none quite in step."""
        by = by or self.explanation
        cut = self._pieces_of(configuration.queued)
        lanes = self.lanes(configuration, cpus)
        hop = by.hop * (1 + by.growth * (lanes - 1))
        slowest = max(cost + hop * own for cost, own in cut.costliest)
        low, high = sorted((slowest, (1 + hop * cut.hops) / lanes))
        together = high + by.balance * (1 - 1 / lanes) * low
        return 1 / max((self._turns(one, hop, by.lock, lanes, together) for one in cut.meetings), default=together)

    @staticmethod
    def _turns(meeting: Meeting, hop: float, lock: float, lanes: float, time: float) -> float:
        """Return the time per source tuple where threads take turns, if that is longer than without.

        Those who don't wait work: of n threads n (1 - time / turn) wait, and each of them makes a turn longer.
        """
        threads = min(float(meeting.pieces), lanes)
        each = meeting.rate * lock
        held = meeting.cost + (meeting.rate * hop * HELD if meeting.queued else 0.0)
        time = (time**RANDOM + held**RANDOM) ** (1 / RANDOM)
        crowded = held + each * (threads - 1)
        root = crowded**2 - 4 * each * threads * time
        return max(time, (crowded + math.sqrt(root)) / 2) if crowded > time and root > 0 else time

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
    ) -> frozenset[str]:
        """Return the queues for a number of threads: pieces of equal cost, as few as come near the best estimate."""
        options = self.cuts(threads, cpus, movable, fixed)
        given = [self.throughput(Configuration(threads, queued), cpus, by) for queued in options]
        return next(queued for queued, best in zip(options, given, strict=True) if best >= NEARLY_BEST * max(given))

    def finer(self, queued: frozenset[str], movable: frozenset[str], more: int) -> frozenset[str]:
        """Return the queues and up to `more` further ones, each of which cuts the then most expensive piece.

        >>> profile = Profile(samples={"source": 0.0, "a": 500.0, "b": 500.0}, total=1000.0, busy=1.0, reference=1e4)
        >>> estimate = Estimate(profile, OperatorGraph(["source", "a", "b"]))
        >>> sorted(estimate.finer(frozenset(), frozenset({"a", "b"}), 1))
        ['b']
        """
        for _ in range(more):
            if (queued, movable) not in self._splits:
                self._splits[queued, movable] = self._graph.split(self._costs, queued, movable.__contains__)
            name = self._splits[queued, movable]
            if name is None:
                break
            queued |= {name}
        return queued

    def costliest(self, names: Iterable[str]) -> list[str]:
        """Return operators by their work, the most first."""
        return sorted(names, key=lambda name: (-self._costs[name], name))

    def costly(self, hops: float) -> frozenset[str]:
        """Return the operators that cost more than so many hops of what they take."""
        hop = self.usual.hop * hops
        return frozenset(name for name, cost in self._costs.items() if cost > hop * self._rates.get(name, 0.0))

    def most(self, cpus: float) -> float:
        """Return what no configuration exceeds: all CPUs at work, none in an operator that another one is in."""
        return min(max(1.0, cpus), 1 / max(self._costs.values()))

    def cuts(
        self, threads: int, cpus: float, movable: frozenset[str], fixed: frozenset[str]
    ) -> Sequence[frozenset[str]]:
        """Return queues from none to all, coarse to fine; each also with and without one wherever pieces may meet."""
        key = (min(len(self._graph.sources) + threads, max(1.0, cpus)), movable, fixed)
        if key not in self._cuts:
            alone = sorted(self._graph.shared & movable, key=self._graph.operators.index)
            options = [fixed, *(fixed | {name} for name in alone if name not in fixed)]
            joins = self.joins & movable
            ways = [(movable, fixed)] + ([(movable - joins, fixed), (movable, fixed | joins)] if joins else [])
            for factor in PIECES_PER_THREAD:
                most = 1.0 / (key[0] * factor)
                for may, given in ways:
                    queued = self._graph.cut(self._costs, most, may.__contains__, given)
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

        def misses(explanation: Explanation) -> float:
            off = [
                (value - math.log(self.throughput(configuration, cpus, explanation)), weight)
                for configuration, value, weight in measured
            ]
            unit = math.fsum(value * weight for value, weight in off) / weights  # throughput of one thread
            return math.fsum(weight * (value - unit) ** 2 for value, weight in off)

        return plausible(misses, self.usual)

    def _pieces_of(self, queued: frozenset[str]) -> _Pieces:
        if queued not in self._pieces:
            pieces = self._graph.piece_costs(self._costs, queued)
            crossings = self._graph.crossings(self._rates, queued)
            # a piece of few samples may be more expensive than it looks: half a standard deviation of their number
            caution = 0.5 if len(pieces) > 1 else 0.0
            ends = [
                (cost * (1 + caution / math.sqrt(cost * self._total + 1)), crossings.get(head, 0.0))
                for head, cost in pieces.items()
            ]
            front: list[tuple[float, float]] = []
            for cost, hops in sorted(ends, reverse=True):  # cheaper ones count only if they hop more
                if not front or hops > front[-1][1]:
                    front.append((cost, hops))
            meetings = _costliest(self._graph.meetings(self._costs, self._rates, queued)) if self.joins else ()
            self._pieces[queued] = _Pieces(tuple(front), math.fsum(crossings.values()), meetings)
        return self._pieces[queued]


def _costliest(meetings: Sequence[Meeting]) -> tuple[Meeting, ...]:
    """Leave out those that take no longer than another one whatever a lock costs."""
    found: list[Meeting] = []
    for one in sorted(meetings, key=lambda one: (-one.cost, -one.rate, -one.pieces)):
        if not any(
            (other.queued or not one.queued) and other.rate >= one.rate and other.pieces >= one.pieces
            for other in found
        ):
            found.append(one)
    return tuple(found)
