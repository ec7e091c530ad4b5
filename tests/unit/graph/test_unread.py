"""A source leaves out exactly the fields that nobody reads, as far as the functions' code shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import rayelastic as rel
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.unread import fields_read, mark_unread


class Trade(NamedTuple):
    at: int
    symbol: str
    price: float
    volume: int
    note: str | None


SCHEMA = Schema.of(Trade)
TABLE = pa.table({"at": [1], "symbol": ["a"], "price": [1.0], "volume": [2], "note": ["n"]})


def nested(t: Any) -> Any:
    return [n for n in range(t.volume)]  # noqa: C416


def captured(t: Any) -> Any:
    return [t.volume for _ in range(3)]


def inner(t: Any) -> Any:
    def read() -> Any:
        return t.volume

    return read()


def other_name(t: Any) -> Any:
    u = t
    return u.volume


def replaced(t: Any) -> Any:
    t = t.volume
    return t + 1


@pytest.mark.parametrize(
    ("function", "fields"),
    [
        (lambda t: t.price * t.volume, {"price", "volume"}),
        (lambda t: (t.symbol, t.symbol.upper()), {"symbol"}),
        (lambda t, state: state.add(t.price), {"price"}),
        (lambda t: 1, set()),
        (nested, {"volume"}),
        (lambda t: sorted((t.price, 1.0), key=abs), {"price"}),
    ],
)  # fmt: skip
def test_fields_that_a_function_reads_are_known(function: Any, fields: set[str]) -> None:
    assert fields_read(function, SCHEMA) == fields


@pytest.mark.parametrize(
    "function",
    [
        lambda t: t, lambda t: (t, 1), lambda t: str(t), lambda t: t[2], lambda t: t._asdict(), lambda t: t.count(1),
        lambda t: getattr(t, t.symbol), lambda t: eval("t.price"),  # noqa: S307
         lambda t: locals(), lambda *t: t, len,
        captured, inner, other_name, replaced,
    ],
)  # fmt: skip
def test_a_function_that_may_read_more_reads_all(function: Any) -> None:
    found = fields_read(function, SCHEMA)
    assert found is None or (function is captured and found == {"volume"})  # from Python 3.12 on it is inlined


def test_a_class_that_may_check_its_values_has_them() -> None:
    class Checked(Trade):
        def __new__(cls, *values: Any) -> Any:
            assert values[1]
            return super().__new__(cls, *values)

    assert fields_read(lambda t: t.price, Schema.of(Checked)) is None


def test_types_without_an_empty_value_are_read() -> None:
    schema = Schema.of(pa.schema([pa.field("xs", pa.list_(pa.int64()), nullable=False), pa.field("n", pa.int64())]))
    assert fields_read(lambda t: t.n, schema) == {"n", "xs"}


def prices(s: Any) -> Any:
    return s.map(lambda t: t.price, name="prices").sink(rel.list(), name="out")


def late(s: Any) -> Any:
    windowed = s.event_time("at", unit="s").key_by("symbol").window(seconds=5)
    windowed.aggregate(total=rel.sum("volume"), name="sums").late().sink(rel.list(), name="late")


SHAPES: dict[str, tuple[Callable[[Any], Any], set[str]]] = {
    "a map": (prices, {"price"}),
    "all rows": (lambda s: s.sink(rel.list(), name="out"), set(SCHEMA.names)),
    "a count": (lambda s: s.sink(rel.count(), name="out"), {"at"}),
    "a filter before a count": (lambda s: s.filter(lambda t: t.volume > 1).sink(rel.count(), name="out"), {"volume"}),
    "a filter before all rows": (lambda s: s.filter(lambda t: t.volume > 1).sink(rel.list()), set(SCHEMA.names)),
    "two consumers": (lambda s: (prices(s), s.map(lambda t: t.note).sink(rel.list())), {"price", "note"}),
    "by key": (
        lambda s: s.key_by("symbol").aggregate(m=rel.weighted_mean("price", "volume")).sink(rel.list()),
        {"symbol", "price", "volume"},
    ),
    "windows": (
        lambda s: s.event_time("at", unit="s").window(seconds=5).aggregate(n=rel.max("price")).sink(rel.list()),
        {"at", "price"},
    ),
    "windows with late tuples": (late, set(SCHEMA.names)),
    "windows of a function": (
        lambda s: s.key_by("symbol").window(count=2, within=1).process(lambda *_: 1, schema=int).sink(rel.list()),
        set(SCHEMA.names),
    ),
    "a throttle": (lambda s: prices(s.throttle(1000)), {"price"}),
    "a union": (lambda s: prices(s.filter(lambda t: t.volume > 1).union(s)), {"price", "volume"}),
    "a split": (
        lambda s: [
            prices_of.map(lambda t: t.price).sink(rel.list())
            for prices_of in s.split(high=lambda t: t.volume > 1)
        ],
        set(SCHEMA.names),
    ),
    "a split by a key": (
        lambda s: [way.map(lambda t: t.price).sink(rel.list()) for way in s.key_by("symbol").split(2)],
        {"symbol", "price"},
    ),
    "dead letters": (
        lambda s: s.map(lambda t: t.price, name="m", on_error="divert").sink(rel.list()),
        set(SCHEMA.names),
    ),
    "a join": (
        lambda s: s.key_by("symbol").join(s.map(lambda t: t).key_by("symbol"), how="inner").sink(rel.list()),
        set(SCHEMA.names),
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_a_source_leaves_out_what_nobody_reads(shape: str) -> None:
    declare, read = SHAPES[shape]
    topology = rel.Topology("t")
    declare(topology.source(rel.arrow(TABLE, Trade), name="trades"))
    assert set(mark_unread(topology.operators)["trades"].unread) == set(SCHEMA.names) - read


def test_a_source_without_columns_leaves_out_nothing() -> None:
    topology = rel.Topology("t")
    prices(topology.source([Trade(1, "a", 1.0, 2, None)], name="trades"))
    assert all(not spec.unread for spec in mark_unread(topology.operators).values())


def test_explain_names_what_nobody_reads() -> None:
    topology = rel.Topology("t")
    prices(topology.source(rel.arrow(TABLE, Trade), name="trades"))
    assert "trades doesn't decode at, symbol, volume, note: nobody reads them" in " ".join(
        str(topology.explain()).split()
    )
