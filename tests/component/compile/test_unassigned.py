"""A name that has no value on some way to where it is read: CPython's UnboundLocalError, and no zeros."""

# ruff: noqa: B007, B018, SIM105 -- functions as users write them

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from harness import FLAT_MAP, MAP, same_as_python

from rayelastic.errors import LaneError
from tests.raising import raises


class Row(NamedTuple):
    i: int
    s: str


def after_if(t):
    if t.i > 5:
        name = 3
    return name


def in_a_condition(t):
    if t.i > 5:
        name = 3
    if name:
        return 2
    return 1


def as_a_statement(t):
    if t.i > 5:
        name = 3
    name
    return 1


def after_a_loop(t):
    for word in t.s.split():
        if word.startswith("e"):
            found = word
    return found


def the_loops_own(t):
    for word in t.s.split():
        pass
    return word, len(word)


def after_else(t):
    for word in t.s.split():
        if word == "b":
            at = word
            break
    else:
        at = "none"
    return at


def while_it_is_less(t):
    while t.i > 5:
        name = 3
        break
    return 1 if name else 3


def test_of_a_loop(t):
    n = t.i
    if n > 5:
        left = n
    while left > 3:
        left -= 1
    return left


def added_to(t):
    if t.i > 5:
        total = 1
    total += t.i
    return total


def only_if_asked(t):
    if t.i > 5:
        name = 3
    return 1 if t.i < 3 or name > 2 else 0


def both_or_none(t):
    if t.i > 5:
        name = t.s
    if t.i > 5 and name:
        return name
    return "-"


def a_guard(t):
    match t.i:
        case 1 | 2:
            name = 0
        case _ if name:  # type: ignore[used-before-def]
            name = 1
    return 1


def captured(t):
    match t.i:
        case 1:
            pass
        case other:
            return other
    return other


def in_a_handler(t):
    try:
        value = int(t.s)
        rest = value + 1
    except ValueError:
        return value
    return rest


def after_a_handler(t):
    try:
        value = int(t.s)
    except ValueError:
        pass
    return value


def caught_by_name(t):
    if t.i > 5:
        name = 3
    try:
        return name
    except NameError:
        return -1


def with_walrus(t):
    if t.i > 3 and (n := t.i * 2) > 9:
        return n
    return 0


def inside_a_walrus(t):
    if t.i > 5:
        name = 3
    return (n := name + 1) + n


def of_a_helper(i):
    if i > 5:
        found = i
    return found


def by_a_helper(t):
    return of_a_helper(t.i)


def inner(t):
    def last(words):
        for word in words:
            kept = word
        return kept

    return last(t.s.split())


def yielded(t):
    for word in t.s.split():
        if word > "c":
            yield word
    yield word


MAPS = [
    after_if,
    in_a_condition,
    as_a_statement,
    after_a_loop,
    the_loops_own,
    after_else,
    while_it_is_less,
    test_of_a_loop,
    added_to,
    only_if_asked,
    both_or_none,
    a_guard,
    captured,
    in_a_handler,
    after_a_handler,
    with_walrus,
    inside_a_walrus,
    by_a_helper,
    inner,
]
for _f in MAPS:
    _f.__test__ = False  # type: ignore[attr-defined]
ROWS = [(0, ""), (1, "b c"), (2, "7"), (4, "error e d"), (9, "a"), (6, "-3"), (5, "c b a")]


@pytest.mark.parametrize("function", MAPS)
def test_a_name_without_a_value_is_an_error(compiled: Any, function: Any) -> None:
    for row in ROWS:
        runner = compiled(function, Row, MAP)
        same_as_python(runner, row)


def test_what_was_yielded_before_is_kept(compiled: Any) -> None:
    for row in ROWS:
        runner = compiled(yielded, Row, FLAT_MAP)
        same_as_python(runner, row)


def test_a_handler_sees_it_in_python_alone(compiled: Any) -> None:
    runner = compiled(caught_by_name, Row, MAP)
    assert runner([(0, "")]).failed == 0, "it is refused, and Python's answer taken"
    assert runner([(9, "")]).items == [(3,)]


def in_a_comprehension(t):
    if t.i > 5:
        name = 3
    return [name + k for k in range(t.i)]


def by_a_closure(t):
    if t.i > 5:
        name = 3

    def more(k):
        return k + name

    return more(t.i)


def walrus(t):
    if t.i > 3 and (n := t.i * 2) > 9:
        pass
    return n


def by_a_case_with_a_condition(t):
    if t.i > 5:
        name = 3
    match t.i:
        case name if name > 3:
            pass
        case 1 | 2:
            return name
    return 0


@pytest.mark.parametrize("function", [in_a_comprehension, by_a_closure, walrus, by_a_case_with_a_condition])
def test_what_no_flag_can_follow_is_told(compiled: Any, function: Any) -> None:
    with raises(LaneError, "not-compiled"):
        compiled(function, Row, MAP)
