"""The fewest threads that carry a load, by exhaustive search over the shapes of a plan's regions."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from bench.plant.cluster.plant import ClusterPlant
from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.regions import RegionKind

Shapes = Mapping[str, tuple[tuple[str, ...], int]]


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
