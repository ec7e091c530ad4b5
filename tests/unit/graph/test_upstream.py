"""Operators are made of an Upstream alone: nothing is written into a topology, and what fails adds nothing to it."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import pytest

from rayelastic.connectors.memory.declaration import rows as rows_source
from rayelastic.errors import GraphError
from rayelastic.fluent.topology import Topology
from rayelastic.graph import Schema
from rayelastic.graph.operators.gathering.folds import fold
from rayelastic.graph.operators.pacing import throttle
from rayelastic.graph.spec.ports import IN, OUT, InputPort, OutputPort
from rayelastic.graph.spec.upstream import Upstream
from tests.raising import raises
from tests.unit.graph.fakes import FakeCompiler

SCHEMA = Schema.of({"k": str, "n": int})


def upstream(*inputs: str, keys: tuple[str, ...] = ()) -> Upstream:
    return Upstream(inputs, SCHEMA, keys, {}, FakeCompiler())


def test_an_operator_takes_the_streams_by_its_first_port() -> None:
    made = throttle(upstream("a", "b"), "slow", 10)
    assert made.inputs == (InputPort(IN, SCHEMA, ("a", "b")),)
    assert made.outputs == (OutputPort(OUT, SCHEMA),)
    assert made.location.startswith(__file__)


def test_what_is_behind_an_operator_takes_its_first_stream() -> None:
    up = upstream("a")
    made = throttle(up, "slow", 10)
    behind = up.behind(made, ("k",))
    assert (behind.inputs, behind.schema, behind.keys) == (("slow",), SCHEMA, ("k",))
    assert behind.operators == {"slow": made}
    assert up.operators == {}


def test_an_operator_of_two_is_the_second_behind_the_first() -> None:
    scanned, latest = fold(upstream("a", keys=("k",)), "sum", lambda total, t: total + t.n, 0, None)
    assert (scanned.name, scanned.taken, scanned.keys) == ("sum.scan", ("a",), ("k",))
    assert (latest.name, latest.taken, latest.keys) == ("sum", ("sum.scan",), ("k",))


def test_of_two_operators_none_is_added_where_the_second_fails() -> None:
    topology = Topology("test", compiler=FakeCompiler())
    rows = topology.source(rows_source([("a", 1)], schema={"k": str, "n": int}), name="rows")
    before = dict(topology.operators)
    with raises(GraphError, "no-event-time", operator="both.joined"):
        rows.key_by("k").join(rows.key_by("k"), name="both", within=3, fn=lambda t: t)
    with raises(GraphError, "must-return", operator="both"):
        rows.key_by("k").join(rows.key_by("k"), name="both", how="inner", fn=yields)
    assert topology.operators == before


def yields(t: object) -> object:
    yield t


@pytest.mark.parametrize("fn", [lambda t: t.k, lambda t: (t.k, t.n), attrgetter("k"), attrgetter("k", "n")])
def test_a_function_that_reads_fields_is_a_key(fn: Callable[[Any], Any]) -> None:
    assert upstream("a").keyed((fn,)).keys in (("k",), ("k", "n"))


@pytest.mark.parametrize(
    "fn",
    [
        lambda t: t.k or t.n,
        lambda t: t.n if t.k is None else t.k,
        lambda t: t.k is None,
        lambda t: min(t, key=id),
        lambda t: t,
        lambda t: (t.k, 1),
        lambda t: (),
        lambda t: t.k.name,
        str,
    ],
)
def test_a_function_that_does_more_than_to_read_fields_is_no_key(fn: Callable[[Any], Any]) -> None:
    with raises(GraphError, "wrong-type", "key_by", operator="a"):
        upstream("a").keyed((fn,))
