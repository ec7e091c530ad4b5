"""Bad input: each a typed error at declaration that names the operator, the line, and the hint."""

# ruff: noqa: E501  (a table of cases, one a line)

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from rayelastic.errors import (
    DeclarationError,
    GraphError,
    LaneError,
    NotShippableError,
    SchemaError,
    SinkError,
    SourceError,
)
from rayelastic.graph import Lane, OperatorKind, OperatorSpec, Schema, StateKind, Stream, Topology
from rayelastic.graph.edges import files, sinks, sources
from rayelastic.graph.edges.rows import rows as rows_source
from rayelastic.graph.operators import aggregates
from rayelastic.graph.spec.concurrency import concurrent
from rayelastic.graph.spec.order import consumers, topological_order
from rayelastic.graph.spec.ports import IN, OUT, InputPort, OutputPort
from tests.unit.graph.fakes import FakeCode, FakeCompiler


class Trade(NamedTuple):
    symbol: str
    price: float
    volume: int


class Total(NamedTuple):
    seen: int


async def waits(t: Trade) -> Trade:
    return t


async def yields_later(t: Trade) -> Any:
    yield t


def yields(t: Trade) -> Any:
    yield t


def one(t: Trade) -> Trade:
    return t


def seen(key: Any, window: Any, rows: Any) -> Any:
    yield (len(rows),)


class Misspelt:
    def on_tuple(self, t: Any, state: Any, out: Any) -> None:
        out.give(t)

    def on_tuples(self, t: Any, state: Any, out: Any) -> None:
        out.give(t)


def other_topology() -> Stream:
    return Topology("other", compiler=FakeCompiler()).source(rows_source([], Trade), name="far")


ROWS = rows_source([Trade("a", 1.0, 2)])
WORDS = rows_source([], {"word": str})
Declare = Callable[[Topology, Stream], object]

# (what is declared, the error, the operator that it names, what the message says)
BAD: dict[str, tuple[Declare, type[DeclarationError], str | None, str]] = {
    # names
    "name taken": (lambda t, s: s.map(one, name="trades"), GraphError, "trades", "taken by the source declared at"),
    "name taken by sink": (lambda t, s: (s.sink(sinks.list(), name="o"), s.sink(sinks.list(), name="o")), GraphError, "o", "taken by the sink"),
    "source name taken": (lambda t, s: t.source(ROWS, name="trades"), GraphError, "trades", "taken by the source"),
    "aggregate name taken": (lambda t, s: s.key_by("symbol").aggregate(name="trades", n=aggregates.count()), GraphError, "trades", "taken"),
    "name forgotten": (lambda t, s: s.map(one, name=one), GraphError, None, "no str. Give it a short"),
    "name empty": (lambda t, s: s.map(one, name=""), GraphError, None, "empty or with space around"),
    "name with space around": (lambda t, s: s.filter(one, name=" x"), GraphError, None, "empty or with space around"),
    "name with slash": (lambda t, s: s.flat_map(one, name="a/b"), GraphError, None, "'/', '->' and control characters"),
    "name with arrow": (lambda t, s: s.sink(sinks.list(), name="a->b"), GraphError, None, "'/', '->' and control characters"),
    "name with newline": (lambda t, s: t.source(ROWS, name="a\nb"), GraphError, None, "control characters"),
    "topology name": (lambda t, s: Topology(3, compiler=FakeCompiler()), GraphError, None, "name of a topology is 3"),
    # functions
    "not a function": (lambda t, s: s.map(3, name="m"), GraphError, "m", "map needs a function, not 3. Write .map(function)"),
    "result instead of function": (lambda t, s: s.filter([1], name="f"), GraphError, "f", "filter needs a function"),
    "no argument": (lambda t, s: s.map(lambda: 1, name="m"), GraphError, "m", "with one tuple, but it takes ()"),
    "two arguments": (lambda t, s: s.map(lambda t, u: t, name="m"), GraphError, "m", ".key_by(...) before and state= here"),
    "no state argument": (lambda t, s: s.key_by("symbol").map(one, name="m", state=dict), GraphError, "m", "a tuple and the state of its key"),
    "async with state": (lambda t, s: s.key_by("symbol").map(waits, name="m", state=dict), GraphError, "m", "belongs to one call at a time"),
    "no concurrency": (lambda t, s: s.map(waits, name="m", concurrent=3), GraphError, "m", "Give rel.concurrent(capacity=...)"),
    "no capacity": (lambda t, s: concurrent(capacity=0), GraphError, None, "capacity=0. Give a whole number from 1 to 100,000"),
    "bad retry": (lambda t, s: concurrent(retry=-1), GraphError, None, "retry=-1"),
    "bad batch": (lambda t, s: concurrent(max_batch="a"), GraphError, None, "max_batch='a'"),
    "bad timeout": (lambda t, s: concurrent(timeout=0), GraphError, None, "timeout=0. Give seconds, more than 0"),
    "bad order": (lambda t, s: concurrent(ordered=1), GraphError, None, "ordered=1. Give True or False"),
    "map that yields, async": (lambda t, s: s.map(yields_later, name="m"), GraphError, "m", "Use flat_map"),
    "map that yields": (lambda t, s: s.map(yields, name="m"), GraphError, "m", "Use flat_map"),
    "filter that yields": (lambda t, s: s.filter(yields, name="f"), GraphError, "f", "Use flat_map"),
    "choice that yields": (lambda t, s: s.split(2, name="m", by=yields), GraphError, "m", "or return instead of yield"),
    # states
    "state value": (lambda t, s: s.key_by("symbol").map(lambda t, s: t, name="m", state=0), GraphError, "m", "state=0 can't make"),
    "state without defaults": (lambda t, s: s.key_by("symbol").map(lambda t, s: t, name="m", state=Total), GraphError, "m", "seen have no default"),
    "state with argument": (lambda t, s: s.key_by("symbol").filter(lambda t, s: t, name="m", state=lambda x: x), GraphError, "m", "it takes arguments"),
    # lanes
    "unknown lane": (lambda t, s: s.map(one, name="m", lane="fast"), LaneError, "m", "Choose 'auto', 'compiled'"),
    "built-in lane": (lambda t, s: s.map(one, name="m", lane=Lane.BUILT_IN), LaneError, "m", "no lane of a function"),
    # schemas
    "no schema": (lambda t, s: s.map(one, name="m", schema=7), SchemaError, "m", "7 is no schema. Give a class with typed fields"),
    "bad field": (lambda t, s: s.map(one, name="m", schema={"x": set}), SchemaError, "m", "field 'x' of Record: set can't be held"),
    # keys
    "unknown key": (lambda t, s: s.key_by("symbl"), GraphError, "trades", "Did you mean 'symbol'?"),
    "key no str": (lambda t, s: s.key_by(0), GraphError, "trades", "Its fields are symbol, price, volume"),
    "key computed": (lambda t, s: s.key_by(lambda t: t.symbol.lower()), GraphError, "trades", "takes fields, and the function computes"),
    "key chosen": (lambda t, s: s.key_by(lambda t: t.symbol if t.price is None else t.volume), GraphError, "trades", "the function computes"),
    "key of a function": (lambda t, s: s.key_by(lambda t: t.symbl), GraphError, "trades", "Did you mean 'symbol'?"),
    "no key": (lambda t, s: s.key_by(), GraphError, "trades", "key_by needs a field"),
    "key twice": (lambda t, s: s.key_by("symbol", "symbol"), GraphError, "trades", "names a field twice"),
    # aggregates
    "no aggregate": (lambda t, s: s.key_by("symbol").aggregate(name="a"), GraphError, "a", "count=rel.count()"),
    "not an aggregate": (lambda t, s: s.key_by("symbol").aggregate(name="a", n=sum), GraphError, "a", "is no aggregate"),
    "aggregate of unknown": (lambda t, s: s.key_by("symbol").aggregate(name="a", n=aggregates.sum("prize")), SchemaError, "a", "Did you mean 'price'?"),
    "sum of text": (lambda t, s: s.key_by("price").aggregate(name="a", n=aggregates.sum("symbol")), SchemaError, "a", "sum(symbol) needs a number, but field 'symbol' of Trade is string"),
    "mean of text": (lambda t, s: s.key_by("price").aggregate(name="a", n=aggregates.mean("symbol")), SchemaError, "a", "Map the field to int or float"),
    "aggregate named as key": (lambda t, s: s.key_by("symbol").aggregate(name="a", symbol=aggregates.count()), GraphError, "a", "name of a key field"),
    "emit": (lambda t, s: s.key_by("symbol").aggregate(name="a", emit="late", n=aggregates.count()), GraphError, "a", "Choose 'final' or 'update'"),
    "stddev of text": (lambda t, s: s.aggregate(name="a", n=aggregates.stddev("symbol")), SchemaError, "a", "stddev(symbol) needs a number"),
    "negative degrees of freedom": (lambda t, s: s.aggregate(name="a", n=aggregates.stddev("price", -1)), GraphError, None, "Give 1 for a sample"),
    "weight that is text": (lambda t, s: s.aggregate(name="a", n=aggregates.weighted_mean("price", "symbol")), SchemaError, "a", "field 'symbol' of Trade is string"),
    "weight unknown": (lambda t, s: s.aggregate(name="a", n=aggregates.weighted_mean("price", "volumes")), SchemaError, "a", "Did you mean 'volume'?"),
    "top_k of text": (lambda t, s: s.aggregate(name="a", n=aggregates.top_k("symbol", 3)), SchemaError, "a", "needs a number"),
    "top_k of nothing": (lambda t, s: s.aggregate(name="a", n=aggregates.top_k("price", 0)), GraphError, None, "from 1 to 1000"),
    "top_k of too many": (lambda t, s: s.aggregate(name="a", n=aggregates.top_k("price", 1001)), GraphError, None, "from 1 to 1000"),
    "top_k twice": (lambda t, s: s.aggregate(name="a", n=aggregates.top_k("price", 2), n_1=aggregates.count()), GraphError, "a", "two aggregates 'n_1'"),
    "top_k named as key": (lambda t, s: s.key_by("symbol").aggregate(name="a", symbol=aggregates.top_k("nope", 1)), SchemaError, "a", "nope"),
    "quantile beyond 1": (lambda t, s: s.aggregate(name="a", n=aggregates.quantile("price", 99)), GraphError, None, "probability from 0 to 1"),
    "quantile without error": (lambda t, s: s.aggregate(name="a", n=aggregates.quantile("price", 0.5, error=0)), GraphError, None, "error from 0.00001"),
    "quantile of text": (lambda t, s: s.aggregate(name="a", n=aggregates.quantile("symbol", 0.5)), SchemaError, "a", "quantile(symbol, 0.5) needs a number"),
    "distinct of unknown": (lambda t, s: s.aggregate(name="a", n=aggregates.distinct("nope")), SchemaError, "a", "nope"),
    # event time and windows
    "time of unknown": (lambda t, s: s.event_time("prize", name="e"), SchemaError, "e", "Did you mean 'price'?"),
    "time of text": (lambda t, s: s.event_time("symbol", name="e"), SchemaError, "e", "is string and holds no times"),
    "time with nulls": (lambda t, s: t.source(rows_source([], {"at": int | None}), name="n").event_time("at", name="e"), SchemaError, "e", "may be null"),
    "time name taken": (lambda t, s: s.event_time("volume", name="trades"), GraphError, "trades", "taken"),
    "lateness negative": (lambda t, s: s.event_time("volume", name="e", lateness=-1), GraphError, "e", "lateness=-1"),
    "lateness too fine": (lambda t, s: s.event_time("volume", name="e", lateness=0.5), GraphError, "e", "has to be whole"),
    "lateness no number": (lambda t, s: s.event_time("volume", name="e", lateness="1s"), GraphError, "e", "no length of time"),
    "unit unknown": (lambda t, s: s.event_time("volume", name="e", unit="min"), GraphError, "e", "'s', 'ms', 'us' or 'ns'"),
    "unit of float": (lambda t, s: s.event_time("price", name="e", unit="s"), GraphError, "e", "only where the field is an integer"),
    "window of nothing": (lambda t, s: s.window(), GraphError, "trades", "a count, seconds or days"),
    "window of both": (lambda t, s: s.window(count=1, seconds=1), GraphError, "trades", "a count, seconds or days"),
    "window of no tuple": (lambda t, s: s.window(count=0), GraphError, "trades", "1 or more"),
    "window of half a tuple": (lambda t, s: s.window(count=2.5), GraphError, "trades", "count=2.5"),
    "window that doesn't move": (lambda t, s: s.window(count=2, slide=0), GraphError, "trades", "slide=0"),
    "window without time": (lambda t, s: s.window(seconds=1), GraphError, "trades", "Write .event_time(field) before"),
    "time lost in a map": (lambda t, s: s.event_time("volume", name="e").map(one, name="m", schema={"price": float}).window(seconds=1), GraphError, "m", "has lost it"),
    "time of one of two": (lambda t, s: s.event_time("volume", name="e").union(t.source(ROWS, name="more")).window(seconds=1), GraphError, "e, more", "united streams need the same"),
    "time lost in an aggregate": (lambda t, s: s.event_time("volume", name="e").aggregate(name="a", volume=aggregates.max("volume")).session(gap=1), GraphError, "a", "a session needs an event time"),
    "window too fine": (lambda t, s: s.event_time("volume", name="e").window(seconds=0.25), GraphError, "e", "0.25 of field 'volume' in s"),
    "window without length": (lambda t, s: s.event_time("volume", name="e").window(seconds=float("nan")), GraphError, "e", "no length of time"),
    "session without gap": (lambda t, s: s.event_time("volume", name="e").session(gap=0), GraphError, "e", "1 at least"),
    "rest of time": (lambda t, s: s.event_time("volume", name="e").window(seconds=1, rest=True), GraphError, "e", "rest is for windows by count"),
    "window of no aggregate": (lambda t, s: s.window(count=2).aggregate(name="w"), GraphError, "w", "nothing to aggregate"),
    "window named as key": (lambda t, s: s.key_by("symbol").window(count=2).aggregate(name="w", symbol=aggregates.count()), GraphError, "w", "name of a key field"),
    "window with two starts": (lambda t, s: s.event_time("volume", name="e").window(seconds=1).aggregate(name="w", start=aggregates.count()), GraphError, "w", "has a field 'start' already"),
    "window name taken": (lambda t, s: s.window(count=2).aggregate(name="trades", n=aggregates.count()), GraphError, "trades", "taken"),
    "late of a count": (lambda t, s: s.window(count=2).aggregate(name="w", n=aggregates.count()).late(), GraphError, "w", "nothing comes too late"),
    "late tuples of a count": (lambda t, s: s.window(count=2, lateness=1), GraphError, "trades", "lateness is for windows by event time"),
    "late tuples by the clock": (lambda t, s: s.window(seconds=2, clock=True, lateness=1), GraphError, "trades", "lateness is for windows by event time"),
    "count by the clock": (lambda t, s: s.window(count=2, clock=True), GraphError, "trades", "clock is for windows by time"),
    "idle by the clock": (lambda t, s: s.event_time("volume", name="e", by_clock=True), GraphError, "e", "Say after how many seconds it is idle"),
    "until no function": (lambda t, s: s.event_time("volume", name="e").key_by("symbol").window(seconds=2).process(seen, name="w", schema=Total, until=3), GraphError, "w", "until=3. Give a function of one argument"),
    "updates in two steps": (lambda t, s: s.key_by("symbol").aggregate(name="a", two_steps=True, emit="update", n=aggregates.count()), GraphError, "a", "updates follow each tuple"),
    "method nobody calls": (lambda t, s: s.key_by("symbol").process(Misspelt, name="p", schema=Trade), GraphError, "p", "has a method on_tuples, which nobody calls. Did you mean on_tuple?"),
    "side of a union": (lambda t, s: s.map(one, name="m", sides={"bad": Trade}).union(s).side("bad"), GraphError, "m, trades", "it has no side output 'bad'"),
    "first within": (lambda t, s: s.event_time("volume", name="e").key_by("symbol").join(s.event_time("volume", name="f").key_by("symbol"), name="j", keep="first", within=5), GraphError, "j", "keep='first' with within=, which keeps all"),
    "first in a window": (lambda t, s: s.event_time("volume", name="e").key_by("symbol").join(s.event_time("volume", name="f").key_by("symbol"), name="j", keep="first", window=5), GraphError, "j", "keep='first' with window=, which keeps all"),
    "sum without field": (lambda t, s: s.key_by("symbol").aggregate(name="a", n=aggregates.sum(None)), GraphError, "a", "needs a field"),
    # unions
    "union of schemas": (lambda t, s: s.union(t.source(WORDS, name="words")), GraphError, "trades", "'trades' gives Trade(symbol: string, price: float64, volume: int64), 'words' gives Record(word: string)"),
    "union of topologies": (lambda t, s: s.union(other_topology()), GraphError, "trades", "'far' of another topology, 'other'"),
    "union with a sink": (lambda t, s: s.union(s.sink(sinks.list(), name="o")), GraphError, "trades", "union needs streams"),
    "union with itself": (lambda t, s: s.union(s), GraphError, "trades", "has 'trades' twice"),
    "union of nothing": (lambda t, s: s.union(), GraphError, "trades", "another stream"),
    # sinks
    "map after sink": (lambda t, s: s.sink(sinks.list(), name="o").map(one, name="m"), GraphError, "o", "so .map(...) can't follow it"),
    "sink after sink": (lambda t, s: s.sink(sinks.list(), name="o").sink(sinks.list(), name="p"), GraphError, "o", "several consumers"),
    "not a sink": (lambda t, s: s.sink(print, name="o"), GraphError, "o", "is no sink. Use rel.parquet"),
    "source as sink": (lambda t, s: s.sink(ROWS, name="o"), GraphError, "o", "is no sink"),
    "sum as sink": (lambda t, s: s.sink(aggregates.sum("price"), name="o"), GraphError, "o", "is no sink"),
    "call of no function": (lambda t, s: s.sink(sinks.call(None), name="o"), SinkError, "o", "rel.call needs a function, not None"),
    "sink below a file": (lambda t, s: s.sink(files.parquet(f"{__file__}/x"), name="o"), SinkError, "o", "is no directory"),
    "sink to several": (lambda t, s: s.sink(files.csv(["a", "b"]), name="o"), SinkError, "o", "one path"),
    # sources
    "not a source": (lambda t, s: t.source("file.txt", name="x"), GraphError, "x", "'file.txt' is no source. Use rel.text"),
    "table as source": (lambda t, s: t.source(pa.table({"a": list(range(1000))}), name="x"), GraphError, "x", "is no source. Use rel.text"),
    "sink as source": (lambda t, s: t.source(sinks.list(), name="x"), GraphError, "x", "is no source"),
    "missing file": (lambda t, s: t.source(sources.text("/nowhere/a.txt"), name="x"), SourceError, "x", "there is no file '/nowhere/a.txt'. Check the path: / exists"),
    "empty glob": (lambda t, s: t.source(sources.text("/nowhere/*.txt"), name="x"), SourceError, "x", "no file matches '/nowhere/*.txt'"),
    "no path": (lambda t, s: t.source(sources.text([]), name="x"), SourceError, "x", "no path was given"),
    "missing csv": (lambda t, s: t.source(files.csv("/nowhere/a.csv"), name="x"), SourceError, "x", "there is no file"),
    "csv directory": (lambda t, s: t.source(files.csv("/usr"), name="x"), SourceError, "x", "is a directory. Name files, for example /usr/*"),
    "no parquet": (lambda t, s: t.source(files.parquet(__file__), name="x"), SourceError, "x", "can't be read as Parquet"),
    "row too short": (lambda t, s: t.source(rows_source([(1,)], Trade), name="x"), SourceError, "x", "row 0 is (1,)"),
    "row no tuple": (lambda t, s: t.source(rows_source(["abc"], Trade), name="x"), SourceError, "x", "row 0 is 'abc'"),
    "rows without schema": (lambda t, s: t.source(rows_source([(1,)]), name="x"), SchemaError, None, "Give schema=, or NamedTuples"),
    "generate nothing": (lambda t, s: t.source(sources.generate(None, 3, Trade), name="x"), SourceError, "x", "rel.generate needs a function"),
    "generate -1": (lambda t, s: t.source(sources.generate(one, -1, Trade), name="x"), SourceError, "x", "count is -1. Give a whole number"),
    "callable list": (lambda t, s: t.source(sources.callable([1], Trade), name="x"), SourceError, "x", "rel.callable needs a function"),
    "sequence 1.5": (lambda t, s: t.source(sources.sequence(1.5), name="x"), SourceError, "x", "count is 1.5"),
    "arrow of list": (lambda t, s: t.source(files.arrow([1]), name="x"), SchemaError, None, "rel.arrow can't take a list"),
    "arrow column missing": (lambda t, s: t.source(files.arrow(pa.table({"a": [1]}), {"b": int}), name="x"), SchemaError, None, "declares 'b', which the table doesn't have"),
    "arrow nulls": (lambda t, s: t.source(files.arrow(pa.table({"a": [1, None]}), {"a": int}), name="x"), SchemaError, None, "Declare it 'a: int | None'"),
    "arrow wrong type": (lambda t, s: t.source(files.arrow(pa.table({"a": ["x"]}), {"a": int}), name="x"), SchemaError, None, "doesn't match"),
    "arrow nested": (lambda t, s: t.source(files.arrow(pa.table({"a": [[{}]]})), name="x"), SchemaError, None, "field 'a' of Record: list<"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_declaration(case: str) -> None:
    declare, kind, operator, says = BAD[case]
    topology = Topology("market", compiler=FakeCompiler())
    stream = topology.source(ROWS, name="trades")
    with pytest.raises(DeclarationError) as caught:
        declare(topology, stream)
    error = caught.value
    assert type(error) is kind
    assert error.operator == operator
    assert says in str(error)
    assert error.hint
    if operator is not None:
        assert str(error).startswith(f"operator '{operator}' (")
        assert error.location.startswith(f"{__file__}:")


def declared() -> tuple[Topology, Stream]:
    topology = Topology("market", compiler=FakeCompiler())
    return topology, topology.source(ROWS, name="trades")


def test_a_stream_without_a_sink() -> None:
    topology, stream = declared()
    stream.map(one, name="lost")
    stream.sink(sinks.list(), name="out")
    with pytest.raises(GraphError, match=r"operator 'lost' .*a stream without a sink.*\.sink\("):
        topology.validate()


def test_no_source() -> None:
    with pytest.raises(GraphError, match=r"topology 'empty' has no source\. Start with"):
        Topology("empty", compiler=FakeCompiler()).validate()


def test_a_function_that_cant_be_shipped() -> None:
    topology, stream = declared()
    lock = threading.Lock()
    stream.map(lambda t: (lock, t)[1], name="locked").sink(sinks.list(), name="out")
    with pytest.raises(NotShippableError, match=r"operator 'locked' .*lock.*Make what its function needs inside"):
        topology.validate()


def test_a_sink_that_cant_be_shipped() -> None:
    topology, stream = declared()
    lock = threading.Lock()
    stream.sink(sinks.call(lambda t: lock), name="out")
    with pytest.raises(NotShippableError, match=r"operator 'out'"):
        topology.validate()


def spec(name: str, *inputs: str) -> OperatorSpec:
    schema = Schema.of(Trade)
    code = FakeCode(Lane.COMPILED, "", schema)
    taken, given = (InputPort(IN, schema, inputs),), (OutputPort(OUT, schema),)
    return OperatorSpec(name, OperatorKind.MAP, taken, given, StateKind.STATELESS, code, "f.py:1")


def test_a_cycle_is_named() -> None:
    specs = {s.name: s for s in (spec("a"), spec("b", "a", "d"), spec("c", "b"), spec("d", "c"), spec("e", "d"))}
    with pytest.raises(
        GraphError,
        match=r"operator '.' \(f.py:1\): .* own input: (b -> c -> d -> b|c -> d -> b -> c|d -> b -> c -> d)\. Cut",
    ):
        topological_order(specs)


def test_an_operator_that_feeds_itself() -> None:
    with pytest.raises(GraphError, match=r"a -> a"):
        topological_order({"a": spec("a", "a")})


def test_an_input_that_doesnt_exist() -> None:
    with pytest.raises(GraphError, match=r"operator 'a' .*its input 'ghost' is no operator"):
        consumers({"a": spec("a", "ghost")})


def test_a_file_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may read and write everything
    topology, stream = declared()
    with pytest.raises(SourceError, match=r"operator 'x' .*can't be read. Give the user"):
        topology.source(sources.text(secret), name="x")
    with pytest.raises(SinkError, match=r"operator 'o' .*can't be written. Choose another path"):
        stream.sink(files.csv(secret), name="o")
    with pytest.raises(SinkError, match=r"operator 'o' .*nothing can be made in"):
        stream.sink(files.csv(tmp_path / "new" / "a.csv"), name="o")


def test_a_file_that_vanished_is_found_again_at_the_check(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("x\n")
    topology, _ = declared()
    topology.source(sources.text(path), name="lines")
    path.unlink()
    with pytest.raises(SourceError, match=r"operator 'lines'"):
        topology.operators["lines"].body.check("lines")


def test_csv_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("unit price,n\n1,2\n")
    topology, _ = declared()
    with pytest.raises(
        SchemaError, match=r"operator 'x' .*column 'unit price' .*Rename it: columns=\{'unit price': 'unit_price'"
    ):
        topology.source(files.csv(path), name="x")
    with pytest.raises(
        SchemaError, match=r"operator 'y' .*declares 'm', which .* doesn't have. Its columns are unit price, n"
    ):
        topology.source(files.csv(path, {"m": int}), name="y")


def test_an_empty_csv(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("")
    with pytest.raises(SourceError, match=r"operator 'x' .*can't be read as CSV.*header line"):
        declared()[0].source(files.csv(tmp_path / "a.csv"), name="x")


def test_errors_of_the_compiler_get_operator_and_line() -> None:
    class Strict:
        def compile(self, request: object) -> FakeCode:
            raise LaneError("line 3 uses json", hint="Use lane='python'")

    topology = Topology("t", compiler=Strict())
    with pytest.raises(LaneError, match=r"operator 'm' \(.*test_bad.*: line 3 uses json\. Use lane='python'"):
        topology.source(ROWS, name="s").map(one, name="m", lane="compiled")


def test_attributes_of_a_sink_that_no_stream_has() -> None:
    _, stream = declared()
    out = stream.sink(sinks.list(), name="out")
    assert not hasattr(out, "nonsense")
    assert repr(out) == "<sink out>"
