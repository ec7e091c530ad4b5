"""The baselines: the same configuration in every period, whatever is seen."""

from typing import Any

import pytest

from bench.plant.fixed_configuration import FixedConfiguration
from rayelastic.plan.settings.threads import ThreadingModel
from tests.unit.policy.plants import GraphPlant, chain, play


@pytest.mark.parametrize(
    ("fixed", "threads", "queues"),
    [
        (FixedConfiguration.manual(), 2, 0),
        (FixedConfiguration.dynamic(4), 4, 10),
        (FixedConfiguration.queued(3, 5), 3, 5),
        (FixedConfiguration.queued(99, 99), 8, 10),
    ],
)
def test_what_is_pinned_is_in_force_after_one_period(fixed: Any, threads: int, queues: Any) -> None:
    plant = GraphPlant(*chain([1e-6] * 10), cpus=8)
    decisions = play(plant, fixed, 3)
    assert (plant.threads, len(plant.queued)) == (threads, queues)
    assert not decisions[1].models


def test_dedicated_asks_for_a_thread_of_each_port() -> None:
    plant = GraphPlant(*chain([1e-6] * 3), cpus=8)
    decision = FixedConfiguration.dedicated().step(plant.observe())
    assert dict(decision.models) == dict.fromkeys(["op0", "op1", "op2"], ThreadingModel.DEDICATED)
