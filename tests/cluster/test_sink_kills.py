"""A few kills at steps of sinks, running and ending; `./dev kills --sinks` has all sinks, steps and victims."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import rayelastic as rel
from tests.cluster.sink_kills import AFTER, BEFORE, COORDINATOR, ELEMENT, ENDING, LOOK, PATIENCE, RUNNING, Shot, fire
from tests.component.connectors import ledger
from tests.waiting import wait_until_taken

pytestmark = [pytest.mark.edges, pytest.mark.usefixtures("ray_cluster")]

SINKS = ["parquet", "one.csv", "delta", "ledger", "list"]
SHOTS = {
    RUNNING: [
        Shot(ELEMENT, "ledger", "prepare", AFTER, RUNNING),
        Shot(COORDINATOR, "", "note", AFTER, RUNNING),
        Shot(ELEMENT, "delta", "commit", AFTER, RUNNING),
        Shot(ELEMENT, "parquet", "commit", BEFORE, RUNNING),
    ],
    ENDING: [
        Shot(ELEMENT, "ledger", "commit", AFTER, ENDING),
        Shot(COORDINATOR, "", "complete", BEFORE, ENDING),
        Shot(ELEMENT, "delta", "commit", BEFORE, ENDING),
        Shot(ELEMENT, "one.csv", "close", AFTER, ENDING),
    ],
}


@pytest.mark.parametrize("phase", SHOTS)
@pytest.mark.guarantee(
    source="rows",
    sink="files, growing tables, Delta tables, PostgreSQL, your own transactional sink",
    lost="a process or the coordinator, at each step of a commit",
    rows="each once",
)
def test_each_row_is_there_once_whoever_dies_at_a_step_of_a_sink(phase: str, tmp_path: Path) -> None:
    rows = fire(SHOTS[phase], SINKS, tmp_path / phase)
    assert [row.wrong for row in rows] == [[]] * len(rows)
    assert [row.kills for row in rows] == [1] * len(rows)


def test_e1_a_sink_that_ends_before_its_job_keeps_its_last_epoch(tmp_path: Path) -> None:
    go = tmp_path / "go"

    def waits() -> Iterator[int]:
        yield 1
        while not go.exists():
            threading.Event().wait(LOOK)
        yield 2

    made = rel.Topology("early")
    made.source(rel.rows([ledger.Amount(n) for n in range(1000)]), name="amounts").sink(
        rel.call(ledger.Ledger(tmp_path / "ledger")), name="ledger"
    )
    made.source(rel.callable(waits, {"n": int}), name="others").sink(rel.count(), name="out")
    config = rel.JobConfig(pes={"amounts": 0, "others": 1}, checkpoint=rel.Checkpoint(tmp_path / "saved", every=0.3))
    job = rel.submit(made, config)
    try:
        wait_until_taken(job, 2)  # both may be behind the end of the first stream
        go.touch()
        assert job.wait(PATIENCE)["ledger"] == 1000
    finally:
        job.close()
    assert sorted(ledger.read(tmp_path / "ledger")) == [*range(1000)]
