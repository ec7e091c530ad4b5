"""Random jobs for properties of organic adaptation, and the fewest threads that carry a load, by exhaustive search."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from bench.plant.cluster.job import ClusterJob, SimulatedOperator, SimulatedRegion
from bench.plant.cluster.plant import ClusterPlant
from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.regions import RegionKind

Shapes = Mapping[str, tuple[tuple[str, ...], int]]

CHEAPEST, DEAREST = 0.2e-6, 20e-6  # s per tuple of an operator, spread evenly over the logarithm
SOURCE = 5e-8  # s per tuple


def random_job(seed: int) -> ClusterJob:
    """Return a job of one or two sources and two to six regions of one to four operators, with branches and joins.

    Args:
        seed: the same one gives the same job.

    >>> random_job(1) == random_job(1)
    True
    """
    random = np.random.default_rng(seed)
    sources = int(random.integers(1, 3))
    made = [SimulatedRegion((SimulatedOperator(f"s{i}", SOURCE),), RegionKind.SOURCE) for i in range(sources)]
    for number in range(sources, sources + int(random.integers(2, 7))):
        inputs = {int(random.integers(max(0, number - 3), number))}
        if random.random() < 0.25:
            inputs.add(int(random.integers(0, number)))
        if number < 2 * sources:
            inputs.add(number - sources)  # no source without a consumer
        operators = []
        for i in range(int(random.integers(1, 5))):
            cost = float(np.exp(random.uniform(np.log(CHEAPEST), np.log(DEAREST))))
            operators.append(SimulatedOperator(f"o{number}_{i}", cost, float(random.choice([0.5, 1.0, 1.0, 2.0]))))
        kind = RegionKind.DATA_PARALLEL if random.random() < 0.8 else RegionKind.PIPELINE
        made.append(SimulatedRegion(tuple(operators), kind, tuple(sorted(inputs))))
    return ClusterJob(f"random{seed}", tuple(made))


def with_shapes(plan: ExecPlan, shapes: Shapes) -> ExecPlan:
    """Return a plan whose regions have other shapes, all in one PE.

    Args:
        plan: to start from.
        shapes: {region: (operators that start its further pipelines, replicas)}.
    """
    for name, (cuts, replicas) in shapes.items():
        for cut in plan.region(name).cuts:
            plan = plan.with_merge(name, cut)
        for cut in cuts:
            plan = plan.with_split(name, cut)
        plan = plan.with_replicas(name, replicas)
    return plan


def exhaustive_best(plant: ClusterPlant, load: Mapping[str, float], utilisation: float, replicas: int) -> Shapes | None:
    """Return the shapes with the fewest threads that carry a load, of all cuts and replicas; None: none does.

    Regions are searched one by one, which is exhaustive where threads don't slow each other down.

    Args:
        plant: without contention.
        load: {source region: tuples/s}.
        utilisation: that no region may exceed.
        replicas: most of a region.
    """
    plan = plant.job.plan()
    need = plant.flow(load)
    found: dict[str, tuple[tuple[str, ...], int]] = {}
    for number, planned in enumerate(plan.regions):
        region = planned.region
        if region.kind is RegionKind.SOURCE:
            continue
        best: tuple[int, tuple[str, ...], int] | None = None
        for count in range(len(region.operators)):
            for cuts in itertools.combinations(region.operators[1:], count):
                for n in range(1, (replicas if region.kind is RegionKind.DATA_PARALLEL else 1) + 1):
                    threads = n * (count + 1)
                    if best is not None and threads >= best[0]:
                        break
                    if plant.region_capacity(number, cuts, n) * utilisation >= need[number]:
                        best = (threads, cuts, n)
                        break
        if best is None:
            return None
        found[region.name] = best[1:]
    return found
