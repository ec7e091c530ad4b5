"""The model-based baseline of Joker section 5.5: pipelined fission (Gedik et al. 2016; J35).

A configuration is computed once, from operator costs, selectivities and two constants of the runtime, and never
changed. Joker describes the cited paper's heuristic in words only. A model with a *thread switching overhead* and a
*replication cost factor* estimates throughput, and a heuristic search finds a configuration close to the optimum.

This is the simplest search over that model. As long as it helps, the bottleneck gets a pipeline or a replica, whichever
promises more for its threads.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from rayelastic.plan.exec_plan import ExecPlan, RegionPlan
from rayelastic.plan.hash_ring import MAX_REPLICAS
from rayelastic.plan.regions import RegionKind
from rayelastic.policy.regions.model import RegionModel, Shape, best_cuts, demands, shape_of


@dataclass(frozen=True, slots=True)
class FissionModel:
    """The two constants of the runtime, measured once for a machine.

    Args:
        thread_switching: s that a thread loses for each tuple that it takes from another thread.
        replication: relative growth of a replica's time per tuple for each doubling of the number of replicas.
    """

    thread_switching: float
    replication: float


class PipelinedFission:
    """Finds a configuration by its model.

    Args:
        model: constants of the runtime.
        max_threads: threads that may be used.
        max_replicas: of a region.
        gain: relative increase of the modelled throughput that a step needs.

    >>> from rayelastic.plan.exec_plan import Pipeline
    >>> from rayelastic.plan.regions import Region
    >>> region = Region("r0", RegionKind.DATA_PARALLEL, ("a",), ("key",))
    >>> plan = ExecPlan("t", (RegionPlan(region, (Pipeline(("a",), ("pe0",)),)),))
    >>> fission = PipelinedFission(FissionModel(1e-7, 0.05), max_threads=4)
    >>> fission.plan(plan, {"r0": RegionModel(region, (1e-6,), 0.0)}, {"r0": 1.0}).region("r0").replicas
    4
    """

    def __init__(
        self, model: FissionModel, max_threads: int, max_replicas: int = MAX_REPLICAS, gain: float = 0.01
    ) -> None:
        self._model = model
        self._max_threads = max_threads
        self._max_replicas = max_replicas
        self._gain = gain

    def plan(self, plan: ExecPlan, models: Mapping[str, RegionModel], shares: Mapping[str, float]) -> ExecPlan:
        """Return the plan that the model likes best.

        Args:
            plan: to start from, one pipeline and one replica per region.
            models: costs and selectivities of each region; their overheads are not used.
            shares: {source region: share of all tuples that it makes}.
        """
        per_tuple = demands(plan, models, shares)
        shapes: dict[str, Shape] = {p.region.name: shape_of(p) for p in plan.regions}
        while True:
            loads = {n: per_tuple[n] * self._time(models[n], shape) for n, shape in shapes.items() if n in models}
            name = max(loads, key=lambda n: loads[n])
            used = sum(_threads(shape) for shape in shapes.values())
            step = self._step(plan.region(name), models[name], shapes[name], self._max_threads - used)
            if step is None:
                break
            shapes[name] = step
        for name, (cuts, replicas) in shapes.items():
            for cut in cuts:
                if cut not in plan.region(name).cuts:
                    plan = plan.with_split(name, cut)
            if replicas != plan.region(name).replicas:
                plan = plan.with_replicas(name, replicas)
        return plan

    def _step(self, planned: RegionPlan, model: RegionModel, now: Shape, room: int) -> Shape | None:
        """The one step more that promises most per thread; None: none is worth it."""
        cuts, replicas = now
        operators = planned.region.operators
        found: list[tuple[float, Shape]] = []
        if not planned.region.kind.is_fixed and len(cuts) + 1 < len(operators) and replicas <= room:
            found.append((replicas, (best_cuts(operators, model.times, len(cuts) + 2), replicas)))
        if planned.region.kind is RegionKind.DATA_PARALLEL and len(cuts) < room and replicas < self._max_replicas:
            found.append((len(cuts) + 1, (cuts, replicas + 1)))
        before = self._time(model, now)
        gains = [(before / self._time(model, shape) - 1.0, threads, shape) for threads, shape in found]
        worth = [(gain / threads, shape) for gain, threads, shape in gains if gain >= self._gain]
        return max(worth)[1] if worth else None

    def _time(self, model: RegionModel, shape: Shape) -> float:
        """Time per tuple of a region by the model: its slowest pipeline, shared by the replicas."""
        cuts, replicas = shape
        longest, time = 0.0, self._model.thread_switching
        for name, own in zip(model.region.operators, model.times, strict=True):
            if name in cuts:
                longest, time = max(longest, time), self._model.thread_switching
            time += own
        return max(longest, time) * (1.0 + self._model.replication * math.log2(replicas)) / replicas


def _threads(shape: Shape) -> int:
    return (len(shape[0]) + 1) * shape[1]
