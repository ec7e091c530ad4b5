"""A constant that is used is felt, one that isn't is not; every constant of the policies has a meaning in words."""

from __future__ import annotations

import csv

from bench.plant.sensitivity import Played, changed, constants, felt, loads, meanings, regions, table
from rayelastic.policy.element.guided.controller import GuidedThresholds
from rayelastic.policy.regions.thresholds import OrganicThresholds


def test_every_constant_is_told_in_words() -> None:
    for thresholds in (GuidedThresholds(), OrganicThresholds()):
        said = meanings(thresholds)
        assert said.keys() == dict(constants(thresholds)).keys()
        assert [name for name, text in said.items() if len(text) < 10] == []


def test_one_constant_is_changed_and_no_other() -> None:
    usual = GuidedThresholds()
    other = changed(usual, "search.growth.worse", 0.5)
    assert dict(constants(other)).items() - dict(constants(usual)).items() == {("search.growth.worse", 0.5)}


def test_what_changes_decisions_is_felt_and_what_belongs_to_the_other_variant_is_not() -> None:
    play, usual = regions(2, 1), OrganicThresholds()
    before = play(usual)
    assert play(usual) == before
    late = felt("grow_periods", 2, 40, before, play(changed(usual, "grow_periods", 40)))
    assert (late.differ, late.verdict) == (2, "matters")
    assert late.mean < 0
    unused = felt("cpu_bottleneck", 0.8, 0.4, before, play(changed(usual, "cpu_bottleneck", 0.4)))
    assert (unused.differ, unused.verdict, unused.mean) == (0, "not felt", 0.0)
    told = table("regions", {"regions grow_periods": [unused, late]}, usual)
    assert '\n`grow_periods`,2,matters,"0.4: 0 of 2, +0.0%, +0.0%; 40: 2 of 2, -' in told


def test_the_verdict_is_by_the_mean_or_by_the_worst() -> None:
    def verdict(*values: float) -> str:
        before = [Played(1.0, 0.0, "") for _ in values]
        return felt("x", 1.0, 2.0, before, [Played(value, 0.0, "other") for value in values]).verdict

    assert verdict(1.0, 1.0) == "little"
    assert verdict(1.0, 0.95, 1.0, 1.0, 1.0, 1.04) == "matters"
    assert verdict(1.02, 1.01) == "matters"
    assert verdict(1.005, 1.01) == "little"


def test_what_is_only_asked_under_a_demand_is_felt_while_loads_change() -> None:
    play, usual = loads(2, [4], 1), GuidedThresholds()
    before = play(usual)
    less = felt("load.headroom", 0.75, 0.375, before, play(changed(usual, "load.headroom", 0.375)))
    assert less.differ > 0
    assert less.effort > 0  # the demand is followed with twice the threads
    told = list(csv.reader(table("loads", {"loads load.headroom": [less]}, usual).splitlines()))
    assert told[0] == ["constant", "value", "verdict", "other values: felt in, mean, worst"]
    assert told[1][:3] == ["`load.headroom`", "0.75", less.verdict]
    assert told[1][3].startswith(f"0.375: {less.differ} of 2, ")
