"""datetime, date and timedelta: arithmetic and comparison are CPython's at the ends of its ranges, too."""

# ruff: noqa: DTZ001, DTZ005, DTZ007, DTZ901 -- functions as users write them

from __future__ import annotations

import datetime as dt
from typing import Any, NamedTuple

import pytest
from harness import python_result, request
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import Lane
from tests.raising import check_reason


class Event(NamedTuple):
    a: dt.datetime
    b: dt.datetime
    d: dt.date
    e: dt.date
    p: dt.timedelta
    q: dt.timedelta
    n: int


CUTOFF, HOUR = dt.datetime(2020, 1, 1), dt.timedelta(hours=1)


def compared(t: Any) -> Any:
    return t.a > t.b, t.a == CUTOFF, t.a >= CUTOFF, t.d < t.e, min(t.a, t.b), max(t.d, t.e), t.p < t.q, t.p != HOUR


def spans(t: Any) -> Any:
    return t.a - t.b, t.d - t.e, (t.a - t.b).total_seconds(), t.p + t.q, t.p - t.q, -t.p, abs(t.q), +t.p, bool(t.p)


def kept(t: Any) -> Any:
    x = t.a
    x -= HOUR
    return x, (x - t.a).days, {x: 1}.get(x, 0), {t.d: 2}[t.d], 1 if not t.q else 0


CASES = [
    compared, spans, kept, lambda t: t.a + t.p, lambda t: t.q + t.a, lambda t: t.a - t.p, lambda t: t.d + t.p,
    lambda t: t.d - t.q, lambda t: (t.p // t.q, t.p % t.q), lambda t: t.p / t.q, lambda t: divmod(t.p, t.q),
    lambda t: (t.p * t.n, t.n * HOUR), lambda t: t.p / t.n, lambda t: t.p // t.n,
]  # fmt: skip

moments = st.one_of(
    st.datetimes().map(lambda d: d.replace(fold=0)),
    st.sampled_from(
        [dt.datetime.min, dt.datetime.max, dt.datetime(1970, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 999999)]
    ),
)
spans_of = st.one_of(
    st.timedeltas(dt.timedelta(days=-4_000_000), dt.timedelta(days=4_000_000)),
    st.builds(lambda n: dt.timedelta(microseconds=n), st.integers(-9, 9)),
    st.sampled_from(
        [dt.timedelta(days=-1, microseconds=1), dt.timedelta(days=50_000_000), dt.timedelta(days=-50_000_000)]
    ),
)  # fmt: skip
events = st.builds(
    Event, moments, moments, st.dates(), st.dates(), spans_of, spans_of, st.one_of(st.integers(-5, 5), st.integers())
    .filter(lambda n: -(2**63) <= n < 2**63),
)  # fmt: skip


@pytest.mark.parametrize("function", CASES, ids=[str(at) for at in range(len(CASES))])
def test_compiled_equals_python_or_refuses_64_bits(compiled: Any, function: Any) -> None:
    runner = compiled(function, Event)

    @settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(events)
    def equal(row: Any) -> None:
        wanted, ours = python_result(runner.code, [tuple(row)]), runner([tuple(row)])
        if ours.failed is not None and wanted.failed is None:
            assert any(_is_big(value) for value in wanted.items[0]) or not -(2**61) < row.n < 2**61, row
        else:
            assert (ours.failed, repr(ours.items)) == (wanted.failed, repr(wanted.items)), row

    equal()


class Span(NamedTuple):
    n: int


@pytest.mark.parametrize(
    "function",
    [
        lambda t: -dt.timedelta(microseconds=t.n),
        lambda t: abs(dt.timedelta(microseconds=t.n)),
        lambda t: dt.timedelta(microseconds=t.n) * 1,
        lambda t: dt.timedelta(microseconds=t.n) + dt.timedelta(0),
        lambda t: dt.timedelta(microseconds=t.n) > HOUR,
    ],
    ids=["negative", "absolute", "product", "sum", "compared"],
)
@pytest.mark.parametrize("n", [2**63 - 1, -(2**63) + 1])
def test_the_longest_spans_of_64_bits_are_compiled(compiled: Any, function: Any, n: int) -> None:
    runner = compiled(function, Span)
    wanted, ours = python_result(runner.code, [(n,)]), runner([(n,)])
    assert (ours.failed, repr(ours.items)) == (None, repr(wanted.items))


def _is_big(value: Any) -> bool:
    return isinstance(value, dt.timedelta) and abs(value) >= dt.timedelta(days=106_751_991)


@pytest.mark.parametrize(
    "function",
    [lambda t: t.a < t.d, lambda t: t.a == t.d, lambda t: t.a - t.d, lambda t: t.p + 1],
    ids=["less", "equal", "mixed difference", "plus int"],
)
def test_what_isnt_compiled_runs_in_python(compiler: Any, function: Any) -> None:
    code = compiler.compile(request(function, Event, output=Schema.of(int)))
    assert code.lane is Lane.PYTHON
    check_reason(code.refusal, "unsupported", "test_moments.py:")


# --- out of text, and into it ---------------------------------------------------------------------------------------


class Stamp(NamedTuple):
    text: str
    at: dt.datetime
    day: dt.date
    clock: dt.time


def parsed(t: Any) -> Any:
    return dt.datetime.strptime(t.text, "%d/%m/%Y  %H:%M:%S.%f")


def of_two_digits(t: Any) -> Any:
    try:
        return dt.datetime.strptime(t.text, "%y%m%d").date()
    except Exception:
        return dt.date.min


def written(t: Any) -> Any:
    return t.at.strftime("%Y-%m-%dT%H:%M:%S.%f %j %y%% é"), t.day.strftime("%d.%m.%Y %H")


def calendar(t: Any) -> Any:
    return t.at.isocalendar()[0], t.day.isocalendar()[1], t.day.isocalendar()[2], t.at == dt.datetime.min


OPEN = dt.time(9, 30, 0, 5)


def of_day(t: Any) -> Any:
    clock = t.clock.hour, t.clock.minute, t.clock.second, t.clock.microsecond, t.clock >= OPEN, t.at.time() < OPEN
    return (*clock, dt.time(1, 2) == t.clock, t.at.time(), dt.datetime.combine(t.day, t.clock), dt.time(t.at.day))


stamps = st.one_of(
    st.sampled_from([
        "", "03/02/2020 1:2:3.5", "31/12/1999  23:59:61.000001", "29/02/2021 00:00:00.1", "٣/02/2020 1:2:3.5",
        "03/02/2020 1:2:3.5x", "200229", "690101", "680101", "2020-02-29", "2020-02-30", "2020-02-29T", "2020-02-29T01",
        "2020-02-29T01:02", "2020-02-29 01:02:03", "2020-02-29x01:02:03.123", "2020-02-29T01:02:03.123456", "20200229",
        "2020-02-29T25:02", "2020-W01-1", "abc", "2020/01/01", "2020-1-01", "2020-02-29T01:02:03+00:00", "0000-01-01",
        "2020-02-29T0a:00", "2020-02-29T24:00", "é020-01-01", "2020-0\u0661-01", "2020-02-29\0",
        "2020-02-29T01:02:03Z",
    ]),
    st.text(st.sampled_from("0123459-/:.T W"), max_size=20),
    st.datetimes().map(str),
    st.datetimes().map(lambda d: d.strftime("%d/%m/%Y %H:%M:%S.%f")),
)  # fmt: skip
READ = [
    (parsed, False), (of_two_digits, False), (written, True), (calendar, False), (of_day, False),
    (lambda t: dt.datetime.fromisoformat(t.text), True), (lambda t: dt.date.fromisoformat(t.text), True),
]  # fmt: skip


@pytest.mark.parametrize(("function", "may_refuse"), READ, ids=[str(at) for at in range(len(READ))])
def test_text_of_times_is_read_and_written_as_python_does_or_refused(
    compiled: Any, function: Any, may_refuse: Any
) -> None:
    runner = compiled(function, Stamp)

    @settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(st.builds(Stamp, stamps, moments, st.dates(), st.times().map(lambda c: c.replace(fold=0))))
    def equal(row: Any) -> None:
        wanted, ours = python_result(runner.code, [tuple(row)]), runner([tuple(row)])
        if ours.failed is not None and wanted.failed is None:
            assert may_refuse, row
        else:
            assert (ours.failed, repr(ours.items)) == (wanted.failed, repr(wanted.items)), row

    equal()
    plain = ("2020-02-29", dt.datetime(2020, 2, 29), dt.date(2020, 2, 29), dt.time(1))
    assert not may_refuse or runner([plain]).failed is None


def test_a_time_that_may_be_none_is_written_and_python_raises_for_none(compiled: Any) -> None:
    class Seen(NamedTuple):
        at: dt.datetime | None

    runner = compiled(lambda t: t.at.strftime("%Y-%m"), Seen)
    assert [tuple(row) for row in runner([(dt.datetime(2020, 2, 29),)]).items] == [("2020-02",)]
    assert runner([(None,)]).failed is not None


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda t: dt.datetime.now() > t.at, ("unsupported", "datetime.now")),
        (lambda t: t.at.strftime("%B") == "May", ("directives", "strftime", "'%Y', '%m'")),
        (lambda t: dt.datetime.strptime(t.text, t.text) > t.at, ("constant_only", "strptime", "format")),
        (lambda t: dt.datetime.strptime(t.text, "%H") > t.at, ("unsupported", "strptime without one year")),
    ],
    ids=["now", "month", "variable", "no year"],
)
def test_what_depends_on_clock_or_locale_runs_in_python(compiler: Any, function: Any, reason: Any) -> None:
    code = compiler.compile(request(function, Stamp, output=Schema.of(bool)))
    assert code.lane is Lane.PYTHON
    check_reason(code.refusal, *reason, "test_moments.py:")
