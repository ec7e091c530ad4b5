"""What timers of keys cost in the compiled lane, beside the Python lane: a class with on_tuple and on_time.

    python -m bench.micro.timers [keys=100000] [timers=10] [rounds=5]

Each key gets one tuple, which sets so many timers at times of the next million ticks; all of them come at the end.
What timers cost is the difference to the same program that sets none, by timer: processor time of the process, and
resident memory while they wait.
"""

# ruff: noqa: ARG002 -- the methods have the parameters that they are called with
from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import rayelastic as rel
from bench.harness import Row, processor_time, settings
from rayelastic import testing

PATIENCE = 120.0  # seconds
RANGE = 1_000_003  # ticks over which the timers of a tuple are spread
QUIET = rel.JobConfig(threads=rel.Threads(count=1, model="manual"), elasticity="off")


class Tuple(NamedTuple):
    key: int
    at: int


class Fired(NamedTuple):
    key: int
    at: int


class State(NamedTuple):
    fired: int = 0


class Program:
    """Sets timers, or none."""

    def __init__(self, timers: int) -> None:
        self.timers = timers

    def on_tuple(self, t: Tuple, state: State, out: rel.Out) -> None:
        for n in range(self.timers):
            out.timer(t.at + 1 + (t.key * 7919 + n * 104_729) % RANGE)

    def on_time(self, time: int, state: State, out: rel.Out) -> None:
        state.fired += 1  # type: ignore[misc]

    def on_end(self, state: State, out: rel.Out) -> None:
        out.give(Fired(out.key[0], state.fired))


def seconds(table: Any, timers: int, lane: Any) -> float:
    """Processor time of a run; checked to have had each timer."""
    topology = rel.Topology("timers")
    timed = topology.source(rel.arrow(table, Tuple), name="rows").event_time("at", name="time")
    fired = timed.key_by("key").process(Program(timers), name="timers", schema=Fired, state=State, lane=lane)
    fired.aggregate(name="all", n=rel.sum("at")).sink(rel.list(), name="out")
    out: list[Any] = []
    took = processor_time(lambda: out.extend(rel.run(topology, QUIET)["out"]))
    assert out == [(timers * table.num_rows,)], out
    return took


def resident(table: Any, timers: int, lane: Any) -> int:
    """Bytes of the process while the timers wait."""
    gate = testing.Gate()
    topology = rel.Topology("timers")
    rows = [Tuple(*row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]
    timed = topology.source(testing.script([*rows, gate], Tuple), name="rows").event_time("at", name="time")
    timed.key_by("key").process(Program(timers), name="timers", schema=Fired, state=State, lane=lane).sink(
        rel.count(), name="out"
    )
    job = rel.start(topology, QUIET)
    try:
        gate.wait_reached(PATIENCE)
        while job.metrics().operator("timers").tuples_in < len(rows):
            assert not job.status.state.is_final, job.status
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    finally:
        job.cancel(drain=False)
        job.close()
    return pages * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    keys, timers, rounds = settings(keys=100_000, timers=10, rounds=5).values()
    fields = [pa.field(name, pa.int64(), nullable=False) for name in Tuple._fields]
    table = pa.table([np.arange(keys), np.arange(keys) // 100], schema=pa.schema(fields))
    found: dict[str, list[tuple[float, float]]] = {"compiled": [], "python": []}
    for lane in found:  # compiles, and loads the cache
        seconds(table.slice(0, 10), timers, lane)
        seconds(table.slice(0, 10), 0, lane)
    for _ in range(rounds):
        for lane, times in found.items():
            times.append((seconds(table, timers, lane), seconds(table, 0, lane)))
    nanoseconds = {
        lane: [(both - without) / (keys * timers) * 1e9 for both, without in times] for lane, times in found.items()
    }
    rates = {lane: [keys * timers / both for both, _ in times] for lane, times in found.items()}
    whole = {lane: [both / keys * 1e9 for both, _ in times] for lane, times in found.items()}
    memory = {lane: [-resident(table, 0, lane) + resident(table, timers, lane)] for lane in found}
    each = {lane: [taken / (keys * timers) for taken in values] for lane, values in memory.items()}
    rows = {
        "timer": (nanoseconds, "a timer of a key, set and come"),
        "timers_program": (whole, "a tuple and its timers"),
    }
    for key, (values, what) in rows.items():
        Row(key, what, "ns", values["compiled"], values["python"], "the Python lane").print()
    of_python = (rates["python"], "the Python lane")
    Row("timers_rate", f"{keys * timers:,} timers in {keys:,} keys", "timers/s", rates["compiled"], *of_python).print()
    Row("timer_bytes", "memory of a timer", "B", each["compiled"], each["python"], "the Python lane").print()


if __name__ == "__main__":
    main()
