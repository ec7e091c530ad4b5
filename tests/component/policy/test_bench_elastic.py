"""The benchmark of elasticity on the real engine holds a job, tries settings in it, and finds the better ones."""

from __future__ import annotations

import random

import rayelastic as rel
from bench.elastic.live import Live, Setting
from bench.elastic.search import best_static


def dear(t: tuple[int]) -> tuple[int]:
    value = float(t[0])
    for _ in range(1000):
        value = value * 1.0000001
    return (int(value),)


def test_settings_are_tried_in_one_job() -> None:
    topology = rel.Topology("tried")
    stream = topology.source(rel.sequence(1 << 60), name="numbers")
    for name in ("a", "b"):
        stream = stream.map(dear, name=name, schema={"value": int})
    stream.sink(rel.count(), name="out")
    with Live(topology, period=0.2) as live:
        assert live.changes(periods=2) in (0, 1, 2)
        found = live.stop_adapting()
        assert live.rate(found, seconds=0.1) > 0
        best, looked = best_static(live, found, looks=6, seconds=0.05, draw=random.Random(1))
        assert looked >= 4
        assert best.queued <= {"a", "b", "out"}
        assert live.rate(Setting(1, frozenset({"b"})), seconds=0.1) > 0
        assert live.stop_adapting() == Setting(1, frozenset({"b"}))  # is in force
