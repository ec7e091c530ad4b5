"""What the loop of an element is given: threads that it may use, and who runs an operator whose queue is full."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

import rayelastic as rel
from rayelastic.plan.routing import Edge
from rayelastic.policy.element.decision import Decision
from rayelastic.policy.element.observation import Observation, OperatorObservation
from rayelastic.runtime.element.wiring import shared_operators
from rayelastic.runtime.loops.adaptation_loop import AdaptationLoop
from rayelastic.runtime.loops.elasticity import adaptation_loop, pinned_models, run_work
from rayelastic.runtime.values.adaptation import Adaptation
from rayelastic.runtime.values.specs import PESpec


def topology() -> rel.Topology:
    made = rel.Topology("started")
    made.source(rel.sequence(10), name="numbers").map(lambda t: t.value, name="one", schema={"n": int}).sink(
        rel.count(), name="out"
    )
    return made


@pytest.mark.parametrize(
    ("given", "bounds"),
    [(rel.Threads(count=3), (3, 3)), (rel.Threads(max=5), (1, 5)), (rel.Threads(), (1, 7))],
    ids=str,
)
def test_threads_are_those_asked_for_else_up_to_the_cpus(
    given: rel.Threads, bounds: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rayelastic.runtime.loops.elasticity.available_cpus", lambda: 7)
    loop = loop_of(rel.JobConfig(elasticity=rel.Elasticity(remember=False), threads=given))
    assert (loop._settings.minimum_threads, loop._settings.maximum_threads) == bounds


def loop_of(config: rel.JobConfig, without: int = 0) -> AdaptationLoop:
    operators = tuple(topology().operators.values())[without:]
    order = {operator.name: number for number, operator in enumerate(operators)}
    spec = PESpec("pe0", "started", "id", b"", operators, (), (), config)
    loop = adaptation_loop(spec, cast("Any", None), order, frozenset())
    assert loop is not None
    return loop


@pytest.mark.parametrize(
    ("soon", "rate", "longest"),
    [(True, 1e6, 0.8), (True, 400.0, 1.0), (True, 10.0, 2.0), (True, 0.0, 2.0), (False, 1e6, 2.0)],
)
def test_a_step_of_a_search_is_shorter_than_a_period_if_that_shows_tuples_enough(
    soon: bool, rate: float, longest: float
) -> None:
    loop = loop_of(rel.JobConfig(elasticity=rel.Elasticity(remember=False, thread_period=2.0)))
    operators = (OperatorObservation("numbers", rate=rate), OperatorObservation("one", rate=3 * rate))
    seen = Observation(time=1, period=1, throughput=rate, thread_count=1, operators=operators)
    assert loop._longest(Adaptation("pe0", 0, seen, Decision(1, soon=soon), 1)) == longest


@pytest.mark.parametrize(
    ("given", "inside", "seconds", "little"),
    [(2, 1.0, 1.0, True), (2, 0.1, 1.0, False), (100, 1.0, 1.0, False), (2, 20.0, 20.0, False), (0, 1.0, 1.0, True)],
)
def test_a_period_goes_on_until_it_shows_some_tuples_of_those_that_take_long(
    given: int, inside: float, seconds: float, little: bool
) -> None:
    """But not where nothing is to be done, and not for ever."""

    def sample(tuples: int, inside: float, *, source: bool) -> Any:
        first = SimpleNamespace(tuples_out=tuples, inside_seconds=0.0)
        other = SimpleNamespace(tuples_in=tuples, tuples_out=0, inside_seconds=inside)
        return SimpleNamespace(operators=[first, other, other] if source else [other, other])

    for source in (True, False):  # which may be in another element
        loop = loop_of(rel.JobConfig(elasticity=rel.Elasticity(remember=False)), without=0 if source else 1)
        before, after = sample(5, 3.0, source=source), sample(5 + given, 3.0 + inside, source=source)
        assert loop._shows_too_little(before, after, seconds) == little


@pytest.mark.parametrize(
    ("given", "bounded"),
    [({}, True), ({"elasticity": "off"}, False), ({"threads": rel.Threads(count=1, model="manual")}, False)],
)
def test_runs_are_bounded_where_somebody_counts_their_tuples(given: dict[str, Any], bounded: bool) -> None:
    config, operators = rel.JobConfig(**given), tuple(topology().operators.values())
    assert (run_work(config, frozenset(pinned_models(operators, config)), operators) > 0) == bounded


def test_who_gives_to_an_operator_elsewhere_runs_no_operator_here() -> None:
    operators = list(topology().operators.values())
    natives = {one.name: SimpleNamespace(has_part=one.name == "out", reentrant=True) for one in operators}
    last = next(Edge(stream, end) for stream, end in operators[-1].edges)
    assert shared_operators(operators, cast("Any", natives)) == {"numbers", "one", "out"}
    assert shared_operators(operators, cast("Any", natives), {last}) == {"out"}
