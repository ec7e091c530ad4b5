"""Small analytic plants: what a controller sees of a machine that behaves as scripted.

`CurvePlant`: throughput is a function of the thread count alone, and nothing else is told. `GraphPlant`: operators with
costs, queues with a price per hop, threads and CPUs; tells what a profiler would.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.policy.element.decision import Controller, Decision
from rayelastic.policy.element.observation import Observation, OperatorObservation

PROFILER_HZ = 100.0


def noisy(random_: random.Random, noise: float) -> float:
    return max(0.05, random_.gauss(1.0, noise))


@dataclass
class CurvePlant:
    """All operators queued, none switchable; no profile: the controller has throughput alone."""

    curve: Callable[[int], float]
    maximum: int
    minimum: int = 2
    noise: float = 0.0
    seed: int = 0
    host_cpu: float = 0.0
    threads: int = 0
    period: float = 5.0
    time: float = 0.0
    queued: frozenset[str] = frozenset({"work"})

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.threads = self.threads or min(self.minimum, self.maximum)

    def observe(self) -> Observation:
        self.time += self.period
        operators = (OperatorObservation("work", ThreadingModel.DYNAMIC, switchable=False),)
        return Observation(
            time=self.time,
            period=self.period,
            throughput=self.curve(self.threads) * 1e5 * noisy(self.random, self.noise),
            thread_count=self.threads,
            minimum_threads=self.minimum,
            maximum_threads=self.maximum,
            operators=operators,
            cpu_count=self.maximum,
            own_cpu=float(self.threads),
            host_cpu=self.host_cpu,
        )

    def apply(self, decision: Decision) -> None:
        self.threads = decision.thread_count

    def best(self) -> float:
        return max(self.curve(n) for n in range(min(self.minimum, self.maximum), self.maximum + 1))


@dataclass
class GraphPlant:
    """One PE: costs in seconds per source tuple, one source, operators named in topological order."""

    costs: Mapping[str, float]
    upstream: Mapping[str, Sequence[str]]
    cpus: int = 8
    hop: float = 1e-7  # s a tuple through a queue
    contention: float = 0.0  # growth of the hop per further busy thread
    serial: float = 0.0  # share of all work under one lock
    demand: float = float("inf")  # source tuples/s offered
    other_load: float = 0.0  # CPUs that others take
    minimum: int = 2
    maximum: int = 0
    noise: float = 0.0
    seed: int = 0
    period: float = 5.0
    lag: int = 0  # periods until a change shows in full
    threads: int = 0
    queued: frozenset[str] = frozenset()
    time: float = 0.0
    stuck_ports: frozenset[str] = frozenset()
    history: list[tuple[int, int, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.maximum = self.maximum or self.cpus
        self.threads = self.threads or min(self.minimum, self.maximum)
        self.sources = [name for name in self.costs if not self.upstream.get(name)]
        self.downstream: dict[str, list[str]] = {name: [] for name in self.costs}
        for name, ups in self.upstream.items():
            for up in ups:
                self.downstream[up].append(name)
        self._pieces: dict[object, tuple[dict[str, float], dict[str, float]]] = {}
        # tuples that reach an operator per source tuple: dealt to the branches, and together again where they meet
        self.weight: dict[str, float] = {}
        for name in self.costs:
            ups = self.upstream.get(name, ())
            self.weight[name] = sum(self.weight[up] / len(self.downstream[up]) for up in ups) if ups else 1.0
        self._since_change = 99
        self._before = 0.0

    def pieces(self, queued: frozenset[str]) -> tuple[dict[str, float], dict[str, float]]:
        """Cost of each piece per source tuple, and how many hops it does; shared operators by equal parts."""
        key = (queued, id(self.costs))
        if key not in self._pieces:
            self._pieces[key] = self._cut(queued)
        return self._pieces[key]

    def _cut(self, queued: frozenset[str]) -> tuple[dict[str, float], dict[str, float]]:
        share: dict[str, dict[str, float]] = {}
        out: dict[str, float] = {}
        hops: dict[str, float] = {}
        for name in self.costs:
            ups = list(self.upstream.get(name, ()))
            if not ups or name in queued:
                share[name] = {name: 1.0}
            else:
                share[name] = {}
                for up in ups:
                    for head, part in share[up].items():
                        share[name][head] = share[name].get(head, 0.0) + part / len(ups)
            for head, part in share[name].items():
                out[head] = out.get(head, 0.0) + part * self.costs[name]
        for name in queued:
            hops[name] = hops.get(name, 0.0) + 0.5 * self.weight[name]
            for up in self.upstream[name]:
                for head, part in share[up].items():
                    hops[head] = hops.get(head, 0.0) + 0.5 * part * self.weight[name] / len(self.upstream[name])
        return out, hops

    def rate(self, threads: int, queued: frozenset[str]) -> tuple[float, dict[str, float], float]:
        """Source tuples/s, pieces with hops, and cost of all hops."""
        available = max(1.0, self.cpus - self.other_load)
        lanes = len(self.sources) + (min(threads, len(queued)) if queued else 0)
        hop = self.hop * (1 + self.contention * max(0, min(lanes, available) - 1))
        pieces, crossings = self.pieces(queued)
        pieces = {head: cost + hop * crossings.get(head, 0.0) for head, cost in pieces.items()}
        hops = hop * sum(crossings.values())
        total = sum(self.costs.values()) + hops
        # one piece is run by one thread at a time; so many threads on so many CPUs; a lock
        x = min(1 / max(pieces.values()), min(lanes, available) / total)
        x = min(x, 1 / max(self.costs.values()))
        if self.serial:
            x = min(x, 1 / (self.serial * total))
        return min(x, self.demand), pieces, hops

    def observe(self) -> Observation:
        self.time += self.period
        x, pieces, hops = self.rate(self.threads, self.queued)
        if self._since_change < self.lag:
            x = self._before + (x - self._before) * (self._since_change + 0.5) / (self.lag + 0.5)
        self._since_change += 1
        self.history.append((self.threads, len(self.queued), x))
        measured = x * noisy(self.random, self.noise)
        total = sum(self.costs.values()) + hops
        own = x * total
        busy_sources = sum(x * pieces[s] for s in self.sources)
        idle = 1 - min(self.threads, max(0.0, own - busy_sources)) / self.threads
        limited = x >= self.demand
        slowest = max(pieces.values())
        operators = []
        for name, cost in self.costs.items():
            is_source = name in self.sources
            model = ThreadingModel.DYNAMIC if name in self.queued else ThreadingModel.MANUAL
            samples = self._poisson(PROFILER_HZ * self.period * x * cost)
            fill = 0.0
            if name in self.queued:
                fill = 0.05 if limited or pieces[name] < 0.9 * slowest else 0.95
            operators.append(
                OperatorObservation(
                    name,
                    model,
                    not is_source and name not in self.stuck_ports,
                    measured * self.weight[name],
                    samples,
                    fill,
                )
            )
        waiting = max(0.0, len(self.sources) - busy_sources) if self.queued and not limited else 0.0
        return Observation(
            time=self.time,
            period=self.period,
            throughput=measured * len(self.costs),
            thread_count=self.threads,
            minimum_threads=self.minimum,
            maximum_threads=self.maximum,
            operators=tuple(operators),
            system_samples=self._poisson(PROFILER_HZ * self.period * x * hops),
            idle=idle,
            blocked=waiting / (self.threads + len(self.sources)),
            cpu_count=self.cpus,
            own_cpu=own,
            host_cpu=min(1.0, (own + self.other_load) / self.cpus),
        )

    def _poisson(self, mean: float) -> int:
        return max(0, round(self.random.gauss(mean, mean**0.5))) if mean > 0 else 0

    def apply(self, decision: Decision) -> None:
        queued = set(self.queued)
        for name, model in decision.models.items():
            if name in self.stuck_ports:
                continue
            if model is ThreadingModel.MANUAL:
                queued.discard(name)
            else:
                queued.add(name)
        if decision.thread_count != self.threads or queued != self.queued:
            self._before = self.rate(self.threads, self.queued)[0]
            self._since_change = 0
        self.threads, self.queued = decision.thread_count, frozenset(queued)


Plant = CurvePlant | GraphPlant


def play(plant: Plant, controller: Controller, periods: int) -> list[Decision]:
    decisions = []
    for _ in range(periods):
        decision = controller.step(plant.observe())
        plant.apply(decision)
        decisions.append(decision)
    return decisions


def threads_of(decisions: Sequence[Decision], start: int) -> list[int]:
    """The thread levels, each once while it holds."""
    levels = [start]
    for decision in decisions:
        if decision.thread_count != levels[-1]:
            levels.append(decision.thread_count)
    return levels


def chain(costs: Sequence[float]) -> tuple[dict[str, float], dict[str, tuple[str, ...]]]:
    """A source without cost to speak of, then one operator after the other."""
    names = ["source"] + [f"op{i}" for i in range(len(costs))]
    return dict(zip(names, [1e-9, *costs], strict=True)), {b: (a,) for a, b in zip(names, names[1:], strict=False)}


def fan(width: int, cost: float, sink: float) -> tuple[dict[str, float], dict[str, tuple[str, ...]]]:
    """A source that deals tuples to workers, and a sink; each worker gets its part of the tuples."""
    workers = [f"work{i}" for i in range(width)]
    costs = {"source": 1e-9} | dict.fromkeys(workers, cost / width) | {"sink": sink}
    return costs, dict.fromkeys(workers, ("source",)) | {"sink": tuple(workers)}


def skewed(operators: int, seed: int, unit: float = 1e-9) -> list[float]:
    """10 % of the operators at 10,000, 30 % at 100, the rest at 1 unit, in random order (Middleware'19 4.1)."""
    costs = [1e4] * (operators // 10) + [1e2] * (3 * operators // 10)
    costs += [1.0] * (operators - len(costs))
    random.Random(seed).shuffle(costs)
    return [cost * unit for cost in costs]


def with_costs(plant: GraphPlant, costs: Sequence[float]) -> None:
    """Change the load of a chain while it runs."""
    plant.costs = chain(costs)[0]


__all__ = [
    "CurvePlant",
    "GraphPlant",
    "chain",
    "fan",
    "noisy",
    "play",
    "replace",
    "skewed",
    "threads_of",
    "with_costs",
]
