"""A setting that JobConfig has in one of its objects raises one error that shows the call as it has to be written."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import pytest

import rayelastic as rel
from rayelastic.errors import ConfigError
from rayelastic.plan.config import JobConfig
from rayelastic.plan.settings.elasticity import Algorithm
from rayelastic.plan.settings.places import OBJECTS, PLACES


@pytest.mark.parametrize(
    ("settings", "write"),
    [
        ({"region_period": 2}, "JobConfig(elasticity=rel.Elasticity(region_period=2))"),
        ({"adaptation_period": 0.5}, "JobConfig(elasticity=rel.Elasticity(thread_period=0.5))"),
        ({"max_threads": 4}, "JobConfig(threads=rel.Threads(max=4))"),
        ({"threads": 2, "threading": "dynamic"}, "JobConfig(threads=rel.Threads(count=2, model='dynamic'))"),
        (
            {"elasticity": "paper", "journal": "a"},
            "JobConfig(elasticity=rel.Elasticity(algorithm='paper', journal='a'))",
        ),
        ({"secure": True}, "JobConfig(network=rel.Network(secure=True))"),
        ({"every": 5.0}, "JobConfig(checkpoint=rel.Checkpoint(every=5.0))"),
        ({"pins": {"a": 1}}, "JobConfig(pes={'a': 1})"),
        (
            {"pin_threads": True, "patience": 9, "run_records": 8},
            "JobConfig(threads=rel.Threads(pin=True, run_records=8), network=rel.Network(patience=9))",
        ),
    ],
)
def test_a_misplaced_setting_names_its_place(settings: dict[str, Any], write: str) -> None:
    with pytest.raises(ConfigError) as raised:
        JobConfig(**settings)
    assert raised.value.hint == f"Write {write}"
    corrected = eval(write, {"JobConfig": JobConfig, "rel": rel})  # noqa: S307  (what the error shows is valid)
    assert isinstance(corrected, JobConfig)


@pytest.mark.parametrize(
    ("name", "problem", "hint"),
    [
        ("thread", "JobConfig has no 'thread'", "Did you mean 'threads'?"),
        ("parallelism", "JobConfig has no 'parallelism'", "Here it is nothing: a job finds threads"),
        ("deep_copy", "JobConfig has no 'deep_copy'", "It has checkpoint, elasticity, goal"),
    ],
)
def test_an_unknown_setting_names_what_there_is(name: str, problem: str, hint: str) -> None:
    settings: dict[str, Any] = {name: 1}
    with pytest.raises(ConfigError) as raised:
        JobConfig(**settings)
    assert (raised.value.problem, raised.value.hint[: len(hint)]) == (problem, hint)


def test_every_place_is_a_field_and_ten_settings_are_direct() -> None:
    names = [field.name for field in dataclasses.fields(JobConfig)]
    assert len(names) == 10
    assert all(setting in names for setting, _ in PLACES.values())
    fields = {(setting, field.name) for setting, kind in OBJECTS.items() for field in dataclasses.fields(kind)}
    assert {place for place in PLACES.values() if place[1]} == fields


def test_a_configuration_survives_pickling_and_changes() -> None:
    config = JobConfig(threads=2, elasticity="paper", checkpoint=True, replicas={"a": 2})
    assert pickle.loads(pickle.dumps(config)) == config
    changed = dataclasses.replace(config, checkpoint=False)
    assert (changed.threads, changed.elasticity.algorithm, changed.checkpoint) == (
        config.threads,
        Algorithm.PAPER,
        False,
    )
    assert JobConfig(threads=2) == JobConfig(threads=rel.Threads(count=2))
