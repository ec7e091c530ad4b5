"""What how-to pages show of Ray, where their examples aren't executed as they stand."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

import rayelastic as rel

pytestmark = [pytest.mark.cluster, pytest.mark.nightly]
TIMEOUT = 120.0


class Row(NamedTuple):
    n: int


class Predict:
    """As on the page "Run a model": a model in an actor of its own answers batches."""

    def initialize(self) -> None:
        import ray

        self.model = ray.get_actor("model", namespace="models")

    async def __call__(self, rows: list[Row]) -> list[tuple[int, float]]:
        numbers = [t.n for t in rows]
        return list(zip(numbers, await self.model.predict.remote(numbers), strict=True))


class Model:
    def predict(self, numbers: list[int]) -> list[float]:
        return [2.0 * n for n in numbers]


def test_a_model_in_an_actor_answers_batches(ray_cluster: str) -> None:
    import ray

    actor: Any = ray.remote(Model)
    model = actor.options(name="model", namespace="models").remote()
    topology = rel.Topology("predicted")
    rows = topology.source(rel.rows([Row(n) for n in range(200)]), name="rows")
    how = rel.concurrent(capacity=4, max_batch=32)
    predicted = rows.map(Predict(), name="predict", schema={"n": int, "value": float}, concurrent=how)
    predicted.sink(rel.list(), name="out")
    assert [tuple(t) for t in rel.submit(topology).wait(TIMEOUT)["out"]] == [(n, 2.0 * n) for n in range(200)]
    del model


def test_a_dataset_becomes_a_table_and_a_dataset_again(ray_cluster: str) -> None:
    """As on the page "Ray Data"."""
    import ray

    topology = rel.Topology("sums")
    rows = topology.source(rel.dataset(ray.data.range(1000)), name="rows")
    rows.map(lambda t: (t.id % 10, t.id), name="digit", schema={"digit": int, "id": int}).key_by("digit").aggregate(
        name="total", total=rel.sum("id")
    ).sink(rel.arrow(), name="out")
    table = rel.submit(topology).wait(TIMEOUT)["out"]
    assert ray.data.from_arrow(table).sum("total") == sum(range(1000))
