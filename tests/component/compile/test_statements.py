"""Star targets, defaults, keyword arguments, imports and loops with else: compiled, they do what CPython's do."""

# ruff: noqa: E731 -- functions as users write them

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from harness import MAP, request, same_as_python

from rayelastic.compile.reading.identity import Identity
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import Lane
from tests.raising import check_reason


class Row(NamedTuple):
    s: str
    i: int


ROWS = [
    (text, number)
    for text in ("", "a", "a b", "a  b c", "ß 😀 é \x00", "a longer text than twelve bytes")
    for number in (0, 3, -7)
]


def starred(t):
    a, *rest = t.s.split(" ")
    first, *middle, last = (t.i, 1, 2, t.i)
    return a, len(rest), "|".join(rest), first, last, len(middle)


def starred_at_the_end(t):
    *a, b, c = t.s.split()
    return len(a), b + c


def by_default(t, n=3, sep=" ", *, last=-1):
    return t.i + n, t.s.split(sep)[last]


def changed_default(t, n=3, other=None):
    if other is None:
        n += t.i
    return n


def shared(a, b=2, sep="-", *, c=4):
    return str(a + b * c) + sep


def keywords(t):
    return shared(t.i) + shared(t.i, 5) + shared(t.i, c=1) + shared(b=1, a=t.i, sep="é")


def local_function(t):
    def inner(x, y=2, *, z=1):
        return x + 10 * y + 100 * z

    square = lambda x, k=3: x * x + k
    return inner(1), inner(1, y=4), inner(y=t.i, x=2, z=3), square(t.i), square(k=1, x=2)


def imported(t):
    import math
    from math import floor as down

    return down(1.5) + math.floor(2.5) + t.i


def ended(t):
    for w in t.s.split():
        if w == "b":
            r = 1
            break
    else:
        r = 2
    k = 0
    while k < 3:
        if k == t.i:
            break
        k += 1
    else:
        k = 100
    return r, k


def walrus(t):
    k = 0
    while (k := k + 1) < 5:
        if k == t.i:
            break
    return k, sum(n for w in t.s.split() if (n := len(w)) > 1)


def walrus_behind_and(t):
    if t.i > -3 and (n := len(t.s)) > 3:
        return n
    elif (m := t.i * 2) > 5 and m < 9 and (first := t.s[:1]):
        return len(first) + m
    return -1


def walrus_in_a_loop(t):
    total = 0
    for w in t.s.split():
        if (n := len(w)) > 1 and (up := w.upper()) != "":
            total += n + len(up)
        else:
            total -= n
    rest = t.s
    while rest and (at := rest.find(" ")) > 0:
        rest = rest[at + 1 :]
        total += 100
    return total, rest


def joined(t):
    r, parts = "", []
    for c in t.s:
        r += c + ";"
        parts.append(c)
    return r, len(parts)


CASES = [
    starred, starred_at_the_end, by_default, changed_default, keywords, local_function, imported, ended, walrus,
    walrus_behind_and, walrus_in_a_loop, joined,
]  # fmt: skip


@pytest.mark.parametrize("function", CASES, ids=[f.__name__ for f in CASES])
def test_compiled_equals_python(compiled: Any, function: Any) -> None:
    runner = compiled(function, Row, MAP)
    for row in ROWS:
        same_as_python(runner, row)


def test_defaults_are_part_of_a_function() -> None:
    def made(value: Any) -> Any:
        def function(t, *, n=value):
            return t.i + n

        return function

    assert Identity(made(1)).digest == Identity(made(1)).digest
    assert Identity(made(1)).digest != Identity(made(2)).digest


def unknown_default(t):
    k = t.i

    def inner(x, y=k):
        return x + y

    return inner(1)


def foreign(t):
    import numpy as np

    return np.abs(t.i)


@pytest.mark.parametrize(
    ("function", "reason"),
    [(unknown_default, ("arguments", "'inner'")), (foreign, ("imports", "numpy"))],
)
def test_what_is_refused(compiler: Any, function: Any, reason: Any) -> None:
    code = compiler.compile(request(function, Row, output=Schema.of(int)))
    assert code.lane is Lane.PYTHON
    check_reason(code.refusal, *reason, "test_statements.py:")
