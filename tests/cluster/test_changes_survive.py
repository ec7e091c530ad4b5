"""Somebody dies while partitions move or operators part: each row is there once. At each step: `./dev kills`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.change_kills import CALLED, Change, kill, running, series
from tests.cluster.mortal import ITSELF

pytestmark = pytest.mark.timeout(240)

HERE = (Change.SHARES, Change.SPLIT)
CELLS = [(change, victim, step) for change in HERE for victim in change.victims for step in change.steps]


@pytest.mark.parametrize(
    ("change", "shots"),
    [
        (Change.SHARES, [(ITSELF, "copy"), ("pe1", "copy")]),
        (Change.SPLIT, [(CALLED, "open"), (ITSELF, "start")]),
    ],
)
def test_somebody_dies_in_a_change(
    ray_cluster: str, tmp_path: Path, change: Change, shots: list[tuple[str, str]]
) -> None:
    with running(tmp_path, change) as job:
        for victim, step in shots:
            assert kill(job, change, victim, step, tmp_path) is not None, f"it didn't come to {step}"


@pytest.mark.nightly
@pytest.mark.parametrize(("change", "victim", "step"), CELLS)
def test_somebody_dies_at_any_step(ray_cluster: str, tmp_path: Path, change: Change, victim: str, step: str) -> None:
    row = series(change, victim, step, 2, tmp_path)
    assert (row.kills, row.wrong) == (2, [])
