"""What a stateless region with one replica costs where regions may grow, and the same without: CPU time of a tuple.

    python -m bench.micro.one_replica [tuples=100000000] [rounds=5]

Two native sources, united or one of them alone, feed a compiled function of 8-byte tuples: about the least work that a
region can have. With regions="manual" a router stands upstream of it and a tap downstream; with "fixed" nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import rayelastic as rel
from bench.harness import compared, processor_time, settings
from rayelastic.plan.config import RegionsName


def job(tuples: int, regions: RegionsName, united: bool) -> Callable[[], float]:
    """Return what measures ns of CPU time for each tuple."""
    topology = rel.Topology("one_replica")
    streams = [topology.source(rel.sequence(tuples // (1 + united)), name=f"numbers{n}") for n in range(1 + united)]
    stream = streams[0].union(*streams[1:]) if united else streams[0]
    stream.map(lambda t: t.value * 3 + 1, name="work", schema=int, lane="compiled").sink(rel.count(), name="out")
    config = rel.JobConfig(threads=rel.Threads(count=1, model="manual"), regions=regions)

    def run() -> None:
        rel.run(topology, config)

    run()  # compiles
    return lambda: processor_time(run) / tuples * 1e9


def main() -> None:
    options = settings(tuples=100_000_000, rounds=5)
    for united in (False, True):
        ours, limit = job(options["tuples"], "manual", united), job(options["tuples"], "fixed", united)
        what = f"compiled map of 8 bytes behind {'a union' if united else 'a source'}, regions that may grow"
        key = f"region.one.{'union' if united else 'source'}"
        compared(key, what, "ns/tuple", options["rounds"], ours, limit, "fixed regions").print()


if __name__ == "__main__":
    main()
