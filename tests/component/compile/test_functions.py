"""Functions that compile give what the python lane gives; checked over the same tuples."""

# ruff: noqa: UP028 -- functions as users write them

from __future__ import annotations

import math
from typing import Any, NamedTuple

import pytest
from harness import FILTER, FLAT_MAP, MAP, python_result


class Trade(NamedTuple):
    symbol: str
    price: float
    volume: int


class Total(NamedTuple):
    symbol: str
    value: float
    count: int = 1  # type: ignore[assignment]


class Note(NamedTuple):
    text: str | None
    amount: int | None


SCALE = 3
NAMES = ("IBM", "a symbol longer than twelve bytes")
STOP = frozenset({"the", "of"})
TRADES = [("IBM", 1.5, 10), ("a symbol longer than twelve bytes", -2.0, 0), ("", 0.0, -7), ("häß→𝄞", 1e300, 2**40)]
NOTES = [("x", 1), (None, 2), ("a text longer than twelve", None), (None, None)]


def twice(x: int) -> int:
    return 2 * x


def clean(text: str) -> str:
    return text.strip().lower()


def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def scaled(factor: int) -> Any:
    def inner(t):
        return t.volume * factor + SCALE

    return inner


def keywords(t):
    return Total(value=t.price * t.volume, symbol=t.symbol)


def branches(t):
    if t.volume > 5:
        return "big"
    elif t.volume == 0:
        return "none"
    return t.symbol


def matched(t):
    match t.volume:
        case 0:
            return 0.5
        case 10:
            return 1
    return t.price


def caught(t):
    try:
        return 100 // t.volume
    except Exception:
        return -1


def maybe(t):
    if t.text is None:
        return Note(None, 0)
    return Note(t.text, len(t.text))


def collected(t):
    seen = {}  # type: ignore[var-annotated]
    for c in t.symbol:
        if c in seen:
            seen[c] += 1
        else:
            seen[c] = 1
    best = [n for n in seen.values() if n > 0]
    return sum(best)


def unpacked(t):
    symbol, price, volume = t
    return volume, symbol, price


def letters(t):
    for c in t.symbol:
        yield c


def pairs(t):
    if t.volume == 0:
        return
    for w in t.symbol.split("m"):
        yield Total(w, t.price)
    yield Total(t.symbol, 1, 2)


def listed(t):
    return [(t.symbol, i) for i in range(3)]


CASES = [
    ("product", lambda t: t.price * t.volume, Trade, MAP),
    ("tuple", lambda t: (t.volume + 1, t.price / 2, t.symbol), Trade, MAP),
    ("index", lambda t: (t[2], t[-3]), Trade, MAP),
    ("identity", lambda t: t, Trade, MAP),
    ("keywords", keywords, Trade, MAP),
    ("branches", branches, Trade, MAP),
    ("matched", matched, Trade, MAP),
    ("caught", caught, Trade, MAP),
    ("math", lambda t: math.sqrt(abs(t.price)) + math.floor(2.5), Trade, MAP),
    ("closure", scaled(7), Trade, MAP),
    ("helper", lambda t: twice(t.volume) + len(clean(t.symbol)), Trade, MAP),
    ("recursive helper", lambda t: fibonacci(7) + t.volume, Trade, MAP),
    ("conditional", lambda t: t.symbol if t.price > 0 else "negative or zero", Trade, MAP),
    ("concatenation", lambda t: t.symbol + "/" + str(t.volume), Trade, MAP),
    ("f-string", lambda t: f"{t.symbol}:{t.volume}:{t.price > 0}", Trade, MAP),
    ("unpacked", unpacked, Trade, MAP),
    ("collected", collected, Trade, MAP),
    ("min max", lambda t: (min(t.volume, 3), max(t.price, 0.0), abs(t.volume), round(0.7)), Trade, MAP),
    ("optional", maybe, Note, MAP),
    ("pass through", lambda t: (t.amount, t.text), Note, MAP),
    ("filter", lambda t: t.price > 0 and t.symbol != "IBM", Trade, FILTER),
    ("filter by text", lambda t: t.symbol, Trade, FILTER),
    ("filter by None", lambda t: t.text is not None, Note, FILTER),
    ("filter in tuple", lambda t: t.symbol in NAMES, Trade, FILTER),
    ("filter in literal", lambda t: t.symbol in ("IBM", "x"), Trade, FILTER),
    ("filter not in set", lambda t: t.symbol not in STOP, Trade, FILTER),
    ("letters", letters, Trade, FLAT_MAP),
    ("pairs", pairs, Trade, FLAT_MAP),
    ("listed", listed, Trade, FLAT_MAP),
    ("modulo", lambda t: (t.volume % 7, t.volume // 7, t.volume & 5, t.volume << 1 >> 1, -t.volume % -3), Trade, MAP),
]


@pytest.mark.parametrize(("function", "schema", "kind"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_compiled_equals_python(compiled: Any, function: Any, schema: Any, kind: Any) -> None:
    rows = NOTES if schema is Note else TRADES
    runner = compiled(function, schema, kind)
    assert runner(rows).items == python_result(runner.code, rows).items
    assert runner([]).items == []
    if runner.code.machine.in_place:
        assert runner(rows, in_place=True).items == python_result(runner.code, rows).items


def test_changed_globals_are_seen(compiled: Any) -> None:
    space = {"FACTOR": 2}
    exec("def scaled(x):\n    return x * FACTOR\ndef function(t):\n    return scaled(t.volume)", space)
    assert compiled(space["function"], Trade)([("", 0.0, 5)]).items == [(10,)]
    space["FACTOR"] = 3
    assert compiled(space["function"], Trade)([("", 0.0, 5)]).items == [(15,)]


def test_inferred_schemas(compiled: Any) -> None:
    assert str(compiled(keywords, Trade).code.output_schema) == "Total(symbol: string, value: float64, count: int64)"
    assert compiled(keywords, Trade).code.output_schema.tuple_type is Total
    assert str(compiled(lambda t: t.price, Trade).code.output_schema) == "Record(value: float64)"
    assert str(compiled(lambda t: (t.symbol, t.volume > 1), Trade).code.output_schema) == "Record(f0: string, f1: bool)"
    assert compiled(lambda t: t, Trade).code.output_schema.tuple_type is Trade
    assert (
        str(compiled(lambda t: None if t.volume == 0 else 5, Trade).code.output_schema) == "Record(value: int64 | None)"
    )
