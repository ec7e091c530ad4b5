"""Elastic stages of one process share its CPUs fairly (S10): equal ones equally, needy ones get what others leave."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from rayelastic.policy.element.decision import Controller
from rayelastic.policy.element.observation import Observation
from rayelastic.policy.stage.channel_width import ChannelWidthElasticity
from rayelastic.policy.stage.peak_rate import PeakRateElasticity
from rayelastic.policy.stage.shared_cpus import SharedCpus
from rayelastic.reasons import Code

MOST = 8
LAST = 40  # periods over which a rate is taken


@dataclass
class Stage:
    """A stage whose channels compute all the time, up to a load."""

    load: float = float("inf")  # CPUs
    controller: Controller = field(default_factory=PeakRateElasticity)
    channels: int = 1
    rates: list[float] = field(default_factory=list)


def played(stages: list[Stage], cores: int, periods: int = 120, seed: int = 1) -> list[Stage]:
    """Let the kernel share the cores fairly among the channels, and the stages adapt."""
    dice, shared = random.Random(seed), SharedCpus()
    for period in range(periods):
        wanted = [min(float(stage.channels), stage.load) for stage in stages]
        stretch = min(1.0, cores / sum(wanted))
        seen = {}
        for number, (stage, want) in enumerate(zip(stages, wanted, strict=True)):
            rate = 1e5 * want * stretch * dice.gauss(1.0, 0.03)
            stage.rates.append(rate)
            seen[str(number)] = Observation(
                time=float(period),
                period=1.0,
                throughput=rate,
                thread_count=stage.channels,
                maximum_threads=MOST,
                own_cpu=want * stretch,
                waiting_cpu=want * (1 - stretch),
            )
        for stage, bounded in zip(stages, shared.step(cores, seen).values(), strict=True):
            stage.channels = stage.controller.step(bounded).thread_count
    return stages


def late(stage: Stage) -> float:
    return sum(stage.rates[-LAST:]) / LAST


@pytest.mark.parametrize("cores", [2, 4, 8, 16])
@pytest.mark.parametrize("seed", range(5))
def test_equal_stages_get_equal_shares(cores: int, seed: int) -> None:
    stages = played([Stage() for _ in range(4)], cores, seed=seed)
    rates = [late(stage) for stage in stages]
    assert max(rates) <= 1.15 * min(rates)
    assert sum(rates) >= 0.9 * 1e5 * cores


def test_a_stage_that_needs_more_gets_what_others_leave() -> None:
    *content, needy = played([Stage(load=0.5), Stage(load=0.5), Stage(load=0.5), Stage()], cores=8)
    assert late(needy) >= 0.9e5 * (8 - 3 * 0.5 * 1.25 - 1)
    assert all(late(stage) == pytest.approx(0.5e5, rel=0.05) for stage in content)


def test_a_stage_that_asks_for_its_part_later_gets_it() -> None:
    first, second = stages = [Stage(), Stage(load=0.5)]
    played(stages, cores=8)
    second.load = float("inf")
    played(stages, cores=8)
    assert late(first) == pytest.approx(late(second), rel=0.15)


@pytest.mark.parametrize("controller", [PeakRateElasticity, ChannelWidthElasticity])
def test_a_stage_with_more_than_its_share_goes_down_to_it(controller: type[Controller]) -> None:
    seen = Observation(time=1, period=1, throughput=1.0, thread_count=7, maximum_threads=2, budget=2)
    decision = controller().step(seen)
    assert decision.thread_count == 2
    assert [reason.code for reason in decision.reasons] == [Code.STAGE_BUDGET]
