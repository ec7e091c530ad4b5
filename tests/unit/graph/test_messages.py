"""How errors read: whole sentences, in this one place. All other tests check class, code and values."""

# ruff: noqa: E501
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic.errors import RayelasticError
from rayelastic.fluent.stream import Stream
from rayelastic.fluent.topology import Topology
from tests.unit.graph.fakes import FakeCompiler


class Trade(NamedTuple):
    symbol: str
    price: float
    at: int


def same(t: Any) -> Any:
    return t


def words(topology: Topology) -> Stream[Any]:
    return topology.source(rel.rows([], schema={"word": str}), name="words")


Declare = Callable[[Topology, Any], object]

MESSAGES: dict[str, Declare] = {
    "operator 'trades': key_by('symbl'): Trade has no such field. Did you mean 'symbol'? Its fields are symbol, price, at "
    "[unknown-field]": lambda t, s: s.key_by("symbl"),
    "operator 'total': Trade has no field 'prise'. Did you mean 'price'? Its fields are symbol, price, at "
    "[unknown-field]": lambda t, s: s.aggregate(name="total", n=rel.sum("prise")),
    "operator 'total': sum(symbol) needs a number, but field 'symbol' of Trade is string. Map the field to int or float "
    "first, or use rel.count(), first or last [wrong-field-type]": lambda t, s: s.aggregate(
        name="total", n=rel.sum("symbol")
    ),
    "map takes the name of its operator as a keyword. Write .map(fn, name='double') [positional-name]": lambda t, s: (
        s.map("double", same)
    ),
    "operator 'm': map needs a function, not 3. Write .map(function) [not-a-function]": lambda t, s: s.map(3, name="m"),
    "operator 'm': lane='fast' isn't a lane of a function. Choose 'auto', 'compiled', 'vectorised' or 'python' "
    "[unknown-choice]": lambda t, s: s.map(same, name="m", lane="fast"),
    "operator 'a': emit='late' is invalid. Choose 'final' or 'update' [unknown-choice]": lambda t, s: s.key_by(
        "symbol"
    ).aggregate(name="a", emit="late", n=rel.count()),
    "operator 'j': key 'symbol' is string, but 'price' of the right is float64. Map one of them to the type of the other "
    "[key-mismatch]": lambda t, s: s.key_by("symbol").join(s.key_by("price"), name="j", how="inner"),
    "operator 'trades': union of different schemas: 'trades' has Trade(symbol: string, price: float64, at: int64), "
    "'words' has Record(word: string). Map one of them to the schema of the other [schema-mismatch]": lambda t, s: (
        s.union(words(t))
    ),
    "operator 'out': a sink has no output, so .map(...) can't follow it. Call both on the stream before: it may have "
    "several consumers [no-output]": lambda t, s: s.sink(rel.list(), name="out").map(same, name="m"),
    "operator 'x': 'trades.csv' isn't a source. Use rel.rows, text, csv, json, parquet, arrow, callable or polled "
    "[not-a-source]": lambda t, s: t.source("trades.csv", name="x"),
    "operator 'x': there is no file '/nowhere/trades.txt'. Check the path: / exists, what follows it doesn't "
    "[missing-file]": lambda t, s: t.source(rel.text("/nowhere/trades.txt"), name="x"),
    "operator 'trades': its output has no sink. End it with .sink(...), such as rel.count(), or leave the operator out "
    "[no-sink]": lambda t, s: t.validate(),
    "operator 'once': ttl=-1 is out of range. Pass seconds, more than 0 and no more than 1,152,921,504, or a timedelta "
    "[out-of-range]": lambda t, s: s.key_by("symbol").deduplicate(name="once", ttl=-1),
    "operator 'm': state=0 can't create the state of a key. Pass a NamedTuple class with defaults, or a function without "
    "arguments [wrong-type]": lambda t, s: s.key_by("symbol").map(lambda t, s: t, name="m", state=0),
    "operator 'e': field 'symbol' of Trade is string and can't be the event time. Use a datetime, an integer, or a float "
    "of seconds [bad-event-time]": lambda t, s: s.event_time("symbol", name="e"),
    "operator 'slow': per_second=0 is invalid. Pass tuples a second, such as 1000 [out-of-range]": lambda t, s: (
        s.throttle(name="slow", per_second=0)
    ),
    "Snapshot(key=...) needs 16 bytes or more. Make one with secrets.token_bytes(32) and keep it where the job can read "
    "it [bad-signing-key]": lambda t, s: rel.Snapshot("there", key=b"short"),
    "topology 'market' has no source. Start with topology.source(rel.text(...)) [no-source]": lambda t, s: Topology(
        "market", compiler=FakeCompiler()
    ).validate(),
}


@pytest.mark.parametrize("text", MESSAGES)
def test_how_errors_read(text: str) -> None:
    topology = Topology("market", compiler=FakeCompiler())
    stream: Any = topology.source(rel.rows([], schema=Trade), name="trades")
    with pytest.raises(RayelasticError) as caught:
        MESSAGES[text](topology, stream)
    if location := getattr(caught.value, "location", ""):
        assert location.startswith(__file__)
        caught.value.location = ""  # type: ignore[attr-defined]
    assert str(caught.value) == text
