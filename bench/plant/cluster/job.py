"""What the cluster model runs: regions of operators with costs and selectivities, and what machines and hops cost.

Numbers of the engine come with their source; every figure that is made of them is a simulated one.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rayelastic.plan.exec_plan import ExecPlan, Pipeline, RegionPlan
from rayelastic.plan.hash_ring import PARTITIONS
from rayelastic.plan.regions import Region, RegionKind


@dataclass(frozen=True, slots=True)
class SimulatedOperator:
    """An operator of the model.

    Args:
        name: unique in the job.
        cost: seconds of CPU for a tuple that it takes.
        selectivity: tuples that it gives for one that it takes.
        token: whether it needs the Python token.
        wait: seconds that its thread sleeps in it for a tuple, for an answer from outside; only with `token`.
    """

    name: str
    cost: float
    selectivity: float = 1.0
    token: bool = False
    wait: float = 0.0


@dataclass(frozen=True, slots=True)
class SimulatedRegion:
    """A region of the model.

    Args:
        operators: in the order in which tuples pass them.
        kind: how it can be parallelised.
        inputs: positions of the regions that feed it; each gives it all its output.
        skew: exponent of the Zipf law of the partitions' loads; 0: all equal.
        state: bytes of keyed state.
    """

    operators: tuple[SimulatedOperator, ...]
    kind: RegionKind = RegionKind.DATA_PARALLEL
    inputs: tuple[int, ...] = ()
    skew: float = 0.0
    state: float = 0.0


@dataclass(frozen=True, slots=True)
class SimulatedNode:
    """A machine of the model.

    Args:
        name: unique in the cluster.
        cpus: logical CPUs.
        speed: relative to the machine on which costs are told; a straggler has less than 1.
        zone: nodes of one zone are near each other.
        memory: bytes.
    """

    name: str
    cpus: float
    speed: float = 1.0
    zone: str = ""
    memory: float = 64e9


@dataclass(frozen=True, slots=True)
class ClusterConstants:
    """What the engine's own actions cost in the model; but for `visit` and `crossing`, estimates until measured.

    Args:
        visit: s of CPU of a pipeline thread for each tuple that it takes from its queue.
        crossing: s of CPU on each side for a tuple that crosses from a pipeline to the next.
        stall: s that a tuple on this way keeps the taker waiting without using a CPU.
        link: s of CPU of the taker for a tuple from another process of its node.
        network: s of CPU of the taker for a tuple from another node.
        replication: s of CPU of a replica for each of its tuples, if there are several.
        growth: relative growth of `visit` for each thread of the job more than one: shared memory and allocator.
        contention: relative slowdown of all threads of a node for each thread more than one.
        speedup: {threads of the job: slowdown} where it was measured instead; between them, interpolated.
        polling: exponent of a thread's use of its time that gives its use of a CPU; below 1, idle threads poll.
        pause: s for which a region that moves keys stands still at least.
        transfer: bytes/s at which keyed state is moved.
        split_pause: s for which a region stands still for a split or a merge.
    """

    visit: float = 4e-9  # findings section 1: a queue hop in runs
    crossing: float = 10e-9  # findings section 1: a hop to another core
    stall: float = 0.0
    link: float = 40e-9
    network: float = 80e-9
    replication: float = 5e-9
    growth: float = 0.0
    contention: float = 0.0
    speedup: Mapping[float, float] = field(default_factory=dict)
    polling: float = 1.0
    pause: float = 0.2
    transfer: float = 200e6
    split_pause: float = 0.02

    def slowdown(self, threads: float) -> float:
        """Return by how much each thread is slower beside the others."""
        if not self.speedup:
            return 1.0 + self.contention * max(0.0, threads - 1.0)
        known = sorted(self.speedup.items())
        if threads <= known[0][0]:
            return known[0][1]
        for (low, at_low), (high, at_high) in itertools.pairwise(known):
            if threads <= high:
                return at_low + (at_high - at_low) * (threads - low) / (high - low)
        return known[-1][1]


@dataclass(frozen=True, slots=True)
class ClusterJob:
    """A job of the model.

    Args:
        name: of the topology.
        regions: each after those that feed it.
        partitions: of the keys of each region.

    >>> job = ClusterJob("words", (
    ...     SimulatedRegion((SimulatedOperator("lines", 1e-7),), RegionKind.SOURCE),
    ...     SimulatedRegion((SimulatedOperator("count", 1e-6),), inputs=(0,)),
    ... ))
    >>> job.plan().threads
    2
    """

    name: str
    regions: tuple[SimulatedRegion, ...]
    partitions: int = PARTITIONS

    def plan(self) -> ExecPlan:
        """Return the plan that it starts with: one pipeline and one replica per region, all in one process (J13)."""
        planned, edges = [], []
        for number, region in enumerate(self.regions):
            names = tuple(operator.name for operator in region.operators)
            keys = ("key",) if region.kind is RegionKind.DATA_PARALLEL else ()
            token = tuple(operator.name for operator in region.operators if operator.token)
            formed = Region(f"r{number}", region.kind, names, keys, token_bound=token)
            planned.append(RegionPlan(formed, (Pipeline(names, ("pe0",)),), partitions=self.partitions))
            edges += [(self.regions[i].operators[-1].name, names[0]) for i in region.inputs]
            edges += list(itertools.pairwise(names))
        return ExecPlan(self.name, tuple(planned), tuple(edges))

    @classmethod
    def chain(cls, name: str, source: float, *regions: SimulatedRegion | Sequence[float]) -> ClusterJob:
        """Return a source and regions in a row; a region may be told by its operators' costs alone.

        Args:
            name: of the topology.
            source: s of CPU of the source for each tuple.
            regions: data-parallel where told by costs.
        """
        made = [SimulatedRegion((SimulatedOperator("source", source),), RegionKind.SOURCE)]
        for number, region in enumerate(regions):
            if not isinstance(region, SimulatedRegion):
                operators = [SimulatedOperator(f"o{number}_{i}", cost) for i, cost in enumerate(region)]
                region = SimulatedRegion(tuple(operators))
            made.append(
                SimulatedRegion(region.operators, region.kind, region.inputs or (number,), region.skew, region.state)
            )
        return cls(name, tuple(made))
