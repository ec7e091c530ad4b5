"""What the controllers decide, written down: seeded runs on simulated plants, one line for each change.

After a change of policy that is meant, `python -m tests.unit.policy.golden` writes them anew, and the difference in
golden_traces.json shows what has become different.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path

from bench.plant.cluster.job import SimulatedNode
from bench.plant.cluster.plant import ClusterPlant
from bench.plant.cluster.random_jobs import random_job
from bench.plant.cluster.run import ClusterSimulation
from rayelastic.papers.joker import PaperAdaptation
from rayelastic.papers.multi_level import PaperMultiLevelElasticity
from rayelastic.papers.thread_count import ThreadCountElasticity
from rayelastic.papers.threading_model import ThreadingModelElasticity
from rayelastic.policy.element.decision import Controller
from rayelastic.policy.element.guided.controller import GuidedMultiLevelElasticity
from rayelastic.policy.regions.organic_adaptation import OrganicAdaptation
from rayelastic.policy.regions.thresholds import OrganicThresholds
from rayelastic.policy.stage.channel_width import ChannelWidthElasticity
from rayelastic.policy.stage.peak_rate import PeakRateElasticity
from tests.unit.policy.plants import GraphPlant, chain, fan, skewed

TRACES = Path(__file__).with_name("golden_traces.json")
CONTROLLERS: dict[str, Callable[[GraphPlant], Controller]] = {
    "guided": lambda plant: GuidedMultiLevelElasticity(plant.upstream),
    "paper": lambda plant: PaperMultiLevelElasticity(),
    "threads": lambda plant: ThreadCountElasticity(),
    "models": lambda plant: ThreadingModelElasticity(),
    "peaks": lambda plant: PeakRateElasticity(),
    "channels": lambda plant: ChannelWidthElasticity(),
}
POLICIES: dict[str, Callable[[], OrganicAdaptation | PaperAdaptation]] = {
    "rates": OrganicAdaptation,
    "rates of running jobs": lambda: OrganicAdaptation(thresholds=OrganicThresholds.of_running_jobs(0.6, 12)),
    "Joker": PaperAdaptation,
}
SEEDS = {"guided": range(24)}  # of the others 6
PERIODS = 110
JOBS = range(10)
JOB_PERIODS, PERIOD = 90, 5.0  # of a job; s
LOADS = (0.3, 1.0, 0.5)  # tuples/us offered to each source, a third of the periods each
NODES = [SimulatedNode(f"n{i}", 8) for i in range(4)]


def scenarios() -> dict[str, Callable[[], Iterator[str]]]:
    """{name: what plays it and gives its lines}."""
    elements = {
        f"{name} {seed}": partial(of_element, make, seed)
        for name, make in CONTROLLERS.items()
        for seed in SEEDS.get(name, range(6))
    }
    jobs = {f"{name} {number}": partial(of_job, make, number) for name, make in POLICIES.items() for number in JOBS}
    return {**elements, **jobs}


def of_element(make: Callable[[GraphPlant], Controller], seed: int) -> Iterator[str]:
    """One element of the size and shape that the seed says, through another cost, other load, and a demand."""
    cpus = (2, 4, 8, 16, 32, 64)[seed % 6]
    costs, upstream = chain(skewed(8 + 5 * seed, seed)) if seed % 3 else fan(3 + 2 * seed, 1e-5, 1e-7)
    hop = (1e-7, 1e-6)[seed // 6 % 2]
    plant = GraphPlant(
        costs,
        upstream,
        cpus=cpus,
        hop=hop,
        contention=0.02 * (seed % 3),
        serial=0.01 * (seed % 4),
        noise=0.03,
        seed=seed,
    )
    controller = make(plant)
    for period in range(PERIODS):
        if period == 40:
            plant.costs = dict(zip(costs, list(costs.values())[::-1], strict=True))
        plant.other_load = cpus / 2 if 60 <= period < 72 else 0.0
        plant.demand = 0.3 * plant.rate(plant.threads, plant.queued)[0] if 85 <= period < 98 else float("inf")
        before = (plant.threads, plant.queued)
        decision = controller.step(plant.observe())
        plant.apply(decision)
        if (plant.threads, plant.queued) != before:
            queues = " ".join(sorted(plant.queued))
            yield f"{period}: {plant.threads} threads, {len(plant.queued)} queues, {zlib.crc32(queues.encode()):08x}"


def of_job(make: Callable[[], OrganicAdaptation | PaperAdaptation], number: int) -> Iterator[str]:
    """One random job on four nodes, under a load that grows and shrinks."""
    job = random_job(number)
    sources = [f"r{i}" for i, region in enumerate(job.regions) if not region.inputs]

    def load(time: float) -> Mapping[str, float]:
        part = min(int(time / PERIOD / JOB_PERIODS * len(LOADS)), len(LOADS) - 1)
        return dict.fromkeys(sources, LOADS[part] * 1e6)

    simulation = ClusterSimulation(
        ClusterPlant(job, NODES), make(), load, period=PERIOD, noise=0.03, seed=number, settles=1
    )
    for step, after in pairwise(simulation.run(JOB_PERIODS)):
        if step.decision.changes:
            shapes = [f"{p.region.name} {len(p.pipelines)}x{p.replicas}" for p in after.plan.regions]
            yield f"{step.time:g} s: {step.decision.verdict.value}, {', '.join(shapes)}"


def main() -> None:
    lines = {name: list(play()) for name, play in scenarios().items()}
    TRACES.write_text(json.dumps(lines, indent=1) + "\n")
    sys.stdout.write(f"{TRACES}: {len(lines)} runs, {sum(map(len, lines.values()))} changes\n")


if __name__ == "__main__":
    main()
