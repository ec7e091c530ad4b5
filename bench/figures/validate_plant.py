"""Both plants beside real elements at 1 and 2 threads, over a grid of graphs, payloads, costs and placements.

    python -m bench.figures.validate_plant [--small] [--micro FILE] [--fit] [-o FOLDER]

For a quiet machine. The error to reach is 15 % in 80 % of the cases. What an operator of each cost and the source take
by themselves is measured first, so what is predicted is what queues and threads make of them. The constants of the
plant by formula come from `bench.plant.constants`, or from the table of `bench/micro` given by --micro; the plant by
events has its own, of which what a queue costs was fitted to an earlier run, and knows no copies of payloads. With
--fit, constants of the former that fit this grid better are searched and printed as JSON that `bench.plant.calibration`
reads.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.figures.figure import Claim, Figure, Kind, Row, write_table
from bench.figures.real import QUEUE_RECORDS, RealGraph, alternated
from bench.plant.calibration import calibrated
from bench.plant.constants import ENGINE, LAPTOP, Machine, PerformanceConstants
from bench.plant.events.plant import Configuration, EventPlant, EventSettings
from bench.plant.graph import PlantGraph, PlantOperator, Stream, pipeline
from bench.plant.segments import Models, segments
from bench.plant.steady_state import steady_state
from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.runtime.watch.machine_load import available_cpus

ROOT = Path(__file__).resolve().parent.parent.parent
TARGET = 0.15  # error
MOST = 0.8  # share of the cases that are to be within it
MEDIAN = 0.1  # error of the median case
PROBE_OPERATORS = 10  # of one kind, by which what one takes is timed
COSTS = (1, 100, 1000)  # multiplications
PAYLOADS = (0, 16384)  # bytes
RECORD = {False: 8, True: 24}  # bytes of a record without and with a payload
FITTED = ("call", "hop", "transfer", "visit", "balance", "copy_per_byte", "lock")
FACTORS = (0.5, 0.8, 0.95, 1.05, 1.25, 2.0)  # by which a fit changes a constant
FIT_ROUNDS = 20


@dataclass(frozen=True, slots=True)
class Case:
    """One point of the grid."""

    name: str
    real: RealGraph
    graph: PlantGraph  # with costs
    threads: int
    models: Models


def tree(payload: int) -> PlantGraph:
    """Return a source whose tuples go to four chains of four operators, and from all of them to one sink."""
    operators = [PlantOperator("source", payload=payload, source=True)]
    streams = []
    ends = []
    for _ in range(4):
        previous = 0
        for _ in range(4):
            operators.append(PlantOperator(f"op{len(operators)}", payload=payload))
            streams.append(Stream(previous, len(operators) - 1))
            previous = len(operators) - 1
        ends.append(previous)
    operators.append(PlantOperator("sink"))
    streams += [Stream(end, len(operators) - 1) for end in ends]
    return PlantGraph(tuple(operators), tuple(streams))


def grid(small: bool, took: dict[tuple[int, int], float], source: dict[int, float]) -> list[Case]:
    """Return all cases.

    Args:
        small: a few of them.
        took: ns per tuple of an operator, by multiplications and payload.
        source: ns per tuple of the source, by payload.
    """
    shapes = {"pipeline 20": 20} if small else {"pipeline 10": 10, "pipeline 100": 100, "tree": 0}
    cases = []
    for (shape, count), flops, payload, deep in itertools.product(
        shapes.items(), (100,) if small else COSTS, PAYLOADS, (False, True)
    ):
        if deep and not payload:
            continue
        bare = pipeline([0.0] * count, payload=payload) if count else tree(payload)
        inner = [n for n, o in enumerate(bare.operators) if not o.source and n not in bare.sinks]
        real = RealGraph(bare, dict.fromkeys(inner, flops), payload, deep)
        costs = [
            source[payload] if o.source else took[flops, payload] * (n in inner) for n, o in enumerate(bare.operators)
        ]
        graph = with_records(bare.with_costs(costs), RECORD[payload > 0])
        for (placement, models), threads in itertools.product(placements(bare), (1, 2)):
            if placement == "manual" and threads == 2:
                continue
            copied = " copied" if deep else ""
            name = f"{shape}, {flops} FLOP, {payload} B{copied}, {placement}, {threads} threads"
            cases.append(Case(name, real, graph, threads, models))
    return cases


def with_records(graph: PlantGraph, record: int) -> PlantGraph:
    """Return the graph with records of so many bytes."""
    return PlantGraph(tuple(replace(operator, record=record) for operator in graph.operators), graph.streams)


def placements(graph: PlantGraph) -> list[tuple[str, Models]]:
    ports = [number for number, operator in enumerate(graph.operators) if not operator.source]

    def queued(chosen: Sequence[int]) -> Models:
        return tuple(
            ThreadingModel.DYNAMIC if n in chosen else ThreadingModel.MANUAL for n in range(len(graph.operators))
        )

    middle, quarter = ports[len(ports) // 2], ports[:: max(1, len(ports) // 4)]
    return [
        ("manual", queued([])),
        ("1 queue", queued([middle])),
        ("4 queues", queued(quarter)),
        ("all", queued(ports)),
    ]


def predicted(case: Case, machine: Machine, constants: PerformanceConstants) -> float:
    """Tuples/s at the sinks by the plant."""
    engine = replace(constants, deep_copy=case.real.deep_copy, queue=QUEUE_RECORDS)
    found = steady_state(case.graph, segments(case.graph, case.models), machine, engine, case.threads)
    return found.rate * sum(float(case.graph.rates[sink]) for sink in case.graph.sinks)


def played(case: Case, cores: int) -> float | None:
    """Tuples/s at the sinks by the plant of events; None: it knows nothing of copies."""
    if case.real.deep_copy:
        return None
    queued = frozenset(number for number, model in enumerate(case.models) if model is not ThreadingModel.MANUAL)
    found = EventPlant(case.graph, EventSettings(cores)).played(Configuration(case.threads, queued))
    return sum(found.rates[sink] for sink in case.graph.sinks)


def basics(seconds: float, rounds: int) -> tuple[dict[tuple[int, int], float], dict[int, float]]:
    """Ns per tuple of an operator by multiplications and payload, and of the source by payload."""
    source, took = {}, {}
    for payload in PAYLOADS:
        empty = _source_and_sink(payload)
        manual = tuple(ThreadingModel.MANUAL for _ in empty.operators)
        source[payload] = 1e9 / alternated(RealGraph(empty, {}, payload), [(1, manual)], seconds, rounds)[0]
        for flops in COSTS:
            graph = pipeline([0.0] * PROBE_OPERATORS, payload=payload)
            manual = tuple(ThreadingModel.MANUAL for _ in graph.operators)
            probe = RealGraph(graph, dict.fromkeys(range(1, PROBE_OPERATORS + 1), flops), payload)
            whole = 1e9 / alternated(probe, [(1, manual)], seconds, rounds)[0]
            took[flops, payload] = max(0.0, whole - source[payload]) / PROBE_OPERATORS
    return took, source


def _source_and_sink(payload: int) -> PlantGraph:
    operators = (PlantOperator("source", payload=payload, source=True), PlantOperator("sink"))
    return PlantGraph(operators, (Stream(0, 1),))


def measure(cases: Sequence[Case], seconds: float, rounds: int) -> list[float]:
    """Tuples/s of the cases; those of one graph take turns."""
    found: dict[str, float] = {}
    for _, group in itertools.groupby(cases, key=lambda case: id(case.real)):
        members = list(group)
        rates = alternated(members[0].real, [(case.threads, case.models) for case in members], seconds, rounds)
        for case, rate in zip(members, rates, strict=True):
            found[case.name] = rate
            print(f"  {case.name}: {rate:,.0f} tuples/s", flush=True)
    return [found[case.name] for case in cases]


def error(guess: float, seen: float) -> float:
    return guess / seen - 1 if seen > 0 else math.inf


def fitted(
    cases: Sequence[Case], seen: Sequence[float], machine: Machine, constants: PerformanceConstants
) -> PerformanceConstants:
    """Change one constant at a time while the mean error falls."""

    def cost(with_: PerformanceConstants) -> float:
        pairs = zip(cases, seen, strict=True)
        return statistics.fmean(
            abs(math.log(predicted(case, machine, with_) / max(rate, 1e-9))) for case, rate in pairs
        )

    best, least = constants, cost(constants)
    for _ in range(FIT_ROUNDS):
        tried = [replace(best, **{name: getattr(best, name) * factor}) for name in FITTED for factor in FACTORS]
        costs = [cost(one) for one in tried]
        if min(costs) >= least * (1 - 1e-3):
            break
        least = min(costs)
        best = tried[costs.index(least)]
    return best


def accuracy(which: str, cases: Sequence[Case], errors: Sequence[float | None], fitted_to: str = "") -> Claim:
    """How near a plant comes.

    Args:
        which: plant.
        cases: all of them.
        errors: relative, of each; None: the plant says nothing of it.
        fitted_to: what its constants were fitted to; nothing if they weren't.
    """
    told = [(case, off) for case, off in zip(cases, errors, strict=True) if off is not None]
    sizes = sorted(abs(off) for _, off in told)
    within, median = sum(size <= TARGET for size in sizes), statistics.median(sizes)
    worst = max(told, key=lambda pair: abs(pair[1]))
    return Claim(
        "SIM",
        f"the plant {which}: at least {MOST:.0%} of cases within {TARGET:.0%}, median error {MEDIAN:.0%}",
        f"{within} of {len(sizes)} ({within / len(sizes):.0%}), median {median:.0%}, worst {worst[1]:+.0%} "
        f"({worst[0].name})",
        within >= MOST * len(sizes) and median <= MEDIAN,
        Kind.FITTED if fitted_to else Kind.MEASURED,
        f"constants fitted to {fitted_to}" if fitted_to else "",
    )


def figure(small: bool, constants: PerformanceConstants = ENGINE, fit: bool = False) -> Figure:
    """Measure and compare."""
    seconds, rounds = (0.1, 1) if small else (0.5, 3)
    took, source = basics(seconds, rounds)
    machine = replace(LAPTOP, cores=available_cpus())
    print(f"source {', '.join(f'{p} B: {ns:.1f} ns' for p, ns in source.items())}")
    print(f"operator {', '.join(f'{f} FLOP, {p} B: {ns:.1f} ns' for (f, p), ns in took.items())}", flush=True)
    cases = grid(small, took, source)
    seen = measure(cases, seconds, rounds)
    if fit:
        constants = fitted(cases, seen, machine, constants)
        print(json.dumps({"constants": {name: round(getattr(constants, name), 4) for name in FITTED}}))
    guesses = [predicted(case, machine, constants) for case in cases]
    errors = [error(*pair) for pair in zip(guesses, seen, strict=True)]
    by_events = [played(case, machine.cores) for case in cases]
    event_errors = [None if guess is None else error(guess, rate) for guess, rate in zip(by_events, seen, strict=True)]
    rows: list[Row] = [
        {
            "case": case.name,
            "threads": case.threads,
            "measured": rate,
            "plant": guess,
            "error": off,
            "events": "" if event is None else event,
            "event_error": "" if event_off is None else event_off,
        }
        for case, rate, guess, off, event, event_off in zip(
            cases, seen, guesses, errors, by_events, event_errors, strict=True
        )
    ]
    claims = (
        accuracy("by formula", cases, errors, "this grid" if fit else ""),
        accuracy("by events", cases, event_errors, "an earlier run of this grid"),
    )

    def draw(canvas: Any) -> None:
        axes = canvas.subplots()
        axes.loglog(seen, guesses, ".", label="by formula")
        told = [(rate, event) for rate, event in zip(seen, by_events, strict=True) if event is not None]
        axes.loglog([rate for rate, _ in told], [event for _, event in told], "x", label="by events")
        axes.legend()
        ends = [min(seen), max(seen)]
        axes.loglog(ends, ends, color="black", linewidth=0.8)
        axes.set_xlabel("measured, tuples/s")
        axes.set_ylabel("plant, tuples/s")

    return Figure("validate_plant", "The plants and the engine", rows, claims, draw, Kind.MEASURED, (6, 6))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.figures.validate_plant",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--small", action="store_true", help="a tiny grid, to try the command out")
    parser.add_argument("--micro", type=Path, metavar="FILE", help="table of bench/micro to take constants from")
    parser.add_argument("--fit", action="store_true", help="search constants that fit")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "bench" / "results" / "figures", metavar="FOLDER")
    options = parser.parse_args()
    constants = ENGINE
    if options.micro:
        found = calibrated(json.loads(options.micro.read_text()))
        constants = found.constants
        print(f"measured: {', '.join(found.measured)}; kept: {', '.join(found.kept) or 'none'}")
    made = figure(options.small, constants, options.fit)
    made.save(options.output)
    write_table(made.claims, options.output)
    for claim in made.claims:
        print(f"{'yes' if claim.holds else 'NO'}  {claim.claim}: {claim.ours}")
    return 0 if all(claim.holds for claim in made.claims) else 1


if __name__ == "__main__":
    sys.exit(main())
