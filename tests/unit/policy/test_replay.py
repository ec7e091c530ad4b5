"""A recorded journal gives the same decisions byte for byte: controllers are pure, and what flows survives JSON."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayelastic.papers.multi_level import PaperMultiLevelElasticity
from rayelastic.papers.thread_count import ThreadCountElasticity
from rayelastic.papers.threading_model import ThreadingModelElasticity
from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.policy.element.decision import Decision
from rayelastic.policy.element.guided.controller import GuidedMultiLevelElasticity
from rayelastic.policy.element.observation import Observation, OperatorObservation
from rayelastic.policy.stage.channel_width import ChannelWidthElasticity
from rayelastic.policy.stage.peak_rate import PeakRateElasticity
from rayelastic.reasons import Code, Reason
from tests.unit.policy.plants import GraphPlant, chain, fan, skewed, with_costs

COSTS = skewed(60, seed=4)
UPSTREAM = chain(COSTS)[1]
CONTROLLERS = {
    "guided": lambda: GuidedMultiLevelElasticity(UPSTREAM),
    "paper": PaperMultiLevelElasticity,
    "threads": ThreadCountElasticity,
    "models": ThreadingModelElasticity,
    "peaks": PeakRateElasticity,
    "channels": ChannelWidthElasticity,
}


def line(value: Any) -> Any:
    return json.dumps(value.as_dict())


def recorded(controller: Any) -> Any:
    """Lines of observations and of decisions, through a change of cost, of other load and of demand."""
    plant = GraphPlant(*chain(COSTS), cpus=16, hop=3e-7, noise=0.05, seed=9)
    seen, decided = [], []
    for period in range(120):
        if period == 40:
            with_costs(plant, COSTS[::-1])
        plant.other_load = 6.0 if 60 <= period < 75 else 0.0
        plant.demand = 3e3 if 90 <= period < 105 else float("inf")
        observation = plant.observe()
        decision = controller.step(observation)
        plant.apply(decision)
        seen.append(line(observation))
        decided.append(line(decision))
    return seen, decided


@pytest.mark.parametrize("name", CONTROLLERS)
def test_a_journal_replayed_gives_the_same_bytes(name: str) -> None:
    seen, decided = recorded(CONTROLLERS[name]())  # type: ignore[operator]
    again = CONTROLLERS[name]()  # type: ignore[operator]
    assert [line(again.step(Observation.from_dict(json.loads(one)))) for one in seen] == decided


def test_decisions_do_not_depend_on_the_order_of_sets() -> None:
    """Names of operators hash differently in each process; a dozen renamed graphs decide alike."""
    costs, upstream = fan(30, 1e-5, 1e-7)
    shapes = set()
    for number in range(12):
        names = {name: f"{name}_{number}" if name != "source" else name for name in costs}
        plant = GraphPlant(
            {names[name]: cost for name, cost in costs.items()},
            {names[name]: tuple(names[up] for up in ups) for name, ups in upstream.items()},
            cpus=8,
            noise=0.05,
            seed=2,
        )
        controller, shape = GuidedMultiLevelElasticity(plant.upstream), []
        for _ in range(25):
            decision = controller.step(plant.observe())
            plant.apply(decision)
            shape.append((decision.thread_count, tuple(name.rpartition("_")[0] for name in decision.models)))
        shapes.add(tuple(shape))
    assert len(shapes) == 1


shares = st.floats(0, 1)
amounts = st.floats(0, 1e12)
counts = st.integers(0, 10_000)
values = st.dictionaries(st.text().filter(lambda name: name != "code"), st.text() | st.integers(), max_size=3)
reasons = st.lists(st.builds(Reason, st.sampled_from(Code), values), max_size=3).map(tuple)
operators = st.builds(
    OperatorObservation,
    name=st.text(min_size=1),
    model=st.sampled_from(ThreadingModel),
    switchable=st.booleans(),
    rate=amounts,
    samples=counts,
    queue_fill=shares,
)
observations = st.builds(
    Observation,
    time=amounts,
    period=amounts,
    throughput=amounts,
    thread_count=counts,
    minimum_threads=counts,
    maximum_threads=counts,
    operators=st.lists(operators, max_size=4).map(tuple),
    system_samples=counts,
    idle=shares,
    blocked=shares,
    token_wait=shares,
    cpu_count=counts,
    own_cpu=amounts,
    host_cpu=shares,
    thread_stuck=counts,
    adapted=st.booleans(),
)


@given(observations)
def test_observations_survive_json(observation: Any) -> None:
    assert Observation.from_dict(json.loads(line(observation))) == observation


@given(counts, st.dictionaries(st.text(), st.sampled_from(ThreadingModel), max_size=4), reasons, st.text())
def test_decisions_survive_json(threads: int, models: Any, why: Any, rule: Any) -> None:
    decision = Decision(threads, models, why, rule)
    again = Decision.from_dict(json.loads(line(decision)))
    assert again == decision
    assert list(again.models) == list(models)


@settings(max_examples=25)
@given(st.lists(observations, min_size=1, max_size=8))
def test_whatever_is_seen_threads_stay_within_their_bounds(journal: Any) -> None:
    """Broken telemetry breaks no controller: at most the maximum, and models of known switchable operators alone."""
    controller = GuidedMultiLevelElasticity()
    for observation in journal:
        seen = Observation.from_dict(
            observation.as_dict()
            | {
                "operators": [o.as_dict() | {"name": f"op{i}"} for i, o in enumerate(observation.operators)],
                "maximum_threads": max(1, observation.maximum_threads),
                "minimum_threads": max(1, min(observation.minimum_threads, observation.maximum_threads)),
                "thread_count": max(1, min(observation.thread_count, observation.maximum_threads)),
                "cpu_count": max(1, observation.cpu_count),
            }
        )
        decision = controller.step(seen)
        assert 1 <= decision.thread_count <= max(seen.maximum_threads, seen.thread_count)
        switchable = {o.name for o in seen.operators if o.switchable}
        assert set(decision.models) <= switchable
