"""Declaring topologies: what ends up in the operators."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rayelastic.connectors import registry as connectors
from rayelastic.connectors.arrow.declaration import ArrowSink
from rayelastic.connectors.csv.declaration import CsvSink
from rayelastic.connectors.memory.declaration import CountSink
from rayelastic.connectors.memory.declaration import rows as rows_source
from rayelastic.connectors.parquet.declaration import ParquetSink
from rayelastic.errors import GraphError
from rayelastic.fluent.topology import Topology
from rayelastic.graph import DataType, FunctionKind, Lane, OperatorSpec, Schema, StateKind
from rayelastic.graph.operators import aggregates
from rayelastic.graph.operators.aggregates import AggregateFunction, AggregateSpec, Emit
from rayelastic.graph.operators.aggregation import Aggregation
from rayelastic.graph.spec.order import topological_order
from rayelastic.graph.spec.ports import IN, OUT, InputPort, OutputPort
from tests.unit.graph.fakes import FakeCode, FakeCompiler


class Trade(NamedTuple):
    symbol: str
    price: float
    volume: int | None


class Total(NamedTuple):
    seen: int = 0


@pytest.fixture
def compiler() -> FakeCompiler:
    return FakeCompiler()


@pytest.fixture
def topology(compiler: FakeCompiler) -> Topology:
    return Topology("market", compiler=compiler)


def trades(topology: Topology, name: str = "trades") -> Any:
    return topology.source(rows_source([Trade("a", 1.0, 2)]), name=name)


def test_word_count(tmp_path: Path, topology: Topology) -> None:
    (tmp_path / "a.txt").write_text("one two\n")
    lines = topology.source(connectors.text(tmp_path / "*.txt"), name="lines")
    words = lines.flat_map(lambda t: [(w, 1) for w in t.line.split()], name="words", schema={"word": str, "n": int})
    counts = words.key_by("word").aggregate(name="counts", count=aggregates.count())
    counts.sink(connectors.list(), name="out")
    topology.validate()
    specs = list(topology.operators.values())
    assert [s.name for s in specs] == ["lines", "words", "counts", "out"]
    assert [s.kind for s in specs] == [
        "source", "flat_map", "aggregate", "sink",
    ]  # fmt: skip
    assert [s.taken for s in specs] == [(), ("lines",), ("words",), ("counts",)]
    assert [s.keys for s in specs] == [(), (), ("word",), ()]
    assert [s.lane for s in specs] == [Lane.BUILT_IN, Lane.COMPILED, Lane.BUILT_IN, Lane.BUILT_IN]
    assert str(specs[2].output_schema) == "counts(word: string, count: int64)"
    assert specs[2].body == Aggregation((("count", AggregateSpec(AggregateFunction.COUNT)),), Emit.FINAL)
    assert all(s.reason for s in specs)


def test_a_spec_tells_where_it_was_declared(topology: Topology) -> None:
    line = sys._getframe().f_lineno + 1
    trades(topology).filter(lambda t: t.volume > 10, name="big")
    assert topology.operators["big"].location == f"{__file__}:{line}"


def test_the_compiler_gets_the_request(topology: Topology, compiler: FakeCompiler) -> None:
    keyed = trades(topology).key_by("symbol")
    keyed.map(lambda t, s: t, name="running", state=Total, schema=Trade, lane="python")
    keyed.filter(lambda t: t.price > 3, name="big")
    running, big = compiler.requests
    assert (running.operator, running.kind, running.keys, running.state) == (
        "running",
        FunctionKind.MAP,
        ("symbol",),
        Total,
    )
    assert (running.output, running.lane) == (Schema.of(Trade), Lane.PYTHON)
    assert running.location.startswith(__file__)
    assert (big.keys, big.state, big.lane, big.output) == ((), None, "auto", None)


def test_state_makes_an_operator_partitioned(topology: Topology) -> None:
    keyed = trades(topology).key_by("symbol", "volume")
    keyed.map(lambda t, s: t, name="a", state=Total)
    keyed.filter(lambda t, s: True, name="b", state=dict)
    keyed.flat_map(lambda t, s: [t], name="c", state=lambda: [0])
    keyed.map(lambda t: t, name="d")
    specs = topology.operators
    assert [specs[n].state_kind for n in "abcd"] == [StateKind.PARTITIONED] * 3 + [StateKind.STATELESS]
    assert [specs[n].keys for n in "abcd"] == [("symbol", "volume")] * 3 + [()]


def test_aggregates_types_and_nulls(topology: Topology) -> None:
    class Wide(NamedTuple):
        k: str
        i: int | None
        f: float
        t: str | None

    wide = topology.source(rows_source([], Wide), name="wide")
    a = aggregates
    out = wide.key_by("k").aggregate(
        name="all", emit="update", n=a.count(), ni=a.count("i"), si=a.sum("i"), sf=a.sum("f"), mi=a.mean("i"),
        lo=a.min("t"), hi=a.max("f"), fi=a.first("t"), la=a.last("f"),
    )  # fmt: skip
    assert str(out.schema) == (
        "all(k: string, n: int64, ni: int64, si: int64 | None, sf: float64, mi: float64 | None, "
        "lo: string | None, hi: float64, fi: string | None, la: float64)"
    )
    assert topology.operators["all"].body.emit is Emit.UPDATE  # type: ignore[attr-defined]


def test_a_nullable_key_stays_nullable(topology: Topology) -> None:
    out = trades(topology).key_by("volume").aggregate(name="n", rows=aggregates.count())
    assert str(out.schema) == "n(volume: int64 | None, rows: int64)"


def test_union_and_several_consumers(topology: Topology) -> None:
    a, b, c = (trades(topology, n) for n in "abc")
    united = a.union(b, c)
    united.sink(CountSink(), name="all")
    united.map(lambda t: t, name="m").sink(aggregates.count(), name="some")
    assert topology.operators["all"].taken == ("a", "b", "c")
    assert topology.operators["m"].taken == ("a", "b", "c")
    assert topology.operators["some"].body == CountSink()
    topology.validate()


def test_union_takes_the_same_fields_under_another_name(topology: Topology) -> None:
    other = topology.source(rows_source([], {"symbol": str, "price": float, "volume": int | None}), name="other")
    assert trades(topology).union(other).schema.name == "Trade"


def test_operators_are_read_only(topology: Topology) -> None:
    trades(topology)
    with pytest.raises(TypeError):
        topology.operators["x"] = None  # type: ignore[index]


def test_a_failed_declaration_leaves_nothing_behind(topology: Topology) -> None:
    stream = trades(topology)
    with pytest.raises(GraphError):
        stream.map(3, name="bad")
    assert list(topology.operators) == ["trades"]
    stream.map(lambda t: t, name="bad")


def test_specs_are_shippable(topology: Topology) -> None:
    trades(topology).map(lambda t: t, name="m").sink(connectors.list(), name="out")
    shipped = cloudpickle.loads(cloudpickle.dumps(dict(topology.operators)))
    assert shipped["out"] == topology.operators["out"]
    assert shipped["m"].output_schema == Schema.of(Trade)


def test_a_graph_without_closures_ships_unpicklable_ones_run_here(topology: Topology) -> None:
    handle = Path(__file__).open()  # noqa: SIM115
    with handle:
        trades(topology).map(lambda t: (handle, t)[1], name="m").sink(connectors.list(), name="out")
        topology.validate(shipped=False)


def test_csv_schema_is_inferred(tmp_path: Path, topology: Topology) -> None:
    path = tmp_path / "t.csv"
    path.write_text("symbol,price,day\nA,1.5,2020-01-02\nB,2,2020-01-03\n")
    stream = topology.source(connectors.csv(path), name="t")
    assert str(stream.schema) == "Record(symbol: string | None, price: float64 | None, day: date32 | None)"
    assert topology.operators["t"].body.paths == (str(path),)  # type: ignore[attr-defined]


def test_csv_with_a_schema_may_take_some_columns(tmp_path: Path, topology: Topology) -> None:
    path = tmp_path / "t.csv"
    path.write_text("symbol;price\nA;1.5\n")
    assert topology.source(connectors.csv([path], {"price": float}, delimiter=";"), name="t").schema.names == ("price",)


def test_parquet_schema_is_read(tmp_path: Path, topology: Topology) -> None:
    table = pa.table({"n": pa.array([1], pa.int32()), "s": ["x"]})
    pq.write_table(table, tmp_path / "b.parquet")
    pq.write_table(table, tmp_path / "a.parquet")
    stream = topology.source(connectors.parquet(tmp_path), name="t")
    assert str(stream.schema) == "Record(n: int32 | None, s: string | None)"
    assert [Path(p).name for p in topology.operators["t"].body.paths] == ["a.parquet", "b.parquet"]  # type: ignore[attr-defined]


def test_text_takes_files_globs_and_directories(tmp_path: Path, topology: Topology) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("b.txt", "a.txt", "sub/c.md"):
        (tmp_path / name).write_text("x\n")

    def paths(name: str, *given: object) -> list[str]:
        topology.source(connectors.text(given), name=name)  # type: ignore[arg-type]
        return [str(Path(p).relative_to(tmp_path)) for p in topology.operators[name].body.paths]  # type: ignore[attr-defined]

    assert paths("directory", tmp_path) == ["a.txt", "b.txt", "sub/c.md"]
    assert paths("glob", tmp_path / "*.txt") == ["a.txt", "b.txt"]
    assert paths("all", tmp_path / "**") == ["a.txt", "b.txt", "sub/c.md"]
    (tmp_path / "odd[1].txt").write_text("x\n")
    assert paths("odd", tmp_path / "odd[1].txt") == ["odd[1].txt"]
    assert paths("deep", tmp_path / "**/*.md", tmp_path / "b.txt") == ["sub/c.md", "b.txt"]


def test_arrow_tables_batches_and_pandas(topology: Topology) -> None:
    table = pa.table({"n": [1, 2], "s": ["x", None]})
    assert str(connectors.arrow(table).schema) == "Record(n: int64 | None, s: string | None)"  # type: ignore[union-attr]
    assert connectors.arrow(table.to_batches()[0]).table == table  # type: ignore[union-attr]
    declared = connectors.arrow(table, {"s": str | None, "n": DataType.INT32})
    assert declared.table.schema == declared.schema.to_arrow()  # type: ignore[union-attr]
    pandas = pytest.importorskip("pandas")
    assert connectors.arrow(pandas.DataFrame({"n": [1, 2]})).schema.names == ("n",)  # type: ignore[union-attr]
    assert connectors.arrow() == ArrowSink()


def test_files_are_sinks_too(tmp_path: Path, topology: Topology) -> None:
    stream = trades(topology)
    stream.sink(connectors.parquet(f"{tmp_path}/out/"), name="p")
    stream.sink(connectors.csv(tmp_path / "x.csv"), name="c")
    assert topology.operators["p"].body == ParquetSink(f"{tmp_path}/out")
    assert topology.operators["c"].body == CsvSink(f"{tmp_path}/x.csv")


def test_order_is_declared_order_where_the_graph_leaves_it_open() -> None:
    def spec(name: str, *inputs: str) -> OperatorSpec:
        schema = Schema.of(Trade)
        code = FakeCode(Lane.COMPILED, "", schema)
        taken, given = (InputPort(IN, schema, inputs),), (OutputPort(OUT, schema),)
        return OperatorSpec(name, taken, given, StateKind.STATELESS, code)

    graph = {s.name: s for s in (spec("c", "a", "b"), spec("b"), spec("a"), spec("d", "b"))}
    assert topological_order(graph) == ["b", "a", "c", "d"]
