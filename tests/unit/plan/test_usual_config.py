"""What holds of a job of which nothing is said, and the values at which settings begin and end to be allowed."""

from __future__ import annotations

from typing import Any

import pytest

from rayelastic.errors import ConfigError
from rayelastic.plan.config import JobConfig, RegionsName
from rayelastic.plan.node_placement import Demand
from rayelastic.plan.settings.checkpoint import Checkpoint
from rayelastic.plan.settings.elasticity import Algorithm, Elasticity
from rayelastic.plan.settings.latency import Latency
from rayelastic.plan.settings.network import Network
from rayelastic.plan.settings.paper import PaperElasticity
from rayelastic.plan.settings.threads import Threads
from rayelastic.plan.settings.tls import TLS
from tests.raising import raises

SECONDS, BYTES = 1.0, 1


@pytest.mark.parametrize(
    ("made", "usual"),
    [
        (
            JobConfig(),
            {
                "pes": 1,
                "threads": Threads(),
                "regions": None,
                "replicas": {},
                "goal": None,
                "elasticity": Elasticity(),
                "checkpoint": None,
                "network": Network(),
                "web_port": None,
                "log_level": "info",
            },
        ),
        (
            Threads(),
            {
                "count": None,
                "max": None,
                "model": None,
                "pin": False,
                "ray_cpus": 0.25,
                "queue_records": 1024,  # PLDI'17 section 4
                "queue_bytes": 16 * 1024 * 1024 * BYTES,
                "run_records": 256,
                "run_bytes": 16 * 1024 * BYTES,
            },
        ),
        (
            Elasticity(),
            {
                "algorithm": Algorithm.MULTI_LEVEL,
                "paper": None,
                "thread_period": 1.0 * SECONDS,
                "region_period": 2.0 * SECONDS,
                "region_target": 0.8,  # Joker section 5.1
                "cool_down": None,
                "max_processes": None,
                "max_replicas": None,
                "remember": True,
                "journal": None,
            },
        ),
        (Network(), {"secure": False, "tls": None, "patience": 30.0 * SECONDS}),
        (Checkpoint(), {"location": None, "every": 10.0 * SECONDS, "keep": 2, "restarts": 10, "key": None}),
        (
            PaperElasticity(),
            {"satisfaction_factor": 0.6, "history": True, "sensitivity": 0.05, "host_cpu": 0.8},
        ),
        (Demand(), {"cpus": 1.0, "memory": 0.0}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_nothing_said_is_this(made: Any, usual: dict[str, Any]) -> None:
    assert {name: getattr(made, name) for name in usual} == usual


@pytest.mark.parametrize(
    ("cls", "name", "fits", "beyond"),
    [
        (JobConfig, "pes", 1, 0),
        (Threads, "ray_cpus", 0, -0.01),
        (Elasticity, "thread_period", 0.1, 0.09),
        (Elasticity, "region_period", 0.1, float("inf")),
        (Elasticity, "region_target", 0.001, 0),
        (Elasticity, "region_target", 0.999, 1),
        (Elasticity, "region_target", 0.5, True),
        (Network, "patience", 2.0, 1.99),
        (JobConfig, "web_port", 0, -1),
        (JobConfig, "web_port", 65_535, 65_536),
        (Elasticity, "max_replicas", 4096, 4097),
        (JobConfig, "goal", Latency(p99=0.2), 0.2),
        (Elasticity, "cool_down", 0.1, 0.09),
        (Elasticity, "remember", False, 0),
        (Checkpoint, "every", 0.2, 0.19),
        (Checkpoint, "every", 5, "5"),
        (Checkpoint, "keep", 1, 0),
        (Checkpoint, "restarts", 0, -1),
        (Checkpoint, "key", b"k" * 16, b"k" * 15),
        (PaperElasticity, "satisfaction_factor", 0, -0.01),
        (PaperElasticity, "satisfaction_factor", 1, 1.01),
        (PaperElasticity, "satisfaction_factor", 0.5, True),
        (PaperElasticity, "sensitivity", 0.001, 0),
        (PaperElasticity, "sensitivity", 0.999, 1),
        (PaperElasticity, "host_cpu", 0.001, 0),
        (PaperElasticity, "host_cpu", 1, 1.01),
    ],
)
def test_where_a_value_is_too_much(cls: Any, name: str, fits: object, beyond: object) -> None:
    assert getattr(cls(**{name: fits}), name) == fits
    with raises(ConfigError, "invalid-setting", cls.__name__, f"{name}="):
        cls(**{name: beyond})


def test_bounds_of_replicas_may_reach_the_most_replicas() -> None:
    assert JobConfig(elasticity=Elasticity(max_replicas=4), replicas={"a": (2, 4)}).replicas == {"a": (2, 4)}
    with raises(ConfigError, "invalid-setting", "max_replicas=3", "Elasticity"):
        JobConfig(elasticity=Elasticity(max_replicas=3), replicas={"a": (2, 4)})


@pytest.mark.parametrize("regions", [None, "elastic", "advise"])
def test_a_goal_is_for_whoever_decides(regions: RegionsName | None) -> None:
    assert JobConfig(goal=Latency(p99=0.2), regions=regions).goal == Latency(p99=0.2)


@pytest.mark.parametrize("regions", ["fixed", "manual", "paper"])
def test_a_goal_that_nobody_follows_is_refused(regions: RegionsName) -> None:
    with raises(ConfigError, "invalid-setting", str(regions)):
        JobConfig(goal=Latency(p99=0.2), regions=regions)


def test_certificates_of_links_without_links_that_are_encrypted_are_refused() -> None:
    tls = TLS("cert.pem", "key.pem", "ca.pem", links=True)
    assert JobConfig(network=Network(tls=tls, secure=True)).network.tls == tls
    with raises(ConfigError, "invalid-setting", "True"):
        JobConfig(network=Network(tls=tls))
