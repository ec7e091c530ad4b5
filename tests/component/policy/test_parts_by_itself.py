"""A job tries a process for some of its Python operators, sees that it doesn't help here, and takes it back.

What is tested is the way there and back, not how well is measured beside other work: the functions take four times
as long as soon as they are apart, as if both had to share a cache or a lock.
"""

from __future__ import annotations

import threading
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

import rayelastic as rel
from rayelastic.connectors.description import restart_seconds
from rayelastic.connectors.row_files import READ_RATE
from rayelastic.graph.spec.declaration import LaneChoice
from rayelastic.job import Job, prepare
from rayelastic.policy.regions.actions import Verdict
from rayelastic.reasons import Code, Reason
from rayelastic.runtime.element import host
from rayelastic.runtime.job.region_level import why_together
from tests.reasons import codes, region_passes
from tests.waiting import wait_until

PATIENCE = 100.0
ROWS = 60_000  # of each source
ROUNDS = 40_000  # of a loop: a millisecond or two, so that rows last until it is taken back
TARGET = 0.05  # of a CPU: other work may leave little more


class Number(NamedTuple):
    value: int


def burning(enough: threading.Event, apart: threading.Event, folder: Path, *sources: object) -> Job:
    """Run two classes that hold the GIL while they compute, until `enough` is set; they have no replicas."""

    def burn(t: Number) -> Number:
        if not enough.is_set():
            for _ in range(4 * ROUNDS if apart.is_set() else ROUNDS):
                pass
        return t

    @rel.operator(outputs=Number)
    class Burn:
        def invoke(self, t: Number) -> Number:
            return burn(t)

    topology = rel.Topology("burns")
    first, second = (topology.source(source, name=f"source{n}") for n, source in enumerate(sources))
    burned = first.union(second).apply(Burn(), name="first")
    burned.apply(Burn(), name="second").sink(rel.list(), name="out")
    config = rel.JobConfig(
        regions="elastic",
        elasticity=rel.Elasticity(region_period=1.0, region_target=TARGET, max_processes=2),
        checkpoint=rel.Checkpoint(folder),
    )
    return rel.start(topology, config)


@pytest.mark.timeout(200)
def test_a_process_that_does_not_help_is_tried_and_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "available_cpus", lambda: 4)  # a machine of one CPU has no room for a second process
    enough, apart = threading.Event(), threading.Event()
    even, odd = (rel.generate(lambda n, of=of: 2 * n + of, ROWS, schema=Number) for of in (0, 1))  # type: ignore[misc]
    job = burning(enough, apart, tmp_path / "saved", even, odd)
    try:
        until = time.monotonic() + PATIENCE
        while not any(done.decision.verdict is Verdict.REVERT for done in region_passes(job)):
            if any(done.changed and not done.problem for done in region_passes(job)):
                apart.set()
            assert not job.status.state.is_final, job.status
            assert time.monotonic() < until, "\n".join(map(str, region_passes(job)))
            job.pause(0.2)
        done = [one for one in region_passes(job) if one.changed and not one.problem]
        enough.set()
        rows = job.wait(PATIENCE)["out"]
    finally:
        enough.set()
        job.close()
    assert Code.GIL_FULL(operators=["second"]) in done[0].decision.reasons
    assert done[0].in_force.pe_of("second") != done[0].in_force.pe_of("first")
    assert set(done[1].in_force.pes) == {"pe0"}
    assert done[0].seconds > 0
    assert sorted(t.value for t in rows) == list(range(2 * ROWS))


@pytest.mark.timeout(120)
def test_a_job_whose_operators_can_not_go_apart_says_what_they_lack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "available_cpus", lambda: 4)
    enough, apart = threading.Event(), threading.Event()
    sources = (rel.callable(partial(map, Number, range(of, 2 * ROWS, 2)), Number) for of in (0, 1))
    job = burning(enough, apart, tmp_path / "saved", *sources)
    try:
        wait_until(job, lambda: any(Code.GIL_FULL_STAYS in codes(done.decision.reasons) for done in region_passes(job)))
        enough.set()
        rows = job.wait(PATIENCE)["out"]
    finally:
        enough.set()
        job.close()
    why = next(
        done.decision.reasons for done in region_passes(job) if Code.GIL_FULL_STAYS in codes(done.decision.reasons)
    )
    assert Code.GIL_FULL_STAYS(operators=["second"]) in why
    assert Code.CANT_SEEK(sources=["source0", "source1"]) in why
    assert sorted(t.value for t in rows) == list(range(2 * ROWS))


@pytest.mark.parametrize(
    ("source", "lane", "pes", "saves", "why"),
    [
        (rel.generate(lambda n: n, 10, schema=Number), "python", 1, True, None),
        (rel.sequence(10), "python", 1, True, None),
        (rel.callable(lambda: iter([Number(1)]), Number), "python", 1, True, Code.CANT_SEEK(sources=["numbers"])),
        (rel.sequence(10), "compiled", 1, True, None),  # to another host
        (rel.sequence(10), "python", 1, False, Code.NO_CHECKPOINTS()),
        (rel.sequence(10), "python", 2, True, Code.PLACED_BY_CONFIG()),  # somebody has said where to cut
    ],
)
def test_which_jobs_go_apart_by_themselves(
    source: object, lane: LaneChoice, pes: int, saves: bool, why: Reason | None
) -> None:
    topology = rel.Topology("parts")
    numbers = topology.source(source, name="numbers")
    numbers.map(lambda t: t.value + 1, name="next", schema=Number, lane=lane).sink(rel.list(), name="out")
    assert why_together(prepare(topology, rel.JobConfig(pes=pes)), saves=saves) == why


def test_files_of_csv_and_json_that_are_here_are_read_again_if_that_pays(tmp_path: Path) -> None:
    """What they take is added to the pause; files elsewhere, of which nobody knows that, are no reason for one."""
    for name, megabytes in (("small", 1), ("large", 3)):
        (tmp_path / f"{name}.csv").write_bytes(b"value\n" + b"12345678\n" * (megabytes * 1_000_000 // 9))
        (tmp_path / f"{name}.json").write_bytes(b'{"value": 1}\n' * (megabytes * 1_000_000 // 13))
    for source, seconds in (
        (rel.csv(str(tmp_path / "*.csv"), schema=Number), 3e6 / READ_RATE),
        (rel.json(str(tmp_path / "*.json"), schema=Number), 3e6 / READ_RATE),
        (rel.sequence(10), 0.0),
    ):
        topology = rel.Topology("parts")
        numbers = topology.source(source, name="numbers")
        numbers.map(lambda t: t.value + 1, name="next", schema=Number, lane="python").sink(rel.list(), name="out")
        job = prepare(topology, rel.JobConfig())
        assert why_together(job, saves=True) is None
        assert restart_seconds(job.operators["numbers"]) == pytest.approx(seconds, rel=0.01)
    topology = rel.Topology("gone")
    numbers = topology.source(rel.csv(str(tmp_path / "large.csv"), schema=Number), name="numbers")
    numbers.map(lambda t: t.value + 1, name="next", schema=Number, lane="python").sink(rel.list(), name="out")
    job = prepare(topology, rel.JobConfig())
    (tmp_path / "large.csv").unlink()  # as on another machine
    assert why_together(job, saves=True) == Code.CANT_SEEK(sources=["numbers"])
