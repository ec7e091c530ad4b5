"""Datetimes with a time zone: those of UTC calculate as CPython's do, those of another zone run in Python."""

from __future__ import annotations

import datetime as dt
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from harness import MAP, Runner, python_result, request

from rayelastic import compile_report
from rayelastic.compile import Compiler
from rayelastic.compile.cache.code_cache import CodeCache
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import Lane

pytestmark = pytest.mark.edges
BERLIN = ZoneInfo("Europe/Berlin")
SCHEMA = Schema.of(
    {
        "z": pa.timestamp("us", "Europe/Berlin"),
        "y": pa.timestamp("us", "Europe/Berlin"),
        "u": pa.timestamp("us", "UTC"),
        "v": pa.timestamp("us", "UTC"),
        "a": dt.datetime,
        "f": pa.timestamp("us", "+02:00"),
    }
)
DAY = dt.timedelta(days=1)
CHANGES = [dt.datetime(2026, 3, 29, 1, tzinfo=dt.UTC), dt.datetime(2026, 10, 25, 1, tzinfo=dt.UTC)]
MIDNIGHT = dt.datetime(2026, 7, 5, 22, 30, tzinfo=dt.UTC)
INSTANTS = [
    when + dt.timedelta(minutes=minutes)
    for when in (*CHANGES, MIDNIGHT, dt.datetime(2026, 12, 31, 23, tzinfo=dt.UTC))
    for minutes in (-1441, -61, -60, -1, 0, 1, 59, 60, 1500)
]
FIXED = dt.timezone(dt.timedelta(hours=2))
ROWS = [
    (one.astimezone(BERLIN), other.astimezone(BERLIN), one, other, one.replace(tzinfo=None), one.astimezone(FIXED))
    for one, other in zip(INSTANTS, INSTANTS[1:] + INSTANTS[:1], strict=True)
]
ROWS += [(row[0].replace(fold=0), *row[1:]) for row in ROWS if row[0].fold]

ELSEWHERE = {
    "strftime": (lambda t: t.z.strftime("%H"), str), "time": (lambda t: t.z.time(), dt.time),
    "isocalendar": (lambda t: t.z.isocalendar()[1], int), "hour": (lambda t: t.z.hour, int),
    "weekday": (lambda t: t.z.weekday(), int), "date": (lambda t: t.z.date(), dt.date),
    "isoformat": (lambda t: t.z.isoformat(), str), "str": (lambda t: str(t.z), str),
    "add": (lambda t: (t.z + DAY).isoformat(), str), "radd": (lambda t: (DAY + t.z).isoformat(), str),
    "sub": (lambda t: (t.z - DAY).isoformat(), str), "difference": (lambda t: t.z - t.y, dt.timedelta),
    "lt": (lambda t: t.z < t.y, bool), "eq": (lambda t: t.z == t.y, bool), "other": (lambda t: t.z < t.u, bool),
    "in": (lambda t: t.z in (t.y, t.y), bool), "max": (lambda t: max(t.z, t.y).isoformat(), str),
    "set": (lambda t: len({t.z, t.y}), int), "sorted": (lambda t: sorted([t.z, t.y])[0].isoformat(), str),
    "tuple": (lambda t: (t.z, 1) < (t.y, 1), bool), "replace": (lambda t: t.z.replace(hour=2).isoformat(), str),
    "fold": (lambda t: t.z.fold, int), "offset": (lambda t: t.z.utcoffset(), dt.timedelta),
    "timestamp": (lambda t: t.z.timestamp(), float), "timetz": (lambda t: str(t.z.timetz()), str),
    "astimezone": (lambda t: t.z.astimezone(dt.UTC).hour, int), "fixed": (lambda t: t.f.strftime("%H"), str),
    "combine": (lambda t: dt.datetime.combine(t.z, dt.time(3)), dt.datetime), "night": (
        lambda t: t.z.time() < dt.time(6), bool), "truth": (lambda t: 1 if t.z else 0, int),
}  # fmt: skip


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_needs_the_clock_of_the_wall_runs_in_python(compiler: Compiler, name: str) -> None:
    """A2."""
    function, output = ELSEWHERE[name]
    code = compiler.compile(request(function, SCHEMA, output=Schema.of({"value": output})))
    assert code.lane is Lane.PYTHON
    tuples = [SCHEMA.tuple_type._make(row) for row in ROWS]  # type: ignore[attr-defined]
    assert python_result(code, ROWS).items == [(function(t),) for t in tuples]


def test_a_datetime_of_another_zone_is_handed_on(shim: Any, tmp_path: Any) -> None:
    """A2."""
    function = lambda t: (t.z if t.u < t.v else t.y, t.z, t.f, t.z is None)  # noqa: E731
    code = Compiler(CodeCache(tmp_path)).compile(request(function, SCHEMA))
    assert [field.format for field in code.output_schema.fields[:3]] == ["tsu:Europe/Berlin"] * 2 + ["tsu:+02:00"]
    assert code.lane is Lane.COMPILED
    report = compile_report(lambda t: t.z, SCHEMA)
    assert (report.lane, str(report.output_schema)) == ("compiled", "Record(value: timestamp[us, Europe/Berlin])")


def parts(t):
    return t.u.strftime("%Y-%m-%d %H:%M:%S %j"), t.u.time(), t.u.isocalendar()[1], t.u.hour, t.u.weekday(), t.u.date()


def moved(t):
    return t.u + DAY, DAY + t.u, t.u - DAY, t.u - t.v, t.u.replace(hour=2, minute=5), t.u.isoformat()


def compared(t):
    return t.u < t.v, t.u == t.v, max(t.u, t.v), t.u.time() < dt.time(6)


@pytest.mark.parametrize("function", [parts, moved, compared])
def test_a_datetime_of_utc_is_compiled_as_in_python(compiled: Any, function: Any) -> None:
    """A2."""
    columns = {"u": pa.timestamp("us", "UTC"), "v": pa.timestamp("us", "UTC")}
    rows = [(row[2], row[3]) for row in ROWS]
    runner: Runner = compiled(function, columns, MAP)
    assert repr(runner(rows).items) == repr(python_result(runner.code, rows).items)


MIXED = [lambda t: t.u < t.a, lambda t: t.u == t.a, lambda t: t.u - t.a, lambda t: max(t.u, t.a)]


@pytest.mark.parametrize("function", MIXED, ids=range(len(MIXED)))
def test_a_zone_never_meets_none(function: Any) -> None:
    """A2: CPython raises TypeError, or they are never equal."""
    assert compile_report(function, SCHEMA).lane == "python"
