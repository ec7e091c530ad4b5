"""Tables and Parquet: columns can be renamed, nulls alone are texts, and no cast changes a value."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rayelastic as rel
from tests.component.readers.reading import refused, rows

pytestmark = pytest.mark.edges
NAMES = {"order id": [1], "class": ["a"], "__index_level_0__": [0]}


def both(table: Any, folder: Path, schema: object = None, **options: Any) -> list[Any]:
    """The table as a source, and Parquet of it."""
    pq.write_table(table, folder / "it.parquet")
    return [rel.arrow(table, schema, **options), rel.parquet(str(folder / "it.parquet"), schema, **options)]


def test_columns_are_renamed_and_chosen(tmp_path: Path) -> None:
    """A12: the message says how, and it can be followed."""
    chosen = {"order id": "order", "class": "kind"}
    for source in both(pa.table(NAMES), tmp_path, columns=chosen):
        assert [t._asdict() for t in rows(source)] == [{"order": 1, "kind": "a"}]
    for source in both(pa.table(NAMES), tmp_path, {"kind": str}, columns=chosen):
        assert [t._asdict() for t in rows(source)] == [{"kind": "a"}]
    with pytest.raises(rel.errors.SchemaError, match=r"Rename it: columns=\{'order id': 'order_id', ...\}"):
        rel.arrow(pa.table(NAMES))
    assert "Rename it: columns={'order id': 'order_id', ...}" in refused(rel.parquet(str(tmp_path / "it.parquet")))


def test_folders_that_are_columns_can_be_renamed(tmp_path: Path) -> None:
    (tmp_path / "t" / "class=a").mkdir(parents=True)
    pq.write_table(pa.table({"n": [1]}), tmp_path / "t" / "class=a" / "part.parquet")
    source = rel.parquet(str(tmp_path / "t"), columns={"class": "kind", "n": "n"})
    assert [t._asdict() for t in rows(source)] == [{"kind": "a", "n": 1}]


def test_nulls_alone_are_texts(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    for source in (
        *both(pa.table({"a": pa.nulls(2), "n": [1, 2]}), tmp_path),
        rel.arrow(pandas.DataFrame({"a": [None, None]})),
    ):
        assert [t.a for t in rows(source)] == [None, None]


def test_nulls_in_one_file_are_of_the_type_of_another(tmp_path: Path) -> None:
    for number, column in enumerate((pa.nulls(1), pa.array([7]), pa.nulls(1))):
        pq.write_table(pa.table({"a": column}), tmp_path / f"{number}.parquet")
    assert [t.a for t in rows(rel.parquet(str(tmp_path / "*.parquet")))] == [None, 7, None]


NOON = dt.datetime(2024, 1, 2, 12)  # noqa: DTZ001
CASTS: dict[str, tuple[Any, Any]] = {
    "a float beyond short ones": (pa.array([1e300]), np.float32),
    "a fraction as int": (pa.array([1.5]), int),
    "an int that no float holds": (pa.array([2**53 + 1]), float),
    "a number that is no truth": (pa.array([2]), bool),
    "a time of day as date": (pa.array([NOON]), dt.date),
    "a time in nanoseconds": (pa.array([1], pa.timestamp("ns")), dt.datetime),
    "a time with a zone": (pa.array([NOON], pa.timestamp("us", "Europe/Berlin")), dt.datetime),
    "too many digits": (pa.array(["1000"]), pa.decimal128(5, 2)),
    "what there is no cast for": (pa.array([[1]]), int),
    "a number without a unit as a time": (pa.array([1]), dt.datetime),
    "a number in a dictionary as a time": (pa.array([1]).dictionary_encode(), dt.datetime),
    "a number as a duration": (pa.array([1]), dt.timedelta),
    "a number as a date": (pa.array([1], pa.int32()), dt.date),
}


@pytest.mark.parametrize("case", CASTS)
def test_what_would_change_is_rejected(case: str, tmp_path: Path) -> None:
    column, kind = CASTS[case]
    table = pa.table({"a": column})
    pq.write_table(table, tmp_path / "it.parquet")
    with pytest.raises(rel.errors.SchemaError, match="the table doesn't match"):
        rel.arrow(table, pa.schema([("a", kind)]) if isinstance(kind, pa.DataType) else {"a": kind})
    declared = pa.schema([("a", kind)]) if isinstance(kind, pa.DataType) else {"a": kind | None}
    assert f"'{tmp_path / 'it.parquet'}' can't be read behind row" in refused(
        rel.parquet(str(tmp_path / "it.parquet"), declared)
    )


def test_a_frame_with_values_of_several_types() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(rel.errors.SchemaError, match="the DataFrame has a column that Arrow can't hold"):
        rel.arrow(pandas.DataFrame({"a": [1, "x"]}))


def test_csv_of_one_column_keeps_rows_of_none(tmp_path: Path) -> None:
    topology = rel.Topology("writes")
    read = topology.source("rows", rel.rows([(1,), (None,), (3,)], schema={"n": int | None}))
    read.sink("out", rel.csv(str(tmp_path / "out.csv")))
    rel.run(topology)
    assert [t.n for t in rows(rel.csv(str(tmp_path / "out.csv")))] == [1, None, 3]


def test_times_of_old_zones_keep_their_seconds(tmp_path: Path) -> None:
    old = pa.array([dt.datetime(1700, 1, 1, tzinfo=dt.UTC)], pa.timestamp("us", "Europe/Berlin"))
    topology = rel.Topology("writes")
    read = topology.source("rows", rel.arrow(pa.table({"at": old})))
    for name in ("csv", "json"):
        read.sink(name, getattr(rel, name)(str(tmp_path / f"out.{name}")))
    rel.run(topology)
    for name in ("csv", "json"):
        (back,) = rows(getattr(rel, name)(str(tmp_path / f"out.{name}"), pa.schema([("at", old.type)])))
        assert back.at == dt.datetime(1700, 1, 1, tzinfo=dt.UTC)
