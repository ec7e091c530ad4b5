"""Tuples to records and back, through a source and a sink that run in Python."""

# ruff: noqa: DTZ001  (times without a zone are part of what is tested)

from __future__ import annotations

import datetime as dt
import math
import zoneinfo
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

UTC = dt.UTC
FIRST, LAST = dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)

WIDTHS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
ARROW = {
    "flag": (pa.bool_(), st.booleans()),
    **{name: (getattr(pa, name)(), st.integers(-(2 ** (w - 1)), 2 ** (w - 1) - 1)) for name, w in WIDTHS.items()},
    **{"u" + name: (getattr(pa, "u" + name)(), st.integers(0, 2**w - 1)) for name, w in WIDTHS.items()},
    "float16": (pa.float16(), st.floats(width=16, allow_nan=False)),
    "float32": (pa.float32(), st.floats(width=32, allow_nan=False)),
    "float64": (pa.float64(), st.floats(allow_nan=False)),
    "date": (pa.date32(), st.dates()),
    "date64": (pa.date64(), st.dates()),
    "time32": (pa.time32("ms"), st.times().map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000))),
    "time64": (pa.time64("us"), st.times()),
    "stamp": (pa.timestamp("us"), st.datetimes()),
    "stamp_ns": (pa.timestamp("ns"), st.datetimes(FIRST, LAST)),
    "stamp_s": (pa.timestamp("s"), st.datetimes().map(lambda d: d.replace(microsecond=0))),
    "utc": (pa.timestamp("us", "UTC"), st.datetimes(FIRST, LAST, timezones=st.just(UTC))),
    "zoned": (
        pa.timestamp("us", "Europe/Berlin"),
        st.datetimes(FIRST, LAST, timezones=st.just(UTC)).map(
            lambda d: d.astimezone(zoneinfo.ZoneInfo("Europe/Berlin"))
        ),
    ),
    "offset": (
        pa.timestamp("us", "-03:30"),
        st.datetimes(FIRST, LAST, timezones=st.just(dt.timezone(dt.timedelta(hours=-3, minutes=-30)))),
    ),
    "delta": (pa.duration("us"), st.timedeltas(dt.timedelta(days=-99999), dt.timedelta(days=99999))),
    "text": (pa.string(), st.text(max_size=40)),
    "data": (pa.binary(), st.binary(max_size=40)),
}
SCHEMA = pa.schema([pa.field(name, kind, nullable=True) for name, (kind, _) in ARROW.items()])
ROWS = st.lists(st.tuples(*(st.none() | values for _, values in ARROW.values())), max_size=8)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS)
def test_every_type_comes_back_as_it_went(pipelines: Any, make: Any, rows: list[tuple[Any, ...]]) -> None:
    got: list[Any] = []
    assert pipelines.run(make.rows(rows, SCHEMA), make.into(got, SCHEMA)) is None
    assert [tuple(row) for row in got] == rows


def test_the_users_class_comes_back(pipelines: Any, make: Any) -> None:
    class Trade(NamedTuple):
        symbol: str
        price: float
        volume: int | None

    rows = [Trade("a" * n, n / 2, n if n % 2 else None) for n in range(40)]
    got: list[Any] = []
    assert pipelines.run(make.rows(rows, Trade), make.into(got, Trade)) is None
    assert got == rows
    assert {type(row) for row in got} == {Trade}


def test_nan_infinity_and_signed_zero(pipelines: Any, make: Any) -> None:
    got: list[Any] = []
    assert (
        pipelines.run(make.rows([(math.nan,), (-math.inf,), (-0.0,)], {"x": float}), make.into(got, {"x": float}))
        is None
    )
    assert math.isnan(got[0][0])
    assert got[1][0] == -math.inf
    assert math.copysign(1, got[2][0]) == -1


def test_plain_values_for_a_schema_of_one_field(pipelines: Any, make: Any) -> None:
    got: list[Any] = []
    assert pipelines.run(make.rows(["a", "ß" * 20], {"word": str}), make.into(got, {"word": str})) is None
    assert got == [("a",), ("ß" * 20,)]


def test_numpy_scalars_are_taken(pipelines: Any, make: Any) -> None:
    schema = {"i": int, "f": float, "b": bool}
    got: list[Any] = []
    rows = [(np.int32(3), np.float32(0.5), np.bool_(True))]
    assert pipelines.run(make.rows(rows, schema), make.into(got, schema)) is None
    assert got == [(3, 0.5, True)]
    assert [type(value) for value in got[0]] == [int, float, bool]


STAMP = {"t": dt.datetime}
BAD = [
    ({"n": int}, ("x",), TypeError, "operator 'rows', field 'n': expected int, got 'x' (str)"),
    ({"n": int}, (1.5,), TypeError, "expected int, got 1.5"),
    ({"n": int}, (2**63,), ValueError, "doesn't fit into int64"),
    ({"n": np.int8}, (128,), ValueError, "field 'n': got 128, which doesn't fit into int8"),
    ({"n": np.uint64}, (-1,), ValueError, "doesn't fit into uint64"),
    ({"n": int}, (None,), ValueError, "isn't nullable"),
    ({"x": float}, ("1",), TypeError, "expected float"),
    ({"x": np.float32}, (1e39,), ValueError, "doesn't fit into float32"),
    ({"x": float}, (2**53 + 1,), ValueError, "got 9007199254740993, which is another number as a float"),
    ({"x": float}, (np.int64(2**63 - 1),), ValueError, "which is another number as a float"),
    ({"x": float}, (-(2**70) - 1,), ValueError, "which is another number as a float"),
    ({"b": bool}, (1,), TypeError, "expected bool"),
    ({"s": str}, (b"x",), TypeError, "expected str"),
    ({"s": str}, ("\ud800",), ValueError, "lone surrogate"),
    ({"s": bytes}, ("x",), TypeError, "expected bytes"),
    ({"d": dt.date}, (dt.datetime(2020, 1, 1),), TypeError, "expected date"),
    (STAMP, (dt.datetime(2020, 1, 1, tzinfo=UTC),), ValueError, "has a time zone, but the field has none"),
    ({"a": int, "b": int}, (1,), TypeError, "expected a tuple (a, b), or a dict with these keys, got (1,)"),
    ({"a": int, "b": int}, 7, TypeError, "expected a tuple (a, b), or a dict with these keys, got 7"),
    ({"n": int}, ("long " * 100,), TypeError, "..."),
    (pa.schema([("t", pa.timestamp("us", "UTC"))]), (dt.datetime(2020, 1, 1),), ValueError, "no time zone"),
    (pa.schema([("t", pa.timestamp("s"))]), (dt.datetime(2020, 1, 1, 0, 0, 0, 5),), ValueError, "finer than"),
]


@pytest.mark.parametrize(("schema", "row", "kind", "message"), BAD, ids=[case[3][:30] for case in BAD])
def test_a_wrong_value_is_named(pipelines: Any, make: Any, schema: Any, row: Any, kind: type, message: str) -> None:
    got: list[Any] = []
    failure = pipelines.run(make.rows([row], schema), make.into(got, schema))
    assert failure is not None
    assert failure.operator == "rows"
    assert type(failure.exception) is kind
    assert message in str(failure.exception)
    assert message in failure.message
    assert got == []


def test_nanoseconds_are_not_lost_silently(pipelines: Any, make: Any) -> None:
    table = pa.record_batch([pa.array([1], pa.timestamp("ns"))], names=["t"])
    schema = make.native(table.schema)
    from rayelastic import _native

    feeder = _native.ArrowFeeder(schema)
    assert feeder.push(table)
    feeder.finish()
    failure = pipelines.run(_native.Operator.arrow_source("in", schema, feeder), make.into([], table.schema))
    assert failure is not None
    assert "nanoseconds" in failure.message
