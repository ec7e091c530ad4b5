"""Arithmetic of the compiled lane is CPython's: the same numbers, the same failures, and nothing wraps."""

from __future__ import annotations

import itertools
import math
import operator
import random
from typing import Any, NamedTuple

import numpy as np
import pytest
from harness import MAP

from rayelastic.compile.code.explain import explain


class Numbers(NamedTuple):
    i: int
    j: int
    x: float
    y: float


MOST = 2**63 - 1
INTS = (
    0,
    1,
    -1,
    3,
    -7,
    63,
    2**31,
    2**53 + 1,
    -(2**53) - 1,
    3037000500,
    2**61,
    -(2**61) - 1,
    2**62,
    MOST,
    -MOST,
    -MOST - 1,
)
FLOATS = (
    0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 2.675, 1e308, -1e308, 5e-324, math.inf, -math.inf, math.nan, 2.0**53,
    2.0**63, -(2.0**63), 9.3e18, 123456.789, 710.0,
)  # fmt: skip


def rows_of(count: int) -> list[tuple[int, int, float, float]]:
    """Edges with edges, and some at random of all sizes."""
    chosen = random.Random(5)
    floats = itertools.cycle(itertools.product(FLOATS, FLOATS))
    rows = [(i, j, *next(floats)) for i, j in itertools.product(INTS, INTS)]
    for _ in range(count):
        i, j = (chosen.getrandbits(chosen.randint(1, 63)) * chosen.choice((1, -1)) for _ in range(2))
        x, y = (chosen.uniform(-1, 1) * 10.0 ** chosen.randint(-5, 18) for _ in range(2))
        rows.append((i, j, x, y))
    return rows


ROWS = rows_of(100)

EXPRESSIONS = [
    lambda t: (t.i + t.j, t.i - 3),
    lambda t: t.i * t.j - t.i,
    lambda t: (t.i * 3 + 1, 5 - t.j, t.i + (t.j + 2)),
    lambda t: (t.i // t.j, t.i % t.j),
    lambda t: t.i / t.j,
    lambda t: (-t.i, abs(t.j)),
    lambda t: (t.i ** (t.j & 7), t.i**2),
    lambda t: (t.i << (t.j & 63), t.j >> (t.i & 63)),
    lambda t: t.x**t.y,
    lambda t: (t.x / t.y, t.x // t.y, t.x % t.y),
    lambda t: (t.x**2, t.x**0.5 if t.x > 0 else 0.0),
    lambda t: (t.i == t.x, t.i < t.x, t.x <= t.i, t.i != t.x),
    lambda t: int(t.x),
    lambda t: (round(t.x, 2), round(t.y, -1), round(t.i, -2)),
    lambda t: (round(t.x), math.floor(t.y)),
    lambda t: math.sqrt(t.x) + math.log(t.y),
    lambda t: (math.exp(t.x), math.sin(t.y)),
    lambda t: (min(t.i, t.x), max(t.y, 0)),
    lambda t: sum((t.i, t.j, 1)),
    lambda t: (t.i if t.j > 0 else t.x) * 2.0,
    lambda t: divmod(t.i, t.j),
    lambda t: (*divmod(t.i, t.x), *divmod(t.y, t.j)),
    lambda t: (math.fmod(t.x, t.y), math.fmod(t.i, t.y)),
    lambda t: math.pow(t.x, t.y),
    lambda t: (operator.add(t.i, t.j), operator.mul(t.i, t.j)),
    lambda t: (operator.sub(t.i, t.j), operator.neg(t.i)),
    lambda t: (operator.floordiv(t.i, t.j), operator.mod(t.i, t.j), operator.truediv(t.i, t.j)),
    lambda t: (operator.lt(t.i, t.x), operator.eq(t.i, t.x), operator.pow(t.i, 3)),
    lambda t: applied(operator.mul, t.i, t.j),
]


def applied(function, a, b):
    return function(a, b)


@pytest.mark.parametrize("function", EXPRESSIONS, ids=[str(at) for at in range(len(EXPRESSIONS))])
def test_numbers_are_those_of_cpython_or_refused(compiled: Any, function: Any) -> None:
    runner = compiled(function, Numbers)
    for row in ROWS:
        outcome = runner([row])
        try:
            wanted = function(Numbers(*row))
        except (ArithmeticError, ValueError):
            assert outcome.failed == 0, f"{row}: Python raises, this gives {outcome.items}"
            continue
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        if outcome.failed is None:
            assert same(outcome.items[0], wanted), f"{row}: {outcome.items[0]} is not {wanted}"
        else:
            assert beyond(wanted, row), f"{row}: refused, Python gives {wanted}"


def same(ours: tuple, wanted: tuple) -> bool:  # type: ignore[type-arg]
    return all(a == b or (a != a and b != b) for a, b in zip(ours, wanted, strict=True))


def beyond(wanted: tuple, row: tuple) -> bool:  # type: ignore[type-arg]
    """Whether 64 bits, or a float made of an int, can't hold what Python has."""
    values = [*wanted, *row]
    big = any(type(v) is complex or (type(v) is int and not -(2**53) <= v <= 2**53) for v in values)
    return big or any(type(v) is float and abs(v) >= 2.0**53 for v in values)


def test_a_shift_reaches_the_highest_bits(compiled: Any) -> None:
    runner = compiled(lambda t: t.i << t.j, Numbers)
    fitting = [(1, 62), (-1, 62), (-2, 62), (1, 0), (0, 0), (0, 63), (0, 2**40)]
    assert runner([(*row, 0.0, 0.0) for row in fitting]).items == [(i << j if i else 0,) for i, j in fitting]
    assert [runner([(i, j, 0.0, 0.0)]).failed for i, j in [(2, 62), (1, 63), (-3, 62), (1, 2**40)]] == [0, 0, 0, 0]


@pytest.mark.parametrize("position", [0, 1, 5, 999])
def test_the_tuple_that_overflows_is_named(compiled: Any, position: Any) -> None:
    """Also where a run is done again carefully (exact.py), and where others only look suspicious."""
    runner = compiled(lambda t: (t.i * 3 + 1, t.x * 0.5), Numbers)
    rows = [(k, 0, 1.0, 0.0) for k in range(1000)]
    assert runner(rows).items == [(3 * k + 1, 0.5) for k in range(1000)]
    rows[7] = (2**61, 0, 1.0, 0.0)
    assert runner(rows).items[7] == (3 * 2**61 + 1, 0.5)
    rows[position] = (2**62, 0, 1.0, 0.0)
    assert runner(rows).failed == position
    assert "which is int64" in explain(runner.code, rows[position]).message


def test_a_refusal_passes_handlers(compiled: Any) -> None:
    def caught(t):
        try:
            return helped(t.i) + 1
        except Exception:
            return -1

    runner = compiled(caught, Numbers)
    assert runner([(5, 1, 0.0, 0.0)]).items == [(26,)]
    assert runner([(0, 0, 0.0, 0.0)]).items == [(-1,)]
    assert runner([(2**40, 1, 0.0, 0.0)]).failed == 0


def helped(i: int) -> int:
    if i == 0:
        raise ValueError
    return i * i


def test_keyed_sums_are_checked(compiled: Any) -> None:
    def added(t, s):
        s.total += t.i
        return s.total

    runner = compiled(added, Numbers, MAP, keys=("j",), state=Total)
    assert runner([(1, 0, 0.0, 0.0), (MOST, 0, 0.0, 0.0)], keys=["a", "a"]).failed == 1


class Total(NamedTuple):
    total: int = 0


def test_arrays_keep_their_own_arithmetic(compiled: Any) -> None:
    table = np.arange(10)
    table.flags.writeable = False
    assert compiled(lambda t: table[t.i] * 2, Numbers)([(4, 0, 0.0, 0.0)]).items == [(8,)]
