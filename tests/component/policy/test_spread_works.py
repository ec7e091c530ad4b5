"""The works of `./dev bench spread` in this process: they end when they are told to, and their rows are right."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import rayelastic as rel
from bench.spread.works import WORKS, Signals
from rayelastic.graph.spec.operator_spec import Lane
from tests.waiting import wait_until, wait_until_received

PATIENCE = 60.0
# Of its time at most that a source sleeps in its function while others compute under its token: 1 to 8 %, as Python
# takes the interpreter away within the function, too; 33 to 47 % where the wait before it counts.
ASLEEP = 0.2
TUPLES = 300  # that a source has given before it is enough


@pytest.mark.timeout(150)
@pytest.mark.parametrize("name", WORKS)
def test_a_work_is_exact(name: str, tmp_path: Path) -> None:
    work, signals = WORKS[name], Signals(tmp_path)
    job = rel.start(work.build(signals))
    sources = [planned.region.operators[0] for planned in job.plan().regions if planned.region.kind.value == "source"]
    try:
        wait_until(job, lambda: sum(job.metrics().operator(source).tuples_out for source in sources) >= TUPLES)
        signals.set("enough")
        rows = job.wait(PATIENCE)["out"]
        made = sum(job.metrics().operator(source).tuples_out for source in sources)
    finally:
        signals.set("enough")
        job.close()
    assert work.exact(rows, made)
    assert not work.exact(rows[:-1], made)


def test_a_source_whose_token_others_have_does_not_seem_to_wait_for_input(tmp_path: Path) -> None:
    """It would be taken for one that makes all that it is offered, and nothing would grow."""
    signals = Signals(tmp_path)
    config = rel.JobConfig(regions="manual", elasticity="off", threads=rel.Threads(model={"trades": "dynamic"}))
    job = rel.start(WORKS["d"].build(signals), config)

    def averaged(least: int) -> float:
        wait_until_received(job, "vwap", least)
        return job.metrics().operator("events").waited_seconds

    try:
        before, began = averaged(3_000), time.monotonic()
        assert averaged(15_000) - before < ASLEEP * (time.monotonic() - began)
    finally:
        signals.set("enough")
        job.close()


@pytest.mark.parametrize(("name", "operator"), [("c", "first"), ("c", "second"), ("d", "vwap")])
def test_what_costs_time_is_not_compiled_away(name: str, operator: str, tmp_path: Path) -> None:
    assert WORKS[name].build(Signals(tmp_path)).operators[operator].lane is Lane.PYTHON
