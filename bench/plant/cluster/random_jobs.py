"""Random jobs for properties of organic adaptation."""

from __future__ import annotations

import numpy as np

from bench.plant.cluster.job import ClusterJob, SimulatedOperator, SimulatedRegion
from rayelastic.plan.regions import RegionKind

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
