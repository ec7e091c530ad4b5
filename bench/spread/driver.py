"""Measures one work on the Ray whose address is set, by itself with all defaults, then by hand; prints JSON.

python -m bench.spread.driver WORK FOLDER --seconds 60 --hand 8 --most 6
python -m bench.spread.driver WORK FOLDER --steady 600
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import rayelastic as rel
from bench.spread.works import WORKS, Signals, Work
from rayelastic.errors import ConfigError
from rayelastic.job import Job
from rayelastic.runtime.values.region_adaptation import RegionAdaptation

LOOK = 0.5  # seconds
LAST = 1 / 3  # of the time under load, in which the rate is taken
SETTLE = 3.0  # seconds after a change by hand
PATIENCE = 180.0  # seconds for the lull to have the job be one process again, and for its end


def given(job: Job) -> int:
    """Tuples that all sources have made."""
    sources = {planned.region.operators[0] for planned in job.plan().regions if planned.region.kind.value == "source"}
    return sum(job.metrics().operator(name).tuples_out for name in sources)


def rate(job: Job, seconds: float) -> float:
    before, began = given(job), time.monotonic()
    job.pause(seconds)
    return (given(job) - before) / (time.monotonic() - began)


def hosts(job: Job) -> int:
    return len({pe.node for pe in job.status.pes if not pe.state.is_final})


@contextlib.contextmanager
def submitted(work: Work, signals: Signals, config: rel.JobConfig | None = None) -> Iterator[Job]:
    """Yield a job of the work, which ends with the block."""
    job = rel.submit(work.build(signals), config)
    try:
        yield job
    finally:
        signals.set("enough")
        job.close()
        signals.clear()


def by_itself(work: Work, signals: Signals, seconds: float) -> dict[str, Any]:
    with submitted(work, signals) as job:
        began, grown = time.monotonic(), None
        while time.monotonic() - began < seconds * (1 - LAST):
            job.pause(LOOK)
            if grown is None and len(job.plan().pes) > 1:
                grown = time.monotonic() - began
        reached = rate(job, seconds * LAST)
        found: dict[str, Any] = {
            "rate": reached, "processes": len(job.plan().pes), "hosts": hosts(job), "first_growth": grown,
            "plan": {p.region.name: p.replicas for p in job.plan().regions if p.replicas > 1},
        }  # fmt: skip
        signals.set("lull")
        began = time.monotonic()
        while len(job.plan().pes) > 1 and time.monotonic() - began < PATIENCE:
            job.pause(LOOK)
        told = [str(one) for one in job.adaptations(every_pass=True) if one.pe == "regions"]
        found["hot"] = next((line.split(": ", 1)[1] for line in told if "key " in line), "")
        found["back_to_one"] = time.monotonic() - began if len(job.plan().pes) == 1 else None
        changes = [str(one) for one in job.adaptations() if one.pe == "regions"]
        signals.set("enough", given(job))
        result = job.wait(PATIENCE)
        found["exact"] = work.exact(result["out"], given(job))
        return found | {"changes": changes}


def steadily(work: Work, signals: Signals, seconds: float) -> dict[str, Any]:
    """Return the changes that a job makes under a load that stays as it is."""
    with submitted(work, signals) as job:
        job.pause(seconds)
        found: dict[str, Any] = {"rate": rate(job, SETTLE), "processes": len(job.plan().pes)}
        made = [one for one in job.adaptations() if one.pe == "regions"]
        found |= {
            "changes": [str(one) for one in made],
            "times": [one.observation.time for one in made if isinstance(one, RegionAdaptation)],
        }
        signals.set("enough", given(job))
        return found | {"exact": work.exact(job.wait(PATIENCE)["out"], given(job))}


def by_hand(work: Work, signals: Signals, seconds: float, most: int) -> dict[str, float]:
    """Return the rate of each plan that one would try: {plan: tuples/s}."""
    found: dict[str, float] = {}
    settings: list[rel.JobConfig] = [rel.JobConfig(regions="manual")]
    if work.apart:
        settings.append(rel.JobConfig(regions="manual", pes={work.apart: 1}))
    for config in settings:
        with submitted(work, signals, config) as job:
            region = job.plan().region_of(work.operator).region.name
            apart = f"{work.apart} apart, " if work.apart and config.pes != 1 else ""
            for replicas in range(1, most + 1):
                try:
                    if replicas > 1:
                        job.rescale(region, replicas)
                except ConfigError:  # it can have no more
                    break
                job.pause(SETTLE)
                found[f"{apart}{replicas} x {work.operator}"] = rate(job, seconds)
            signals.set("enough", given(job))
            job.wait(PATIENCE)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.spread.driver")
    parser.add_argument("work", choices=WORKS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--hand", type=float, default=8.0)
    parser.add_argument("--most", type=int, default=6)
    parser.add_argument("--steady", type=float, help="seconds of a load that stays as it is, and nothing by hand")
    options = parser.parse_args()
    work, signals = WORKS[options.work], Signals(options.folder)
    if options.steady:
        print(json.dumps({"work": options.work, "steady": steadily(work, signals, options.steady)}))
        return 0
    itself = by_itself(work, signals, options.seconds)
    hand = by_hand(work, signals, options.hand, options.most)
    print(json.dumps({"work": options.work, "itself": itself, "hand": hand}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
