"""The constants of the policies: those that the papers print, and those that the decision's page says are in force."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from bench.plant.sensitivity import constants, meanings
from rayelastic.papers.multi_level import PaperMultiLevelThresholds, Satisfaction
from rayelastic.papers.thread_count import ThreadCountThresholds
from rayelastic.papers.threading_model import ThreadingModelThresholds
from rayelastic.policy.element.guided.controller import GuidedThresholds
from rayelastic.policy.regions.goal.latency import AimThresholds
from rayelastic.policy.regions.thresholds import OrganicThresholds
from rayelastic.policy.stage.channel_width import ChannelWidthThresholds
from rayelastic.policy.stage.peak_rate import PeakRateThresholds

DECISIONS = Path(__file__).resolve().parents[3] / "docs" / "decisions"


@pytest.mark.parametrize(
    "thresholds",
    [
        PaperMultiLevelThresholds(
            satisfaction_factor=0.6,  # Middleware'19 Fig. 6(c)
            satisfaction=Satisfaction.FORMULA,
            history=True,  # Fig. 6(b)
            validate_at_maximum=False,
            threads=ThreadCountThresholds(
                sensitivity=0.05,  # PLDI'17 4.2.2
                load_change=0.2,  # the released code, as strikes and ignored (E3)
                strikes=5,
                ignored=2,
                host_cpu=0.8,  # P32
            ),
            models=ThreadingModelThresholds(sensitivity=0.05, smallest_step=2, smallest_share=0.1),  # M08, M09
        ),
        ChannelWidthThresholds(  # L04, L06
            congestion_tolerance=0.5, throughput_tolerance=0.05, noise_periods=1, rapid_scaling=False
        ),
        PeakRateThresholds(tolerance=0.05, decay=0.01),  # ours: IPDPS'09 gives none (S06, S07)
        AimThresholds(
            quantile=0.99,
            periods=5,
            fewest=20,
            longest_look=60,
            lower=0.75,
            least=0.1,
            well=0.5,
            patience=30,
            longest=5,
        ),
    ],
    ids=lambda thresholds: type(thresholds).__name__,
)
def test_the_usual_values_are_these(thresholds: Any) -> None:
    assert type(thresholds)() == thresholds


def test_the_paper_prints_one_sensitivity_and_no_patience() -> None:
    assert ThreadCountThresholds.paper() == ThreadCountThresholds(0.05, 0.05, 0, 0, 0.8)


@pytest.mark.parametrize(("table", "thresholds"), [("regions", OrganicThresholds()), ("element", GuidedThresholds())])
def test_the_page_has_each_constant_with_its_value_and_meaning(table: str, thresholds: Any) -> None:
    with (DECISIONS / f"policy_constants_{table}.csv").open() as file:
        told = [(row[0].strip("`"), row[1], row[4]) for row in csv.reader(file)][1:]
    said = meanings(thresholds)
    assert told == [(name, f"{value:g}", said[name]) for name, value in constants(thresholds)]
