"""`@rel.operator` at design time: what a class says of itself, and each mistake as a typed error."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from rayelastic.errors import DeclarationError
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_class import at_least, definition_of, exactly, operator
from rayelastic.graph.spec.operator_spec import StateKind
from rayelastic.graph.spec.ports import Demand, DemandKind
from tests.raising import raises


class Trade(NamedTuple):
    symbol: str
    price: float


class State(NamedTuple):
    total: float = 0.0


class Plain:
    def invoke(self, t: Any) -> None: ...


class Two:
    def invoke(self, a: Any, b: Any) -> None: ...


def test_single_ports_are_as_short_as_they_can_be() -> None:
    made = definition_of(operator(inputs={"n": int, "m": np.float32}, outputs=Trade)(type("X", (Plain,), {}))())
    assert list(made.inputs) == ["in"]
    assert made.inputs["in"].schema == Schema.of({"n": int, "m": np.float32})
    assert made.outputs == {"out": Schema.of(Trade)}
    assert made.state_kind is StateKind.STATEFUL
    assert not made.is_conjunctive


def test_ports_demands_and_state() -> None:
    made = definition_of(
        operator(inputs={"a": exactly(2, Trade), "b": at_least(3)}, outputs={"x": "a", "y": Trade}, stateless=True)(
            type("X", (Two,), {})
        )()
    )
    assert [one.demand for one in made.inputs.values()] == [Demand(2), Demand(3, DemandKind.AT_LEAST)]
    assert made.inputs["b"].schema is None
    assert made.outputs == {"x": "a", "y": Schema.of(Trade)}
    assert made.is_conjunctive
    assert made.state_kind is StateKind.STATELESS

    @operator(outputs=Trade, state=State)
    class Keyed:
        @staticmethod
        def invoke(t: Any, s: Any) -> None: ...

    assert definition_of(Keyed()).state_kind is StateKind.PARTITIONED


def methods(**made: Any) -> type:
    return type("X", (), made)


ONE = {"invoke": lambda self, t: None}
PAIR = {"invoke": lambda self, a, b: None}


async def later(self: Any, t: Any) -> None: ...


MISTAKES = [
    (3, {}, "not-an-operator"),
    (methods(), {"outputs": Trade}, "missing-method"),
    (methods(**ONE), {}, "no-schema"),
    (
        methods(**ONE, output_schemas=lambda self, inputs: {}),
        {"outputs": Trade},
        "conflicting-arguments output_schemas",
    ),
    (methods(**ONE), {"outputs": "left"}, "unknown-port left"),
    (methods(**ONE), {"inputs": {}, "outputs": Trade}, "missing-argument"),
    (methods(**ONE), {"inputs": {"a b": Trade}, "outputs": Trade}, "bad-name"),
    (methods(**ONE), {"inputs": {"_a": Trade}, "outputs": Trade}, "bad-name _a"),
    (methods(**ONE), {"inputs": {"class": Trade}, "outputs": Trade}, "bad-name class"),
    (methods(**ONE), {"outputs": {3: Trade}}, "bad-name"),
    (methods(**ONE), {"inputs": {"a": Trade, "b": Trade}, "outputs": Trade}, "wrong-parameters"),
    (methods(**ONE), {"outputs": Trade, "state": State}, "wrong-parameters"),
    (methods(**ONE), {"outputs": Trade, "state": Trade}, "bad-default"),
    (methods(**ONE), {"outputs": Trade, "state": 3}, "wrong-type state=3"),
    (methods(**PAIR), {"outputs": Trade, "state": State, "stateless": True}, "conflicting-arguments"),
    (methods(**PAIR), {"inputs": {"a": exactly(1), "b": Trade}, "outputs": Trade}, "conflicting-arguments a"),
    (
        methods(**PAIR),
        {"inputs": {"a": exactly(1), "b": exactly(1)}, "outputs": Trade, "state": State},
        "conflicting-arguments",
    ),
    (
        methods(**PAIR, drain=lambda self, a: None),
        {"inputs": {"a": exactly(1), "b": exactly(1)}, "outputs": {}},
        "wrong-parameters",
    ),
    (methods(**ONE, drain=lambda self, t: None), {"outputs": {}}, "conflicting-arguments"),
    (methods(**ONE, initialize=lambda self, x: None), {"outputs": {}}, "wrong-parameters"),
    (methods(**ONE, shutdown=lambda self, x: None), {"outputs": {}}, "wrong-parameters"),
    (methods(**ONE, initialize=3), {"outputs": {}}, "not-a-function"),
    (methods(invoke=later), {"outputs": {}}, "async-function"),
    (methods(**ONE), {"outputs": {"out": {"tags": list}}}, "unsupported-type"),
    (methods(**ONE), {"outputs": Trade, "lane": "fast"}, "unknown-choice fast"),
    (methods(**ONE), {"outputs": Trade, "lane": "built-in"}, "unknown-choice"),
]


@pytest.mark.parametrize(("cls", "arguments", "says"), MISTAKES)
def test_mistakes(cls: Any, arguments: dict[str, Any], says: str) -> None:
    with raises(DeclarationError, *says.split()) as caught:
        operator(**arguments)(cls)
    assert "test_operator_class.py" in caught.value.location


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "3", None])
def test_counts(count: Any) -> None:
    for make in (exactly, at_least):
        with raises(DeclarationError, "out-of-range"):
            make(count)
