"""Times with a zone, and times at the ends of what Python and a field hold: exact, or an error that says the fix."""

# ruff: noqa: DTZ001, DTZ901  (times without a zone are a part of what is tested)

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import JobFailedError, SchemaError, SinkError
from rayelastic.graph.records.schema import Schema
from tests.raising import raises

pytestmark = pytest.mark.edges

FIRST, LAST = dt.datetime.min, dt.datetime.max
HOURS = dt.timedelta(hours=30)
BERLIN, NEWFOUNDLAND = ZoneInfo("Europe/Berlin"), dt.timezone(-dt.timedelta(hours=3, minutes=30))
PLAIN = {"k": str, "at": dt.datetime}
NANO: dict[str, Any] = {"k": str, "at": pa.timestamp("ns")}
LANES = ("auto", "python")


class Seen(NamedTuple):
    k: str
    at: Annotated[dt.datetime, BERLIN] | None


def same(s: Any) -> Any:
    return s.filter(lambda t: True, name="same")


def failure(declare: Callable[[Any], Any], rows: list[Any], schema: Any) -> str:
    with pytest.raises(JobFailedError) as caught:
        testing.collect(declare, rows, schema)
    return str(caught.value)


@pytest.mark.parametrize(
    ("zone", "form"), [(dt.UTC, "tsu:UTC"), (BERLIN, "tsu:Europe/Berlin"), (NEWFOUNDLAND, "tsu:-03:30")], ids=str
)
@pytest.mark.parametrize("lane", LANES)
def test_a_zone_is_declared_beside_the_type(zone: dt.tzinfo, form: str, lane: Any) -> None:
    schema = {"k": str, "at": Annotated[dt.datetime, zone]}
    assert Schema.of(schema).field("at").format == form
    now = dt.datetime(2026, 7, 1, 12, 30, 15, 7, tzinfo=dt.UTC)
    given = testing.collect(
        lambda s: s.map(lambda t: (t.k, t.at), name="same", schema=schema, lane=lane), [("a", now)], schema
    )
    assert given == [("a", now)]
    assert given[0][1].utcoffset() == now.astimezone(zone).utcoffset()


def test_a_field_of_a_class_may_have_a_zone_and_be_null() -> None:
    rows = [Seen("a", dt.datetime(2026, 7, 1, tzinfo=BERLIN)), Seen("b", None)]
    assert testing.collect(same, rows, Seen) == [tuple(row) for row in rows]


def test_a_zone_without_a_name_is_rejected() -> None:
    class Odd(dt.tzinfo):
        def utcoffset(self, at: dt.datetime | None) -> dt.timedelta | None:
            return None if at is None else dt.timedelta(seconds=17)

        def dst(self, at: dt.datetime | None) -> None: ...

        def tzname(self, at: dt.datetime | None) -> None: ...

    with raises(SchemaError, "unknown-time-zone", "UTC", "ZoneInfo"):
        Schema.of({"at": Annotated[dt.datetime, Odd()]})


def test_the_message_says_how_a_time_with_a_zone_is_declared() -> None:
    said = failure(same, [("a", dt.datetime.now(dt.UTC))], PLAIN)
    assert "field 'at'" in said
    assert "declare it as Annotated[datetime, datetime.UTC]" in said
    zoned = {"k": str, "at": Annotated[dt.datetime, dt.UTC]}
    assert "replace(tzinfo=UTC)" in failure(same, [("a", dt.datetime(2026, 1, 1))], zoned)


@pytest.mark.parametrize("lane", LANES)
def test_the_first_and_the_last_time_of_python_are_exact(lane: Any) -> None:
    rows = [("a", FIRST), ("b", FIRST + HOURS), ("c", LAST - HOURS), ("d", LAST)]
    schema = {"k": str, "at": dt.datetime, "day": dt.date, "year": int, "since": dt.timedelta}

    def declare(s: Any) -> Any:
        return s.map(
            lambda t: (t.k, t.at, t.at.date(), t.at.year, t.at - dt.datetime(1, 1, 1)),
            name="all",
            schema=schema,
            lane=lane,
        )

    given = testing.collect(declare, rows, PLAIN)
    assert given == [(k, at, at.date(), at.year, at - FIRST) for k, at in rows]


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize(
    ("fn", "rows"),
    [
        (lambda t: t.at + dt.timedelta(days=1), [("a", LAST)]),
        (lambda t: t.at - dt.timedelta(days=1), [("a", FIRST)]),
        (lambda t: t.at + dt.timedelta(days=4_000_000), [("a", dt.datetime(2026, 1, 1))]),
    ],
)
def test_a_time_beyond_python_is_its_exception(fn: Any, rows: Any, lane: Any) -> None:
    assert "OverflowError" in failure(lambda s: s.map(fn, name="m", schema=dt.datetime, lane=lane), rows, PLAIN)


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_windows_near_the_ends_have_exact_bounds(zone: str | None) -> None:
    rows = [("a", FIRST + HOURS), ("a", LAST - HOURS)]

    def windows(s: Any) -> Any:
        timed = s.event_time("at", name="time").key_by("k")
        return timed.window(seconds=3600) if zone is None else timed.window(days=1, zone=zone)

    natively = testing.collect(lambda s: windows(s).aggregate(name="w", n=rel.count()), rows, PLAIN)
    assert natively == testing.collect(lambda s: windows(s).fold(lambda n, t: n + 1, 0, name="w"), rows, PLAIN)
    assert [start <= at < end for (_, start, end, _), (_, at) in zip(natively, rows, strict=True)] == [True, True]


@pytest.mark.parametrize(("at", "seconds"), [(LAST, 3600), (FIRST, 7 * 86_400)])
def test_a_window_with_a_bound_beyond_python_is_an_error_or_written_as_it_is(
    at: Any, seconds: int, tmp_path: Any
) -> None:
    def windows(s: Any) -> Any:
        return s.event_time("at", name="time").key_by("k").window(seconds=seconds)

    compiled: dict[str, Callable[[Any], Any]] = {
        "aggregate": lambda s: windows(s).aggregate(name="w", n=rel.count()),
        "fold": lambda s: windows(s).fold(lambda n, t: n + 1, 0, name="w"),
    }
    for declare in compiled.values():
        with raises(SinkError, "unwritable-value", "of w has a time", operator="collected"):
            testing.collect(declare, [("a", at)], PLAIN)
    said = failure(lambda s: windows(s).collect(name="w"), [("a", at)], PLAIN)
    assert "operator 'w'" in said
    assert "pass the event time as a number" in said
    topology = rel.Topology("written")
    counts = windows(topology.source(rel.rows([("a", at)], PLAIN), name="rows")).aggregate(name="w", n=rel.count())
    counts.sink(rel.parquet(tmp_path / "out.parquet"), name="out")
    rel.run(topology)
    import pyarrow.parquet as pq

    table = pq.read_table(tmp_path / "out.parquet")
    start, end = (table.column(name).cast(pa.int64())[0].as_py() for name in ("start", "end"))
    assert end - start == seconds * 10**6
    assert start <= (at - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1) < end


@pytest.mark.parametrize("lane", LANES)
def test_a_time_that_nanoseconds_cannot_hold_is_an_error(lane: Any) -> None:
    rows = [("a", dt.datetime(2500, 1, 1))]
    assert "doesn't fit into the field's unit" in failure(same, rows, NANO)
    said = failure(lambda s: s.map(lambda t: (t.k, t.at), name="m", schema=NANO, lane=lane), rows, PLAIN)
    assert "operator 'm', field 'at'" in said
    later = failure(
        lambda s: s.map(lambda t: (t.k, t.at + dt.timedelta(days=40_000)), name="m", schema=NANO, lane=lane),
        [("a", dt.datetime(2250, 1, 1))],
        NANO,
    )
    assert "operator 'm'" in later


@pytest.mark.parametrize(
    ("kind", "at"),
    [
        (pa.timestamp("ns"), dt.datetime(2200, 1, 1)),
        (pa.timestamp("ns"), dt.datetime(1700, 1, 1)),
        (float, float("nan")),
        (float, float("inf")),
        (int, 2**63 - 1),
        (int, -(2**63)),
    ],
    ids=str,
)
def test_an_event_time_that_windows_cannot_count_is_an_error(kind: Any, at: Any) -> None:
    said = failure(
        lambda s: s.event_time("at", name="time").window(seconds=60).aggregate(name="w", n=rel.count()),
        [("a", at)],
        {"k": str, "at": kind},
    )
    assert "operator 'time'" in said
    assert "use a coarser unit" in said


def test_nanoseconds_of_a_pandas_timestamp_are_kept_or_refused() -> None:
    pd = pytest.importorskip("pandas")
    at = pd.Timestamp(1_000_005, unit="ns")
    given = testing.collect(lambda s: s.window(count=1).aggregate(name="w", at=rel.last("at")), [("a", at)], NANO)
    assert given == [(at,)]
    assert "finer than the field's unit" in failure(same, [("a", at)], PLAIN)


@pytest.mark.parametrize("how", ["fold", "top", "collect", "sessions", "batches", "every"])
def test_windows_in_python_of_nanoseconds_and_floats_lose_nothing(how: str) -> None:
    """Their ends are ticks that neither a datetime nor, always, a float has."""
    seconds = [0.7, 1.1, 4198.999999, 4199.0, 1234567.891, 1774566000.000001, 1774566000.25, 1774566001.001]
    epoch = dt.datetime(1970, 1, 1)
    for kind, written in (
        (pa.timestamp("ns"), lambda s: epoch + dt.timedelta(microseconds=round(s * 1e6))),
        (float, lambda s: s),
    ):
        rows = [("k", written(one)) for one in seconds]

        def declare(s: Any) -> Any:
            timed = s.event_time("at", name="time").key_by("k")
            windows = timed.window(seconds=0.001)
            return {
                "fold": lambda: windows.fold(lambda n, t: n + 1, 0, name="w"),
                "every": lambda: timed.window(seconds=2).fold(lambda n, t: n + 1, 0, name="w", every=0.5),
                "top": lambda: windows.top(9, "at", name="w"),
                "collect": lambda: windows.collect(name="w"),
                "sessions": lambda: timed.session(gap=0.25).fold(lambda n, t: n + 1, 0, name="w"),
                "batches": lambda: timed.window(count=3, within=0.5).fold(lambda n, t: n + 1, 0, name="w"),
            }[how]()

        given = testing.collect(declare, rows, {"k": str, "at": kind})
        if how == "every":
            assert sum(t[-1] for t in given if t[3]) == len(rows)
        elif how in ("top", "collect"):
            assert sorted(t[-1] for t in given) == sorted(at for _, at in rows)
        else:
            assert sum(t[-1] for t in given) == len(rows)


def test_a_float_time_is_in_the_window_that_begins_with_it() -> None:
    """1.001 * 1e6 is 1000999.9999999999."""
    rows = [(n / 1000,) for n in range(3000)]

    def windows(s: Any) -> Any:
        return s.event_time("at", name="time").window(seconds=0.001)

    given = testing.collect(lambda s: windows(s).aggregate(name="w", n=rel.count()), rows, {"at": float})
    assert given == [(n / 1000, (n + 1) / 1000, 1) for n in range(3000)]
