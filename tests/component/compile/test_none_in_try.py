"""None that CPython looks up, puts in or asks for its truth is no exception, which a handler would catch."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from harness import python_result, request

from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import Lane
from tests.raising import check_reason


class Row(NamedTuple):
    s: str
    m: str | None
    n: int | None


ROWS = [("a", None, None), ("ab", "a", 1), ("", "", 0)]


def looked_up(t):
    try:
        return {"a": 1}.get(t.m, 0)
    except Exception:
        return -1


def contained(t):
    try:
        return int(t.m in [t.s, "b"]) + int(t.n in {1, 2})
    except Exception:
        return -1


def cut(t):
    try:
        return len(t.s[t.n :])
    except Exception:
        return -1


def put_in(t):
    try:
        d = {"a": 1}
        d["b"] = t.n
        return len(d)
    except Exception:
        return -1


def negated(t):
    try:
        return int(not t.n)
    except Exception:
        return -1


def negated_texts(t):
    return not t.m, not t.n


def helper(m):
    return {"a": 1}.get(m, 0)


def by_a_helper(t):
    try:
        return helper(t.m)
    except Exception:
        return -1


REFUSED = [looked_up, contained, cut, put_in, by_a_helper]


@pytest.mark.parametrize("function", REFUSED, ids=[f.__name__ for f in REFUSED])
def test_what_a_handler_would_catch_is_refused(compiler: Any, function: Any) -> None:
    code = compiler.compile(request(function, Row, output=Schema.of(int)))
    assert code.lane is Lane.PYTHON
    check_reason(code.refusal, "may_be_none", "test_none_in_try.py:")


def added(t):
    try:
        return t.n + 1
    except TypeError:
        return -1


def measured(t):
    try:
        return len(t.m) if t.n else len(t.s)
    except TypeError:
        return -1


def outside_of_try(t):
    return {"a": 1}.get(t.m, 0)


CASES = [added, measured, negated, negated_texts, outside_of_try]


@pytest.mark.parametrize("function", CASES, ids=[f.__name__ for f in CASES])
def test_compiled_equals_python_or_asks_it(compiled: Any, function: Any) -> None:
    runner = compiled(function, Row)
    for row in ROWS:
        wanted, ours = python_result(runner.code, [row]), runner([row])
        if ours.failed is None or function is not outside_of_try:
            assert (ours.failed, repr(ours.items)) == (wanted.failed, repr(wanted.items)), row
