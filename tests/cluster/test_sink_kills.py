"""A few kills at steps of sinks, running and ending; `./dev kills --sinks` has all sinks, steps and victims."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.sink_kills import AFTER, BEFORE, COORDINATOR, ELEMENT, ENDING, RUNNING, Shot, fire

pytestmark = [pytest.mark.edges, pytest.mark.usefixtures("ray_cluster")]

SINKS = ["parquet", "one.csv", "ledger", "list"]
SHOTS = {
    RUNNING: [
        Shot(ELEMENT, "ledger", "prepare", AFTER, RUNNING),
        Shot(COORDINATOR, "", "note", AFTER, RUNNING),
        Shot(ELEMENT, "parquet", "commit", BEFORE, RUNNING),
    ],
    ENDING: [
        Shot(ELEMENT, "ledger", "commit", AFTER, ENDING),
        Shot(COORDINATOR, "", "complete", BEFORE, ENDING),
        Shot(ELEMENT, "one.csv", "close", AFTER, ENDING),
    ],
}


@pytest.mark.parametrize("phase", SHOTS)
def test_each_row_is_there_once_whoever_dies_at_a_step_of_a_sink(phase: str, tmp_path: Path) -> None:
    rows = fire(SHOTS[phase], SINKS, tmp_path / phase)
    assert [row.wrong for row in rows] == [[]] * len(rows)
    assert [row.kills for row in rows] == [1] * len(rows)
