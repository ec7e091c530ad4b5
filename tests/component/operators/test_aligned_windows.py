"""Windows with a chosen start, and windows of days of a zone, against the standard library (A11)."""

# ruff: noqa: DTZ001  (times without a zone are what is tested)

from __future__ import annotations

import datetime as dt
import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import GraphError
from tests.raising import raises

pytestmark = pytest.mark.edges

BERLIN = ZoneInfo("Europe/Berlin")
MONDAY = dt.date(1970, 1, 5)
KEY = b"0123456789abcdef"
# both changes of the clock; over midnight; a day that wasn't there
PLACES = {
    "Europe/Berlin": (dt.datetime(2026, 3, 25), dt.datetime(2026, 10, 21)),
    "America/New_York": (dt.datetime(2026, 3, 5), dt.datetime(2026, 10, 29)),
    "America/Sao_Paulo": (dt.datetime(2018, 11, 1), dt.datetime(2018, 2, 15)),
    "Pacific/Apia": (dt.datetime(2011, 12, 26), dt.datetime(1900, 1, 1)),
    "Asia/Kathmandu": (dt.datetime(1985, 12, 29), dt.datetime(2650, 6, 1)),
}


def instants(zone: str) -> list[int]:
    """Seconds since 1970 around the changes of a zone's clocks, nearly in order."""
    draw = random.Random(zone)
    made = []
    for start in PLACES[zone]:
        first = int(start.replace(tzinfo=dt.UTC).timestamp())
        made += [first + n * 1777 + draw.randrange(-900, 900) for n in range(600)]
    return sorted(made, key=lambda at: at + draw.randrange(0, 2000))


def day_of(at: int, zone: str) -> dt.date:
    return (dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(0, at)).astimezone(ZoneInfo(zone)).date()


def midnight(day: dt.date, zone: str) -> int:
    """The first second of a day: of those whose clock shows the day or a later one."""
    low, high = (int(dt.datetime(*day.timetuple()[:3], tzinfo=dt.UTC).timestamp()) + n * 93_600 for n in (-1, 1))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if day_of(middle, zone) >= day else (middle, high)
    return high


def by_days(at: list[int], zone: str, size: int, slide: int, first: dt.date) -> dict[tuple[int, int], int]:
    found: Counter[tuple[int, int]] = Counter()
    for one in at:
        number = (day_of(one, zone) - first).days
        for start in range(number - number % slide, number - size, -slide):
            days = (first + dt.timedelta(start), first + dt.timedelta(start + size))
            found[midnight(days[0], zone), midnight(days[1], zone)] += 1
    return found


def counted(declare: Any, rows: list[Any], schema: Any) -> dict[tuple[Any, ...], int]:
    given = testing.collect(declare, rows, schema)
    found = {tuple(t[:-1]): t[-1] for t in given}
    assert len(found) == len(given)
    return found


@pytest.mark.parametrize("zone", PLACES)
@pytest.mark.parametrize(("days", "slide"), [(1, None), (7, None), (3, 1), (1, 2)])
def test_days_of_a_zone_natively_and_in_python(zone: str, days: int, slide: int | None) -> None:
    rows = [("k", at) for at in sorted(instants(zone))]
    schema = {"k": str, "at": int}
    right = by_days([at for _, at in rows], zone, days, slide or days, MONDAY)

    def windows(s: Any) -> Any:
        return s.window(days=days, slide=slide, zone=zone)

    def timed(s: Any) -> Any:
        return s.event_time("at", name="time")

    assert counted(lambda s: windows(timed(s)).aggregate(name="w", n=rel.count()), rows, schema) == right
    keyed = {("k", *bounds): n for bounds, n in right.items()}
    assert counted(lambda s: windows(timed(s).key_by("k")).aggregate(name="w", n=rel.count()), rows, schema) == keyed
    assert counted(lambda s: windows(timed(s).key_by("k")).fold(lambda n, t: n + 1, 0, name="w"), rows, schema) == keyed


@pytest.mark.parametrize("lateness", [0, 25_000, 60_000])
def test_late_tuples_of_days_with_a_change_of_the_clock(lateness: int) -> None:
    draw = random.Random(4)
    at = sorted(instants("Europe/Berlin")[:600], key=lambda one: one + draw.randrange(0, 20_000))
    rows = [("k", one) for one in at]
    schema = {"k": str, "at": int}

    def declare(s: Any, *, native: bool) -> Any:
        timed = s.event_time("at", name="time").key_by("k")
        windows = timed.window(days=1, zone="Europe/Berlin", lateness=lateness or None)
        return windows.aggregate(name="w", n=rel.count()) if native else windows.fold(lambda n, t: n + 1, 0, name="w")

    latest: dict[Any, Any] = {}
    for *bounds, n in testing.collect(lambda s: declare(s, native=True), rows, schema):
        latest[bounds[1]] = n
    right = {start: n for (start, _), n in by_days(at, "Europe/Berlin", 1, 1, MONDAY).items()}
    if lateness:
        assert latest == right
    else:
        assert latest.keys() == right.keys()
        assert 0 < sum(right.values()) - sum(latest.values()) < 60


@pytest.mark.parametrize(
    ("kind", "zone"),
    [
        (pa.timestamp("us"), None),
        (pa.timestamp("ms", "UTC"), None),
        (pa.timestamp("ns", "Europe/Berlin"), "Europe/Berlin"),
        (pa.timestamp("s", "Europe/Berlin"), "Europe/Berlin"),
        (pa.timestamp("us", "+02:00"), "+02:00"),
    ],
    ids=str,
)
def test_the_zone_of_the_event_time_is_the_default(kind: Any, zone: str | None) -> None:
    at = sorted(instants("Europe/Berlin"))
    columns = pa.array(at, pa.int64()).cast(pa.timestamp("s")).cast(pa.timestamp(kind.unit)).cast(kind)
    table = pa.table({"at": columns}, schema=pa.schema([pa.field("at", kind, nullable=False)]))
    topology = rel.Topology("days")
    timed = topology.source(rel.arrow(table), name="rows").event_time("at", name="time")
    timed.window(days=1).aggregate(name="w", n=rel.count()).sink(rel.list(), name="out")
    given = [tuple(t) for t in rel.run(topology)["out"]]
    of = dt.timezone(dt.timedelta(hours=2)) if zone == "+02:00" else ZoneInfo(zone or "UTC")
    days = Counter(dt.datetime.fromtimestamp(one, of).date() for one in at)
    if zone is None:
        assert {start.date(): n for start, _, n in given} == days
    else:
        assert {start.astimezone(of).date(): n for start, _, n in given} == days
        assert all(start.astimezone(of).time() == dt.time() for start, _, _ in given)


@pytest.mark.parametrize("kind", [int, float, dt.datetime])
@pytest.mark.parametrize(
    ("size", "slide", "to"), [(3600, None, 900), (3600, 600, 3599), (600, 3600, -1800), (60, None, 7)]
)
def test_windows_of_seconds_start_where_they_are_told_to(kind: Any, size: int, slide: int | None, to: int) -> None:
    draw = random.Random(size)
    seconds = sorted(draw.randrange(-50_000, 50_000) for _ in range(500))
    epoch = dt.datetime(1970, 1, 1)
    written: Any = {int: int, float: float, dt.datetime: lambda second: epoch + dt.timedelta(0, second)}[kind]
    rows = [("k", written(second)) for second in seconds]
    right: Counter[Any] = Counter()
    for second in seconds:
        every = slide or size
        last = (second - to) // every * every + to
        for start in range(last, second - size, -every):
            right[written(start), written(start + size)] += 1

    def windows(s: Any) -> Any:
        return s.event_time("at", name="time").key_by("k").window(seconds=size, slide=slide, align_to=written(to))

    schema = {"k": str, "at": kind}
    keyed = {("k", *bounds): n for bounds, n in right.items()}
    assert counted(lambda s: windows(s).aggregate(name="w", n=rel.count()), rows, schema) == keyed
    assert counted(lambda s: windows(s).fold(lambda n, t: n + 1, 0, name="w"), rows, schema) == keyed


def test_windows_of_windows_are_aligned_by_where_those_start_and_end() -> None:
    rows = [(second,) for second in range(0, 100_000, 50)]

    def twice(s: Any) -> Any:
        first = s.event_time("at", name="time").window(seconds=100, align_to=50).aggregate(name="first", n=rel.count())
        return first.window(seconds=1000, align_to=50).aggregate(name="second", n=rel.sum("n"), of=rel.count())

    given = testing.collect(twice, rows, {"at": int})
    assert {(start % 1000, end - start) for start, end, _, _ in given} == {(50, 1000)}
    assert [(n, of) for _, _, n, of in given[1:-1]] == [(20, 10)] * (len(given) - 2)


def test_weeks_start_on_monday_or_when_they_are_told_to() -> None:
    days = [dt.date(2026, 11, 1) + dt.timedelta(n) for n in range(40)]
    rows = [(dt.datetime(*day.timetuple()[:3], 12),) for day in days]

    def starts(**where: Any) -> set[int]:
        given = testing.collect(
            lambda s: s.event_time("at", name="time").window(days=7, **where).aggregate(name="w", n=rel.count()),
            rows,
            {"at": dt.datetime},
        )
        return {start.isoweekday() for start, *_ in given}

    assert starts() == {1}
    assert starts(align_to=dt.date(2026, 11, 29)) == {7}
    assert starts(align_to=dt.date(1999, 1, 6), zone="UTC") == {3}


@pytest.mark.parametrize("how", ["inner", "full"])
@pytest.mark.parametrize(
    ("window", "window_of"),
    [
        (rel.Aligned(days=1, zone="Europe/Berlin"), lambda at: day_of(at, "Europe/Berlin")),
        (rel.Aligned(seconds=7200, align_to=1800), lambda at: (at - 1800) // 7200),
    ],
    ids=["days", "seconds"],
)
def test_joins_by_aligned_windows(window: Any, window_of: Any, how: Any) -> None:
    left = sorted(instants("Europe/Berlin"))[::7]
    right = sorted(instants("Europe/Berlin"))[3::11]
    topology = rel.Topology("joined")
    sides = []
    for name, at in (("left", left), ("right", right)):
        rows = rel.rows([("k", one) for one in at], {"k": str, name: int})
        sides.append(topology.source(rows, name=name).event_time(name, name=f"{name}_time").key_by("k"))
    sides[0].join(sides[1], name="j", window=window, how=how).sink(rel.list(), name="out")
    given = sorted(((t.left, t.right) for t in rel.run(topology)["out"]), key=str)
    rights = defaultdict(list)
    for one in right:
        rights[window_of(one)].append(one)
    expected: list[Any] = [(one, other) for one in left for other in rights[window_of(one)]]
    if how == "full":
        lefts = {window_of(one) for one in left}
        expected += [(one, None) for one in left if not rights[window_of(one)]]
        expected += [(None, one) for one in right if window_of(one) not in lefts]
    assert given == sorted(expected, key=str)


def test_a_restore_goes_on_with_open_days(tmp_path: Path) -> None:
    at = sorted(instants("America/New_York"))
    rows = [("k", one) for one in at]

    def declare(s: Any, zone: str = "America/New_York") -> Any:
        timed = s.event_time("at", name="time").key_by("k")
        return timed.window(days=1, zone=zone).aggregate(name="w", n=rel.count())

    gate = testing.Gate()
    topology = rel.Topology("test")
    source = topology.source(testing.script([*rows[:700], gate], {"k": str, "at": int}), name="rows")
    declare(source).sink(rel.list(), name="collected")
    job = rel.start(topology)
    try:
        assert gate.wait_reached(60)
        before = [tuple(t) for t in job.stop(tmp_path / "snapshot")["collected"]]
    finally:
        job.close()
    after = testing.collect(declare, rows, {"k": str, "at": int}, restore=tmp_path / "snapshot")
    found = {(start, end): n for _, start, end, n in [*before, *after]}
    assert found == by_days(at, "America/New_York", 1, 1, MONDAY)
    with raises(rel.errors.StateError, "changed-state", "w"):
        testing.collect(
            lambda s: declare(s, "Europe/Berlin"), rows, {"k": str, "at": int}, restore=tmp_path / "snapshot"
        )


def test_days_by_the_clock() -> None:
    """Whole days of a zone by the clock: the window is that in which now is."""
    given = testing.collect(
        lambda s: s.key_by("k").window(days=1, zone="Europe/Berlin", clock=True).fold(lambda n, t: n + 1, 0, name="w"),
        [("k",)] * 5,
        {"k": str},
    )
    assert sum(t[-1] for t in given) == 5
    for _, start, end, _ in given:
        assert midnight(day_of(int(start), "Europe/Berlin"), "Europe/Berlin") == start
        assert day_of(int(end) - 1, "Europe/Berlin") == day_of(int(start), "Europe/Berlin")


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ({"days": 1, "zone": "Mars/Base"}, "unknown-time-zone"),
        ({"days": 1, "zone": 3}, "unknown-time-zone"),
        ({"days": 0}, "out-of-range"),
        ({"days": 1.5}, "out-of-range"),
        ({"days": 1, "slide": 0}, "out-of-range"),
        ({"days": 1, "align_to": 5}, "wrong-type"),
        ({"days": 1, "align_to": dt.datetime(2026, 1, 1)}, "wrong-type"),
        ({"seconds": 5, "zone": "UTC"}, "missing-argument"),
        ({"seconds": 5, "align_to": "noon"}, "wrong-type"),
        ({"seconds": 5, "days": 1}, "conflicting-arguments"),
        ({"count": 5, "align_to": 1}, "conflicting-arguments"),
        ({"assign": lambda t: [], "zone": "UTC"}, "conflicting-arguments"),
    ],
)
def test_what_cannot_be_is_told_where_it_was_declared(where: Any, code: str) -> None:
    topology = rel.Topology("bad")
    timed = topology.source(rel.rows([(1,)], {"at": int}), name="rows").event_time("at", name="time")
    with raises(GraphError, code):
        timed.window(**where)
