"""Keyword arguments inside try are those that they are called, not the ones whose place they have."""

# ruff: noqa: DTZ001 -- a record's times have no zone

from __future__ import annotations

import datetime as dt
from typing import Any, NamedTuple

import pytest
from harness import same_as_python


class Row(NamedTuple):
    s: str
    at: dt.datetime


class Point(NamedTuple):
    a: int
    b: int = 2
    c: int = 3


def weighed(a, b=2, c=3):
    return a * 100 + b * 10 + c


def replaced(t):
    try:
        return t.at.replace(hour=5, day=31)
    except ValueError:
        return t.at.replace(microsecond=7)


def helped(t):
    try:
        return weighed(4, c=int(t.s))
    except ValueError:
        return weighed(c=1, a=2)


def made(t):
    try:
        point = Point(1, c=int(t.s))
    except ValueError:
        point = Point(c=7, a=1)
    return point.a, point.b, point.c


def spanned(t):
    try:
        return dt.timedelta(hours=int(t.s), minutes=3)
    except ValueError:
        return dt.timedelta(milliseconds=5)
    finally:
        dt.timedelta(weeks=1)


def in_base(t):
    try:
        return int(t.s, base=16), len(t.s.split(maxsplit=1)), round(2.75, ndigits=1)
    except ValueError:
        return -1, len(t.s.rsplit(maxsplit=1)), 0.0


CASES = [replaced, helped, made, spanned, in_base]
ROWS = [("7", dt.datetime(2020, 1, 17)), ("x y z", dt.datetime(2021, 2, 3, 4)), (" 1f", dt.datetime(1969, 12, 31))]


@pytest.mark.parametrize("function", CASES, ids=[f.__name__ for f in CASES])
def test_compiled_equals_python(compiled: Any, function: Any) -> None:
    runner = compiled(function, Row)
    for row in ROWS:
        same_as_python(runner, row)
