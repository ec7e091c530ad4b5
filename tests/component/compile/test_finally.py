"""`finally`, and what comes behind a try statement: compiled, it is outside of it, as in CPython."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from harness import MAP, request, same_as_python

from rayelastic.errors import LaneError
from rayelastic.graph.spec.operator_spec import Lane
from tests.raising import raises


class Row(NamedTuple):
    i: int
    s: str


def behind_finally(t):
    try:
        n = 6 // t.i
    except ZeroDivisionError:
        n = 0
    finally:
        done = True
    words = t.s.split("x")
    return n, done, words[t.i], {"te": n}[words[0]]


def finally_in_try(t):
    try:
        try:
            n = 6 // t.i
        except ValueError:
            n = 0
        finally:
            done = 1
        word = t.s.split("x")[t.i]
    except IndexError:
        return -1, ""
    except ZeroDivisionError:
        return -2, ""
    return n + done + 3 // (t.i - 1), word


def finally_in_a_loop(t):
    total = 0
    for k in range(3):
        try:
            if k == t.i:
                continue
            total += 6 // (k - t.i - 1)
        except ZeroDivisionError:
            total -= 100
            if t.i < 0:
                break
        finally:
            total += 1
    return total, t.s[total]


def finally_that_returns_late(t):
    try:
        n = int(t.s[t.i])
    except ValueError:
        n = 7
    else:
        n = 8
    finally:
        last = t.i
    try:
        n += 4 // (t.i - 31)
    finally:
        last += 1
    return n, last


def behind_a_handler_that_returns(t):
    b, c, d = 1, t.i, len(t.s)
    try:
        b = 6 // d
    except ZeroDivisionError:
        if d:
            if c:
                return b, d
            d = -1
        else:
            raise IndexError from None
        b = d
    c -= {2: 6}[c]
    return b, c


def loop_left_in_try(t):
    n = 0
    try:
        for c in t.s:
            n += int(c)
            if n == t.i:
                break
            if n == 3:
                return -n
    except ValueError:
        n += 1000
    return n // (t.i - 31)


def endless_loop_left_in_try(t):
    n = 0
    try:
        while n < 10:
            n += int(t.s[n])
            if n == 4:
                break
    except IndexError:
        n += 1000
    except ValueError:
        n += 2000
    try:
        for c in t.s:
            n += 6 // int(c)
            if n > 1010:
                break
    except ZeroDivisionError:
        n = -n
    return n


BEHIND = [
    behind_finally, finally_in_try, finally_that_returns_late, finally_in_a_loop, loop_left_in_try,
    endless_loop_left_in_try,
]  # fmt: skip


@pytest.mark.parametrize("function", BEHIND, ids=[f.__name__ for f in BEHIND])
def test_behind_finally_is_outside_of_try(compiled: Any, function: Any) -> None:
    runner = compiled(function, Row, MAP)
    for number in (*range(-3, 6), 31):
        for text in ("text", "tex", "1x2x3", "4321", "1234", "120", "", "432101234"):
            row = number, text
            same_as_python(runner, row)


def test_ways_that_cannot_be_told_apart_run_as_python(compiler: Any) -> None:
    """Compiled, what is raised behind the try statement was lost."""
    asked = request(behind_a_handler_that_returns, Row, MAP, lane=Lane.COMPILED)
    with raises(LaneError, "not-compiled"):
        compiler.compile(asked)
