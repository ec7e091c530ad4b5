"""What the loop of an element is given: threads that it may use, and who runs an operator whose queue is full."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

import rayelastic as rel
from rayelastic.plan.routing import Edge
from rayelastic.runtime.element.wiring import shared_operators
from rayelastic.runtime.loops.elasticity import adaptation_loop
from rayelastic.runtime.values.specs import PESpec


def topology() -> rel.Topology:
    made = rel.Topology("started")
    made.source("numbers", rel.sequence(10)).map("one", lambda t: t.value, schema={"n": int}).sink("out", rel.count())
    return made


@pytest.mark.parametrize(
    ("given", "bounds"), [({"threads": 3}, (3, 3)), ({"max_threads": 5}, (1, 5)), ({}, (1, 7))], ids=str
)
def test_threads_are_those_asked_for_else_up_to_the_cpus(
    given: dict[str, int], bounds: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rayelastic.runtime.loops.elasticity.available_cpus", lambda: 7)
    operators = tuple(topology().operators.values())
    config = rel.JobConfig(remember=False, **cast("Any", given))
    spec = PESpec("pe0", "started", "id", b"", operators, (), (), config)
    order = {operator.name: number for number, operator in enumerate(operators)}
    loop = adaptation_loop(spec, cast("Any", None), order, frozenset())
    assert loop is not None
    assert (loop._settings.minimum_threads, loop._settings.maximum_threads) == bounds


def test_who_gives_to_an_operator_elsewhere_runs_no_operator_here() -> None:
    operators = list(topology().operators.values())
    natives = {one.name: SimpleNamespace(has_part=one.name == "out", reentrant=True) for one in operators}
    last = next(Edge(stream, end) for stream, end in operators[-1].edges)
    assert shared_operators(operators, cast("Any", natives)) == {"numbers", "one", "out"}
    assert shared_operators(operators, cast("Any", natives), {last}) == {"out"}
