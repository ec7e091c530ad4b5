"""What a second thread brings one dear operator: in `.elastic`, which finds it, and in `.parallel` of two channels.

    python -m bench.micro.stages [tuples=600000] [flops=10000] [rounds=3]

From start to end, so that what it takes to find the second thread counts. The limit is the same operator in one thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import rayelastic as rel
from bench.harness import Row, settings
from rayelastic.topologies.multiplications import multiply, numbered

Stage = Callable[[rel.Stream], rel.Stream]


def seconds(stage: Stage, tuples: int, config: rel.JobConfig) -> float:
    topology = rel.Topology("stage")
    stage(numbered(topology, tuples, 1)).sink(rel.count(), name="out")
    began = time.monotonic()
    assert rel.run(topology, config)["out"] == tuples
    return time.monotonic() - began


def main() -> None:
    options = {n: int(v) for n, v in settings({"tuples": 600_000, "flops": 10_000, "rounds": 3}).items()}
    tuples, work = options["tuples"], multiply(options["flops"])

    def body(stream: Any) -> Any:
        return stream.map(work, name="dear")

    alone = rel.JobConfig(threads=rel.Threads(count=1, model="manual"), elasticity="off")
    stages: dict[str, Stage] = {
        "elastic": lambda stream: stream.elastic(body, name="stage"),
        "elastic, in order": lambda stream: stream.elastic(body, name="stage", order=True),
        "parallel of 2, in order": lambda stream: stream.parallel(2, body, name="stage", order=True),
    }
    found: dict[str, list[float]] = {name: [] for name in stages}
    one: list[float] = []
    for _ in range(options["rounds"]):
        one.append(tuples / seconds(body, tuples, alone))
        for name, stage in stages.items():
            found[name].append(
                tuples / seconds(stage, tuples, rel.JobConfig(elasticity=rel.Elasticity(remember=False)))
            )
    for name, rates in found.items():
        key = "stage." + name.replace(",", "").replace(" ", "_")
        what = f"{options['flops']:,} multiplications, {name}"
        Row(key, what, "tuples/s", rates, one, "one thread").print()


if __name__ == "__main__":
    main()
