"""Changes of regions on the cluster that RAY_ADDRESS names; what happened goes to the output as JSON.

    python -m tests.cluster.rescale_on_nodes FOLDER random [--seconds 60] [--seed 1]
    python -m tests.cluster.rescale_on_nodes FOLDER vwap
    python -m tests.cluster.rescale_on_nodes FOLDER by-itself
    python -m tests.cluster.rescale_on_nodes FOLDER vwap-by-itself

The folder is one that all nodes see. `random`: rescales at random, as often as fits. `vwap`: windows and joins to two,
three and one replica, and the bargains are those of a run without. `by-itself`, `vwap-by-itself`: the load grows and
falls, the job follows. The job verifies itself, see oracle.py; the bargains are compared. Hosts that die: kills.py.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import rayelastic as rel
from rayelastic.job import Job
from rayelastic.topologies import vwap
from tests.cluster.oracle import Load, finish, flows, topology
from tests.waiting import wait_until

RATE = 5000.0  # tuples/s, which is little: what is tested is the protocol
TARGET = 0.2  # of a CPU for each replica, so that three fit a small machine
ENOUGH = 0.5  # seconds of CPU time, to know what a tuple costs
PATIENCE = 120.0  # seconds
STEP = 8.0  # seconds that a rate is offered before the next higher one
GROWTH = 1.12  # from one rate to the next: less than what makes two replicas more of one
LULL = 0.1  # of the highest rate: what it falls to
EVENTS_OF_DAY = 30_000
ROUNDS = 100_000  # of compiled code: half a millisecond
CONFIG = rel.JobConfig(regions="manual", elasticity="off")
BY_ITSELF = rel.JobConfig(
    regions="elastic", elasticity=rel.Elasticity(algorithm="off", region_period=1.0, region_target=TARGET)
)


def nodes_of(job: Job) -> set[str]:
    return {status.node for status in job.status.pes}


def at_random(folder: Path, seconds: float, seed: int) -> dict[str, Any]:
    load, dice = Load(folder), random.Random(seed)
    load.set(RATE)
    job = rel.submit(topology(folder), CONFIG)
    regions = [planned.region.name for planned in job.plan().regions if planned.region.keys]
    nodes, took = nodes_of(job), []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        region = dice.choice(regions)
        now = job.plan().region(region).replicas
        began = time.monotonic()
        job.rescale(region, dice.choice([n for n in (1, 2, 3) if n != now]))
        took.append(time.monotonic() - began)
        nodes |= nodes_of(job)
        flows(job, tuples=100)
    arrived = finish(job, load)
    return {"changes": len(took), "longest": max(took), "tuples": arrived, "nodes": sorted(nodes)}


def trades_and_quotes() -> Iterator[vwap.Event]:
    day = [vwap.Event(**row) for row in vwap.synthetic(EVENTS_OF_DAY).to_pylist()]
    for number in itertools.count():
        yield from (event._replace(at=event.at + number * vwap.DAY) for event in day)


def dear_average(t: Any) -> vwap.Average:
    """The same average, at a price: of its own a tuple of VWAP costs so little that no machine needs two replicas."""
    spent = t.at
    for _ in range(ROUNDS):
        spent = spent * 31 % 65537
    return vwap.Average(t.symbol, t.at if spent < t.at else 0, t.paid / t.volume)  # it is: no compiler knows that


def bargains(source: Any, *, costs: bool = False) -> rel.Topology:
    made = rel.Topology("vwap")
    averaged = dear_average if costs else vwap.average
    vwap.bargains(made.source(source, name="events"), averaged=averaged).sink(rel.list(), name="out")
    return made


def submitted_vwap(load: Load, config: rel.JobConfig, *, costs: bool = False) -> Job:
    return rel.submit(bargains(rel.callable(lambda: load.paced(trades_and_quotes()), vwap.Event), costs=costs), config)


def verified_vwap(job: Job, load: Load) -> dict[str, Any]:
    """Ends the stream, and compares what came out with what comes out where nothing is ever moved."""
    load.end()
    rows = job.wait(timeout=PATIENCE)["out"]
    events = list(itertools.islice(trades_and_quotes(), job.metrics().operator("events").tuples_out))
    expected = rel.run(bargains(rel.rows(events, schema=vwap.Event)), rel.JobConfig(elasticity="off"))["out"]
    given, right = by_symbol(rows), by_symbol(expected)
    wrong = [symbol for symbol in right | given if given.get(symbol) != right.get(symbol)]
    return {"bargains": len(rows), "expected": len(expected), "wrong": wrong}


def by_symbol(rows: list[Any]) -> dict[str, list[tuple[Any, ...]]]:
    found: dict[str, list[tuple[Any, ...]]] = {}
    for row in rows:
        found.setdefault(row.symbol, []).append(tuple(row))
    return found


def moved_vwap(folder: Path) -> dict[str, Any]:
    load = Load(folder)
    load.set(RATE)
    job = submitted_vwap(load, CONFIG)
    regions = [job.plan().region_of(operator).region.name for operator in ("pre_vwap", "bargains.joined")]
    nodes, seen = nodes_of(job), []
    for replicas in (2, 3, 1):
        for region in regions:
            flows(job, operator="pre_vwap")
            seen.append(job.rescale(region, replicas).region(region).replicas)
            nodes |= nodes_of(job)
    flows(job, operator="pre_vwap")
    return {"replicas": seen, "nodes": sorted(nodes), **verified_vwap(job, load)}


def by_itself(folder: Path) -> dict[str, Any]:
    load = Load(folder)
    load.set(1000.0)
    job = rel.submit(topology(folder, costs=True), BY_ITSELF)
    return {**followed(job, load, "count"), "tuples": finish(job, load)}


def vwap_by_itself(folder: Path) -> dict[str, Any]:
    load = Load(folder)
    load.set(1000.0)
    job = submitted_vwap(load, BY_ITSELF, costs=True)
    return {**followed(job, load, "vwap"), **verified_vwap(job, load)}


def followed(job: Job, load: Load, operator: str) -> dict[str, Any]:
    """Has the load grow until the region of an operator has three replicas, and fall until it has one again."""
    region = job.plan().region_of(operator).region.name
    seen, until = [1], time.monotonic() + PATIENCE

    def follows(rate: float) -> None:
        """Offers a rate, and notes what the plan becomes within a step."""
        load.set(rate)
        step = time.monotonic() + STEP
        while (now := job.plan().region(region).replicas) == seen[-1] and time.monotonic() < step:
            job.pause(0.5)
        if now != seen[-1]:
            seen.append(now)

    wait_until(job, lambda: job.metrics().operator(operator).cpu_seconds >= ENOUGH, look=0.05)
    counted = job.metrics()
    rate = 0.8 * TARGET * counted.operator("events").tuples_out / counted.operator(operator).cpu_seconds
    while seen[-1] < 3 and time.monotonic() < until:
        follows(rate)
        rate *= GROWTH
    flows(job)
    at = {status.pe: status.node for status in job.status.pes}
    busy = sorted({at[pe] for pe in job.plan().region(region).pipelines[0].pes})
    until = time.monotonic() + PATIENCE
    while seen[-1] > 1 and time.monotonic() < until:
        follows(LULL * rate)
    told = [str(one) for one in job.adaptations() if one.pe == "regions"]
    return {"replicas": seen, "busy": busy, "adaptations": told}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parts = parser.add_subparsers(required=True, dest="part")
    randomly = parts.add_parser("random")
    randomly.add_argument("--seconds", type=float, default=60.0)
    randomly.add_argument("--seed", type=int, default=1)
    parts.add_parser("vwap")
    parts.add_parser("by-itself")
    parts.add_parser("vwap-by-itself")
    given = parser.parse_args()
    match given.part:
        case "random":
            told = at_random(given.folder, given.seconds, given.seed)
        case "vwap":
            told = moved_vwap(given.folder)
        case "by-itself":
            told = by_itself(given.folder)
        case _:
            told = vwap_by_itself(given.folder)
    sys.stdout.write(json.dumps(told) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
