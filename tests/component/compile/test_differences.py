"""What is different from CPython by design: each row of the guide's list has its test here, of that name."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

from harness import MAP, python_result

from rayelastic.compile.report import compile_report
from rayelastic.errors import SchemaError
from tests.raising import raises

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "what_is_compiled.md"


class Sum(NamedTuple):
    total: float = 0.0


class Row(NamedTuple):
    n: int
    x: float
    s: str
    p: bool


def both(compiled: Any, function: Any, row: tuple[Any, ...], schema: Any = Row) -> tuple[Any, Any]:
    """The compiled function's result on a row, and CPython's."""
    runner = compiled(function, schema, MAP)
    return runner([row]).items, python_result(runner.code, [row]).items


def test_every_row_of_the_list_has_a_test() -> None:
    table = GUIDE.read_text().partition("## What is different from CPython")[2].partition("```")[0]
    rows = re.findall(r"^\| `(\w+)` \| \S", table, re.MULTILINE)
    tests = {name.removeprefix("test_") for name in vars(sys.modules[__name__]) if name.startswith("test_")}
    assert len(rows) >= 5
    assert set(rows) == tests - {"every_row_of_the_list_has_a_test"}


def test_integers(compiled: Any) -> None:
    runner = compiled(lambda t: t.n * 4 // 8, Row, MAP)
    rows = [(1, 0.0, "", True), (2**62, 0.0, "", True)]
    assert runner(rows).failed == 1  # refused; the engine asks Python then: operators/test_answers.py
    assert python_result(runner.code, rows).items == [(0,), (2**61,)]


def kept(t: Any, st: Any) -> str:
    st.total = t.n
    return f"{st.total}"


def once_bool(t: Any) -> Any:
    if t.p:
        return True
    return t.n


def once_bool_or_float(t: Any) -> Any:
    if t.p:
        return True
    return t.x


def mixed_in_a_pair(t: Any) -> str:
    pair = (t.n, 0) if t.p else (t.x, 0)
    return f"{pair[0]}"


def bool_or_float(t: Any) -> str:
    return f"{t.p or t.x}"


def test_int_or_float(compiled: Any) -> None:
    function = lambda t: f"{t.n if t.p else t.x}"  # noqa: E731
    each = sys.version_info >= (3, 12)  # its byte code makes text of each for itself
    assert both(compiled, function, (1, 0.5, "", True)) == ([("1" if each else "1.0",)], [("1",)])
    assert compiled(function, Row, MAP)([(2**53 + 1, 0.5, "", True)]).failed == (None if each else 0)
    runner, row = compiled(kept, Row, MAP, keys=("n",), state=Sum), (1, 0.5, "", True)
    assert runner([row], keys=[0]).items == [("1.0",)]
    assert python_result(runner.code, [row], keys=[0]).items == [("1",)]
    assert [type(cell) for (cell,) in both(compiled, once_bool, row)[0]] == [int]
    assert [type(cell) for (cell,) in both(compiled, once_bool_or_float, row)[0]] == [float]
    assert [compile_report(one, Row).lane for one in (mixed_in_a_pair, bool_or_float)] == ["python", "python"]


def test_frozen(compiled: Any) -> None:
    rules = {1: 10}
    runner = compiled(lambda t: rules.get(t.n, 0), Row, MAP)
    assert runner.code.reason == "compiled to machine code; rules as at declaration"
    rules[1] = 20
    row = (1, 0.0, "", True)
    assert runner([row]).items == [(10,)]
    assert python_result(runner.code, [row]).items == [(20,)]


def test_hash(compiled: Any) -> None:
    row = (1, 0.0, "a text", True)
    runner = compiled(lambda t: hash(t.s), Row, MAP)
    assert runner([row]).items == runner([row, row]).items[:1]
    assert runner([row]).items != [(hash("a text"),)]


def test_declaration() -> None:
    with raises(SchemaError, "unknown-field", "m"):
        raise_at_declaration()


def raise_at_declaration() -> None:
    from harness import request

    from rayelastic.compile import Compiler

    Compiler().compile(request(lambda t: t.m, Row))
