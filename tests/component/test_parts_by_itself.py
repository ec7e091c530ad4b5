"""A job tries a process for some of its Python operators, sees that it doesn't help here, and takes it back.

In this process both elements have one GIL, so no change can help: what is tested is the way there and back.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import NamedTuple

import pytest

import rayelastic as rel
from rayelastic.job import Job, prepare
from rayelastic.policy.regions.actions import Verdict
from rayelastic.runtime.job.region_level import goes_apart
from rayelastic.runtime.values.region_adaptation import RegionAdaptation

PATIENCE = 100.0
ROWS = 60_000  # of each source
ROUNDS = 40_000  # of a loop: a millisecond or two, so that rows last until it is taken back
TARGET = 0.05  # of a CPU: other work may leave little more


class Number(NamedTuple):
    value: int


def burning(enough: threading.Event, folder: Path, *sources: object) -> Job:
    """Two functions that take their time under the token until they are told not to; no replicas behind a union."""

    def burn(t: Number) -> Number:
        if not enough.is_set():
            for _ in range(ROUNDS):
                pass
        return t

    topology = rel.Topology("burns")
    first, second = (topology.source(f"source{n}", source) for n, source in enumerate(sources))
    burned = first.union(second).map("first", burn, schema=Number, lane="python")
    burned.map("second", burn, schema=Number, lane="python").sink("out", rel.list())
    config = rel.JobConfig(
        regions="elastic", region_period=1.0, region_target=TARGET, max_processes=2, checkpoint=rel.Checkpoint(folder)
    )
    return rel.start(topology, config)


def told(job: Job) -> list[RegionAdaptation]:
    return [done for done in job.adaptations(every_pass=True) if isinstance(done, RegionAdaptation)]


@pytest.mark.timeout(200)
def test_a_process_that_does_not_help_is_tried_and_taken_back(tmp_path: Path) -> None:
    enough = threading.Event()
    even, odd = (rel.generate(lambda n, of=of: 2 * n + of, ROWS, schema=Number) for of in (0, 1))  # type: ignore[misc]
    job = burning(enough, tmp_path / "saved", even, odd)
    try:
        until = time.monotonic() + PATIENCE
        while not any(done.decision.verdict is Verdict.REVERT for done in told(job)):
            assert not job.status.state.is_final, job.status
            assert time.monotonic() < until, "\n".join(map(str, told(job)))
            job.pause(0.2)
        done = [one for one in told(job) if one.changed and not one.problem]
        enough.set()
        rows = job.wait(PATIENCE)["out"]
    finally:
        enough.set()
        job.close()
    assert "one Python token isn't enough: a process for second" in str(done[0])
    assert done[0].in_force.pe_of("second") != done[0].in_force.pe_of("first")
    assert set(done[1].in_force.pes) == {"pe0"}
    assert done[0].seconds > 0
    assert sorted(t.value for t in rows) == list(range(2 * ROWS))


@pytest.mark.parametrize(
    ("source", "lane", "pes", "apart"),
    [
        (rel.generate(lambda n: n, 10, schema=Number), "python", 1, True),
        (rel.sequence(10), "python", 1, True),
        (rel.callable(lambda: iter([Number(1)]), Number), "python", 1, False),  # it would be called again
        (rel.sequence(10), "compiled", 1, False),  # threads do
        (rel.sequence(10), "python", 2, False),  # somebody has said where to cut
    ],
)
def test_which_jobs_go_apart_by_themselves(source: object, lane: str, pes: int, apart: bool) -> None:
    topology = rel.Topology("parts")
    numbers = topology.source("numbers", source)
    numbers.map("next", lambda t: t.value + 1, schema=Number, lane=lane).sink("out", rel.list())
    assert goes_apart(prepare(topology, rel.JobConfig(pes=pes))) is apart
