"""What paid in one run of a job is tried first by the next one of its name: written, found again, told."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import rayelastic as rel
from rayelastic.job import Job, start
from rayelastic.policy.regions.tried.earlier import Earlier
from rayelastic.reasons import Code, Reason
from rayelastic.runtime.loops.earlier_plans import EarlierPlans
from tests.reasons import codes
from tests.waiting import wait_until

ANSWER = 0.002  # seconds that a tuple waits for its answer
PATIENCE = 60.0
PERIOD = 0.4


class Numbers:
    """0, 1, 2, ... as fast as they are taken, until it is enough."""

    def __init__(self) -> None:
        self.enough = threading.Event()

    def __call__(self) -> Iterator[tuple[int]]:
        number = 0
        while not self.enough.is_set():
            yield (number,)
            number += 1


def asking(numbers: Numbers, name: str = "asks", *, remember: bool = True) -> Job:
    def ask(t: NamedTuple) -> tuple[int]:
        if not numbers.enough.is_set():
            threading.Event().wait(ANSWER)
        return (t[0],)

    topology = rel.Topology(name)
    stream = topology.source(rel.callable(numbers, schema={"n": int}), name="numbers")
    stream.map(ask, name="ask", schema={"n": int}, lane="python").sink(rel.count(), name="out")
    elasticity = rel.Elasticity("off", region_period=PERIOD, max_processes=3, remember=remember)
    return start(topology, rel.JobConfig(regions="elastic", elasticity=elasticity))


def grows(job: Job) -> tuple[Reason, ...]:
    """Why the first change was made."""
    until = time.monotonic() + PATIENCE
    while not (changed := [one for one in job.adaptations() if one.changed and one.pe == "regions"]):
        assert not job.status.state.is_final, job.status
        assert time.monotonic() < until, "\n".join(map(str, job.adaptations(every_pass=True)))
        job.pause(0.1)
    return changed[0].decision.reasons


def ended(job: Job, numbers: Numbers) -> None:
    numbers.enough.set()
    job.wait(PATIENCE)
    job.close()


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "rayelastic" / "plans"


@pytest.mark.timeout(200)
def test_the_next_run_begins_with_what_paid(folder: Path) -> None:
    numbers = Numbers()
    job = asking(numbers)
    try:
        assert Code.REPLICAS_EARLIER not in codes(grows(job))
        wait_until(job, lambda: any(folder.glob("*.json")))
        region, kept = job.plan().region_of("ask").region.name, job.plan().region_of("ask").replicas
    finally:
        ended(job, numbers)
    [file] = folder.glob("*.json")
    assert json.loads(file.read_text()) == {"replicas": {region: kept}, "apart": []}
    for name, remember, knows in (("asks", True, True), ("others", True, False), ("asks", False, False)):
        numbers = Numbers()
        job = asking(numbers, name, remember=remember)
        try:
            assert (Code.REPLICAS_EARLIER(replicas=kept, region=region) in grows(job)) is knows, (name, remember)
        finally:
            ended(job, numbers)


@pytest.mark.parametrize(
    "damaged",
    [
        "",
        "[]",
        "{}",
        '{"replicas": {"r1": 0}, "apart": []}',
        '{"replicas": {"r1": 2}, "apart": [1]}',
        '{"replicas": 3}',
    ],
)
def test_a_damaged_file_is_told_and_left_out(tmp_path: Path, damaged: str, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "key.json").write_text(damaged, encoding="utf-8")
    plans = EarlierPlans(tmp_path, "key")
    assert plans.paid() == Earlier()
    assert "is left out" in caplog.text
    plans.keep(Earlier({"r1": 2}, ("f",)))
    assert EarlierPlans(tmp_path, "key").paid() == Earlier({"r1": 2}, ("f",))
