"""Ints that meet floats in lists and tuples: beyond 2**53 a float holds another number, so this is Python's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import Lane
from rayelastic.graph.spec.requests import FunctionKind
from tests.component.compile.harness import python_result, request
from tests.raising import check_reason


class Row(NamedTuple):
    i: int
    x: float
    n: int | None


ROWS = [(i, float(i), n) for i in (2**53 + 1, 2**63 - 1, -(2**63), 0, 2, 3) for n in (None, 2**53 + 1)]
ROWS += [(2, 2.5, 1), (0, -0.0, 0), (3, float("nan"), None), (1, float("inf"), 2)]


def listed(t: Row) -> str:
    return str([t.i, 0.5][0])


def largest_of_a_list(t: Row) -> str:
    return str(max([t.i, t.x]))


def listed_with_none(t: Row) -> str:
    return str([t.n, t.x][0])


def pairs(t: Row) -> str:
    return str([(t.i, 0.5), (0.5, t.i)][0][0])


def in_a_dict(t: Row) -> str:
    return str({"a": 0.5, "b": t.i}["b"])


def added(t: Row) -> str:
    return str(([0.5] * 2 + [t.i])[2])


def added_in_place(t: Row) -> str:
    got = [0.5]
    got += [t.i]
    return str(got[1])


def extended(t: Row) -> str:
    got = [0.5]
    got.extend([t.i])
    return str(got[1])


def extended_by_a_set(t: Row) -> str:
    got = [0.5]
    got.extend({t.i})
    return str(got[1])


def equal_lists(t: Row) -> str:
    return str([t.i] == [t.x])


def equal_pairs(t: Row) -> str:
    return str((t.i, 1) == (t.x, 1))


def equal_pairs_inside(t: Row) -> str:
    return str(((t.i, 1), 2) == ((t.x, 1), 2))


def pair_among_pairs(t: Row) -> str:
    return str((t.i, 1) in [(t.x, 1)])


def largest_of_a_pair(t: Row) -> str:
    return str(max((t.i, t.x)))


def int_among_floats(t: Row) -> str:
    return str(t.i in (0.5, 9223372036854775808.0))


def float_among_ints(t: Row) -> str:
    return str(t.x in (1, t.i))


def float_among_long_ints(t: Row) -> str:
    return str(t.x in (1, 9223372036854775807))


def updated(t: Row) -> str:
    got = {"a": 0.5}
    got.update({"b": t.i})
    return str(got["b"])


def pair_in_a_variable(t: Row) -> str:
    pair: tuple[Any, int] = (t.i, 1)
    if t.i < 0:
        pair = (t.x, 1)
    return str(int(pair[0]))


def pair_given(i: int) -> tuple[Any, int]:
    return (0.5, 1) if i < 3 else (i, 1)


def pair_of_a_helper(t: Row) -> str:
    return str(int(pair_given(t.i)[0]))


def none_in_a_variable(t: Row) -> str:
    number: Any = t.n
    if t.i == 2:
        number = 0.5
    return "" if number is None else str(int(number))


def float_among_the_first_long_ints(t: Row) -> str:
    return str(t.x in (1, 9007199254740993))  # 2**53 + 1, which 2.0**53 isn't


OTHERS = (
    listed, largest_of_a_list, listed_with_none, pairs, in_a_dict, added, added_in_place, extended, extended_by_a_set,
    equal_lists, equal_pairs, equal_pairs_inside, pair_among_pairs, largest_of_a_pair, int_among_floats,
    float_among_ints, float_among_long_ints, float_among_the_first_long_ints, updated, pair_in_a_variable,
    pair_of_a_helper, none_in_a_variable,
)  # fmt: skip


@pytest.mark.parametrize("function", OTHERS, ids=lambda one: one.__name__)
def test_an_int_that_would_become_a_float_is_left_to_python(compiler: Any, function: Any) -> None:
    code = compiler.compile(request(function, Row, output=Schema.of(str)))
    assert code.lane is Lane.PYTHON
    check_reason(code.refusal, "two_kinds", "test_ints_beside_floats.py:")


def float_among_small_ints(t: Row) -> tuple[Any, ...]:
    return t.x in (0, 2, 3), t.x in [1, 2, 3]


def alike(t: Row) -> tuple[Any, ...]:
    return (t.i, t.x) < (t.i, 2.5), (t.i, 1) == (t.i, 2), max((t.i, 3)), min((t.x, 2.5)), t.i in (2, 3)


def pair_of_constants(t: Row) -> tuple[Any, ...]:
    best, at = (0, 1), 0
    for x in (t.x, 2.5):
        if x > best[0]:
            best = (x, 2)  # type: ignore[assignment]
            at += 1
    return best[1], at


def number_given(i: int) -> Any:
    return 0.5 if i < 3 else i


def number_of_a_helper(t: Row) -> tuple[Any, ...]:
    return (int(number_given(t.i)),)


def one_by_one(t: Row) -> tuple[Any, ...]:
    return t.i == t.x, t.i < t.x, [t.x, 2.5].count(2.5), sum([t.i, 1]), max([t.x, 2.5]) > t.i


EQUAL = (float_among_small_ints, alike, one_by_one, pair_of_constants, number_of_a_helper)


@pytest.mark.parametrize("function", EQUAL, ids=lambda one: one.__name__)
def test_what_a_float_holds_is_compiled_and_equal(compiled: Any, function: Any) -> None:
    runner = compiled(function, Row)
    for row in ROWS:
        wanted, ours = python_result(runner.code, [row]), runner([row])
        if ours.failed is None or wanted.failed is not None:
            assert (ours.failed, repr(ours.items)) == (wanted.failed, repr(wanted.items)), row
        else:
            # NaN among floats, sums beyond 64 bits, what a float doesn't hold
            assert row[1] != row[1] or abs(row[0]) > (2**53 if function is number_of_a_helper else 2**62), row


class Both(NamedTuple):
    i: int
    x: float


def several_returns(t: Row) -> Any:
    if t.n is None:
        return t.i
    return t.x


def pairs_by_branch(t: Row) -> tuple[Any, ...]:
    if t.n is None:
        return 1, t.i
    return 1, t.x


def declared(t: Row) -> Both:
    return Both(1, t.i)


def declared_in_one_branch(t: Row) -> Both:
    y = t.i if t.n is None else t.x
    return Both(1, y)


RESULTS = (several_returns, pairs_by_branch, declared, declared_in_one_branch)


@pytest.mark.parametrize("function", RESULTS, ids=lambda one: one.__name__)
def test_a_result_that_a_float_does_not_hold_is_refused(compiled: Any, function: Any) -> None:
    runner = compiled(function, Row)
    held = [-(2**63), -(2**53), 0, 3, 2**53, 2**62]
    assert [runner([(i, 0.5, None)]).failed for i in (2**53 + 1, -(2**53) - 1, 2**63 - 1)] == [0, 0, 0]
    assert [item[-1] for item in runner([(i, 0.5, None) for i in held]).items] == [float(i) for i in held]


def test_items_that_a_float_does_not_hold_are_refused(compiled: Any) -> None:
    def yielded(t: Row) -> Iterator[Any]:
        if t.n is None:
            yield t.i
        yield t.x

    runner = compiled(yielded, Row, FunctionKind.FLAT_MAP)
    assert runner([(3, 0.5, None), (2**53 + 1, 0.5, None)]).failed == 1
    assert runner([(2**53 + 1, 0.5, 1), (2**53, 1.5, None)]).items == [(0.5,), (2.0**53,), (1.5,)]
