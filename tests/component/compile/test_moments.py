"""datetime, date and timedelta: arithmetic and comparison are CPython's at the ends of its ranges, too."""

# ruff: noqa: DTZ001, DTZ901 -- functions as users write them

from __future__ import annotations

import datetime as dt
from typing import Any, NamedTuple

import pytest
from harness import python_result, request
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rayelastic.graph.operator_spec import Lane
from rayelastic.graph.schema import Schema


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
    st.sampled_from([dt.timedelta(days=-1, microseconds=1), dt.timedelta(days=50_000_000), dt.timedelta(days=-50_000_000)]),
)  # fmt: skip
events = st.builds(
    Event, moments, moments, st.dates(), st.dates(), spans_of, spans_of, st.one_of(st.integers(-5, 5), st.integers())
    .filter(lambda n: -(2**63) <= n < 2**63),
)  # fmt: skip


@pytest.mark.parametrize("function", CASES, ids=[str(at) for at in range(len(CASES))])
def test_compiled_equals_python_or_refuses_64_bits(compiled, function):
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


def _is_big(value: Any) -> bool:
    return isinstance(value, dt.timedelta) and abs(value) >= dt.timedelta(days=106_751_991)


@pytest.mark.parametrize(
    "function",
    [lambda t: t.a < t.d, lambda t: t.a == t.d, lambda t: t.p * 1.5, lambda t: t.a - t.d, lambda t: t.p / 0.5],
    ids=["less", "equal", "times float", "mixed difference", "by float"],
)
def test_what_isnt_compiled_runs_in_python(compiler, function):
    code = compiler.compile(request(function, Event, output=Schema.of(int)))
    assert code.lane is Lane.PYTHON
    assert "isn't compiled (test_moments.py:" in code.reason
