"""A job with checkpoints that ends badly: another one goes on from the last of them, with all that its sinks had."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow.dataset as dataset

import rayelastic as rel
from rayelastic.plan.settings.checkpoint import Checkpoint
from rayelastic.runtime.checkpoint.files import MANIFEST

PATIENCE = 60.0
LINES = 50_000
A_WHILE = 0.001  # seconds for a line of the first run, behind the middle
KEY = b"0123456789abcdef"


def test_what_a_job_wrote_until_its_last_checkpoint_is_gone_on_with(tmp_path: Path) -> None:
    lines, given_up = tmp_path / "lines.txt", threading.Event()
    lines.write_text("".join(f"{n}\n" for n in range(LINES)))

    def number(t: Any) -> int:
        n = int(t.line)
        if n > LINES // 2:
            given_up.wait(A_WHILE)
        return n

    def topology() -> rel.Topology:
        made = rel.Topology("goes_on")
        numbers = made.source(rel.text(lines), name="lines").map(
            number, name="number", schema={"n": int}, lane="python"
        )
        for name, sink in (("parquet", rel.parquet), ("csv", rel.csv), ("jsonl", rel.json)):
            numbers.sink(sink(tmp_path / f"all.{name}"), name=f"{name}-file")
            numbers.sink(sink(tmp_path / name), name=f"{name}-parts")
        numbers.sink(rel.spark.sink_stream(str(tmp_path / "growing"), seconds=0.05), name="growing")
        numbers.sink(rel.list(), name="listed")
        numbers.sink(rel.count(), name="counted")
        return made

    saved = tmp_path / "checkpoints"
    checkpoint = Checkpoint(saved, every=0.2, key=KEY)
    config = rel.JobConfig(checkpoint=checkpoint, threads=rel.Threads(model="dynamic", queue_records=256))
    job, looked = rel.start(topology(), config), threading.Event()
    try:
        while (status := job.status).checkpoints.taken < 2:
            assert not status.state.is_final, status
            looked.wait(0.05)
    finally:
        job.cancel(drain=False)
        job.close()
        given_up.set()
    assert not (tmp_path / "all.parquet").exists()
    newest = max(saved.rglob(MANIFEST), key=lambda file: file.stat().st_mtime_ns).parent
    result = rel.run(topology(), restore=rel.Snapshot(newest, key=KEY))
    expected = list(range(LINES))
    assert [t.n for t in result["listed"]] == expected
    assert result["counted"] == LINES
    for name in ("all.parquet", "all.csv", "all.jsonl", "parquet", "csv", "jsonl", "growing"):
        kind = next((kind for kind in ("csv", "json") if kind in name), "parquet")
        table = dataset.dataset(tmp_path / name, format=kind).to_table()
        assert sorted(table["n"].to_pylist()) == expected, name
    assert len(list((tmp_path / "parquet").glob("part-*"))) >= 2, "a part for each epoch that had rows"
    assert not [
        file for name in (".", "parquet", "csv", "jsonl", "growing") for file in (tmp_path / name).glob(".*.partial")
    ]
