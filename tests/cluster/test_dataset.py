"""A Ray Dataset as a source of a job: its blocks are pushed by tasks where they lie."""

from __future__ import annotations

from collections import Counter

import pytest

import rayelastic as rel
from rayelastic.errors import JobFailedError, SchemaError
from rayelastic.on_ray.dataset import dataset
from tests.raising import raises

pytestmark = pytest.mark.cluster
TIMEOUT = 120.0


def test_blocks_reach_processing_elements_in_actors(ray_cluster: str) -> None:
    import ray

    rows = ray.data.range(20_000, override_num_blocks=8).map_batches(lambda b: {"id": b["id"], "rest": b["id"] % 7})
    topology = rel.Topology("dataset")
    source = topology.source(dataset(rows, {"rest": int}), name="rows")
    source.key_by("rest").aggregate(name="counts", n=rel.count()).sink(rel.list(), name="out")
    counted = rel.submit(topology).wait(timeout=TIMEOUT)["out"]
    assert {t.rest: t.n for t in counted} == Counter(n % 7 for n in range(20_000))


def test_failing_dataset_fails_the_job(ray_cluster: str) -> None:
    import ray

    def raising(batch: dict[str, object]) -> dict[str, object]:
        raise ValueError("no such batch")

    topology = rel.Topology("raising")
    topology.source(dataset(ray.data.range(10).map_batches(raising), {"id": int}), name="rows").sink(
        rel.count(), name="out"
    )
    with raises(JobFailedError, "feed-failed") as caught:
        rel.run(topology)
    assert "no such batch" in str(caught.value)
    assert str(caught.value).count("operator 'rows'") == 1


def test_missing_column(ray_cluster: str) -> None:
    import ray

    with raises(SchemaError, "unknown-column", "name"):
        dataset(ray.data.range(10), {"name": str})
