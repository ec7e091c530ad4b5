"""Dicts and sets made in a function find their keys by content: equal texts at two addresses are one key."""

# ruff: noqa: C416, C420, DTZ001, SIM401, UP028 -- functions as users write them

from __future__ import annotations

import datetime as dt
from typing import Any, NamedTuple

import pytest
from harness import FLAT_MAP, MAP, python_result, request, same_as_python

from rayelastic.compile import Compiler
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import Lane
from tests.raising import check_reason


class Row(NamedTuple):
    s: str
    u: str
    by: bytes
    a: int
    x: float
    y: float
    at: dt.datetime


def code(t):
    return {"GET": 1, "POST": 2}.get(t.s, 0), {t.s: 1, t.u: 2}[t.s]


def lower(t):
    known = {"get": 1, "a text of more than twelve bytes": 2}
    return known.get(t.s.lower(), 0)


def known(t):
    d = {"abc": 1, "": 2}
    return t.s in d, t.u not in d


def pairs(t):
    d = {}
    for part in t.s.split(";"):
        key, _, value = part.partition("=")
        d[key] = value
    return d["a"] if "a" in d else "-", len(d)


def distinct(t):
    d = {}
    for word in t.s.split():
        d[word] = True
    return len(d)


def most_common(t):
    d = {"": 0}
    for word in t.s.split():
        if word in d:
            d[word] += 1
        else:
            d[word] = 1
    return max(d.values()), ",".join(d.keys())


def changed_literal(t):
    d = {"a": 0, "b": 1}
    for letter in t.s:
        if letter == "a":
            d["a"] += 1
    return d["a"], d["b"]


def comprehension(t):
    d = {c: 1 for c in t.s}
    return len(d), "".join([k for k in d])


def popped(t):
    d = {"a": 1, "b": 2, "long text, more than twelve": 3}
    gone = d.pop(t.s, -1)
    return gone, len(d)


def defaulted(t):
    d = {"x": 5}
    first = d.setdefault(t.s, 1)
    second = d.setdefault(t.s.strip(), 2)
    return first, second, len(d)


def of_tuples(t):
    d = {}  # type: ignore[var-annotated]
    for word in t.s.split():
        d[(word, len(word))] = len(d)
        d[(word, 1)] = -1
    return len(d), sum(d.values())


def of_bytes(t):
    d = {b"GET": 1}
    for part in t.by.split(b","):
        d[part] = len(part)
    return len(d), d[b"GET"]


def of_moments(t):
    d = {t.at: 1}
    d[dt.datetime(1970, 1, 1)] = 2
    return len(d), d[t.at]


def of_whole_numbers(t):
    d = {t.a: 1, 0: 2}
    return d.get(t.a, 0), d[0], len(d), (t.a, True) in {(t.a, t.a == t.a): 1}


def items(t):
    d = {}
    for word in t.s.split():
        d[word.upper()] = len(word)
    for key, value in d.items():
        yield key, value


FUNCTIONS: list[tuple[Any, Any]] = [
    *((f, MAP) for f in (code, lower, known, pairs, distinct, most_common, changed_literal, comprehension, popped)),
    *((f, MAP) for f in (defaulted, of_tuples, of_bytes, of_moments, of_whole_numbers)),
    (items, FLAT_MAP),
]

TEXTS = [
    "GET", "POST", "get", "Get", "", "abc", "b b", "a a b a", "a=1;b=2;a=3", "x", "x ", " x",
    "A TEXT OF MORE THAN TWELVE BYTES", "long text, more than twelve", "ß ss ẞ", "\0 \0\0 \0",
    "a text of more than twelve bytes a text of more than twelve bytes",
]  # fmt: skip
LATE = dt.datetime(1969, 12, 31, 23)
ROWS = [
    (text, TEXTS[-1 - n], b"GET,a,a," + text.encode(), n - 3, n / 2, -0.0, LATE + dt.timedelta(hours=n % 3))
    for n, text in enumerate(TEXTS)
]


@pytest.mark.parametrize(("function", "kind"), FUNCTIONS, ids=lambda value: getattr(value, "__name__", None))
def test_keys_are_found_by_content(compiled: Any, function: Any, kind: Any) -> None:
    runner = compiled(function, Row, kind)
    assert runner(ROWS).items == python_result(runner.code, ROWS).items


def local_float_keys(t):
    return {0.0: 5}.get(t.x, -1)


def pairs_of_floats(t):
    return len({(t.a, t.x): 1, (t.a, t.y): 2})


def float_set(t):
    return len({t.x, t.y})


@pytest.mark.parametrize("function", [local_float_keys, pairs_of_floats, float_set])
def test_float_keys_run_as_python_with_the_reason(compiler: Compiler, function: Any) -> None:
    code = compiler.compile(request(function, Row, MAP, output=Schema.of(int)))
    assert code.lane is Lane.PYTHON
    check_reason(code.refusal, "by_identity", "float keys", "return")  # the user's own line


def grown(t):
    counts = {1: 2, 3: 4}
    for n, key in enumerate(counts):
        if t.a > 1:
            counts[key + 100 * n] = 1
    return len(counts)


def shrunk(t):
    counts = {w: 1 for w in t.s.split()}
    for key in counts.keys():  # noqa: SIM118
        if t.a > 1:
            counts.pop(key)
        else:
            counts[key] = 7
    return len(counts), sum(counts.values())


def grown_at_the_end(t):
    counts, seen = {1: 2, 3: 4}, 0
    for _key, value in counts.items():  # noqa: PERF102
        seen += value
        if seen > 5 and t.a > 1:
            counts[t.a] = 5
    return seen


@pytest.mark.parametrize("function", [grown, shrunk, grown_at_the_end])
def test_a_loop_over_a_dict_that_it_changes_is_an_error(compiled: Any, function: Any) -> None:
    runner = compiled(function, Row, MAP)
    for a in (0, 1, 3, 7):
        for text in ("", "a", "a b"):
            row = (text, "", b"", a, 0.0, 0.0, dt.datetime(2020, 1, 1))
            same_as_python(runner, row)
