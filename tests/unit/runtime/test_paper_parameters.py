"""Parameters of the papers' elasticity reach its controller: other decisions follow from the same observations."""

import sys
from dataclasses import replace

import pytest

from rayelastic.errors import ConfigError
from rayelastic.plan.settings.elasticity import Algorithm
from rayelastic.plan.settings.paper import PaperElasticity
from rayelastic.policy.element.observation import Observation, OperatorObservation
from rayelastic.runtime.loops.elasticity import controller_for

SEEN = Observation(
    time=1.0,
    period=1.0,
    throughput=1e6,
    thread_count=2,
    minimum_threads=2,
    maximum_threads=16,
    operators=(OperatorObservation("source", switchable=False), OperatorObservation("a", samples=100)),
    cpu_count=16,
    host_cpu=0.5,
)


def threads(paper: PaperElasticity | None, throughputs: list[float]) -> list[int]:
    """Thread counts that are asked for, period by period, each in force in the next one."""
    controller = controller_for(Algorithm.PAPER, {"a": ("source",)}, paper=paper)
    assert controller is not None
    seen, asked = SEEN, []
    for throughput in throughputs:
        decision = controller.step(replace(seen, throughput=throughput))
        operators = tuple(replace(one, model=decision.models.get(one.name, one.model)) for one in seen.operators)
        seen = replace(seen, thread_count=decision.thread_count, operators=operators)
        asked.append(decision.thread_count)
    return asked


def test_without_the_papers_algorithms_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rayelastic.papers.multi_level", None)
    with pytest.raises(ConfigError, match=r"rayelastic\.papers\.multi_level") as raised:
        controller_for(Algorithm.PAPER, {})
    assert "Install" in str(raised.value.hint)


GROWING = [1e6 * 1.3**period for period in range(12)]


def test_nothing_said_is_the_papers_own() -> None:
    assert threads(None, GROWING) == threads(PaperElasticity(), GROWING)


def test_a_full_host_gets_no_more_threads() -> None:
    assert max(threads(PaperElasticity(), GROWING)) > 2
    assert max(threads(PaperElasticity(host_cpu=0.4), GROWING)) == 2


def test_what_is_no_trend_for_a_dull_one_changes_its_decisions() -> None:
    assert threads(PaperElasticity(sensitivity=0.9), GROWING) != threads(PaperElasticity(), GROWING)


def test_a_stricter_factor_searches_queues_where_a_lenient_one_is_content() -> None:
    assert threads(PaperElasticity(satisfaction_factor=1.0), GROWING) != threads(
        PaperElasticity(satisfaction_factor=0.0), GROWING
    )
