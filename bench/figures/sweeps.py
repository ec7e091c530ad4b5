"""Sweeps over thread counts with all operators dynamic, beside manual, dedicated and elastic: PLDI'17 Figs 9, 10."""

from __future__ import annotations

from dataclasses import dataclass

from bench.figures.figure import Row
from bench.figures.plants import plant, settled, thread_count
from bench.plant.constants import Machine
from bench.plant.fixed_configuration import FixedConfiguration
from bench.plant.graph import PlantGraph
from bench.plant.play import play

LEVELS = (2, 4, 8, 10, 12, 16, 20, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 184)
ELASTIC_PERIODS = 60


@dataclass(frozen=True, slots=True)
class Sweep:
    """Tuples/s at the sink of one graph and cost."""

    title: str
    manual: float
    dedicated: float
    dynamic: dict[int, float]
    elastic: float
    elastic_threads: int

    @property
    def best(self) -> float:
        return max(self.dynamic.values())

    @property
    def best_threads(self) -> int:
        return max(self.dynamic, key=self.dynamic.__getitem__)

    def rows(self) -> list[Row]:
        fixed = {"manual": self.manual, "dedicated": self.dedicated, "elastic": self.elastic}
        rows: list[Row] = [{"case": self.title, "model": model, "threads": 0, "rate": r} for model, r in fixed.items()]
        rows[-1] = {**rows[-1], "threads": self.elastic_threads}
        rows += [{"case": self.title, "model": "dynamic", "threads": n, "rate": r} for n, r in self.dynamic.items()]
        return rows


def sweep(title: str, graph: PlantGraph, machine: Machine) -> Sweep:
    """Run one panel of a figure."""

    def fixed(controller: FixedConfiguration) -> float:
        return play(controller, plant(graph, machine, noise=0.0), 2).last.true_rate

    rate, journal = settled(thread_count(), plant(graph, machine), ELASTIC_PERIODS)
    levels = [level for level in LEVELS if level <= machine.cpus]
    return Sweep(
        title,
        fixed(FixedConfiguration.manual()),
        fixed(FixedConfiguration.dedicated()),
        {level: fixed(FixedConfiguration.dynamic(level)) for level in levels},
        rate,
        journal.last.threads,
    )
