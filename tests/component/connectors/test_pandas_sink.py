"""`rel.pandas()` collects a stream into a DataFrame, with the values as they were."""

from __future__ import annotations

import datetime as dt
import importlib.util
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import rayelastic as rel
from rayelastic import testing
from tests.raising import raises

LARGE = 2**53 + 1
ROWS = [(LARGE, "a", 1.5, dt.datetime(1, 1, 1)), (None, None, None, None)]  # noqa: DTZ001 -- before pandas' nanoseconds
SCHEMA = {"n": int | None, "s": str | None, "x": float | None, "at": dt.datetime | None}


def frame(source: Any, **options: Any) -> Any:
    topology = rel.Topology("frame")
    topology.source(source, name="rows").sink(rel.pandas(), name="out")
    return rel.run(topology, **options)["out"]


def test_values_stay_exact() -> None:
    out = frame(rel.rows(ROWS, SCHEMA))
    assert list(out.columns) == list(SCHEMA)
    assert out["n"].tolist() == [LARGE, None]
    assert (out["at"][0].year, out["x"][0], out["s"][0]) == (1, 1.5, "a")
    assert out.iloc[1].isna().all()
    assert frame(rel.rows([], SCHEMA)).shape == (0, 4)


def test_a_frame_goes_in_and_out() -> None:
    before = pd.DataFrame({"k": ["a", "b"], "n": [1, 2]})
    assert frame(before).equals(before)


def test_a_restored_job_has_the_rows_before(tmp_path: Path) -> None:
    gate = testing.Gate()
    topology = rel.Topology("frame")
    topology.source(testing.script([(1,), gate], {"n": int}), name="rows").sink(rel.pandas(), name="out")
    job = rel.start(topology)
    assert gate.wait_reached(60)
    job.snapshot(tmp_path / "snapshot")
    job.close()
    assert frame(testing.script([(1,), (2,)], {"n": int}), restore=tmp_path / "snapshot")["n"].tolist() == [1, 2]


def test_without_pandas_the_declaration_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pandas" else found(name))
    with raises(rel.errors.SinkError, "missing-package", "pip install pandas"):
        rel.Topology("none").source(rel.rows([1])).sink(rel.pandas(), name="out")
