"""Arithmetic of times, NumPy's functions and NaN in containers give what CPython gives, or are refused."""

# ruff: noqa: DTZ001, NPY002 -- functions as users write them

from __future__ import annotations

import datetime as dt
import itertools
import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from harness import MAP, python_result, request

from rayelastic.compile import Compiler
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import Lane
from tests.raising import check_reason


class Row(NamedTuple):
    at: dt.datetime
    since: dt.datetime
    day: dt.date
    span: dt.timedelta
    other: dt.timedelta
    i: int
    x: float
    y: float


def scaled(t):
    return t.span * t.x, t.x * t.span


def shared(t):
    return t.span * t.i, t.i * t.span, t.span / 2, t.span // 2, -t.span, +t.span, abs(t.span)


def by_variables(t):
    return t.span / t.i, t.span // t.i


def over(t):
    return t.span / t.x


def ratios(t):
    return t.span / t.other


def sums(t):
    total = t.span
    total += t.other
    return t.span + t.other, t.span - t.other, total, t.at - t.since, t.span < t.other, t.at == t.since, t.at >= t.since


def moved(t):
    return t.at + t.span, t.span + t.at, t.since - t.other


def far(t):
    return t.at + dt.timedelta(days=3_000_000) if t.i > 0 else t.at - dt.timedelta(days=1_000_000)


def caught(t):
    try:
        return t.at + dt.timedelta(days=3_000_000)
    except Exception:
        return t.at


def day_later(t):
    return t.day + dt.timedelta(days=1)


def counted(t):
    return t.span // t.other


SPANS = [0, 1, -1, 3, -7, 10**15 + 1, 2**53 + 1, -(86_400 * 10**6), 3_600 * 10**6]
NUMBERS = [
    (2, 1.5), (-2, 2.5), (3, -0.5), (7, 1e-3), (0, 0.0), (-3, math.inf), (10, 0.1),
    (1, math.nan), (2, 5e-324), (9, 1e300),
]  # fmt: skip
FLOATS = [0.0, -0.0, 1.5, 2.5, -0.5, math.inf, -math.inf, math.nan, 5e-324, 1e306]
AT, SINCE, DAY = (
    dt.datetime(2020, 5, 17, 1, 2, 3, 4),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    dt.date(1960, 2, 29),
)
ROWS: list[tuple[Any, ...]] = [
    (AT, SINCE, DAY, dt.timedelta(microseconds=a), dt.timedelta(microseconds=SPANS[-1 - n]), i, x, FLOATS[n])
    for n, a in enumerate(SPANS)
    for i, x in NUMBERS
]


def compare(runner: Any, rows: list[tuple[Any, ...]]) -> None:
    """One tuple at a time; what raises in CPython fails here, what fails here may have an answer in CPython."""
    for row in rows:
        here, there = runner([row]), python_result(runner.code, [row])
        if here.failed is None:
            assert repr(here.items) == repr(there.items), row


@pytest.mark.parametrize(
    "function", [scaled, shared, by_variables, over, ratios, sums, moved, far, caught, day_later, counted]
)
def test_times_are_calculated_as_python_does(compiled: Any, function: Any) -> None:
    runner = compiled(function, Row, MAP)
    compare(runner, ROWS)
    plain = ROWS[10 : 10 + len(NUMBERS)]  # a microsecond: nothing overflows, so what Python can do is done
    failed = [runner([row]).failed is not None for row in plain]
    assert failed == [python_result(runner.code, [row]).failed is not None for row in plain]


def of_two_kinds(t):
    return t.day == t.at


@pytest.mark.parametrize(("function", "given"), [(of_two_kinds, bool)])
def test_what_numpy_takes_for_something_else_runs_as_python(compiler: Compiler, function: Any, given: Any) -> None:
    code = compiler.compile(request(function, Row, MAP, output=Schema.of({"v": given})))
    assert code.lane is Lane.PYTHON
    assert code.reason.startswith("not compiled: ")


def numpy_of_one(t):
    return (
        np.sqrt(t.x), np.floor(t.x), np.ceil(t.x), np.trunc(t.x), np.rint(t.x), np.fabs(t.x), np.abs(t.x),
        np.square(t.x), np.isnan(t.x), np.isinf(t.x), np.isfinite(t.x),
    )  # fmt: skip


def numpy_of_two(t):
    return np.copysign(t.x, t.y), np.copysign(t.y, -1.0)


@pytest.mark.parametrize("function", [numpy_of_one, numpy_of_two])
def test_numpy_functions_give_the_very_bits(compiled: Any, function: Any) -> None:
    runner = compiled(function, {"x": float, "y": float}, MAP)
    rows = list(itertools.product(FLOATS, FLOATS))
    with np.errstate(all="ignore"):
        assert repr(runner(rows).items) == repr(
            [tuple(v.item() for v in row) for row in python_result(runner.code, rows).items]
        )


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda t: np.log1p(t.x), ("last_digit", "numpy.log1p")),
        (lambda t: np.round(t.x, 2), ("unsupported", "numpy.round")),
        (lambda t: np.float32(t.x), ("unsupported", "numpy.float32")),
        (lambda t: np.random.random(), ("unsupported", "numpy.random")),
    ],
)
def test_other_numpy_functions_run_as_python_with_the_reason(compiler: Compiler, function: Any, reason: Any) -> None:
    code = compiler.compile(request(function, Row, MAP, output=Schema.of({"v": float})))
    assert code.lane is Lane.PYTHON
    check_reason(code.refusal, *reason)


def found(t):
    return t.x in (t.y, t.x), t.x in [t.y, 1.5], t.x not in (0.0, 2.5)


def equal(t):
    return (t.x, t.i) == (t.y, t.i), (t.x, t.i) != (t.y, 1), (t.i, t.x) < (t.i, t.y), (t.x,) >= (t.y,)


@pytest.mark.parametrize("function", [found, equal])
def test_nan_in_containers_is_never_answered_otherwise(compiled: Any, function: Any) -> None:
    runner = compiled(function, {"x": float, "y": float, "i": int}, MAP)
    rows = [(x, y, i) for x, y in itertools.product(FLOATS, FLOATS) for i in (1, 2)]
    compare(runner, rows)
    assert all(runner([row]).failed is None for row in rows if not math.isnan(row[0]))


def nested(t):
    return ((t.x, 1), 2) == ((t.y, 1), 2)


def test_floats_in_nested_tuples_run_as_python(compiler: Compiler) -> None:
    code = compiler.compile(request(nested, Row, MAP, output=Schema.of({"v": bool})))
    assert code.lane is Lane.PYTHON
    check_reason(code.refusal, "by_identity", "tuples in tuples")
