"""The elastic operator of IPDPS'09 on a plant: workers that share one queue, throttled by peak rates each second."""

from __future__ import annotations

from bench.plant.constants import SPADE_ENGINE, Machine
from bench.plant.graph import PlantGraph, data_parallel
from bench.plant.load_script import STEADY, LoadScript
from bench.plant.plant import Plant, PlantSettings
from bench.plant.play import Journal, play
from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.policy.element.decision import Controller, Decision
from rayelastic.policy.stage.peak_rate import PeakRateElasticity

PERIOD = 1.0  # s; S02
NOISE = 0.01
WORKLOADS = {"light": 1, "medium": 1000, "heavy": 10_000, "extra heavy": 1_000_000}  # FLOPs per tuple


def operator(machine: Machine, flops: int) -> PlantGraph:
    """As many workers as twice the logical processors."""
    return data_parallel([flops * machine.flop] * 2 * machine.cpus, payload=64)


def plant(machine: Machine, flops: int, seed: int = 0, script: LoadScript = STEADY, noise: float = NOISE) -> Plant:
    """All workers have the queue from the start; threads from one to twice the logical processors."""
    graph = operator(machine, flops)
    settings = PlantSettings(PERIOD, noise, seed, minimum_threads=1, maximum_threads=2 * machine.cpus)
    found = Plant(graph, machine, SPADE_ENGINE, script, settings)
    found.apply(Decision(1, {o.name: ThreadingModel.DYNAMIC for o in graph.operators[1:-1]}))
    return found


def static_curve(machine: Machine, flops: int) -> dict[int, float]:
    """Tuples/s by thread count."""
    on = plant(machine, flops, noise=0.0)
    return {threads: on.steady_rate(threads, on.models) for threads in range(1, on.maximum_threads + 1)}


def elastic(
    machine: Machine, flops: int, periods: int = 120, script: LoadScript = STEADY, controller: Controller | None = None
) -> Journal:
    """Return a run of the paper's algorithm, or of another."""
    return play(controller or PeakRateElasticity(), plant(machine, flops, script=script), periods)
