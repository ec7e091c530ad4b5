"""Bools that meet ints, identity, ranges, and what is looked for in sets: as in CPython, or not compiled."""

# ruff: noqa: DTZ001, F632 -- functions as users write them

from __future__ import annotations

import datetime as dt
import math
from typing import Any, NamedTuple

import pytest
from harness import python_result, request

from rayelastic.compile.code.explain import explain
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import Lane
from tests.raising import check_reason


class Row(NamedTuple):
    s: str
    i: int
    j: int
    x: float
    p: bool
    n: int | None


class Names:
    STOP = frozenset({"the", "a", "an", "of", "in", "by"})


class Limits(NamedTuple):
    names: frozenset  # type: ignore[type-arg]
    most: int


LIMITS = Limits(frozenset({"the", "a", "an", "of"}), 3)
LEAST, MOST = -(2**63), 2**63 - 1
ROWS = [
    ("", 0, 0, 0.0, False, None), ("a the b", 1, 5, 1.5, True, 1), ("of", MOST, LEAST, math.nan, False, 0),
    ("x", LEAST, MOST, 1e308, True, 7), ("the", 63, LEAST + 1, 2.0, False, None), ("a", 2**40, 3, 5e-324, True, 2),
    ("an", 5, 2**32, -0.75, False, 3), ("b", 2000, 7, math.inf, True, None), ("by", 20, 20, 0.5, False, 20),
]  # fmt: skip


def counted(t):
    turns = 0
    for _ in range(t.i, t.j, 2**60):
        turns += 1
    return turns, len(range(t.j, t.i, -(2**59)))


def counted_from(t):
    return sum([k for k in range(t.i % 5, t.j % 11)]), sum([k for k in range(t.i % 5, -3, -2)])  # noqa: C416


def scaled(t):
    return math.ldexp(t.x, t.j), math.ldexp(t.i, 2)


def scaled_or_not(t):
    try:
        return math.ldexp(t.x, t.j)
    except OverflowError:
        return -1.0


def of_parts(t):
    try:
        return dt.datetime(2020, 1, t.i, hour=t.j)
    except ValueError:
        return dt.datetime(2020, 1, 1)


def day_of_parts(t):
    try:
        return dt.date(t.i, t.j, 1)
    except ValueError:
        return dt.date(2020, 1, 1)


def at_minute(t):
    try:
        return dt.datetime(2020, 1, 1).replace(minute=t.i)
    except ValueError:
        return dt.datetime(2020, 1, 1)


def in_frozen_sets(t):
    return t.s in Names.STOP, t.s not in LIMITS.names, len(Names.STOP), LIMITS.most


def none_and_bools(t):
    return t.n is None, t.p is True, t.p in {1, 2, t.i}, t.p + 1, str(t.p and t.i > 3)


def same_list(t):
    first = [t.i]
    second = first
    return first is second, first is not [1]


def none_put_behind(t):
    lengths = [len(w) for w in t.s.split()]
    if t.p:
        lengths.append(t.n)
    return lengths[-1] if lengths else t.n, len(lengths)


def none_or_another(t):
    lengths = [len(w) for w in t.s.split()]
    lengths.append(t.n or t.i)
    return str(lengths[0])


def none_or_another_in_front(t):
    words = list(map(str.lower, t.s.split()))
    words.sort()
    words.insert(0, None if t.p else t.s)  # type: ignore[arg-type]
    return words[-1]


CASES = [
    counted, counted_from, scaled, scaled_or_not, of_parts, day_of_parts, at_minute, in_frozen_sets, none_and_bools,
    same_list, none_put_behind, none_or_another, none_or_another_in_front,
]  # fmt: skip


@pytest.mark.parametrize("function", CASES, ids=[f.__name__ for f in CASES])
def test_compiled_equals_python_or_asks_it(compiled: Any, function: Any) -> None:
    runner = compiled(function, Row)
    for row in ROWS:
        wanted, ours = python_result(runner.code, [row]), runner([row])
        if ours.failed is None or wanted.failed is not None:
            assert (ours.failed, repr(ours.items)) == (wanted.failed, repr(wanted.items)), row
        else:
            assert function in (counted, scaled), f"{row}: {explain(runner.code, row)}"


def once_bool(t):
    found = 0
    for word in t.s.split():
        if word == "a":
            found = True
    return str(found)


def bool_in_list(t):
    return str([True, t.i][0])


def bool_in_dict(t):
    d = {"a": t.i}
    d["b"] = t.p
    return str(d["b"])


def appended(t):
    items = [1]
    items.append(t.p)
    return str(items[-1])


def chosen(t):
    return str(t.p and t.i)


def largest(t):
    return str(max(t.p, t.i))


def chosen_of_floats(t):
    return str(t.p or t.x)


def once_float(t):
    found = t.p
    if t.i > 3:
        found = t.x
    return str(found)


def largest_of_floats(t):
    return f"{max(t.p, t.x)} {min(0.5, t.p)}"


def largest_of_a_pair(t):
    return str(max((t.p, t.i)))


def bool_in_dict_of_floats(t):
    return str({"a": t.x, "b": t.p}["b"])


def bool_in_pairs(t):
    return str([(t.p, 1), (t.i, 1)][0][0])


def bool_in_dict_of_pairs(t):
    return str({"a": (t.p, 1), "b": (t.i, 1)}["b"][0])


def bool_in_a_pair(t):
    pair = (t.p, 1)
    if t.i > 3:
        pair = (t.i, 1)
    return str(pair[0])


def lists_added(t):
    return str(([t.p] + [t.i])[0])  # noqa: RUF005


def list_added_in_place(t):
    items = [t.i]
    items += [t.p]
    return str(items[1])


def extended(t):
    items = [t.i]
    items.extend([t.p])
    return str(items[1])


def updated(t):
    found = {"a": t.i}
    found.update({"b": t.p})
    return str(found["b"])


def helper(x):
    if x > 3:
        return True
    return 7


def given_by_a_helper(t):
    return str(helper(t.i))


def inverted(t):
    return str(~t.p)


def same_number(t):
    return str(t.i is t.j)


def same_text(t):
    return str(t.s is t.s.strip())


def float_in_ints(t):
    return str(t.x in {1, 2, t.i})


def int_in_bools(t):
    return str(t.i in {t.p, t.i > 3})


def hashed(t):
    return str(hash(t.x))


def in_turn(t):
    return ",".join([name for name in Names.STOP])  # noqa: C416


def in_turn_of_a_field(t):
    return ",".join([name for name in LIMITS.names])  # noqa: C416


REFUSED: list[tuple[Any, tuple[str, ...]]] = [
    (once_bool, ("two_kinds", "'found' bool int")), (bool_in_list, ("two_kinds", "bool int")),
    (bool_in_dict, ("two_kinds", "'d' bool int")), (appended, ("two_kinds", "bool int")),
    (chosen, ("two_kinds", "bool int")), (largest, ("two_kinds", "bool int")),
    (chosen_of_floats, ("two_kinds", "a value bool float")),
    (once_float, ("two_kinds", "'found' bool float")), (largest_of_floats, ("two_kinds", "bool float")),
    (largest_of_a_pair, ("two_kinds", "bool int")), (bool_in_dict_of_floats, ("two_kinds", "float int")),
    (bool_in_pairs, ("two_kinds", "bool int")), (bool_in_dict_of_pairs, ("two_kinds", "bool int")),
    (bool_in_a_pair, ("two_kinds", "'pair' bool int")), (lists_added, ("two_kinds", "bool int")),
    (list_added_in_place, ("two_kinds", "'items' bool int")), (extended, ("two_kinds", "bool int")),
    (updated, ("two_kinds", "bool int")), (given_by_a_helper, ("two_kinds", "bool int")),
    (inverted, ("write_instead", "~ of a bool", "not")), (same_number, ("write_instead", "is ==")),
    (same_text, ("write_instead", "is ==")), (float_in_ints, ("two_kinds", "int float")),
    (int_in_bools, ("two_kinds", "bool int")), (hashed, ("by_identity", "hash()")),
    (in_turn, ("write_instead", "'Names.STOP'")), (in_turn_of_a_field, ("write_instead", "'LIMITS.names'")),
]  # fmt: skip


@pytest.mark.parametrize(("function", "reason"), REFUSED, ids=[f.__name__ for f, _ in REFUSED])
def test_what_would_differ_is_refused(compiler: Any, function: Any, reason: Any) -> None:
    code = compiler.compile(request(function, Row, output=Schema.of(str)))
    assert code.lane is Lane.PYTHON
    check_reason(code.refusal, *reason, "test_conversions.py:")


class Chosen(NamedTuple):
    word: str | None
    count: int  # type: ignore[assignment]


class Nicknamed(NamedTuple):
    s: str
    u: str
    m: str | None


def none_or_text(t):
    words = list(map(str.lower, t.u.split()))
    words.append(t.m or t.s)
    return words[len(words) // 2], len(words)


def test_a_list_whose_items_may_be_none_from_some_line_on_is_right_or_refused(compiler: Any, compiled: Any) -> None:
    """Numba, by the order in which it looks at types, writes items of `str` into a list of `str | None`."""
    code = compiler.compile(request(none_or_text, Nicknamed, output=Schema.of(Chosen)))
    if code.lane is Lane.PYTHON:
        check_reason(code.refusal, "mixed_kinds", "list")
        return
    runner = compiled(none_or_text, Nicknamed)
    rows = [(text, text * 9, None) for text in ("", "A b", "C d e f g h")]
    ours, wanted = runner(rows), python_result(runner.code, rows)
    assert (ours.failed, repr(ours.items)) == (wanted.failed, repr(wanted.items))
