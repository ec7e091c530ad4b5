"""A region whose function waits changes as fast as it works, however fast its source is."""

from __future__ import annotations

import threading
from pathlib import Path

import rayelastic as rel
from bench.spread.works import Signals, undivided
from rayelastic.job import Job, start
from rayelastic.plan.settings.threads import ModelName
from tests.component.rescale.rescaling import flows, taken

MUCH = 5000  # tuples: the work of 10 s


def backlog(job: Job) -> int:
    """Tuples that were made and haven't come out."""
    return job.metrics().operator("rows").tuples_out - taken(job, "out")


def test_while_keys_move_no_more_tuples_are_taken_in_than_before(tmp_path: Path) -> None:
    """Where there is a queue its source doesn't wait: it made all that memory held, and every key waited for that."""
    queues: dict[str, ModelName] = dict.fromkeys(("ask", "out"), "dynamic")
    signals = Signals(tmp_path)
    job = start(
        undivided(signals),
        rel.JobConfig(regions="manual", elasticity="off", threads=rel.Threads(count=2, model=queues)),
    )
    try:
        flows(job, tuples=1000)  # for long enough to be known
        region = job.plan().region_of("ask").region.name
        change = threading.Thread(target=job.rescale, args=(region, 3))
        change.start()
        most = 0
        while change.is_alive():
            most = max(most, backlog(job))
            change.join(0.05)
        assert job.plan().region_of("ask").replicas == 3
        assert most < MUCH
    finally:
        signals.set("enough")
        job.close()
