"""Which lane a function gets and why; what asks for too much is rejected with the operator and a hint."""

# ruff: noqa: T201, PTH123, SIM115 -- functions as users write them

from __future__ import annotations

import decimal
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from harness import FILTER, FLAT_MAP, MAP, request

from rayelastic.compile import Flags, View, load
from rayelastic.errors import LaneError, SchemaError
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import Lane
from rayelastic.graph.spec.requests import FunctionKind
from tests.raising import check_reason, raises


class Trade(NamedTuple):
    symbol: str
    price: float
    volume: int

    def turnover(self) -> float:
        return self.price * self.volume


class Counter(NamedTuple):
    count: int = 0  # type: ignore[assignment]


RATES = {"IBM": 1.5, "other": "x"}
LIMITS = [1, [2], 3]
TABLES = (1, 2)
TABLE = np.array([1.0, 2.0])
FROZEN = np.array([1.0, 2.0, 4.0])
FROZEN.flags.writeable = False
PATTERN = re.compile("(x|y)+")


class Scale:
    factor = 3


SCALE = Scale()


def unhelpful(x):
    return json.dumps(x)


def late(t):
    x = 1
    if t.volume > 3:
        x = "a"  # type: ignore[assignment]
    return x


def delegating(t):
    yield t.symbol


def catching(t):
    try:
        return 1 // t.volume + TABLES[t.volume]
    except ZeroDivisionError as error:
        return len(str(error))


class Anything:
    def __getattr__(self, name):
        return 7


ANYTHING = Anything()
NOT_COMPILED: list[tuple[str, Any, tuple[str, ...]]] = [
    ("global dict", lambda t: RATES[t.symbol], ("can_change", "RATES", "dict")),
    ("global list", lambda t: t.volume in LIMITS, ("can_change", "LIMITS", "list", "a tuple")),
    ("writeable array", lambda t: TABLE[t.volume], ("can_change", "TABLE.flags.writeable = False")),
    ("re", lambda t: re.match(t.symbol, "x") is not None, ("constant_only", "re.match(..)", "pattern and flags")),
    ("pattern", lambda t: PATTERN.match(t.symbol) is not None, ("pattern", "'PATTERN'", "a group inside a repetition")),
    ("json", lambda t: json.loads(t.symbol), ("unsupported", "json.loads")),
    ("json in helper", lambda t: unhelpful(t.symbol), ("unsupported", "json.dumps")),
    ("object", lambda t: t.price * SCALE.missing, ("no_attribute", "SCALE", "missing")),  # type: ignore[attr-defined]
    ("Decimal", lambda t: float(decimal.Decimal(1)), ("unsupported", "Decimal")),
    ("method of tuples", lambda t: t._asdict(), ("unsupported", "'_asdict' of Trade")),
    ("_replace", lambda t: t._replace(cost=1), ("unsupported", "'_replace' of Trade")),
    ("unknown str method", lambda t: t.symbol.maketrans("a", "b"), ("unsupported", "str.maketrans")),
    ("format spec", lambda t: f"{t.price:_}", ("unsupported", "the format spec '_'")),
    ("format to a precision", lambda t: f"{t.price:.3}", ("unsupported", "the format spec '.3' of float")),
    ("format with commas", lambda t: f"{t.price:,}", ("unsupported", "the format spec ',' of float")),
    ("format of an int", lambda t: f"{t.volume:%}", ("unsupported", "the format spec '%' of int")),
    ("negative power", lambda t: t.volume**-1, ("write_instead", "an int to a negative power")),
    ("two types", late, ("two_kinds", "'x'", "int", "str")),
    ("str plus int", lambda t: t.symbol + 1, ("unsupported", "str + int")),
    ("exception class", catching, ("reads_exception",)),
    ("print", lambda t: print(t.symbol), ("needs_interpreter", "print")),
    ("repr", lambda t: len(repr(t.price)), ("write_instead", "repr", "str(..)")),
    ("type", lambda t: 1 if type(t.price) is float else 0, ("write_instead", "type", "isinstance(..)")),
    ("attributes made when asked for", lambda t: ANYTHING.price + t.price, ("no_attribute", "ANYTHING", "price")),
    ("isinstance", lambda t: 1.0 if isinstance(t.volume, int) else 0.0, ("unsupported", "isinstance(..)")),
    ("unknown name", lambda t: undefined_name(t.price), ("undefined", "undefined_name")),  # type: ignore[name-defined]  # noqa: F821
    ("returns None", lambda t: None, ("returns_none", "some")),
    ("set of lists", lambda t: {t.symbol: [t.price]}, ("unsupported", "keys aren't constants")),
    ("open", lambda t: open(t.symbol).read(), ("outside", "open")),
    ("builtin", len, ("not_python", "builtin_function_or_method")),
]


@pytest.mark.parametrize(("function", "reason"), [c[1:] for c in NOT_COMPILED], ids=[c[0] for c in NOT_COMPILED])
def test_what_is_not_compiled_runs_in_python_and_says_why(compiler: Any, function: Any, reason: Any) -> None:
    kind = MAP
    code = compiler.compile(request(function, Trade, kind, output=Schema.of(float)))
    assert code.lane is Lane.PYTHON
    assert code.reason.startswith("not compiled: ")
    check_reason(code.refusal, *reason)
    assert "\n" not in code.reason
    assert "Failed in" not in code.reason
    if function is not len:
        assert "test_lanes.py:" in code.reason
    with raises(LaneError, "not-compiled", "python", operator="op") as caught:
        compiler.compile(request(function, Trade, kind, lane=Lane.COMPILED, output=Schema.of(float)))
    assert caught.value.details == code.refusal


@pytest.mark.parametrize("lane", ["auto", Lane.COMPILED])
def test_a_misspelt_field_is_an_error_in_any_lane(compiler: Any, lane: str) -> None:
    def misspelt(t):
        x = t.volume
        return x * t.prize

    with pytest.raises(SchemaError) as error:
        compiler.compile(request(misspelt, Trade, lane=lane))
    text = str(error.value)
    assert text.startswith("operator 'op' (test.py:1): Trade has no field 'prize' (test_lanes.py:")
    assert "return x * t.prize" in text
    assert "Did you mean 'price'?" in text


PAIR = (lambda t: t.volume + 1, lambda t: json.loads(t.symbol) + t.volume)  # two on a line


def test_a_reason_shows_of_a_line_what_is_the_functions_own(compiler: Any) -> None:
    reason = compiler.compile(request(PAIR[1], Trade, output=Schema.of(int))).reason
    assert "json.loads(t.symbol)" in reason
    assert "t.volume + 1" not in reason


def test_compiling_warns_of_nothing(compiler: Any, recwarn: Any) -> None:
    def counted(t):
        d = {}  # type: ignore[var-annotated]
        for c in t.symbol:
            d[c] = d.get(c, 0) + 1
        return len(d)

    assert compiler.compile(request(counted, Trade)).lane is Lane.COMPILED
    assert not [one for one in recwarn if "cast" in str(one.message)]


def test_misspelt_state_field(compiler: Any) -> None:
    def misspelt(t, s):
        s.cuont += 1
        return s.count

    with raises(SchemaError, "unknown-field", "cuont", "Counter"):
        compiler.compile(request(misspelt, Trade, keys=("symbol",), state=Counter))


@pytest.mark.parametrize(
    ("function", "kind", "options", "error"),
    [
        (lambda t: t.price, MAP, {"lane": Lane.VECTORISED}, ("not-vectorised",)),
        (lambda a, b: a, MAP, {}, ("unsupported-lane", "(t)", "(a, b)")),
        (lambda t: t.price, MAP, {"keys": ("symbol",), "state": Counter}, ("unsupported-lane", "(t, s)")),
        (delegating, MAP, {"lane": Lane.COMPILED}, ("must-return", "map", "flat_map")),
    ],
)
def test_lanes_that_can_not_be_had(compiler: Any, function: Any, kind: Any, options: Any, error: Any) -> None:
    with raises(LaneError, *error, operator="op", location="test.py:1"):
        compiler.compile(request(function, Trade, kind, **options))


@pytest.mark.parametrize(
    ("function", "output", "reason"),
    [
        (lambda t: (t.symbol, 1), {"a": str}, ("wrong_count", "2", "Record(a: string)", "1")),
        (lambda t: t.price, {"a": int}, ("wrong_kind", "a", "int", "a float")),
        (lambda t: t.symbol, {"a": bytes}, ("wrong_kind", "a", "binary", "a str")),
    ],
)
def test_output_that_is_not_the_declared_one(compiler: Any, function: Any, output: Any, reason: Any) -> None:
    with raises(LaneError, "not-compiled") as caught:
        compiler.compile(request(function, Trade, output=Schema.of(output), lane=Lane.COMPILED))
    check_reason(caught.value.details, *reason)


def test_python_needs_to_know_its_output(compiler: Any) -> None:
    with raises(SchemaError, "no-schema"):
        compiler.compile(request(lambda t: json.loads(t.symbol), Trade))

    def annotated(t) -> Counter:
        return Counter(len(json.loads(t.symbol)))

    def yielding(t) -> Iterator[tuple[str, int]]:
        yield json.loads(t.symbol), 1

    assert compiler.compile(request(annotated, Trade)).output_schema.tuple_type is Counter
    assert str(compiler.compile(request(yielding, Trade, FLAT_MAP)).output_schema) == "Record(f0: string, f1: int64)"


def test_frozen_arrays_are_constants(compiled: Any) -> None:
    assert compiled(lambda t: FROZEN[t.volume], Trade, MAP)([("", 0.0, 2)]).items == [(4.0,)]


def numpy_map(t: np.ndarray):
    return t["price"] * 2


def arrow_map(batch: pa.RecordBatch):
    return batch


def pandas_map(frame: pd.DataFrame):
    frame["volume"] += 1
    return frame


def test_vectorised_by_annotation(compiler: Any) -> None:
    code = compiler.compile(request(numpy_map, Trade, output=Schema.of(float)))
    assert (code.lane, code.view, code.reason) == (Lane.VECTORISED, View.NUMPY, "its parameter is annotated with numpy")
    assert load(code).function is numpy_map
    assert compiler.compile(request(arrow_map, Trade, output=Schema.of(Trade))).view is View.ARROW
    code = compiler.compile(request(pandas_map, Trade, output=Schema.of(Trade)))
    batch = pa.RecordBatch.from_pylist([{"symbol": "a", "price": 1.0, "volume": 2}], schema=Schema.of(Trade).to_arrow())
    assert load(code).function(batch).to_pylist() == [{"symbol": "a", "price": 1.0, "volume": 3}]  # type: ignore[misc]
    with raises(LaneError, "not-vectorised"):
        compiler.compile(request(keyed_numpy, Trade, keys=("symbol",), state=Counter))


def keyed_numpy(t: np.ndarray, s):
    return t


def test_flags(compiler: Any) -> None:
    def flags(function, kind, **options):
        return compiler.compile(request(function, Trade, kind, **options)).flags

    assert flags(lambda t: (t.price, t.volume, t.volume, t.volume), MAP) == Flags.ONE_TO_ONE | Flags.IN_PLACE
    assert flags(lambda t: (t.symbol, t.price, t.volume), MAP) == Flags.ONE_TO_ONE  # views point into the input
    assert flags(lambda t: t.price > 0, FILTER) == Flags.FILTER | Flags.IN_PLACE
    assert flags(lambda t: [t.price], FLAT_MAP) == Flags(0)
    assert (
        flags(lambda t: t.price, MAP, lane=Lane.PYTHON, output=Schema.of(float)) == Flags.ONE_TO_ONE | Flags.NEEDS_TOKEN
    )
    assert flags(lambda t, s: s.count, MAP, keys=("symbol",), state=Counter) & Flags.KEYED


def test_python_lane_marks_the_failing_tuple(compiler: Any) -> None:
    code = compiler.compile(request(lambda t: 1 // t.volume, Trade, lane=Lane.PYTHON, output=Schema.of(int)))
    with pytest.raises(ZeroDivisionError) as error:
        load(code).function([Trade("", 0.0, 1), Trade("", 0.0, 0), Trade("", 0.0, 2)])  # type: ignore[misc]
    assert error.value.rel_index == 1  # type: ignore[attr-defined]


def test_state_without_fixed_layout_runs_in_python(compiler: Any) -> None:
    def counted(t, s):
        s["n"] = s.get("n", 0) + 1
        return s["n"]

    code = compiler.compile(request(counted, Trade, keys=("symbol",), state=dict, output=Schema.of(int)))
    assert code.lane is Lane.PYTHON
    check_reason(code.refusal, "state_class")
    state = code.state()
    assert load(code).function([Trade("", 0.0, 1)] * 2, [state, state]) == [1, 2]  # type: ignore[misc]
    assert code.kind is FunctionKind.MAP
