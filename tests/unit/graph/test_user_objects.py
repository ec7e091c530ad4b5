"""Objects of users: methods that nothing would call are rejected at the declaration, with the name to use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from rayelastic.connectors import registry as connectors
from rayelastic.connectors.memory.declaration import rows as rows_source
from rayelastic.connectors.polled.declaration import polled
from rayelastic.errors import DeclarationError, GraphError, SinkError, SourceError
from rayelastic.fluent.topology import Topology
from rayelastic.graph.spec.operator_class import operator
from rayelastic.graph.spec.user_objects import has_method
from tests.raising import raises
from tests.unit.graph.fakes import FakeCompiler

pytestmark = pytest.mark.edges

ROWS = rows_source([("a", 1)], {"k": str, "n": int})


def nothing(_self: Any, *_: Any) -> None:
    """Any method."""


async def async_nothing(_self: Any) -> None:
    """Any async method."""


def yielding(_self: Any) -> Any:
    yield 1


def object_with(base: dict[str, Any] | None = None, **methods: Any) -> Any:
    return type("Mine", (), {"__call__": lambda _self, t: t.n, **(base or {}), **methods})()


def declared(own: Any, where: str) -> None:
    topology = Topology("t", compiler=FakeCompiler())
    stream = topology.source(ROWS, name="s")
    cases: dict[str, Callable[[], Any]] = {
        "map": lambda: stream.map(own, name="o", schema={"n": int}),
        "filter": lambda: stream.filter(own, name="o"),
        "flat_map": lambda: stream.flat_map(own, name="o", schema={"n": int}),
        "call": lambda: stream.sink(connectors.call(own), name="o"),
        "generate": lambda: topology.source(connectors.generate(own, 1, {"n": int}), name="o"),
        "callable": lambda: topology.source(connectors.callable(own, {"n": int}), name="o"),
        "polled": lambda: topology.source(polled(own, {"n": int}), name="o"),
        "split": lambda: stream.split(2, name="o", by=own),
    }
    cases[where]()


CALLING = ("map", "filter", "flat_map", "call", "generate", "callable")


@pytest.mark.parametrize("where", CALLING)
@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("open", "initialize"),
        ("setup", "initialize"),
        ("__enter__", "initialize"),
        ("close", "shutdown"),
        ("teardown", "shutdown"),
        ("__exit__", "shutdown"),
    ],
)
def test_a6_names_of_other_systems_are_rejected_with_ours(where: str, name: str, instead: str) -> None:
    own = object_with({name: nothing})
    with raises(DeclarationError, "unknown-method", "Mine", f"{name}()", f"{instead}()"):
        declared(own, where)
    declared(object_with({name: nothing}, **{instead: lambda _self: None}), where)


def test_a6_a_polled_source_opens_its_partitions_and_its_other_names_are_rejected() -> None:
    polls: dict[str, Any] = {"partitions": nothing, "open": nothing}
    declared(object_with(polls), "polled")
    with raises(SourceError, "unknown-method", "shutdown()", operator="o"):
        declared(object_with(polls, close=nothing), "polled")


@pytest.mark.parametrize("where", ["map", "filter", "flat_map", "generate"])
def test_a6_flush_is_for_sinks(where: str) -> None:
    with raises(DeclarationError, "unknown-method", "flush()", "rel.call"):
        declared(object_with(flush=lambda _self: None), where)
    declared(object_with(flush=lambda _self: None), "call")


def test_a6_where_nothing_is_called_a_life_is_rejected() -> None:
    with raises(GraphError, "unknown-method", "initialize()", operator="o"):
        declared(object_with(initialize=lambda _self: None), "split")


@pytest.mark.parametrize("there", [("prepare",), ("commit",), ("prepare", "commit"), ("commit", "abort")])
def test_a_part_of_the_protocol_is_rejected(there: tuple[str, ...]) -> None:
    with raises(SinkError, "missing-method", str(there[0]), operator="o"):
        declared(object_with(dict.fromkeys(there, nothing)), "call")


@pytest.mark.parametrize("function", [async_nothing, yielding, object_with({"__call__": async_nothing})])
def test_a_sink_that_nothing_would_run_is_rejected(function: Any) -> None:
    with raises(SinkError, "async-function", operator="o"):
        declared(function, "call")


def test_b7_async_methods_are_for_objects_that_are_async() -> None:
    with raises(GraphError, "async-function", "Mine", operator="o"):
        declared(object_with(initialize=async_nothing), "map")
    with raises(SinkError, "async-function", "Mine", operator="o"):
        declared(object_with(flush=async_nothing), "call")
    with raises(GraphError, "async-function", "Mine", operator="o"):
        declared(object_with(shutdown=yielding), "map")

    async def waits(_self: Any, t: Any) -> int:
        return int(t.n)

    declared(object_with({"__call__": waits}, initialize=async_nothing, shutdown=async_nothing), "map")


def test_arguments_that_nobody_gives_are_rejected() -> None:
    with raises(GraphError, "wrong-parameters", "Mine", operator="o"):
        declared(object_with(initialize=lambda _self, path: None), "map")


def test_a_class_of_rel_operator_has_the_same_names() -> None:
    with raises(GraphError, "unknown-method", "close()", operator="Closes"):
        operator(inputs={"n": int}, outputs={})(type("Closes", (), {"invoke": lambda _self, t: None, "close": nothing}))
    with raises(GraphError, "unknown-method", "flush()", operator="Keeps"):
        operator(inputs={"n": int}, outputs={})(type("Keeps", (), {"invoke": lambda _self, t: None, "flush": nothing}))


def test_what_makes_up_its_attributes_defines_no_method() -> None:
    assert not has_method(mock.MagicMock(), "close")
    assert not has_method(mock.MagicMock(), "__enter__")
    declared(mock.Mock(), "call")
    declared([].append, "call")
    declared(print, "call")
