"""A model of a job on a cluster, the *plant* of organic adaptation: regions, pipelines and replicas on nodes.

Analytic: for a plan and a load it solves for the rates at which every queue is stable, back-pressure included, with
arrays of one entry per pipeline replica, so that 1,000 nodes with 10,000 replicas take milliseconds. Time passes in
periods; what a change of plan costs is taken off the period after it. Knows `policy` and `plan` types only.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bench.plant.cluster.job import ClusterConstants, ClusterJob, SimulatedNode
from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.hash_ring import HashRing
from rayelastic.plan.plan_change import PlanChange
from rayelastic.plan.regions import RegionKind

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROUNDS = 30  # of the search for a load that all nodes can bear
UNLOADED = 1e-12  # tuples/s that count as none
SCATTER = 101  # partitions


@dataclass(frozen=True, slots=True)
class SteadyState:
    """The rates that a plan reaches under a load.

    Args:
        rate: tuples/s that each region takes; of a source: makes.
        capacity: tuples/s that each region could take.
        cpu: of each pipeline replica, the share of time in which it uses a CPU.
        starved: of each pipeline replica, the share of time in which it waits for one, or for the token.
        blocked: of each source, the share of time in which it waits for room; 0 for other regions.
        fill: of each region, the share of its input queues that is full.
    """

    rate: Floats
    capacity: Floats
    cpu: Floats
    starved: Floats
    blocked: Floats
    fill: Floats


@dataclass(frozen=True, slots=True)
class _Threads:
    """One entry per pipeline replica of a plan, region by region, pipeline by pipeline."""

    region: Ints
    node: Ints  # -1: on a node that is gone
    pe: Ints
    busy: Floats  # s of CPU per tuple that the region takes, this replica's share of the keys included
    stall: Floats  # s of waiting, likewise
    token: Floats  # s under the Python token, likewise


class ClusterPlant:
    """A job on machines.

    Args:
        job: what runs.
        nodes: where; the first one hosts what has no node in the plan.
        constants: what hops and moves cost.

    >>> job = ClusterJob.chain("two", 1e-7, [1e-6, 1e-6])
    >>> plant = ClusterPlant(job, [SimulatedNode("a", 8)], ClusterConstants(visit=0.0))
    >>> round(plant.solve(job.plan(), {"r0": 1e9}).rate[0])
    500000
    >>> round(plant.solve(job.plan().with_replicas("r1", 2), {"r0": 1e5}).rate[0])
    100000
    """

    def __init__(self, job: ClusterJob, nodes: list[SimulatedNode], constants: ClusterConstants | None = None) -> None:
        self.job = job
        self.constants = constants or ClusterConstants()
        self.nodes = {node.name: node for node in nodes}
        self.failed: set[str] = set()
        count = len(job.regions)
        self._sources = [i for i, region in enumerate(job.regions) if region.kind is RegionKind.SOURCE]
        self._flow = np.zeros((count, len(self._sources)))  # tuples that a region takes per tuple of a source
        for column, source in enumerate(self._sources):
            self._flow[source, column] = 1.0
        gives = [float(np.prod([o.selectivity for o in region.operators])) for region in job.regions]
        self._below = np.zeros((count, count), dtype=bool)  # [i, j]: j is downstream of i
        for number, region in enumerate(job.regions):
            for upstream in region.inputs:
                self._flow[number] += gives[upstream] * self._flow[upstream]
                self._below[upstream, number] = True
        for number in range(count - 1, -1, -1):
            for after in np.flatnonzero(self._below[number]):
                self._below[number] |= self._below[after]
        self._shares: dict[tuple[int, HashRing], Floats] = {}
        self._known: tuple[ExecPlan, _Threads] | None = None
        self._solved: dict[tuple[tuple[str, float], ...], SteadyState] = {}

    def fail(self, node: str) -> None:
        """Let a node die: what is on it takes nothing any more."""
        self.failed.add(node)
        self._known = None

    def set_speed(self, node: str, speed: float) -> None:
        """Make a node slower or faster, as a straggler."""
        self.nodes[node] = replace(self.nodes[node], speed=speed)
        self._known = None

    def flow(self, load: Mapping[str, float]) -> Floats:
        """Return the tuples/s that each region has to take to carry a load: {source region: tuples/s}."""
        rates: Floats = self._flow @ np.array([load.get(f"r{i}", 0.0) for i in self._sources])
        return rates

    def region_capacity(self, number: int, cuts: Sequence[str], replicas: int) -> float:
        """Return the tuples/s that a region could take in a shape, in one process with nobody beside it."""
        region = self.job.regions[number]
        names = [operator.name for operator in region.operators]
        starts = [0, *(names.index(cut) for cut in cuts), len(names)]
        pipelines = [tuple(names[a:b]) for a, b in itertools.pairwise(starts)]
        worst = max(
            busy + stall for _, busy, stall, _ in self._costs(number, pipelines, replicas, self.constants.visit)
        )
        return 1.0 / (worst * float(self.key_shares(number, HashRing.of(replicas, self.job.partitions)).max()))

    def threads(self, plan: ExecPlan) -> _Threads:
        """Return the pipeline replicas of a plan, kept until the next plan."""
        if self._known is None or self._known[0] is not plan:
            self._known = (plan, self._threads(plan))
            self._solved = {}
        return self._known[1]

    def solve(self, plan: ExecPlan, load: Mapping[str, float]) -> SteadyState:
        """Return the rates that are reached.

        Args:
            plan: of this job.
            load: {source region: tuples/s that it is offered}.
        """
        threads = self.threads(plan)  # forgets what was solved if it changes
        key = tuple(load.items())
        if key not in self._solved:
            self._solved[key] = self._solve(threads, load)
        return self._solved[key]

    def _solve(self, threads: _Threads, load: Mapping[str, float]) -> SteadyState:
        regions = len(self.job.regions)
        own, cpus = self._slowness(threads)
        slow = own
        offered = np.array([load.get(f"r{i}", 0.0) for i in self._sources])
        nodes = np.maximum(threads.node, 0)
        for _ in range(ROUNDS):
            time = threads.busy * slow + threads.stall
            worst = np.zeros(regions)
            np.maximum.at(worst, threads.region, np.where(threads.node < 0, np.inf, time))
            with np.errstate(divide="ignore"):
                capacity = np.where(worst > 0, 1.0 / worst, np.inf)
            wanted = np.minimum(offered, capacity[self._sources])
            made = self._throttled(wanted, capacity)
            rate = self._flow @ made
            # CPU time grows by contention and slow machines, not by waiting for a CPU or for the token.
            cpu = rate[threads.region] * threads.busy * own
            crowded = np.bincount(nodes, weights=cpu, minlength=len(cpus)) / cpus
            under_token = np.bincount(threads.pe, weights=rate[threads.region] * threads.token * own)
            tight = np.maximum(crowded[nodes], np.where(threads.token > 0, under_token[threads.pe], 0.0))
            if tight.max(initial=0.0) <= 1.001:
                break
            slow = slow * np.maximum(1.0, tight)
        blocked = np.zeros(regions)
        held_back = made < wanted * (1.0 - 1e-6)
        blocked[self._sources] = np.where(held_back, 1.0 - made / np.maximum(capacity[self._sources], UNLOADED), 0.0)
        return SteadyState(
            rate,
            capacity,
            np.minimum(cpu, 1.0) ** self.constants.polling,
            np.minimum(rate[threads.region] * threads.busy * (slow - own), 1.0),
            blocked,
            self._fill(rate, capacity, blocked),
        )

    def _throttled(self, wanted: Floats, capacity: Floats) -> Floats:
        """Back-pressure: each source makes what the tightest region downstream of it takes."""
        made = wanted
        for _ in range(3):
            need = self._flow @ made
            ratio = np.minimum(1.0, capacity / np.maximum(need, UNLOADED))
            made = made * np.where(self._flow > 0, ratio[:, None], 1.0).min(axis=0)
        return made

    def _fill(self, rate: Floats, capacity: Floats, blocked: Floats) -> Floats:
        """Queues are full in front of a bottleneck and of whatever leads to it, and nearly empty elsewhere."""
        use = rate / np.maximum(capacity, UNLOADED)
        limits = (use > 0.995) & bool(blocked.max(initial=0.0) > 0.0)
        limits[self._sources] = False
        full = limits | (self._below & limits[None, :]).any(axis=1)
        return np.where(full, 1.0, np.minimum(0.5, use**4))

    def _slowness(self, threads: _Threads) -> tuple[Floats, Floats]:
        """For each thread by how much its machine and its neighbours slow it down; and the CPUs of the nodes."""
        nodes = np.maximum(threads.node, 0)
        there = np.bincount(nodes, minlength=len(self.nodes))
        slow = [self.constants.slowdown(n) / node.speed for n, node in zip(there, self.nodes.values(), strict=True)]
        return np.array(slow)[nodes], np.array([node.cpus for node in self.nodes.values()])

    def _threads(self, plan: ExecPlan) -> _Threads:
        node_number = {name: i for i, name in enumerate(self.nodes)}
        home = next(iter(self.nodes))
        pe_number = {pe: i for i, pe in enumerate(plan.pes)}
        node_of = {pe: plan.nodes.get(pe, home) for pe in plan.pes}
        number_of = {
            pe: -1 if node in self.failed or node not in node_number else node_number[node]
            for pe, node in node_of.items()
        }
        visit = self.constants.visit * (1.0 + self.constants.growth * (plan.threads - 1))
        rows: list[tuple[float, ...]] = []
        for number, planned in enumerate(plan.regions):
            shares = self.key_shares(number, planned.ring)
            pipelines = [pipeline.operators for pipeline in planned.pipelines]
            costs = self._costs(number, pipelines, planned.replicas, visit)
            for position, (arriving, busy, stall, token) in enumerate(costs):
                for replica, pe in enumerate(planned.pipelines[position].pes):
                    share = float(shares[replica])
                    far = arriving * self._far(plan, number, position, replica, node_of)
                    place = (number, number_of[pe], pe_number[pe])
                    rows.append((*place, share * (busy + far), share * stall, share * token))
        table = np.array(rows, dtype=np.float64).T
        region, node, pe = table[:3].astype(np.int64)
        return _Threads(region, node, pe, *table[3:])

    def _costs(
        self, number: int, pipelines: Sequence[tuple[str, ...]], replicas: int, visit: float
    ) -> list[tuple[float, ...]]:
        """For each pipeline and tuple of the region: tuples that arrive, s of CPU, of waiting, under the token."""
        c, region = self.constants, self.job.regions[number]
        by_name = {operator.name: operator for operator in region.operators}
        made: list[tuple[float, ...]] = []
        passing = 1.0
        for position, operators in enumerate(pipelines):
            arriving, stall, token = passing, 0.0, 0.0
            busy = 0.0 if region.kind is RegionKind.SOURCE else passing * visit
            if replicas > 1:
                busy += passing * c.replication
            if position:
                busy += passing * c.crossing
                stall += passing * c.stall
            for name in operators:
                operator = by_name[name]
                busy += passing * operator.cost
                stall += passing * operator.wait
                token += passing * (operator.cost + operator.wait) if operator.token else 0.0
                passing *= operator.selectivity
            if position + 1 < len(pipelines):
                busy += passing * c.crossing
            made.append((arriving, busy, stall, token))
        return made

    def _far(self, plan: ExecPlan, number: int, position: int, replica: int, node_of: Mapping[str, str]) -> float:
        """CPU that a replica spends for a tuple that comes over a link, on average over those who feed it."""
        if len(node_of) == 1:
            return 0.0
        planned, region = plan.regions[number], self.job.regions[number]
        here = planned.pipelines[position].pes[replica]
        if position:
            feeding = [planned.pipelines[position - 1].pes[replica]]
        else:
            feeding = [pe for i in region.inputs for pe in dict.fromkeys(plan.regions[i].pipelines[-1].pes)]
        if not feeding:
            return 0.0
        c = self.constants
        costs = [0.0 if f == here else (c.link if node_of[f] == node_of[here] else c.network) for f in feeding]
        return sum(costs) / len(costs)

    def key_shares(self, number: int, ring: HashRing) -> Floats:
        """Return the share of a region's tuples that each replica takes, by its partitions."""
        key = (number, ring)
        if key not in self._shares:
            weights = np.arange(1, ring.partitions + 1, dtype=np.float64) ** -self.job.regions[number].skew
            # Hot partitions lie anywhere: a stride that has no common divisor with their number scatters them.
            weights = weights[(np.arange(ring.partitions) * SCATTER) % ring.partitions] / weights.sum()
            owners = np.array(ring.owners)
            self._shares[key] = np.bincount(owners, weights=weights, minlength=ring.replicas).astype(np.float64)
        return self._shares[key]

    def cost(self, change: PlanChange) -> float:
        """Return the seconds of throughput that a change takes away: its regions stand still while keys move."""
        c, lost = self.constants, 0.0
        number_of = {planned.region.name: i for i, planned in enumerate(change.new.regions)}
        for region in change.regions:
            if not region.moves_keys:
                lost = max(lost, c.split_pause)
                continue
            moved = sum(len(moves.partitions) for moves in region.moved) / change.old.partitions
            share = 1.0 if region.relocated else moved
            lost = max(lost, c.pause + share * self.job.regions[number_of[region.region]].state / c.transfer)
        return lost
