"""What raises comes back as the index of its tuple, and is explained by running the Python function again."""

# ruff: noqa: SIM105 -- functions as users write them

from __future__ import annotations

import subprocess
import sys
from typing import Any, NamedTuple

import cloudpickle
import pytest
from harness import FILTER, FLAT_MAP, MAP, request

from rayelastic.compile import Compiler
from rayelastic.compile.code.explain import explain
from rayelastic.graph.spec.operator_spec import Lane


class Point(NamedTuple):
    x: int
    name: str


class Narrow(NamedTuple):
    value: int


class Seen(NamedTuple):
    count: int = 0  # type: ignore[assignment]


def divide(t):
    return 100 // t.x


def checked(t):
    if t.x < 0:
        raise ValueError("negative: " + t.name)
    return t.x


def deep(t):
    return checked(t) + 1


def words(t):
    for w in t.name.split():
        yield (w, 100 // t.x)


def remembered(t, s):
    s.count += 1
    return (100 // t.x, s.count)


@pytest.mark.parametrize("position", [0, 1, 4])
@pytest.mark.parametrize(
    ("function", "kind", "bad", "error"),
    [
        (divide, MAP, (0, ""), ZeroDivisionError),
        (lambda t: 7 % t.x > 3, FILTER, (0, ""), ZeroDivisionError),
        (checked, MAP, (-1, "a name beyond twelve bytes"), ValueError),
        (deep, MAP, (-1, "x"), ValueError),
        (lambda t: int(t.name), MAP, (1, "twelve"), ValueError),
        (lambda t: t.name[t.x], MAP, (9, "abc"), IndexError),
        (words, FLAT_MAP, (0, "a b"), ZeroDivisionError),
    ],
)
def test_the_index_and_the_true_exception(
    compiled: Any, function: Any, kind: Any, bad: Any, error: Any, position: Any
) -> None:
    rows = [(i + 1, "123456") for i in range(5)]
    runner = compiled(function, Point, kind)
    assert runner(rows).failed is None
    rows[position] = bad
    assert runner(rows).failed == position
    explanation = explain(runner.code, bad)
    assert isinstance(explanation.exception, error)
    assert __file__ in explanation.traceback
    assert "explain.py" not in explanation.traceback
    assert error.__name__ in explanation.message


def test_what_python_would_not_raise(compiled: Any) -> None:
    from rayelastic.graph.records.schema import DataType, Schema

    narrow = Schema.of({"value": DataType.INT16})
    runner = compiled(lambda t: t.x, Point, MAP, output=narrow)
    assert runner([(1, ""), (40000, "")]).failed == 1
    assert explain(runner.code, (40000, "")).message == "it gave 40000 for 'value' of Record, which is int16"
    assert explain(runner.code, (40000, "")).exception is None
    unsigned = compiled(lambda t: t.value, {"value": DataType.UINT64}, MAP)
    assert unsigned([(2**63 - 1,), (2**63,)]).failed == 1
    assert explain(unsigned.code, (2**63,)).message == f"it gave {2**63} for 'value' of Record, which is int64"


def test_generators_fill_and_flush(compiled: Any) -> None:
    def repeated(t):
        for i in range(t.x):
            yield (i, t.name)

    runner = compiled(repeated, Point, FLAT_MAP)
    rows = [(5, "a"), (0, "b"), (23, "a name beyond twelve bytes"), (1, "c")]
    wanted = [(i, name) for count, name in rows for i in range(count)]
    for capacity in (4, 5, 7, 29, 64):
        outcome = runner(rows, capacity=capacity)
        assert outcome.items == wanted
        assert outcome.flushes == (len(wanted) - 1) // capacity
    assert runner(rows, capacity=4, stop_after=2).stopped


def test_a_flush_that_stops_passes_user_handlers(compiled: Any) -> None:
    def stubborn(t):
        for i in range(100):
            try:
                yield i
            except Exception:
                pass

    assert compiled(stubborn, Point, FLAT_MAP)([(1, "")], capacity=4, stop_after=0).stopped


def test_failures_of_keyed_functions(compiled: Any) -> None:
    runner = compiled(remembered, Point, MAP, keys=("name",), state=Seen)
    rows = [(1, "a"), (2, "b"), (4, "a")]
    outcome = runner(rows, keys=["a", "b", "a"])
    assert outcome.items == [(100, 1), (50, 1), (25, 2)]
    assert outcome.states == {"a": (2,), "b": (1,)}
    assert runner([(1, "a"), (0, "a")], keys=["a", "a"]).failed == 1
    assert isinstance(explain(runner.code, (0, "a"), (5,)).exception, ZeroDivisionError)
    assert isinstance(explain(runner.code, (0, "a")).exception, ZeroDivisionError)


def test_code_survives_the_way_to_another_process(compiler: Any) -> None:
    code = compiler.compile(request(lambda t: t.x + 1, Point, lane=Lane.COMPILED))
    again = cloudpickle.loads(cloudpickle.dumps(code))
    assert again.machine == code.machine
    assert again.output_schema == code.output_schema
    assert again.function(Point(1, "")) == 2


LIMITS = {0: 1, 1: 2}

ELSEWHERE = """
import sys
import cloudpickle
from rayelastic.compile.code.answers import answers
answer = answers(cloudpickle.load(sys.stdin.buffer))
print(answer((2**62, "")), answer((2**62, "none")), "numba" in sys.modules)
"""


def test_python_answers_in_another_process() -> None:
    """As a PE has it: the function and what it reads came along, and are as at declaration."""

    def halved(t):
        return t.x * 4 // 8 + LIMITS[len(t.name)]

    code = Compiler().compile(request(halved, Point, lane=Lane.COMPILED))
    assert code.frozen == ("LIMITS",)
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    shipped = cloudpickle.dumps(code)
    done = subprocess.run([sys.executable, "-c", ELSEWHERE], input=shipped, capture_output=True, check=True)
    assert done.stdout.decode().split("\n")[0] == f"[{2**61 + 1}] None False"


@pytest.mark.edges
def test_a_lone_surrogate_is_named(compiled: Any) -> None:
    """B7."""
    runner = compiled(lambda t: chr(t.x), Point, MAP)
    assert runner([(0xD800, "")]).failed == 0
    assert explain(runner.code, (0xD800, "")).message == (
        r"it gave '\ud800' for 'value', which has a lone surrogate and can't be UTF-8"
    )
