"""Tables and Parquet: columns can be renamed, nulls alone are texts, and no cast changes a value."""

from __future__ import annotations

import datetime as dt
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rayelastic as rel
from tests.component.connectors.reading import refused, rows
from tests.raising import raises

pytestmark = pytest.mark.edges
NAMES = {"order id": [1], "class": ["a"], "__index_level_0__": [0]}


def both(table: Any, folder: Path, schema: Any = None, **options: Any) -> list[Any]:
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
    with raises(rel.errors.SchemaError, "bad-field-name", "order id", "order_id", "Rename"):
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
    with raises(rel.errors.SchemaError, "schema-mismatch"):
        rel.arrow(table, pa.schema([("a", kind)]) if isinstance(kind, pa.DataType) else {"a": kind})
    declared = pa.schema([("a", kind)]) if isinstance(kind, pa.DataType) else {"a": kind | None}
    assert f"'{tmp_path / 'it.parquet'}' can't be read behind row" in refused(
        rel.parquet(str(tmp_path / "it.parquet"), declared)
    )


def test_a_frame_with_values_of_several_types() -> None:
    pandas = pytest.importorskip("pandas")
    with raises(rel.errors.SchemaError, "unsupported-type", "DataFrame", "Arrow"):
        rel.arrow(pandas.DataFrame({"a": [1, "x"]}))


def test_csv_of_one_column_keeps_rows_of_none(tmp_path: Path) -> None:
    topology = rel.Topology("writes")
    read = topology.source(rel.rows([(1,), (None,), (3,)], schema={"n": int | None}), name="rows")
    read.sink(rel.csv(str(tmp_path / "out.csv")), name="out")
    rel.run(topology)
    assert [t.n for t in rows(rel.csv(str(tmp_path / "out.csv")))] == [1, None, 3]


def test_times_of_old_zones_keep_their_seconds(tmp_path: Path) -> None:
    old = pa.array([dt.datetime(1700, 1, 1, tzinfo=dt.UTC)], pa.timestamp("us", "Europe/Berlin"))
    topology = rel.Topology("writes")
    read = topology.source(rel.arrow(pa.table({"at": old})), name="rows")
    for name in ("csv", "json"):
        read.sink(getattr(rel, name)(str(tmp_path / f"out.{name}")), name=name)
    rel.run(topology)
    for name in ("csv", "json"):
        (back,) = rows(getattr(rel, name)(str(tmp_path / f"out.{name}"), pa.schema([("at", old.type)])))
        assert back.at == dt.datetime(1700, 1, 1, tzinfo=dt.UTC)


def test_frames_of_polars(tmp_path: Path) -> None:
    """Their texts are views, in categories, too."""
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(
        {
            "kind": polars.Series(["a", None], dtype=polars.Categorical),
            "tags": [["x"], []],
            "at": [dt.date(1, 1, 1), None],
        }
    )
    topology = rel.Topology("frame")
    read = topology.source(rel.arrow(frame), name="rows")
    read.sink(rel.list(), name="out")
    read.sink(rel.parquet(str(tmp_path / "out.parquet")), name="parquet")
    wanted = [("a", ["x"], dt.date(1, 1, 1)), (None, [], None)]
    assert [tuple(t) for t in rel.run(topology)["out"]] == wanted
    assert [tuple(t) for t in rows(rel.parquet(str(tmp_path / "out.parquet")))] == wanted


def test_a_frame_with_numbers_that_arrow_cant_hold() -> None:
    pandas = pytest.importorskip("pandas")
    with raises(rel.errors.SchemaError, "unsupported-type", "DataFrame", "Arrow"):
        rel.arrow(pandas.DataFrame({"a": pandas.Series([2**64 - 1, None], dtype=object)}))


def test_ids_and_durations_as_texts(tmp_path: Path) -> None:
    table = pa.table({"id": pa.array([uuid.UUID(int=5)], pa.uuid()), "took": pa.array([dt.timedelta(-3, 0, 1)])})
    texts = {"id": str(uuid.UUID(int=5)), "took": "-P2DT23H59M59.999999S"}
    for source in both(table, tmp_path, {"id": str, "took": str}):
        assert [t._asdict() for t in rows(source)] == [texts]
    for source in both(pa.table({name: [text] for name, text in texts.items()}), tmp_path, table.schema):
        assert [t._asdict() for t in rows(source)] == table.to_pylist()


DURATIONS = {
    "P1W2DT3H4M5,000006S": dt.timedelta(9, 11045, 6), "-P1DT1S": dt.timedelta(-1, -1), "P0D": dt.timedelta(0),
    "PT-0.5S": dt.timedelta(seconds=-0.5), "P-3DT0H0M0.000001S": dt.timedelta(-3, 0, 1), "2 days": dt.timedelta(2),
    "-3 days +00:00:00.000001": dt.timedelta(-3, 0, 1), "1 day, 2:03:04": dt.timedelta(1, 7384),
    "-71:59:59.5": dt.timedelta(seconds=-259199.5),
}  # fmt: skip
NO_DURATIONS = (
    "P", "PT", "P1Y", "P1M", "1", "1.5", "", " ", "12:30", "1 day 2", "1 hour", "12:30:00+02:00", "PT0.0000001S",
    "P106751992D",
)  # fmt: skip


@pytest.mark.parametrize("text", DURATIONS)
def test_texts_of_durations(text: str) -> None:
    assert rows(rel.arrow(pa.table({"took": [text]}), {"took": dt.timedelta}))[0].took == DURATIONS[text]


@pytest.mark.parametrize("text", NO_DURATIONS)
def test_texts_that_are_no_durations(text: str) -> None:
    with raises(rel.errors.SchemaError, "schema-mismatch"):
        rel.arrow(pa.table({"took": [text]}), {"took": dt.timedelta})


def test_large_texts_in_lists_can_be_written(tmp_path: Path) -> None:
    large = pa.table({"tags": pa.array([["x"], []], pa.list_(pa.large_string()))})
    topology = rel.Topology("large")
    topology.source(rel.arrow(large), name="rows").sink(rel.parquet(str(tmp_path / "out.parquet")), name="parquet")
    rel.run(topology)
    assert [t.tags for t in rows(rel.parquet(str(tmp_path / "out.parquet")))] == [["x"], []]
