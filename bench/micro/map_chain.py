"""A chain of compiled maps through the whole engine: `rel.run`, one processing element, manual threading.

The same records go through a chain of maps and through none, alternated; the difference is what the maps cost, with the
scheduler's hops in it. Target: under 1 ns per tuple and operator.

    python -m bench.micro.map_chain [--records 5000000] [--maps 10] [--rounds 5]
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import rayelastic as rel


class Point(NamedTuple):
    a: int
    b: float


def step(t: Any) -> Any:
    return Point(t.a * 3 + 1, t.b * 0.5 + 1.0)


def chain(table: pa.Table, maps: int) -> rel.Topology:
    """Records into that many maps, and counted."""
    topology = rel.Topology(f"chain_of_{maps}")
    stream = topology.source("points", rel.arrow(table, Point))
    for number in range(maps):
        stream = stream.map(f"map{number}", step, schema=Point, lane="compiled")
    stream.sink("out", rel.count())
    return topology


def main() -> None:
    """Measures and prints one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=5_000_000)
    parser.add_argument("--maps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    numbers = np.arange(options.records)
    table = pa.table({"a": numbers, "b": numbers.astype(np.float64)})
    topologies = {maps: chain(table, maps) for maps in (0, options.maps)}
    config = rel.JobConfig(threads=1, threading="manual")
    clocks: dict[int, list[float]] = {maps: [] for maps in topologies}
    processor: dict[int, list[float]] = {maps: [] for maps in topologies}
    for _ in range(options.rounds):
        for maps, topology in topologies.items():
            clock, cpu = time.perf_counter(), time.process_time()
            assert rel.run(topology, config)["out"] == options.records
            clocks[maps].append(time.perf_counter() - clock)
            processor[maps].append(time.process_time() - cpu)
    print(f"{options.records:,} records of 16 bytes, medians of {options.rounds} alternated rounds")
    for name, seconds in (("by the clock", clocks), ("processor time", processor)):
        without, with_maps = (statistics.median(seconds[maps]) for maps in topologies)
        each = (with_maps - without) / options.records / options.maps * 1e9
        print(
            f"{name:16} no map {without:.3f} s, {options.maps} maps {with_maps:.3f} s: {each:.3f} ns per tuple and map"
        )


if __name__ == "__main__":
    main()
