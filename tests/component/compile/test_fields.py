"""Every field type in and out, nulls, and state records."""

# ruff: noqa: S307, DTZ001 -- functions as users write them

from __future__ import annotations

import datetime as dt
from typing import Any, NamedTuple

import numpy as np
from harness import FILTER, FLAT_MAP, MAP, python_result
from hypothesis import given, settings
from hypothesis import strategies as st

from rayelastic.graph.records.schema import DataType, Schema

EVERY = Schema.of(
    {f"f_{kind.value}": kind for kind in DataType if (kind.is_ordered and kind.size <= 8) or kind.is_text}, name="Every"
)
NULLABLE = Schema.of(
    {
        "a": np.int32 | None, "b": float | None, "c": str | None, "d": bool | None, "e": bytes | None,
        "f": dt.date | None, "g": int | None, "h": np.uint8 | None, "i": dt.datetime | None,
    }
)  # fmt: skip


def values(kind: DataType) -> st.SearchStrategy:
    if kind is DataType.BOOL:
        return st.booleans()
    if kind.is_integer:
        bits = 8 * kind.size
        unsigned = kind.value.startswith("u")
        return st.integers(
            0 if unsigned else -(2 ** (bits - 1)), min(2**63 - 1, 2 ** (bits if unsigned else bits - 1) - 1)
        )
    if kind.is_float:
        return st.floats(width=8 * kind.size, allow_nan=False)  # type: ignore[arg-type]
    if kind in (DataType.DATE32, DataType.DATE64):
        return st.dates()
    if kind is DataType.TIMESTAMP:
        return st.datetimes()
    if kind is DataType.DURATION:
        return st.timedeltas(dt.timedelta(-9999), dt.timedelta(9999))
    if kind is DataType.TIME64:
        return st.times()
    if kind is DataType.TIME32:
        return st.times().map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000))
    return st.text(max_size=16) if kind is DataType.STRING else st.binary(max_size=16)


quick = settings(max_examples=60, deadline=None, derandomize=True)
every_row = st.tuples(*(values(f.type) for f in EVERY.fields))
nullable_row = st.tuples(*(st.none() | values(f.type) for f in NULLABLE.fields))


def test_every_type_by_value(compiled: Any) -> None:
    names = ", ".join(f"t.{f.name}" for f in EVERY.fields)
    function = eval(f"lambda t: ({names})")
    runner = compiled(function, EVERY, MAP, output=EVERY)
    whole = compiled(lambda t: t, EVERY, MAP)

    @quick
    @given(st.lists(every_row, max_size=3))
    def check(rows: Any) -> None:
        assert runner(rows).items == rows
        assert whole(rows).items == rows

    check()


def test_inferred_types(compiled: Any) -> None:
    runner = compiled(
        lambda t: (t.f_int8, t.f_float16, t.f_date32, t.f_timestamp, t.f_duration, t.f_time64, t.f_binary), EVERY
    )
    shown = "Record(f0: int64, f1: float64, f2: date32, f3: timestamp, f4: duration, f5: time64, f6: binary)"
    assert str(runner.code.output_schema) == shown


def test_integers_do_not_wrap_at_their_width(compiled: Any) -> None:
    runner = compiled(lambda t: (t.a + t.a, t.b * t.b), {"a": np.int8, "b": np.uint32}, MAP)
    assert runner([(127, 2**31)]).items == [(254, 2**62)]
    assert runner([(127, 1), (0, 2**32 - 1)]).failed == 1


def test_halves_round_as_numpy_does(compiled: Any) -> None:
    runner = compiled(lambda t: t.value, float, MAP, output=Schema.of({"value": DataType.FLOAT16}))

    @settings(quick, max_examples=300)
    @given(st.lists(st.floats(-70000, 70000) | st.floats(-1e-4, 1e-4) | st.floats(), max_size=8))
    def check(numbers: Any) -> None:
        with np.errstate(over="ignore"):
            wanted = [float(np.float16(n)) for n in numbers]
        assert [repr(n) for (n,) in runner([(n,) for n in numbers]).items] == [repr(n) for n in wanted]

    check()


def test_each_half_becomes_the_float_that_it_is(compiled: Any) -> None:
    every = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(float).tolist()
    runner = compiled(lambda t: t.value, Schema.of({"value": DataType.FLOAT16}), MAP, output=Schema.of(float))
    assert [repr(n) for (n,) in runner([(n,) for n in every]).items] == [repr(n) for n in every]


def test_times_compare_and_subtract(compiled: Any) -> None:
    schema = {"a": dt.datetime, "b": dt.datetime, "c": dt.time, "d": dt.time, "e": dt.timedelta}
    runner = compiled(lambda t: (t.a - t.b, t.a < t.b, t.a == t.b, t.c <= t.d, t.b + t.e > t.a), schema, MAP)
    moments = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1))

    @quick
    @given(
        st.lists(
            st.tuples(moments, moments, st.times(), st.times(), st.timedeltas(dt.timedelta(-99), dt.timedelta(99)))
        )
    )
    def check(rows: Any) -> None:
        assert runner(rows).items == python_result(runner.code, rows).items

    check()


def test_nulls(compiled: Any) -> None:
    def filled(t):
        return (t.a if t.a is not None else -1, 0.0 if t.b is None else t.b, t.c is None, t.d, t.g, t.i)

    def swapped(t):
        yield (t.a, t.b, t.c, t.d, t.e, t.f, t.g, t.h, t.i)
        yield (None, None, None, None, None, None, None, None, None)
        yield (t.a, None, "x" if t.c is None else t.c, None, t.e, t.f, 7, None, t.i)

    runners = [
        compiled(filled, NULLABLE, MAP),
        compiled(swapped, NULLABLE, FLAT_MAP, output=NULLABLE),
        compiled(lambda t: t.c is not None and len(t.c) > 2, NULLABLE, FILTER),
        compiled(lambda t: t.g, NULLABLE, FILTER),
    ]

    @quick
    @given(st.lists(nullable_row, max_size=4))
    def check(rows: Any) -> None:
        for runner in runners:
            assert runner(rows).items == python_result(runner.code, rows).items

    check()


def test_none_where_it_may_not_be_fails_the_tuple(compiled: Any) -> None:
    runner = compiled(lambda t: t.g, NULLABLE, MAP, output=Schema.of(int))
    row = (None,) * 6 + (5, None, None)
    assert runner([row]).items == [(5,)]
    assert runner([row, (None,) * 9]).failed == 1


class Account(NamedTuple):
    total: float = 0.0
    count: int = 0  # type: ignore[assignment]
    last: str = "-"
    best: int | None = None
    mark: str | None = None
    seen: bool = False


class Payment(NamedTuple):
    who: str
    amount: int


def booked(t, s):
    before = s.last
    s.total += t.amount
    s.count += 1
    if s.best is None or t.amount > s.best:
        s.best = t.amount
        s.mark = t.who if t.amount != 3 else None
    s.last = t.who + "."
    s.seen = True
    return (before, s.total / s.count, s.best, s.last)


def first_time(t, s):
    fresh = not s.seen
    s.seen = True
    return fresh


def history(t, s):
    s.count += 1
    for _ in range(s.count % 3):
        yield (s.last, s.mark, s.count)
    s.last = t.who
    s.mark = None if t.amount < 0 else t.who


payments = st.lists(st.tuples(st.text(max_size=20), st.integers(-5, 5)), max_size=8)


def test_keyed_state(compiled: Any) -> None:
    runners = [
        compiled(function, Payment, kind, keys=("who",), state=Account)
        for function, kind in ((booked, MAP), (first_time, FILTER), (history, FLAT_MAP))
    ]

    @quick
    @given(payments, st.data())
    def check(rows: Any, data: Any) -> None:
        keys = data.draw(st.lists(st.sampled_from("abc"), min_size=len(rows), max_size=len(rows)))
        for runner in runners:
            ours, theirs = runner(rows, keys=keys, capacity=3), python_result(runner.code, rows, keys)
            assert ours.items == theirs.items
            if runner.code.kind is not MAP:
                assert {k: v[1] for k, v in ours.states.items()} == {k: v[1] for k, v in theirs.states.items()}

    check()
