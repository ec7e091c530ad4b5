"""What may raise is done though nothing uses its value, also beside a comprehension."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from harness import same_as_python


class Pair(NamedTuple):
    i: int
    j: int
    s: str


def divided(t):
    few = [k for k in range(3)]  # noqa: C416
    t.i // t.j
    return len(few)


def looked_up(t):
    few = [k for k in range(3)]  # noqa: C416
    item = few[t.i]  # noqa: F841
    return len(few)


def validated(t):
    few = [k for k in range(3)]  # noqa: C416
    try:
        int(t.s)
    except ValueError:
        return -1
    return len(few)


def unpacked(t):
    few = [k for k in range(3)]  # noqa: C416
    _key, _value = t.s.split("=")
    return len(few)


def stored(t):
    few = [k for k in range(3)]  # noqa: C416
    seen = [1, 2]
    seen[t.i] = 3
    return len(few)


def before_try(t):
    t.i // t.j  # joined with what is in the try block, it went to the handler's place
    try:
        number = 1
    except ValueError:
        number = 2
    return sum([k for k in range(3)]), number  # noqa: C416


def before_try_in_try(t):
    try:
        first = 6 // t.i
        second = 6 // t.j
        try:
            number = int(t.s)
        except ValueError:
            number = -1
    except ZeroDivisionError:
        return 0, -2
    third = 6 // (t.i - 7)
    try:
        number += first + second + third
    except ValueError:
        number = 2
    return sum([k for k in range(3)]), number  # noqa: C416


FUNCTIONS = [divided, looked_up, validated, unpacked, stored, before_try, before_try_in_try]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_unused_values_raise_as_in_python(compiled: Any, function: Any) -> None:
    runner = compiled(function, Pair)
    for row in [(1, 1, "12"), (7, 0, "twelve"), (7, 1, "a"), (0, 3, "5"), (-9, 1, "a=b")]:
        same_as_python(runner, row)
