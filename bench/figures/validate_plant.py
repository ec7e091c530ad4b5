"""The plant by events beside jobs of the real engine at 1 and 2 threads, over a grid of graphs, payloads and costs.

    python -m bench.figures.validate_plant [--small] [-o FOLDER]

For a quiet machine. The error to reach is 15 % in 80 % of the cases. What an operator of each cost and the source take
by themselves is measured first, so what is predicted is what queues and threads make of them. What a queue costs the
plant was fitted to an earlier run of this grid. It knows no copies of payloads.
"""

from __future__ import annotations

import itertools
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.elastic.graphs import shaped
from bench.elastic.live import Live, Setting
from bench.figures.__main__ import main
from bench.figures.figure import Claim, Figure, Kind, Row
from bench.figures.measured import PERIOD
from bench.harness import alternated, medians
from bench.plant.events.plant import Configuration, EventPlant, EventSettings
from bench.plant.graph import PlantGraph, PlantOperator, Stream
from rayelastic.runtime.watch.machine_load import available_cpus
from rayelastic.topologies import shapes

TARGET = 0.15  # error
MOST = 0.8  # share of the cases that are to be within it
MEDIAN = 0.1  # error of the median case
PROBE_OPERATORS = 10  # of one kind, by which what one takes is timed
FILL = 10.0  # s that queues may take to fill
COSTS = (1, 100, 1000)  # multiplications
PAYLOADS = (0, 16384)  # bytes
SHAPES = {
    "pipeline 10": shapes.pipeline(10),
    "pipeline 20": shapes.pipeline(20),
    "pipeline 100": shapes.pipeline(100),
    "tree": shapes.mixed(4, 4),
}


@dataclass(frozen=True, slots=True)
class Case:
    """One point of the grid: what the plant says, and what was measured, in tuples/s at the sink."""

    name: str
    threads: int
    guess: float
    measured: float

    @property
    def error(self) -> float:
        """Relative error of the plant."""
        return self.guess / self.measured - 1


def settings(names: list[str]) -> Iterator[tuple[str, Setting]]:
    """Yield what is tried on operators in their order."""
    queued = {
        "manual": [],
        "1 queue": [names[len(names) // 2]],
        "4 queues": names[:: max(1, len(names) // 4)],
        "all": names,
    }
    for (placement, chosen), threads in itertools.product(queued.items(), (1, 2)):
        if chosen or threads == 1:
            yield f"{placement}, {threads} threads", Setting(threads, frozenset(chosen))


def basics(seconds: float, rounds: int) -> tuple[dict[tuple[int, int], float], dict[int, float]]:
    """Ns per tuple of an operator by multiplications and payload, and of the source by payload."""

    def alone(operators: int, flops: int, payload: int) -> float:
        with Live(shaped(shapes.pipeline(operators), flops, payload), PERIOD) as live:
            live.stop_adapting()
            manual = Setting(1, frozenset())
            return 1e9 / medians(alternated(rounds, {"": lambda: live.rate(manual, seconds, "sink")}))[""]

    source = {payload: alone(0, 1, payload) for payload in PAYLOADS}
    took = {
        (flops, payload): max(0.0, alone(PROBE_OPERATORS, flops, payload) - source[payload]) / PROBE_OPERATORS
        for flops, payload in itertools.product(COSTS, PAYLOADS)
    }
    return took, source


def cases(shape: str, flops: int, payload: int, cost: float, source: float, seconds: float, rounds: int) -> list[Case]:
    """Measure a graph with all settings, in turns, beside what the plant says."""
    with Live(shaped(SHAPES[shape], flops, payload), PERIOD) as live:
        live.stop_adapting()
        tried = dict(settings(live.movable))
        sides = {name: lambda one=one: live.rate(one, seconds, "sink", FILL) for name, one in tried.items()}
        rates = medians(alternated(rounds, sides))
    graph = planted(SHAPES[shape], cost, source)
    numbers = {operator.name: number for number, operator in enumerate(graph.operators)}
    plant = EventPlant(graph, EventSettings(available_cpus()))
    found = []
    for name, one in tried.items():
        played = plant.played(Configuration(one.threads, frozenset(numbers[each] for each in one.queued)))
        found.append(
            Case(f"{shape}, {flops} FLOP, {payload} B, {name}", one.threads, played.rates[numbers["sink"]], rates[name])
        )
        print(f"  {found[-1].name}: {rates[name]:,.0f} tuples/s", flush=True)
    return found


def planted(shape: Sequence[Sequence[int]], cost: float, source: float) -> PlantGraph:
    """Return the plant's graph of a shape."""
    inner = (PlantOperator(f"op{number}", cost) for number in range(1, len(shape)))
    streams = (Stream(tail, head) for head, tails in enumerate(shape, start=1) for tail in tails)
    return PlantGraph((PlantOperator("source", source, source=True), *inner, PlantOperator("sink")), tuple(streams))


def figure(small: bool) -> Figure:
    """Measure and compare."""
    seconds, rounds = (0.1, 1) if small else (0.5, 3)
    took, source = basics(seconds, rounds)
    print(f"source {', '.join(f'{p} B: {ns:.1f} ns' for p, ns in source.items())}")
    print(f"operator {', '.join(f'{f} FLOP, {p} B: {ns:.1f} ns' for (f, p), ns in took.items())}", flush=True)
    names, flops = (("pipeline 20",), (100,)) if small else (("pipeline 10", "pipeline 100", "tree"), COSTS)
    found = [
        case
        for shape, f, p in itertools.product(names, flops, PAYLOADS)
        for case in cases(shape, f, p, took[f, p], source[p], seconds, rounds)
    ]
    rows: list[Row] = [
        {"case": one.name, "threads": one.threads, "measured": one.measured, "events": one.guess, "error": one.error}
        for one in found
    ]
    sizes = sorted(abs(one.error) for one in found)
    within, median = sum(size <= TARGET for size in sizes), statistics.median(sizes)
    worst = max(found, key=lambda one: abs(one.error))
    claim = Claim(
        "SIM",
        f"the plant by events: at least {MOST:.0%} of cases within {TARGET:.0%}, median error {MEDIAN:.0%}",
        f"{within} of {len(sizes)} ({within / len(sizes):.0%}), median {median:.0%}, worst {worst.error:+.0%} "
        f"({worst.name})",
        within >= MOST * len(sizes) and median <= MEDIAN,
        Kind.FITTED,
    )

    return Figure("validate_plant", rows, [claim], Kind.MEASURED)


if __name__ == "__main__":
    sys.exit(main(["validate_plant", *sys.argv[1:]]))
