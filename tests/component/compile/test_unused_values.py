"""What may raise is done though nothing uses its value, also beside a comprehension."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from harness import python_result


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


@pytest.mark.parametrize("function", [divided, looked_up, validated, unpacked])
def test_unused_values_raise_as_in_python(compiled, function):
    runner = compiled(function, Pair)
    for row in [(1, 1, "12"), (7, 0, "twelve"), (-9, 1, "a=b")]:
        ours, wanted = runner([row]), python_result(runner.code, [row])
        assert (ours.failed, ours.items) == (wanted.failed, wanted.items)
