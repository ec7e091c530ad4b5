"""What a second thread brings one dear operator: in `.elastic`, which finds it, and in `.parallel` of two channels.

    python -m bench.micro.stages [tuples=600000] [flops=10000] [rounds=3]

From start to end, so that what it takes to find the second thread counts. The limit is the same operator in one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import rayelastic as rel
from bench.harness import Row, alternated, seconds, settings
from rayelastic.topologies.multiplications import multiply, numbered

Stage = Callable[[rel.Stream], rel.Stream]


def rate(stage: Stage, tuples: int, config: rel.JobConfig) -> float:
    """Tuples/s from start to end."""
    topology = rel.Topology("stage")
    stage(numbered(topology, tuples, 1)).sink(rel.count(), name="out")
    return tuples / seconds(lambda: rel.run(topology, config))


def main() -> None:
    options = settings(tuples=600_000, flops=10_000, rounds=3)
    tuples, work = options["tuples"], multiply(options["flops"])

    def body(stream: Any) -> Any:
        return stream.map(work, name="dear")

    alone = rel.JobConfig(threads=rel.Threads(count=1, model="manual"), elasticity="off")
    stages: dict[str, Stage] = {
        "elastic": lambda stream: stream.elastic(body, name="stage"),
        "elastic, in order": lambda stream: stream.elastic(body, name="stage", order=True),
        "parallel of 2, in order": lambda stream: stream.parallel(2, body, name="stage", order=True),
    }
    forgetful = rel.JobConfig(elasticity=rel.Elasticity(remember=False))
    sides = {"": partial(rate, body, tuples, alone)}
    found = alternated(
        options["rounds"], sides | {name: partial(rate, stage, tuples, forgetful) for name, stage in stages.items()}
    )
    one = found.pop("")
    for name, rates in found.items():
        key = "stage." + name.replace(",", "").replace(" ", "_")
        what = f"{options['flops']:,} multiplications, {name}"
        Row(key, what, "tuples/s", rates, one, "one thread").print()


if __name__ == "__main__":
    main()
