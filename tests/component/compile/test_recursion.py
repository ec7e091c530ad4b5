"""Functions that call themselves: as deep as Python lets them, and no further."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from harness import MAP, python_result, same_as_python


class Row(NamedTuple):
    i: int
    s: str


def depth(n):
    return 0 if n == 0 else depth(n - 1) + 1


def deep(t):
    return depth(t.i)


def is_even(n):
    return True if n == 0 else is_odd(n - 1)


def is_odd(n, least=0):
    return False if n == least else is_even(n - 1)


def in_turn(t):
    return is_even(t.i), is_odd(t.i, least=0)


def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


def twice_at_once(t):
    return fibonacci(t.i % 12), fibonacci(3)


def longest(text, *, most=10):
    if len(text) <= most:
        return text
    return longest(text[1:], most=most)


def shortened(t):
    return longest(t.s, most=3), longest(t.s)


class Walker:
    def __init__(self, step):
        self.step = step

    def walk(self, n):
        return 0 if n == 0 else self.walk(n - self.step) + 1

    def i(self, t):
        return t.i + self.step


WALKER = Walker(2)


def s(t):
    return t.s + "!"


def by_a_method(t):
    return WALKER.walk(t.i)


FUNCTIONS = [deep, in_turn, twice_at_once, shortened, by_a_method]


@pytest.mark.parametrize("function", FUNCTIONS, ids=[f.__name__ for f in FUNCTIONS])
def test_recursion_gives_what_python_gives(compiled: Any, function: Any) -> None:
    runner = compiled(function, Row, MAP)
    for number in (0, 1, 5, 12, 100, 600):
        row = (number, "abcdefghijklmn")
        same_as_python(runner, row)


@pytest.mark.parametrize("number", [-1, 1999, 10**6 + 1, -(10**12) + 1])
def test_too_deep_is_refused_and_python_raises(compiled: Any, number: Any) -> None:
    """Each of these ended the process, or never ended."""
    for function in (deep, in_turn, by_a_method):
        runner = compiled(function, Row, MAP)
        assert runner([(number, "")]).failed == 0
        assert python_result(runner.code, [(number, "")]).failed == 0


@pytest.mark.parametrize("function", [WALKER.i, s], ids=["method", "function"])
def test_a_field_of_the_functions_own_name_is_no_recursion(compiled: Any, function: Any) -> None:
    runner = compiled(function, Row, MAP)
    assert runner([(3, "a")]).items == python_result(runner.code, [(3, "a")]).items
