"""The watermark of each operator, as counters, metrics and the web UI's frames show it."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pytest

import rayelastic as rel
from rayelastic.runtime.values.status import JobMetrics
from rayelastic.runtime.watch.metric_table import MetricsReader
from rayelastic.web.frames import COLUMNS, Rows, frame_between

pytestmark = pytest.mark.edges

FIRST = 1_700_000_000  # seconds since 1970
LATE = 2  # seconds


def counted(unit: Literal["s", "ms", "us", "ns"], per_second: int, pes: int = 1) -> tuple[rel.Job, JobMetrics]:
    topology = rel.Topology("timed")
    rows = [((FIRST + n) * per_second, n % 5) for n in range(103)]
    timed = topology.source(rel.rows(rows, {"at": int, "key": int}), name="rows").event_time(
        "at", unit=unit, lateness=LATE, name="time"
    )
    counts = timed.key_by("key").window(seconds=10).aggregate(name="counts", n=rel.count())
    counts.map(lambda t: t.n, name="only_n", schema={"n": int}).sink(rel.count(), name="out")
    job = rel.start(topology, rel.JobConfig(pes=pes))
    return job, job.wait().metrics


@pytest.mark.parametrize(
    ("unit", "per_second", "pes"), [("s", 1, 1), ("ms", 1000, 1), ("us", 10**6, 2), ("ns", 10**9, 1)]
)
def test_operators_show_the_last_watermark_in_seconds(
    unit: Literal["s", "ms", "us", "ns"], per_second: int, pes: int
) -> None:
    _, metrics = counted(unit, per_second, pes)
    expected = FIRST + 102 - LATE - 1 / per_second
    for name in ("time", "counts", "only_n", "out"):  # behind a map that drops the field, too
        assert metrics.operator(name).watermark == pytest.approx(expected, abs=1e-6), name
    assert metrics.operator("rows").watermark is None  # its tuples have no time yet


def test_metrics_and_frames_have_it() -> None:
    job, metrics = counted("ms", 1000)
    expected = FIRST + 102 - LATE - 0.001
    found = {one.labels[2]: one.value for one in MetricsReader().read(metrics) if "watermark" in one.metric}
    assert found == {name: pytest.approx(expected) for name in ("time", "counts", "only_n", "out")}
    rows = Rows(job.plan())
    table = frame_between(None, metrics, job.plan(), rows).operators
    shown = table.astype(np.float64)[:, [COLUMNS.index("watermark"), COLUMNS.index("watermark_rest")]].sum(axis=1)
    assert shown[rows.places["out"]] == pytest.approx(expected, abs=1e-3)  # though a float32 has steps of 128 s there
    assert shown[rows.places["rows"]] == -math.inf


def test_without_an_event_time_there_is_none() -> None:
    topology = rel.Topology("untimed")
    topology.source(rel.sequence(10), name="numbers").sink(rel.count(), name="out")
    metrics = rel.run(topology).metrics
    assert [one.watermark for pe in metrics.pes for one in pe.operators] == [None, None]
