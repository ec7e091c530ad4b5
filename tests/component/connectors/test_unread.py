"""Columns that nobody reads aren't decoded, and no result shows it: the same jobs with all columns have the same."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rayelastic as rel
from rayelastic.errors import JobFailedError
from rayelastic.job import preparing

LONG = "a text that isn't held inline"
ROWS = 1000

TABLE = pa.table(
    {
        "at": pa.array([dt.datetime(2026, 1, 1) + dt.timedelta(seconds=i) for i in range(ROWS)], pa.timestamp("us")),  # noqa: DTZ001
        "k": [f"key {i % 7}" for i in range(ROWS)],
        "n": list(range(ROWS)),
        "maybe": [None if i % 3 else i for i in range(ROWS)],
        "text": [f"{LONG} {i}" for i in range(ROWS)],
        "flag": [i % 2 == 0 for i in range(ROWS)],
        "money": pa.array([decimal.Decimal(i) / 4 for i in range(ROWS)], pa.decimal128(12, 2)),
        "xs": [[i, i + 1] for i in range(ROWS)],
        "inner": [{"a": i, "b": str(i)} for i in range(ROWS)],
    }
).cast(
    pa.schema(
        [
            pa.field("at", pa.timestamp("us"), nullable=False),
            pa.field("k", pa.string(), nullable=False),
            pa.field("n", pa.int64(), nullable=False),
            pa.field("maybe", pa.int64()),
            pa.field("text", pa.string(), nullable=False),
            pa.field("flag", pa.bool_(), nullable=False),
            pa.field("money", pa.decimal128(12, 2), nullable=False),
            pa.field("xs", pa.list_(pa.int64()), nullable=False),
            pa.field("inner", pa.struct([("a", pa.int64()), ("b", pa.string())])),
        ]
    )
)

SHAPES: dict[str, Callable[[Any], Any]] = {
    "all rows": lambda s: s,
    "compiled": lambda s: s.filter(lambda t: t.n % 3 == 0).map(lambda t: (t.k, t.n * 2)),
    "in Python": lambda s: s.filter(lambda t: t.flag, lane="python").map(lambda t: t.text, lane="python", schema=str),
    "nulls": lambda s: s.map(lambda t: t.maybe),
    "trees": lambda s: s.map(lambda t: (t.xs[0], t.n), lane="python", schema={"x": int, "n": int}),
    "decimals": lambda s: s.map(lambda t: str(t.money), lane="python", schema=str),
    "aggregates": lambda s: s.key_by("k").aggregate(a=rel.sum("n"), b=rel.count("maybe"), c=rel.last("text")),
    "windows": lambda s: s.event_time("at").key_by("k").window(seconds=60).aggregate(a=rel.sum("n"), b=rel.max("n")),
    "sessions": lambda s: s.event_time("at").key_by("k").session(gap=5).aggregate(a=rel.mean("n")),
    "top": lambda s: s.event_time("at").key_by("k").window(seconds=60).top(3, by="n"),
    "a join": lambda s: s.key_by("n").join(s.filter(lambda t: t.flag).key_by("n"), how="inner"),
    "deduplicated": lambda s: s.key_by("k").deduplicate(),
    "branches": lambda s: s.map(lambda t: t.n).union(s.filter(lambda t: t.flag).map(lambda t: t.n)),
    "chosen": lambda s: s.select("n", "text").filter(lambda t: t.n > 990),
}


def results(source: Any, declare: Callable[[Any], Any]) -> list[Any]:
    topology = rel.Topology("t")
    declare(topology.source(source, name="rows")).sink(rel.list(), name="out")
    return sorted(map(repr, rel.run(topology)["out"]))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", ["arrow", "parquet"])
def test_results_are_those_of_all_columns(
    shape: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(TABLE, tmp_path / "rows.parquet", row_group_size=300)

    def source() -> Any:
        return rel.arrow(TABLE) if form == "arrow" else rel.parquet(str(tmp_path / "rows.parquet"))

    ours = results(source(), SHAPES[shape])
    monkeypatch.setattr(preparing, "mark_unread", dict)
    assert ours == results(source(), SHAPES[shape])


def test_only_the_columns_that_are_read_are_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column that can't be decoded harms nobody who doesn't read it, and everybody who does."""
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"n": [1, 2, 3], "text": ["7", "8", "no number"]}), path)

    def run() -> Any:
        topology = rel.Topology("t")
        read = topology.source(rel.parquet(str(path), {"n": int, "text": int}), name="rows")
        read.aggregate(total=rel.sum("n")).sink(rel.list(), name="out")
        return rel.run(topology)["out"]

    assert run() == [(6,)]
    monkeypatch.setattr(preparing, "mark_unread", dict)
    with pytest.raises(JobFailedError, match="no number"):
        run()


def test_folders_name_columns_that_alone_are_read(tmp_path: Path) -> None:
    for day in ("1", "2"):
        (tmp_path / f"day={day}").mkdir()
        pq.write_table(TABLE.slice(0, 10), tmp_path / f"day={day}" / "rows.parquet")
    assert results(rel.parquet(str(tmp_path)), lambda s: s.key_by("day").aggregate(n=rel.count())) == [
        "aggregate(day=1, n=10)",
        "aggregate(day=2, n=10)",
    ]


@pytest.mark.parametrize("lane", ["compiled", "python"])
def test_a_failing_tuple_shows_what_was_not_read(lane: Any) -> None:
    topology = rel.Topology("t")
    rows = topology.source(rel.arrow(pa.table({"a": ["x"], "n": [0], "b": ["y"]})), name="rows")
    rows.map(lambda t: 1 // t.n, name="divide", lane=lane, schema=int).sink(rel.list(), name="out")
    with pytest.raises(JobFailedError) as caught:
        rel.run(topology)
    assert caught.value.failing_tuple == "Record(a=..., n=0, b=...)"
