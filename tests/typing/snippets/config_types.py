"""Configurations of jobs: what checkers know of settings, their objects and the values they allow."""

from __future__ import annotations

from typing import assert_type

import rayelastic as rel


def settings_and_their_objects() -> None:
    config = rel.JobConfig(
        pes={"counts": 1},
        threads=rel.Threads(max=4, model={"counts": "dynamic"}),
        regions="elastic",
        replicas={"counts": (1, 8), "ask": 2},
        elasticity=rel.Elasticity(max_processes=8, thread_period=0.5),
        checkpoint=rel.Checkpoint("saved", every=5.0),
        network=rel.Network(secure=True),
    )
    assert_type(config.threads, rel.Threads)
    assert_type(config.elasticity.max_processes, int | None)
    assert_type(config.network.patience, float)


def short_forms_are_objects_afterwards() -> None:
    config = rel.JobConfig(threads=4, elasticity="off")
    assert_type(config.threads.count, int | None)
    assert_type(config.elasticity, rel.Elasticity)


def misspelt_threading_model() -> None:
    rel.Threads(model="dynamicc")  # mypy: arg-type; pyright: reportArgumentType


def misspelt_algorithm() -> None:
    rel.JobConfig(elasticity="paperr")  # mypy: arg-type; pyright: reportArgumentType


def misspelt_regions() -> None:
    rel.JobConfig(regions="elastically")  # mypy: arg-type; pyright: reportArgumentType


def wrong_log_level() -> None:
    rel.JobConfig(log_level="loud")  # mypy: arg-type; pyright: reportArgumentType


def setting_in_the_wrong_place() -> None:
    rel.JobConfig(region_period=2.0)  # mypy: call-arg; pyright: reportCallIssue


def misspelt_setting_of_an_object() -> None:
    rel.Elasticity(max_process=8)  # mypy: call-arg; pyright: reportCallIssue


def threads_by_position() -> None:
    rel.JobConfig(4)  # mypy: call-arg; pyright: reportCallIssue
