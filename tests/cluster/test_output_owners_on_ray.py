"""Two jobs on Ray that write to one folder: the second one is rejected, and the first one keeps it whatever is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow import csv

import rayelastic as rel
from rayelastic.errors import SinkTakenError
from tests.cluster.test_recovery import KEYS, PATIENCE, PES, ROWS, counted, kill, wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.edges]


def rows_in(folder: Path) -> list[tuple[int, int]]:
    tables = [csv.read_csv(part) for part in folder.glob("part-*")]
    return sorted((row["n"], row["all"]) for table in tables for row in table.to_pylist())


def test_a_folder_belongs_to_one_job_until_that_is_over(ray_cluster: None, tmp_path: Path) -> None:
    (tmp_path / "second").mkdir()
    out, exact = tmp_path / "out", [(n, n // KEYS + 1) for n in range(ROWS)]
    config = rel.JobConfig(pins=PES, checkpoint=rel.Checkpoint(every=0.5, restarts=100))
    first = rel.submit(counted("first", tmp_path, rel.csv(out)), config)
    try:
        wait_for(first, lambda: len(rows_in(out)) > 0)
        with pytest.raises(SinkTakenError, match="belongs to job 'first'.*runs in process"):
            rel.submit(counted("second", tmp_path / "second", rel.csv(out)), config)
        for pe in ("pe2", "pe1"):
            kill(first, pe)
        (tmp_path / "go").touch()
        first.wait(PATIENCE)
    finally:
        first.close()
    assert first.status.checkpoints.restarts >= 2
    assert rows_in(out) == exact
