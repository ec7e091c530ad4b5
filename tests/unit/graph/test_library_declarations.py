"""Stages of channels and library operators: what they are made of, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from rayelastic.connectors import registry as connectors
from rayelastic.connectors.memory.declaration import rows as rows_source
from rayelastic.errors import DeclarationError, GraphError, SchemaError
from rayelastic.fluent.stream import Stream
from rayelastic.fluent.topology import Topology
from rayelastic.graph.operators import aggregates
from rayelastic.graph.operators.channels import Channels, Governor, channel_heads, ordered_channels
from rayelastic.graph.operators.splits import Split
from rayelastic.graph.spec.operator_class import operator
from rayelastic.graph.spec.order import topological_order
from tests.raising import raises
from tests.unit.graph.fakes import FakeCompiler


class Row(NamedTuple):
    k: str
    n: int


class Counted(NamedTuple):
    n: int = 0


class Named(NamedTuple):
    k: str = ""


def same(t: Any) -> Any:
    return t


def add(sum_: int, t: Any) -> int:
    return sum_ + 1


def remember(t: Any, s: Any) -> Any:
    return t


def declared() -> tuple[Topology, Stream]:
    topology = Topology("test", compiler=FakeCompiler())
    return topology, topology.source(rows_source([("a", 1)], schema=Row), name="rows")


def test_a_stage_has_the_operators_of_its_body_for_each_channel() -> None:
    topology, rows = declared()
    made = rows.elastic(lambda s: s.map(same, name="a").filter(same, name="b"), name="work", most=2, order=True)
    assert list(topology.operators) == ["rows", "work", "work.0.a", "work.0.b", "work.1.a", "work.1.b", "work.order"]
    assert topology.operators["work"].body == Channels(2, 1, Governor.PEAK_RATE, ordered=True)
    assert topology.operators["work.1.b"].taken == ("work.1.a",)
    assert topology.operators["work.1.a"].taken == ("work/out1",)
    assert made.inputs == ("work.order",)
    assert channel_heads(topology.operators) == {"work": (("work.0.a",), ("work.1.a",))}
    order = topological_order(topology.operators)
    assert "work.1.b" in ordered_channels(topology.operators, order)
    made.sink(connectors.list(), name="out")
    order = topological_order(topology.operators)
    assert ordered_channels(topology.operators, order) == {f"work.{n}.{name}" for n in range(2) for name in "ab"}
    topology.validate(shipped=False)


def test_the_body_is_compiled_once() -> None:
    topology, rows = declared()
    rows.parallel(5, lambda s: s.map(same, name="a"), name="work")
    assert isinstance(topology.compiler, FakeCompiler)
    assert [request.operator for request in topology.compiler.requests] == ["a"]


def test_a_stage_without_order_is_a_union() -> None:
    topology, rows = declared()
    made = rows.parallel(3, lambda s: s.map(same, name="a"), name="work")
    assert made.inputs == ("work.0.a", "work.1.a", "work.2.a")
    assert topology.operators["work"].body == Channels(3, 3)
    assert channel_heads(topology.operators) == {}


def test_by_key_tuples_are_split_by_its_hash() -> None:
    topology, rows = declared()
    rows.parallel(3, lambda s: s.key_by("k").map(remember, name="a", state=Counted), name="work", by="k")
    assert topology.operators["work"].body == Split(3, ("k",))
    assert topology.operators["work.2.a"].keys == ("k",)
    rows.key_by("k").parallel(3, lambda s: s.map(same, name="a"), name="more", order=True)
    assert topology.operators["more"].body == Channels(3, 3, ordered=True, keys=("k",))


def test_a_body_may_branch_and_have_a_stage_in_it() -> None:
    topology, rows = declared()

    def body(stream: Stream) -> Stream:
        sides = stream.split(2, name="sides", by=lambda t: t.n % 2)
        return (
            sides[0].map(same, name="even").union(sides[1].elastic(lambda s: s.map(same, name="x"), name="odd", most=2))
        )

    made = rows.parallel(2, body, name="work")
    assert made.inputs[:3] == ("work.0.even", "work.0.odd.0.x", "work.0.odd.1.x")
    assert topology.operators["work.1.odd"].taken == ("work.1.sides/out1",)
    assert topology.operators["work.1.odd.1.x"].taken == ("work.1.odd/out1",)
    assert set(channel_heads(topology.operators)) == {"work.0.odd", "work.1.odd"}


def test_an_elastic_split_gives_a_stream_for_each_channel() -> None:
    topology, rows = declared()
    parts = rows.elastic_split(3, name="parts", start=2)
    assert [part.inputs for part in parts] == [("parts/out0",), ("parts/out1",), ("parts/out2",)]
    assert topology.operators["parts"].body == Channels(3, 2, Governor.CONGESTION)
    assert "1 to 3 channels, by congestion" in topology.operators["parts"].reason


def test_folds_and_enrichments_are_made_of_other_operators() -> None:
    topology, rows = declared()
    keyed = rows.key_by("k")
    assert keyed.scan(lambda total, t: total + t.n, 0, name="scan").schema.names == ("k", "value")
    assert keyed.fold(lambda total, t: total, Counted(), name="fold").schema.names == ("k", "n")
    assert keyed.reduce(lambda a, b: b, name="reduce").schema.names == ("k", "n")
    assert keyed.enrich({"a": 1.5}, name="enrich", how="left").schema.field("value").nullable
    kinds = {name: spec.kind for name, spec in topology.operators.items() if name != "rows"}
    assert kinds == {
        "scan": "map",
        "fold.scan": "map",
        "fold": "aggregate",
        "reduce.scan": "map",
        "reduce": "aggregate",
        "enrich": "map",
    }


def test_what_comes_again_is_told_by_a_state_that_begins_with_nothing_seen() -> None:
    compiler = FakeCompiler()
    rows = Topology("test", compiler=compiler).source(rows_source([], schema={"k": int}), name="rows")
    rows.key_by("k").deduplicate(name="once")
    request: Any = compiler.requests[-1]
    state = SimpleNamespace(**request.state()._asdict())
    assert [request.function((1,), state) for _ in range(3)] == [True, False, False]


@operator(outputs={"out": Row})
class Remembers:
    def invoke(self, t: Any) -> Any:
        yield t


Case = tuple[type[DeclarationError], str, Callable[[Stream], Any]]

BAD: dict[str, Case] = {
    "a taken name": (GraphError, "duplicate-name", lambda s: s.parallel(2, lambda c: c, name="rows")),
    "no name": (GraphError, "bad-name", lambda s: s.elastic(lambda c: c, name="")),
    "no channels": (GraphError, "out-of-range width=0", lambda s: s.parallel(0, lambda c: c, name="x")),
    "half a channel": (GraphError, "out-of-range width=1.5", lambda s: s.parallel(1.5, lambda c: c, name="x")),  # type: ignore[arg-type]
    "True channels": (GraphError, "out-of-range True", lambda s: s.elastic(lambda c: c, name="x", most=True)),
    "too many": (GraphError, "out-of-range ways=257", lambda s: s.elastic_split(257, name="x")),
    "none at the start": (GraphError, "out-of-range start=0", lambda s: s.elastic(lambda c: c, name="x", start=0)),
    "more at the start": (GraphError, "out-of-range start=3", lambda s: s.elastic_split(2, name="x", start=3)),
    "no body": (GraphError, "not-a-function", lambda s: s.parallel(2, "body", name="x")),  # type: ignore[arg-type]
    "a body of two": (GraphError, "not-a-function", lambda s: s.elastic(lambda a, b: a, name="x")),  # type: ignore
    "a body that gives nothing": (GraphError, "not-a-stream", lambda s: s.elastic(lambda c: None, name="x")),  # type: ignore
    "a body that gives its outer stream": (
        GraphError,
        "not-a-stream",
        lambda s: s.elastic(lambda c: s, name="x"),
    ),
    "a sink in a body": (
        GraphError,
        "not-a-stream",
        lambda s: s.elastic(lambda c: c.sink(connectors.list(), name="y"), name="x"),  # type: ignore[arg-type, return-value]
    ),
    "a sink beside a body": (
        GraphError,
        "branching-stage",
        lambda s: s.elastic(lambda c: (c.sink(connectors.list(), name="y"), c)[1], name="x"),
    ),
    "an outer stream in a body": (GraphError, "other-topology", lambda s: s.elastic(lambda c: c.union(s), name="x")),
    "state in an elastic stage": (
        GraphError,
        "branching-stage",
        lambda s: s.elastic(lambda c: c.key_by("k").map(remember, name="y", state=Counted), name="x"),
    ),
    "an aggregate in an elastic stage": (
        GraphError,
        "branching-stage",
        lambda s: s.elastic(lambda c: c.aggregate(name="y", n=aggregates.count()), name="x"),
    ),
    "a class in an elastic stage": (
        GraphError,
        "branching-stage True",
        lambda s: s.elastic(lambda c: c.apply(Remembers(), name="y"), name="x"),
    ),
    "keys in turn": (
        GraphError,
        "branching-stage",
        lambda s: s.parallel(2, lambda c: c.key_by("k").map(remember, name="y", state=Counted), name="x"),
    ),
    "other keys": (
        GraphError,
        "branching-stage",
        lambda s: s.parallel(2, lambda c: c.key_by("k").map(remember, name="y", state=Counted), name="x", by="n"),
    ),
    "no such key": (GraphError, "unknown-field", lambda s: s.parallel(2, lambda c: c, name="x", by="m")),
    "by a number": (GraphError, "wrong-type by=3", lambda s: s.parallel(2, lambda c: c, name="x", by=3)),  # type: ignore[arg-type]
    "an order of branches": (
        GraphError,
        "branching-stage",
        lambda s: s.elastic(lambda c: c.map(same, name="a").union(c.map(same, name="b")), name="x", order=True),
    ),
    "an order of side chains": (
        GraphError,
        "branching-stage",
        lambda s: s.parallel(2, lambda c: (c.map(same, name="a"), c.map(same, name="b"))[1], name="x", order=True),
    ),
    "an order of what has two inputs": (
        GraphError,
        "branching-stage",
        lambda s: s.parallel(
            2, lambda c: c.throttle(name="a", per_second=9).switch(c, same, name="y"), name="x", order=True
        ),
    ),
    "a name in two channels": (
        GraphError,
        "duplicate-name",
        lambda s: s.parallel(2, lambda c: c.map(same, name="y").map(same, name="y"), name="x"),
    ),
    "half an order": (GraphError, "unknown-choice order=1", lambda s: s.parallel(2, lambda c: c, name="x", order=1)),  # type: ignore[arg-type]
    "no rate": (GraphError, "out-of-range per_second=0", lambda s: s.throttle(name="x", per_second=0)),
    "an endless rate": (GraphError, "out-of-range per_second", lambda s: s.throttle(name="x", per_second=float("inf"))),
    "a text as rate": (GraphError, "out-of-range 9", lambda s: s.throttle(name="x", per_second="9")),  # type: ignore[arg-type]
    "a switch of nothing": (
        GraphError,
        "unconnected-port control",
        lambda s: s.switch(None, same, name="x"),  # type: ignore[arg-type]
    ),
    "a switch without function": (GraphError, "not-a-function", lambda s: s.switch(s, True, name="x")),  # type: ignore[arg-type]
    "another off": (
        GraphError,
        "unknown-choice",
        lambda s: s.switch(s, same, name="x", off="hold"),  # type: ignore[arg-type]
    ),
    "a switch that starts anyhow": (GraphError, "unknown-choice", lambda s: s.switch(s, same, name="x", start=1)),  # type: ignore[arg-type]
    "a gate of fewer than none": (GraphError, "out-of-range most=", lambda s: s.gate(s, name="x", most=-1)),
    "a gate without function": (GraphError, "not-a-function", lambda s: s.gate(s, name="x", passes=4)),  # type: ignore[arg-type]
    "a scan of one argument": (GraphError, "wrong-parameters", lambda s: s.key_by("k").scan(same, 0, name="x")),  # type: ignore[arg-type]
    "a scan into a list": (SchemaError, "wrong-type", lambda s: s.key_by("k").scan(remember, [], name="x")),
    "a scan named as key": (
        GraphError,
        "duplicate-field",
        lambda s: s.key_by("k").scan(remember, Named(), name="x"),
    ),
    "a reduce of no function": (GraphError, "wrong-parameters", lambda s: s.key_by("k").reduce(3, name="x")),  # type: ignore[arg-type]
    "a reduce of keys alone": (GraphError, "no-fields", lambda s: s.key_by("k", "n").reduce(remember, name="x")),
    "a reduce now and then": (
        GraphError,
        "unknown-choice often",
        lambda s: s.key_by("k").reduce(remember, name="x", emit="often"),  # type: ignore[arg-type]
    ),
    "no time to live": (GraphError, "out-of-range ttl=0", lambda s: s.key_by("k").deduplicate(name="x", ttl=0)),
    "a negative time to live": (GraphError, "out-of-range", lambda s: s.key_by("k").scan(add, 0, name="x", ttl=-2)),
    "a time to live for ever": (
        GraphError,
        "out-of-range",
        lambda s: s.key_by("k").deduplicate(name="x", ttl=1e10),
    ),
    "a googol to live": (GraphError, "wrong-type", lambda s: s.key_by("k").deduplicate(name="x", ttl=10**100)),
    "an endless time to live": (
        GraphError,
        "wrong-type",
        lambda s: s.key_by("k").deduplicate(name="x", ttl=1e300),
    ),
    "a boolean to live": (GraphError, "wrong-type", lambda s: s.key_by("k").deduplicate(name="x", ttl=True)),
    "a time to live in words": (
        GraphError,
        "wrong-type",
        lambda s: s.key_by("k").filter(remember, name="x", state=Counted, ttl="1 h"),  # type: ignore[call-overload]
    ),
    "a time to live of nothing": (GraphError, "missing-argument", lambda s: s.key_by("k").map(same, name="x", ttl=9)),  # type: ignore[call-overload]
    "a filter of nothing": (GraphError, "missing-argument", lambda s: s.key_by("k").filter(same, name="x", ttl=9)),  # type: ignore[call-overload]
    "tuples of nothing": (GraphError, "missing-argument", lambda s: s.key_by("k").flat_map(same, name="x", ttl=9)),  # type: ignore[call-overload]
    "a time to live at the end": (
        GraphError,
        "state-expires-early",
        lambda s: s.key_by("k").aggregate(name="x", ttl=9, n=aggregates.count()),
    ),
    "reduce expires": (
        GraphError,
        "state-expires-early",
        lambda s: s.key_by("k").reduce(remember, name="x", ttl=9),
    ),
    "a time to live of no keys": (
        GraphError,
        "missing-argument key_by",
        lambda s: s.aggregate(name="x", emit="update", ttl=9, n=aggregates.count()),
    ),
    "a table of pairs": (GraphError, "wrong-type", lambda s: s.key_by("k").enrich([("a", 1)], name="x")),  # type: ignore[arg-type]
    "an empty table": (GraphError, "no-schema", lambda s: s.key_by("k").enrich({}, name="x")),
    "rows without names": (
        GraphError,
        "no-schema",
        lambda s: s.key_by("k").enrich({"a": (1, 2)}, name="x"),
    ),
    "keys of two": (GraphError, "key-mismatch", lambda s: s.key_by("k").enrich({("a", 1): 1}, name="x")),
    "rows of other lengths": (
        GraphError,
        "schema-mismatch",
        lambda s: s.key_by("k").enrich({"a": (1,)}, name="x", schema={"m": int, "o": int}),
    ),
    "outer enrich": (
        GraphError,
        "unknown-choice",
        lambda s: s.key_by("k").enrich({"a": 1}, name="x", how="outer"),  # type: ignore[arg-type]
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_is_refused(case: str) -> None:
    error, text, declare = BAD[case]
    topology, rows = declared()
    before = list(topology.operators)
    with raises(error, *text.split()) as raised:
        declare(rows)
    assert raised.value.operator is not None or "bad-name" in text
    assert raised.value.hint
    assert list(topology.operators) == before


@pytest.mark.parametrize("ttl", [0.5, timedelta(), -1, float("nan")])
def test_a_time_to_live_has_whole_ticks_of_the_event_time(ttl: Any) -> None:
    _, rows = declared()
    keyed = rows.event_time("n", name="t").key_by("k")
    with pytest.raises(GraphError) as raised:
        keyed.deduplicate(name="x", ttl=ttl)
    assert raised.value.operator == "x"
    assert raised.value.code in ("out-of-range", "wrong-type")
    keyed.deduplicate(name="x", ttl=timedelta(minutes=1))
