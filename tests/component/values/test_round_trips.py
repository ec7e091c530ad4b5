"""Values of every type, and of types made of these: through Python, records, links, Arrow, Parquet, pandas and back."""

from __future__ import annotations

import datetime as dt
import decimal
import tempfile
import uuid
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

import rayelastic as rel
from rayelastic.errors import JobFailedError, RayelasticError, SchemaError, SinkError
from rayelastic.graph.records.schema import Schema
from tests.component.values.kinds import Leg, Level, Point, Shape, Side, tables
from tests.raising import raises

Table = tuple[dict[str, Any], list[tuple[Any, ...]]]


def run(source: Any, *, python: bool = True, sink: Any = None, config: rel.JobConfig | None = None) -> Any:
    """What comes out of a source, by way of a Python function that hands every tuple on."""
    topology = rel.Topology("types")
    stream = topology.source(source, name="in")
    if python:
        stream = stream.map(lambda t: t, name="same", schema=stream.schema, lane="python")
    stream.sink(rel.list() if sink is None else sink, name="out")
    return rel.run(topology, config)["out"]


def plain(rows: Any) -> list[tuple[Any, ...]]:
    """Tuples without their class."""
    return [tuple(row) for row in rows]


@settings(deadline=None, max_examples=60)
@given(tables())
def test_python_and_records(table: Table) -> None:
    declared, rows = table
    assert plain(run(rel.rows(rows, schema=declared))) == rows


@settings(deadline=None, max_examples=60)
@given(tables())
def test_arrow(table: Table) -> None:
    declared, rows = table
    arrow = run(rel.rows(rows, schema=declared), python=False, sink=rel.arrow())
    arrow.validate(full=True)
    assert arrow.schema.types == Schema.of(declared).to_arrow().types
    assert plain(run(rel.arrow(arrow, schema=declared))) == rows
    assert plain(run(rel.arrow(arrow.slice(1), schema=declared), python=False)) == rows[1:]


@settings(deadline=None, max_examples=25)
@given(tables())
def test_parquet(table: Table) -> None:
    declared, rows = table
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "rows.parquet")
        run(rel.rows(rows, schema=declared), sink=rel.parquet(path))
        assert pq.read_table(path).num_rows == len(rows)
        assert plain(run(rel.parquet(path, schema=declared))) == rows


@settings(deadline=None, max_examples=15)
@given(tables())
def test_links(table: Table) -> None:
    declared, rows = table
    apart = rel.JobConfig(pes={"in": 0, "same": 1})
    assert plain(run(rel.rows(rows, schema=declared), config=apart)) == rows


def test_csv(tmp_path: Path) -> None:
    path = str(tmp_path / "rows.csv")
    declared = {
        "side": Side, "level": Level | None, "price": decimal.Decimal, "payload": rel.Json, "id": uuid.UUID | None,
        "took": dt.timedelta | None,
    }  # fmt: skip
    rows = [
        (
            Side.BUY,
            Level.LOW,
            decimal.Decimal("1.5"),
            {"a": ["b"]},
            uuid.UUID(int=1),
            dt.timedelta(days=-3, seconds=0.5),
        ),
        (Side.SELL, None, decimal.Decimal(-1), 3, None, None),
    ]
    run(rel.rows(rows, schema=declared), sink=rel.csv(path))
    assert plain(run(rel.csv(path, schema=declared).as_source("in"), python=False)) == rows
    topology = rel.Topology("csv")
    with raises(SchemaError, "unsupported-type", "side", "Record", "CSV"):
        topology.source(rel.csv(path, schema={"side": list[str]}), name="a")
    with raises(SinkError, "unsupported-type", "ids", "Record", "CsvSink"):
        topology.source(rel.rows([], schema={"ids": list[uuid.UUID]}), name="b").sink(rel.csv(path), name="out")


def test_pandas() -> None:
    declared = {"side": Side, "xs": list[int], "at": Point, "level": Level | None}
    rows = [(Side.BUY, [1, 2], Point(1.0, None), Level.HIGH), (Side.SELL, [], Point(2.0, "b"), None)]
    frame = run(rel.rows(rows, schema=declared), sink=rel.arrow()).to_pandas()
    assert list(frame["side"]) == ["buy; at <once>", "sell"]
    assert plain(run(rel.arrow(frame, schema=declared))) == rows


def test_what_arrow_declares_needs_no_classes() -> None:
    """Structs come as named tuples that are made for them."""
    inner = pa.struct([pa.field("x", pa.int32()), pa.field("tags", pa.list_(pa.string()))])
    table = pa.table(
        {
            "s": pa.array([{"x": 1, "tags": ["a", None]}, None], inner),
            "m": pa.array([[("k", 2)], []], pa.map_(pa.string(), pa.int8())),
            "w": pa.array([[1, 2], [3, 4]], pa.list_(pa.float32(), 2)),
            "g": pa.array([[1], None], pa.large_list(pa.int64())),
        }
    )
    out = run(rel.arrow(table))
    assert (out[0].s.x, out[0].s.tags, out[0].m, out[0].w, out[0].g) == (1, ["a", None], {"k": 2}, [1.0, 2.0], [1])
    assert (out[1].s, out[1].m, out[1].w, out[1].g) == (None, {}, [3.0, 4.0], None)
    back = run(rel.arrow(table), sink=rel.arrow())
    assert back.to_pylist() == table.to_pylist()


def test_dicts_are_taken_for_named_tuples_and_dataclasses() -> None:
    rows = [({"x": 1.0}, {"side": Side.BUY, "price": 3})]
    (out,) = run(rel.rows(rows, schema={"p": Point, "leg": Leg}))
    assert tuple(out) == (Point(1.0, None), Leg(Side.BUY, 3))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        (list[int], [1, "two"], ("'v[1]'", "expected int, got 'two'")),
        (list[Point], [Point(1, cast("Any", 2))], ("'v[0].tag'", "expected str, got 2")),
        (list[int], [None], ("'v[0]'", "got None")),
        (dict[str, int], {1: 1}, ("'v.key'", "expected str, got 1")),
        (dict[str, int], [("a", 1)], ("'v'", "expected dict, got")),
        (Leg, Point(1, "a"), ("'v'", "expected Leg, got Point")),
        (Side, "sell", ("'v'", "expected Side, got 'sell'")),
        (Side, Level.LOW, ("'v'", "expected Side, got <Level.LOW")),
        (list[int], {1, 2}, ("'v'", "expected list, got {1, 2}")),
        (pa.decimal128(4, 2), "1.5", ("'v'", "expected Decimal, got '1.5'")),
        (pa.uuid(), "1", ("'v'", "expected UUID, got '1'")),
    ],
)
def test_what_is_no_value_of_the_type_is_told_by_its_place(kind: Any, value: Any, says: tuple[str, ...]) -> None:
    with raises(JobFailedError, "function-raised", *says, operator="in"):
        run(rel.rows([(value,)], schema={"v": kind}))


@pytest.mark.parametrize(
    ("text", "limit"), [("1.234", "2 decimal places"), ("123.4", "4 digits"), ("NaN", "finite number")]
)
def test_a_decimal_is_never_rounded(text: str, limit: str) -> None:
    value = decimal.Decimal(text)
    with raises(JobFailedError, "function-raised", text, limit, operator="in"):
        run(rel.rows([(value,)], schema={"v": pa.decimal128(4, 2)}))


def test_what_is_no_member_is_told_where_it_comes_in() -> None:
    with raises(RayelasticError, "source-failed", "side", "hold"):
        run(rel.arrow(pa.table({"side": ["sell", "hold"]}), schema={"side": Side}))


def test_enums_of_anything_go_by_their_names() -> None:
    arrow = run(rel.rows([(Shape.FLAT,), (Shape.ROUND,)], schema={"s": Shape}), sink=rel.arrow())
    assert arrow.to_pylist() == [{"s": "FLAT"}, {"s": "ROUND"}]
