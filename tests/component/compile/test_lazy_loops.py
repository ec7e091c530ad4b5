"""Items of generators, map and filter are made when their turn has come, and not before: as CPython does."""

# ruff: noqa: B905, PERF403, SIM113
# functions as users write them

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from harness import FLAT_MAP, MAP, request, same_as_python

from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import Lane
from tests.raising import check_reason


class Row(NamedTuple):
    s: str
    u: str
    i: int


ROWS = [
    ("", "", 0), ("1 2 x", "a b c d", 1), ("1 2 3", "1 2", 2), ("x", "x", 0), ("5 0 y", "0 y", 3), ("4 x", "4", 0),
    ("a b a", "b", 5), ("0 5 0 7", "a a", 4), (" , a,b ,", "b", 0),
]  # fmt: skip


def until_one_fails(t):
    n = 0
    try:
        for x in (int(w) for w in t.s.split()):
            n += x
    except ValueError:
        n += 1000
    return n


def mapped_until_one_fails(t):
    n = 0
    try:
        for x in map(int, t.s.split()):
            n += x
    except ValueError:
        n += 1000
    return n


def with_a_function_of_the_same_name(t):
    n = 0
    for w in (w for w in t.s.split() if max([w, "bb"], key=lambda w: (len(w), w)) != w):
        n += len(w)
    return n


def numbered(t):
    n = 0
    try:
        for i, x in enumerate((int(w) for w in t.s.split() if w != "2"), start=3):
            n += i * x
            if i == 4:
                break
        else:
            n = -n
    except ValueError:
        n += 1000
    return n


def reads_what_the_loop_changes(t):
    n = 0
    out = ""
    for x in (w + str(n) for w in t.s.split()):
        n += 1
        out += x
    return out


def asks_what_the_loop_fills(t):
    seen = {"a": 1}
    n = 0
    for word in (w for w in t.s.split() if w not in seen):
        seen[word] = 1
        n += 1
    return n, len(seen)


def keeps_the_name(t):
    w = t.s
    n = 0
    for x in map(lambda w: len(w), t.u.split()):  # noqa: C417
        n += x
    for x in (w + "!" for w in w.split()):
        n += len(x)
    return w, n


def pairs(t):
    n = 0
    for x in (a * b for a in range(t.i) for b in range(a + 1) if b % 2 == 0):
        if x == 2:
            continue
        n = n * 10 + x
    return n


def first_large(t):
    try:
        return any(x > 3 for x in map(int, t.s.split()))
    except ValueError:
        return False


def which_fails_first(t):
    try:
        return sum(10 // x for x in map(int, t.s.split()))
    except ValueError:
        return -1
    except ZeroDivisionError:
        return -2


def yields_until_one_fails(t):
    try:
        yield from (int(w) for w in t.s.split())
    except ValueError:
        yield -1


def all_or_none(t):
    try:
        return [10 // t.i, 10 // (t.i - 5)]
    except ZeroDivisionError:
        return []


def all_words_or_none(t):
    try:
        return [int(w) for w in t.s.split()]
    except ValueError:
        return []


CASES = [
    until_one_fails, mapped_until_one_fails, with_a_function_of_the_same_name, numbered,
    reads_what_the_loop_changes, asks_what_the_loop_fills,
    keeps_the_name, pairs, first_large, which_fails_first, yields_until_one_fails, all_or_none, all_words_or_none,
]  # fmt: skip


@pytest.mark.parametrize("function", CASES, ids=[f.__name__ for f in CASES])
def test_compiled_equals_python(compiled: Any, function: Any) -> None:
    flat = function in (yields_until_one_fails, all_or_none, all_words_or_none)
    runner = compiled(function, Row, FLAT_MAP if flat else MAP)
    for row in ROWS:
        same_as_python(runner, row)


def stops_in_a_map(t):
    return any(t.u == "x" for _ in map(int, t.s.split(",")))


def stops_in_a_generator(t):
    return any(n > 3 for n in (int(w) for w in t.s.split(",")))


@pytest.mark.parametrize("function", [stops_in_a_map, stops_in_a_generator])
def test_what_stops_early_makes_no_item_behind(compiled: Any, function: Any) -> None:
    runner = compiled(function, Row, MAP)
    for row in [("7,a", "x", 0), ("1,2", "x", 0), ("1,2", "y", 0)]:
        same_as_python(runner, row)


def of_several(t):
    n = 0
    try:
        for x, _ in zip(map(int, t.s.split()), t.u.split()):
            n += x
    except ValueError:
        n += 1000
    return n


def changed_meanwhile(t):
    seen = {"a": 1}
    for w, k in zip((w for w in t.s.split() if w not in seen), range(100)):
        seen[w] = k
    return len(seen)


def used_outside(t):
    hit = 0
    if any((hit := len(w)) > 1 for w in t.s.split()):
        return hit
    return -hit


def raised_later(t):
    try:
        return (int(w) for w in t.s.split())
    except ValueError:
        return [-1]


def helper(words):
    n = 0
    for x, _ in zip(map(int, words), "ab"):
        n += x
    return n


def in_a_helper(t):
    try:
        return helper(t.s.split())
    except ValueError:
        return -1


REFUSED = [
    (of_several, ("items_too_early",)), (in_a_helper, ("items_too_early",)), (changed_meanwhile, ("items_too_early",)),
    (used_outside, ("unassigned", "hit")), (raised_later, ("lazy_in_try",)),
]  # fmt: skip


@pytest.mark.parametrize(("function", "reason"), REFUSED, ids=[f.__name__ for f, _ in REFUSED])
def test_what_would_differ_is_refused(compiler: Any, function: Any, reason: Any) -> None:
    kind = FLAT_MAP if function is raised_later else MAP
    code = compiler.compile(request(function, Row, kind, output=Schema.of(int)))
    assert code.lane is Lane.PYTHON
    check_reason(code.refusal, *reason, "test_lazy_loops.py:")
