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

from rayelastic.connectors import registry as connectors
from rayelastic.connectors.memory.declaration import rows as rows_source
from rayelastic.errors import (
    DeclarationError,
    GraphError,
    LaneError,
    NotShippableError,
    SchemaError,
    SinkError,
    SourceError,
)
from rayelastic.fluent.stream import Stream
from rayelastic.fluent.topology import Topology
from rayelastic.graph import Lane, OperatorSpec, Schema, StateKind
from rayelastic.graph.operators import aggregates
from rayelastic.graph.spec.concurrency import concurrent
from rayelastic.graph.spec.order import consumers, topological_order
from rayelastic.graph.spec.ports import IN, OUT, InputPort, OutputPort
from tests.raising import raises
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
    "name taken": (lambda t, s: s.map(one, name="trades"), GraphError, "trades", "duplicate-name"),
    "name taken by sink": (lambda t, s: (s.sink(connectors.list(), name="o"), s.sink(connectors.list(), name="o")), GraphError, "o", "duplicate-name"),
    "source name taken": (lambda t, s: t.source(ROWS, name="trades"), GraphError, "trades", "duplicate-name"),
    "aggregate name taken": (lambda t, s: s.key_by("symbol").aggregate(name="trades", n=aggregates.count()), GraphError, "trades", "duplicate-name"),
    "name forgotten": (lambda t, s: s.map(one, name=one), GraphError, None, "bad-name"),
    "name empty": (lambda t, s: s.map(one, name=""), GraphError, None, "bad-name"),
    "name with space around": (lambda t, s: s.filter(one, name=" x"), GraphError, None, "bad-name"),
    "name with slash": (lambda t, s: s.flat_map(one, name="a/b"), GraphError, None, "bad-name / ->"),
    "name with arrow": (lambda t, s: s.sink(connectors.list(), name="a->b"), GraphError, None, "bad-name / ->"),
    "name with newline": (lambda t, s: t.source(ROWS, name="a\nb"), GraphError, None, "bad-name"),
    "topology name": (lambda t, s: Topology(3, compiler=FakeCompiler()), GraphError, None, "bad-name"),
    # functions
    "not a function": (lambda t, s: s.map(3, name="m"), GraphError, "m", "not-a-function"),
    "result instead of function": (lambda t, s: s.filter([1], name="f"), GraphError, "f", "not-a-function"),
    "no argument": (lambda t, s: s.map(lambda: 1, name="m"), GraphError, "m", "wrong-parameters"),
    "two arguments": (lambda t, s: s.map(lambda t, u: t, name="m"), GraphError, "m", "wrong-parameters key_by"),
    "no state argument": (lambda t, s: s.key_by("symbol").map(one, name="m", state=dict), GraphError, "m", "wrong-parameters"),
    "async with state": (lambda t, s: s.key_by("symbol").map(waits, name="m", state=dict), GraphError, "m", "async-lane"),
    "no concurrency": (lambda t, s: s.map(waits, name="m", concurrent=3), GraphError, "m", "wrong-type capacity="),
    "no capacity": (lambda t, s: concurrent(capacity=0), GraphError, None, "out-of-range capacity=0"),
    "bad retry": (lambda t, s: concurrent(retry=-1), GraphError, None, "out-of-range retry="),
    "bad batch": (lambda t, s: concurrent(max_batch="a"), GraphError, None, "out-of-range a"),
    "bad timeout": (lambda t, s: concurrent(timeout=0), GraphError, None, "out-of-range timeout=0"),
    "bad order": (lambda t, s: concurrent(ordered=1), GraphError, None, "unknown-choice ordered=1"),
    "map that yields, async": (lambda t, s: s.map(yields_later, name="m"), GraphError, "m", "must-return flat_map"),
    "map that yields": (lambda t, s: s.map(yields, name="m"), GraphError, "m", "must-return flat_map"),
    "filter that yields": (lambda t, s: s.filter(yields, name="f"), GraphError, "f", "must-return flat_map"),
    "choice that yields": (lambda t, s: s.split(2, name="m", by=yields), GraphError, "m", "must-return"),
    # states
    "state value": (lambda t, s: s.key_by("symbol").map(lambda t, s: t, name="m", state=0), GraphError, "m", "wrong-type state=0"),
    "state without defaults": (lambda t, s: s.key_by("symbol").map(lambda t, s: t, name="m", state=Total), GraphError, "m", "bad-default"),
    "state with argument": (lambda t, s: s.key_by("symbol").filter(lambda t, s: t, name="m", state=lambda x: x), GraphError, "m", "bad-default"),
    # lanes
    "unknown lane": (lambda t, s: s.map(one, name="m", lane="fast"), LaneError, "m", "unknown-choice auto compiled"),
    "built-in lane": (lambda t, s: s.map(one, name="m", lane=Lane.BUILT_IN), LaneError, "m", "unknown-choice"),
    # schemas
    "no schema": (lambda t, s: s.map(one, name="m", schema=7), SchemaError, "m", "wrong-type"),
    "bad field": (lambda t, s: s.map(one, name="m", schema={"x": set}), SchemaError, "m", "unsupported-type x Record"),
    # keys
    "unknown key": (lambda t, s: s.key_by("symbl"), GraphError, "trades", "unknown-field symbol"),
    "key no str": (lambda t, s: s.key_by(0), GraphError, "trades", "unknown-field"),
    "key computed": (lambda t, s: s.key_by(lambda t: t.symbol.lower()), GraphError, "trades", "wrong-type"),
    "key chosen": (lambda t, s: s.key_by(lambda t: t.symbol if t.price is None else t.volume), GraphError, "trades", "wrong-type"),
    "key of a function": (lambda t, s: s.key_by(lambda t: t.symbl), GraphError, "trades", "unknown-field symbol"),
    "no key": (lambda t, s: s.key_by(), GraphError, "trades", "missing-argument"),
    "key twice": (lambda t, s: s.key_by("symbol", "symbol"), GraphError, "trades", "duplicate-field"),
    # aggregates
    "no aggregate": (lambda t, s: s.key_by("symbol").aggregate(name="a"), GraphError, "a", "missing-argument"),
    "not an aggregate": (lambda t, s: s.key_by("symbol").aggregate(name="a", n=sum), GraphError, "a", "not-an-aggregate"),
    "aggregate of unknown": (lambda t, s: s.key_by("symbol").aggregate(name="a", n=aggregates.sum("prize")), SchemaError, "a", "unknown-field price"),
    "sum of text": (lambda t, s: s.key_by("price").aggregate(name="a", n=aggregates.sum("symbol")), SchemaError, "a", "wrong-field-type symbol Trade"),
    "mean of text": (lambda t, s: s.key_by("price").aggregate(name="a", n=aggregates.mean("symbol")), SchemaError, "a", "wrong-field-type"),
    "aggregate named as key": (lambda t, s: s.key_by("symbol").aggregate(name="a", symbol=aggregates.count()), GraphError, "a", "duplicate-field"),
    "emit": (lambda t, s: s.key_by("symbol").aggregate(name="a", emit="late", n=aggregates.count()), GraphError, "a", "unknown-choice final update"),
    "stddev of text": (lambda t, s: s.aggregate(name="a", n=aggregates.stddev("symbol")), SchemaError, "a", "wrong-field-type"),
    "negative degrees of freedom": (lambda t, s: s.aggregate(name="a", n=aggregates.stddev("price", -1)), GraphError, None, "out-of-range"),
    "weight that is text": (lambda t, s: s.aggregate(name="a", n=aggregates.weighted_mean("price", "symbol")), SchemaError, "a", "wrong-field-type symbol Trade"),
    "weight unknown": (lambda t, s: s.aggregate(name="a", n=aggregates.weighted_mean("price", "volumes")), SchemaError, "a", "unknown-field volume"),
    "top_k of text": (lambda t, s: s.aggregate(name="a", n=aggregates.top_k("symbol", 3)), SchemaError, "a", "wrong-field-type"),
    "top_k of nothing": (lambda t, s: s.aggregate(name="a", n=aggregates.top_k("price", 0)), GraphError, None, "out-of-range 1000"),
    "top_k of too many": (lambda t, s: s.aggregate(name="a", n=aggregates.top_k("price", 1001)), GraphError, None, "out-of-range 1000"),
    "merge with how and without on": (lambda t, s: s.merge(s, how="left"), GraphError, None, "conflicting-arguments on="),
    "top_k twice": (lambda t, s: s.aggregate(name="a", n=aggregates.top_k("price", 2), n_1=aggregates.count()), GraphError, "a", "duplicate-name n_1"),
    "top_k named as key": (lambda t, s: s.key_by("symbol").aggregate(name="a", symbol=aggregates.top_k("nope", 1)), SchemaError, "a", "unknown-field"),
    "quantile beyond 1": (lambda t, s: s.aggregate(name="a", n=aggregates.quantile("price", 99)), GraphError, None, "out-of-range"),
    "quantile without error": (lambda t, s: s.aggregate(name="a", n=aggregates.quantile("price", 0.5, error=0)), GraphError, None, "out-of-range 0.00001"),
    "quantile of text": (lambda t, s: s.aggregate(name="a", n=aggregates.quantile("symbol", 0.5)), SchemaError, "a", "wrong-field-type 0.5"),
    "distinct of unknown": (lambda t, s: s.aggregate(name="a", n=aggregates.distinct("nope")), SchemaError, "a", "unknown-field"),
    # event time and windows
    "time of unknown": (lambda t, s: s.event_time("prize", name="e"), SchemaError, "e", "unknown-field price"),
    "time of text": (lambda t, s: s.event_time("symbol", name="e"), SchemaError, "e", "bad-event-time"),
    "time with nulls": (lambda t, s: t.source(rows_source([], {"at": int | None}), name="n").union(t.source(rows_source([], {"at": int | None}), name="m")).event_time("at", name="e"), SchemaError, "e", "bad-event-time"),
    "time name taken": (lambda t, s: s.event_time("volume", name="trades"), GraphError, "trades", "duplicate-name"),
    "lateness negative": (lambda t, s: s.event_time("volume", name="e", lateness=-1), GraphError, "e", "out-of-range lateness="),
    "lateness too fine": (lambda t, s: s.event_time("volume", name="e", lateness=0.5), GraphError, "e", "out-of-range"),
    "lateness no number": (lambda t, s: s.event_time("volume", name="e", lateness="1s"), GraphError, "e", "wrong-type"),
    "unit unknown": (lambda t, s: s.event_time("volume", name="e", unit="min"), GraphError, "e", "unknown-choice s ms"),
    "unit of float": (lambda t, s: s.event_time("price", name="e", unit="s"), GraphError, "e", "unknown-choice"),
    "window of nothing": (lambda t, s: s.window(), GraphError, "trades", "conflicting-arguments"),
    "window of both": (lambda t, s: s.window(count=1, seconds=1), GraphError, "trades", "conflicting-arguments"),
    "window of no tuple": (lambda t, s: s.window(count=0), GraphError, "trades", "out-of-range"),
    "window of half a tuple": (lambda t, s: s.window(count=2.5), GraphError, "trades", "out-of-range count=2.5"),
    "window that doesn't move": (lambda t, s: s.window(count=2, slide=0), GraphError, "trades", "out-of-range slide=0"),
    "window without time": (lambda t, s: s.window(seconds=1), GraphError, "trades", "no-event-time event_time"),
    "time lost in a map": (lambda t, s: s.event_time("volume", name="e").map(one, name="m", schema={"price": float}).window(seconds=1), GraphError, "m", "no-event-time"),
    "time of one of two": (lambda t, s: s.event_time("volume", name="e").union(t.source(ROWS, name="more")).window(seconds=1), GraphError, "e, more", "no-event-time"),
    "time lost in an aggregate": (lambda t, s: s.event_time("volume", name="e").aggregate(name="a", volume=aggregates.max("volume")).session(gap=1), GraphError, "a", "no-event-time"),
    "window too fine": (lambda t, s: s.event_time("volume", name="e").window(seconds=0.25), GraphError, "e", "out-of-range volume 0.25"),
    "window without length": (lambda t, s: s.event_time("volume", name="e").window(seconds=float("nan")), GraphError, "e", "wrong-type"),
    "session without gap": (lambda t, s: s.event_time("volume", name="e").session(gap=0), GraphError, "e", "out-of-range"),
    "rest of time": (lambda t, s: s.event_time("volume", name="e").window(seconds=1, rest=True), GraphError, "e", "conflicting-arguments"),
    "window of no aggregate": (lambda t, s: s.window(count=2).aggregate(name="w"), GraphError, "w", "missing-argument"),
    "window named as key": (lambda t, s: s.key_by("symbol").window(count=2).aggregate(name="w", symbol=aggregates.count()), GraphError, "w", "duplicate-field"),
    "window with two starts": (lambda t, s: s.event_time("volume", name="e").window(seconds=1).aggregate(name="w", start=aggregates.count(), window_start=aggregates.count()), GraphError, "w", "duplicate-field window_start"),
    "window name taken": (lambda t, s: s.window(count=2).aggregate(name="trades", n=aggregates.count()), GraphError, "trades", "duplicate-name"),
    "late of a count": (lambda t, s: s.window(count=2).aggregate(name="w", n=aggregates.count()).late(), GraphError, "w", "unsupported-window"),
    "late tuples of a count": (lambda t, s: s.window(count=2, lateness=1), GraphError, "trades", "conflicting-arguments"),
    "late tuples by the clock": (lambda t, s: s.window(seconds=2, clock=True, lateness=1), GraphError, "trades", "conflicting-arguments"),
    "count by the clock": (lambda t, s: s.window(count=2, clock=True), GraphError, "trades", "conflicting-arguments"),
    "idle by the clock": (lambda t, s: s.event_time("volume", name="e", by_clock=True), GraphError, "e", "missing-argument"),
    "until no function": (lambda t, s: s.event_time("volume", name="e").key_by("symbol").window(seconds=2).process(seen, name="w", schema=Total, until=3), GraphError, "w", "wrong-parameters until=3"),
    "updates in two steps": (lambda t, s: s.key_by("symbol").aggregate(name="a", two_steps=True, emit="update", n=aggregates.count()), GraphError, "a", "conflicting-arguments"),
    "method nobody calls": (lambda t, s: s.key_by("symbol").process(Misspelt, name="p", schema=Trade), GraphError, "p", "unknown-method on_tuples"),
    "side of a union": (lambda t, s: s.map(one, name="m", sides={"bad": Trade}).union(s).side("bad"), GraphError, "m, trades", "unknown-port bad"),
    "first within": (lambda t, s: s.event_time("volume", name="e").key_by("symbol").join(s.event_time("volume", name="f").key_by("symbol"), name="j", keep="first", within=5), GraphError, "j", "conflicting-arguments first"),
    "first in a window": (lambda t, s: s.event_time("volume", name="e").key_by("symbol").join(s.event_time("volume", name="f").key_by("symbol"), name="j", keep="first", window=5), GraphError, "j", "conflicting-arguments first"),
    "sum without field": (lambda t, s: s.key_by("symbol").aggregate(name="a", n=aggregates.sum(None)), GraphError, "a", "missing-argument"),
    # unions
    "union of schemas": (lambda t, s: s.union(t.source(WORDS, name="words")), GraphError, "trades", "schema-mismatch words Trade"),
    "union of topologies": (lambda t, s: s.union(other_topology()), GraphError, "trades", "other-topology far other"),
    "union with a sink": (lambda t, s: s.union(s.sink(connectors.list(), name="o")), GraphError, "trades", "not-a-stream"),
    "union with itself": (lambda t, s: s.union(s), GraphError, "trades", "duplicate-stream"),
    "union of nothing": (lambda t, s: s.union(), GraphError, "trades", "missing-argument"),
    # sinks
    "map after sink": (lambda t, s: s.sink(connectors.list(), name="o").map(one, name="m"), GraphError, "o", "no-output"),
    "sink after sink": (lambda t, s: s.sink(connectors.list(), name="o").sink(connectors.list(), name="p"), GraphError, "o", "no-output"),
    "not a sink": (lambda t, s: s.sink("out.csv", name="o"), GraphError, "o", "not-a-sink"),
    "source as sink": (lambda t, s: s.sink(ROWS, name="o"), GraphError, "o", "not-a-sink"),
    "sum as sink": (lambda t, s: s.sink(aggregates.sum("price"), name="o"), GraphError, "o", "not-a-sink"),
    "call of no function": (lambda t, s: s.sink(connectors.call(None), name="o"), SinkError, "o", "not-a-function None"),
    "sink below a file": (lambda t, s: s.sink(connectors.parquet(f"{__file__}/x"), name="o"), SinkError, "o", "not-writable"),
    "sink to several": (lambda t, s: s.sink(connectors.csv(["a", "b"]), name="o"), SinkError, "o", "wrong-type"),
    # sources
    "not a source": (lambda t, s: t.source("file.txt", name="x"), GraphError, "x", "not-a-source"),
    "function as source": (lambda t, s: t.source(one, name="x"), GraphError, "x", "not-a-source one"),
    "sink as source": (lambda t, s: t.source(connectors.list(), name="x"), GraphError, "x", "not-a-source"),
    "missing file": (lambda t, s: t.source(connectors.text("/nowhere/a.txt"), name="x"), SourceError, "x", "missing-file"),
    "empty glob": (lambda t, s: t.source(connectors.text("/nowhere/*.txt"), name="x"), SourceError, "x", "missing-file"),
    "no path": (lambda t, s: t.source(connectors.text([]), name="x"), SourceError, "x", "missing-file"),
    "missing csv": (lambda t, s: t.source(connectors.csv("/nowhere/a.csv"), name="x"), SourceError, "x", "missing-file"),
    "csv directory": (lambda t, s: t.source(connectors.csv("/usr"), name="x"), SourceError, "x", "is-a-folder"),
    "no parquet": (lambda t, s: t.source(connectors.parquet(__file__), name="x"), SourceError, "x", "malformed-file Parquet"),
    "row too short": (lambda t, s: t.source(rows_source([(1,)], Trade), name="x"), SourceError, "x", "schema-mismatch"),
    "row no tuple": (lambda t, s: t.source(rows_source(["abc"], Trade), name="x"), SourceError, "x", "schema-mismatch abc"),
    "rows without schema": (lambda t, s: t.source(rows_source([(1,)]), name="x"), SchemaError, None, "no-schema NamedTuples"),
    "generate nothing": (lambda t, s: t.source(connectors.generate(None, 3, Trade), name="x"), SourceError, "x", "not-a-function"),
    "generate -1": (lambda t, s: t.source(connectors.generate(one, -1, Trade), name="x"), SourceError, "x", "out-of-range"),
    "callable list": (lambda t, s: t.source(connectors.callable([1], Trade), name="x"), SourceError, "x", "not-a-function"),
    "sequence 1.5": (lambda t, s: t.source(connectors.sequence(1.5), name="x"), SourceError, "x", "out-of-range 1.5"),
    "arrow of list": (lambda t, s: t.source(connectors.arrow([1]), name="x"), SchemaError, None, "wrong-type"),
    "arrow column missing": (lambda t, s: t.source(connectors.arrow(pa.table({"a": [1]}), {"b": int}), name="x"), SchemaError, None, "unknown-column b"),
    "arrow nulls": (lambda t, s: t.source(connectors.arrow(pa.table({"a": [1, None]}), {"a": int}), name="x"), SchemaError, None, "null-values"),
    "arrow wrong type": (lambda t, s: t.source(connectors.arrow(pa.table({"a": ["x"]}), {"a": int}), name="x"), SchemaError, None, "schema-mismatch"),
    "arrow nested": (lambda t, s: t.source(connectors.arrow(pa.table({"a": [[{}]]})), name="x"), SchemaError, None, "unsupported-type a Record"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_declaration(case: str) -> None:
    declare, kind, operator, expected = BAD[case]
    topology = Topology("market", compiler=FakeCompiler())
    stream = topology.source(ROWS, name="trades")
    with raises(DeclarationError, *expected.split()) as caught:
        declare(topology, stream)
    error = caught.value
    assert type(error) is kind
    assert error.operator == operator
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
    stream.sink(connectors.list(), name="out")
    with raises(GraphError, "no-sink", operator="lost"):
        topology.validate()


def test_no_source() -> None:
    with raises(GraphError, "no-source", "empty"):
        Topology("empty", compiler=FakeCompiler()).validate()


def test_a_function_that_cant_be_shipped() -> None:
    topology, stream = declared()
    lock = threading.Lock()
    stream.map(lambda t: (lock, t)[1], name="locked").sink(connectors.list(), name="out")
    with raises(NotShippableError, "not-shippable", operator="locked"):
        topology.validate()


def test_a_sink_that_cant_be_shipped() -> None:
    topology, stream = declared()
    lock = threading.Lock()
    stream.sink(connectors.call(lambda t: lock), name="out")
    with raises(NotShippableError, "not-shippable", operator="out"):
        topology.validate()


def spec(name: str, *inputs: str) -> OperatorSpec:
    schema = Schema.of(Trade)
    code = FakeCode(Lane.COMPILED, "", schema)
    taken, given = (InputPort(IN, schema, inputs),), (OutputPort(OUT, schema),)
    return OperatorSpec(name, taken, given, StateKind.STATELESS, code, "f.py:1")


def test_a_cycle_is_named() -> None:
    specs = {s.name: s for s in (spec("a"), spec("b", "a", "d"), spec("c", "b"), spec("d", "c"), spec("e", "d"))}
    with raises(GraphError, "cycle", "b", "c", "d"):
        topological_order(specs)


def test_an_operator_that_feeds_itself() -> None:
    with raises(GraphError, "cycle", operator="a"):
        topological_order({"a": spec("a", "a")})


def test_an_input_that_doesnt_exist() -> None:
    with raises(GraphError, "other-topology", "ghost", operator="a"):
        consumers({"a": spec("a", "ghost")})


def test_a_file_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may read and write everything
    topology, stream = declared()
    with raises(SourceError, "no-permission", operator="x"):
        topology.source(connectors.text(secret), name="x")
    with raises(SinkError, "no-permission", operator="o"):
        stream.sink(connectors.csv(secret), name="o")
    with raises(SinkError, "not-writable", operator="o"):
        stream.sink(connectors.csv(tmp_path / "new" / "a.csv"), name="o")


def test_a_file_that_vanished_is_found_again_at_the_check(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("x\n")
    topology, _ = declared()
    topology.source(connectors.text(path), name="lines")
    path.unlink()
    with raises(SourceError, "missing-file", operator="lines"):
        topology.operators["lines"].body.check("lines")  # type: ignore[attr-defined]


def test_csv_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("unit price,n\n1,2\n")
    topology, _ = declared()
    with raises(SchemaError, "bad-field-name", "unit price", operator="x"):
        topology.source(connectors.csv(path), name="x")
    with raises(SchemaError, "unknown-column", "m", operator="y"):
        topology.source(connectors.csv(path, {"m": int}), name="y")


def test_an_empty_csv(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("")
    with raises(SourceError, "malformed-file", "CSV", operator="x"):
        declared()[0].source(connectors.csv(tmp_path / "a.csv"), name="x")


def test_errors_of_the_compiler_get_operator_and_line() -> None:
    class Strict:
        def compile(self, request: object) -> FakeCode:
            raise LaneError("line 3 uses json", hint="Use lane='python'")

    topology = Topology("t", compiler=Strict())
    with raises(LaneError, "unsupported-lane", "test_bad", operator="m"):
        topology.source(ROWS, name="s").map(one, name="m", lane="compiled")


def test_attributes_of_a_sink_that_no_stream_has() -> None:
    _, stream = declared()
    out = stream.sink(connectors.list(), name="out")
    assert not hasattr(out, "nonsense")
    assert repr(out) == "<sink out>"
