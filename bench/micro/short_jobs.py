"""What elasticity brings a job of a second or two: at its first run, and when it begins with what was best before.

    python -m bench.micro.short_jobs [tuples=300000] [operators=20] [flops=300] [rounds=5]

From start to end, beside the same job in one thread; they take turns. What was best is kept in a folder of this
program's own, which is empty before each first run.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import rayelastic as rel
from bench.harness import Row, seconds, settings
from rayelastic.topologies import pipeline

ALONE = rel.JobConfig(threads=rel.Threads(count=1, model="manual"), elasticity="off")


def rate(options: dict[str, int], config: rel.JobConfig) -> float:
    """Tuples/s from start to end."""
    topology = pipeline.build(options["operators"], flops=options["flops"], tuples=options["tuples"])
    return options["tuples"] / seconds(lambda: rel.run(topology, config))


def main() -> None:
    options = settings(tuples=300_000, operators=20, flops=300, rounds=5)
    alone, forgetful, first, again = [], [], [], []
    rate(options, ALONE)  # compiles
    for _ in range(options["rounds"]):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["XDG_STATE_HOME"] = folder
            alone.append(rate(options, ALONE))
            forgetful.append(rate(options, rel.JobConfig(elasticity=rel.Elasticity(remember=False))))
            first.append(rate(options, rel.JobConfig()))
            if not list(Path(folder).rglob("best/*")):
                print("nothing was kept: the job was too short to find anything")
            again.append(rate(options, rel.JobConfig()))
    Row("short.forgetful", "a short job, nothing kept", "tuples/s", forgetful, alone, "one thread").print()
    Row("short.first", "a short job, for the first time", "tuples/s", first, alone, "one thread").print()
    Row("short.again", "a short job, with what was best before", "tuples/s", again, alone, "one thread").print()


if __name__ == "__main__":
    main()
