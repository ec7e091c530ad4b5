"""Values of all types in processes of their own, objects under their seal."""

from __future__ import annotations

import decimal
from typing import Any

import pytest

import rayelastic as rel
from tests.component.values.kinds import Leg, Level, Point, Side

pytestmark = pytest.mark.timeout(300)

SCHEMA = {
    "side": Side,
    "level": Level | None,
    "price": decimal.Decimal,
    "leg": Leg | None,
    "names": list[str | None],
    "path": tuple[Point, ...],
    "scores": dict[str, float],
    "payload": rel.Json,
    "n": int,
}


def row(n: int) -> tuple[Any, ...]:
    return (
        Side.BUY if n % 2 else Side.SELL, None if n % 3 else Level.HIGH, decimal.Decimal(n) / 8,
        Leg(Side.SELL, decimal.Decimal(n), Point(n, None)) if n % 4 else None, ["a", None, "x" * (n % 40)],
        (Point(1.0, "b"),) * (n % 3), {"one": n / 2}, {"n": [n, None]}, n,
    )  # fmt: skip


def test_every_type_between_processes(ray_cluster: str) -> None:
    topology = rel.Topology("types-on-ray")
    schema = {**SCHEMA, "thing": Any}
    rows = topology.source(rel.generate(lambda n: (*row(n), {n}), 500, schema=schema), name="rows")
    rows.map(lambda t: t, name="same", schema=schema, lane="python").sink(rel.list(), name="out")
    rows.map(lambda t: t.payload["n"][0], name="read", schema=int, lane="compiled").sink(rel.list(), name="numbers")
    job = rel.submit(topology, rel.JobConfig(pes={"rows": 0, "same": 1, "read": 1}), address=ray_cluster)
    try:
        result = job.wait()
        assert [tuple(t) for t in result["out"]] == [(*row(n), {n}) for n in range(500)]
        assert [t.value for t in result["numbers"]] == list(range(500))
    finally:
        job.close()
