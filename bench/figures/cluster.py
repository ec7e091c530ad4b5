"""What a decision costs on a large cluster, and how organic adaptation settles: `python -m bench.figures.cluster`.

A simulated cluster of 1,000 nodes and a job of 10,000 replicas; the policy's own time is measured on this machine, with
what it looked at counted, and everything else is simulated.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Mapping

from bench.plant.cluster.job import ClusterConstants, ClusterJob, SimulatedNode, SimulatedOperator, SimulatedRegion
from bench.plant.cluster.plant import ClusterPlant
from bench.plant.cluster.run import ClusterSimulation, LoadScript
from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.node_placement import Node, place
from rayelastic.plan.plan_change import plan_change
from rayelastic.plan.regions import RegionKind
from rayelastic.policy.regions.actions import AdaptationDecision
from rayelastic.policy.regions.observation import PlanObservation
from rayelastic.policy.regions.organic_adaptation import OrganicAdaptation

NODES = 1000
CPUS = 16.0
SOURCES = 40
REGIONS = 16  # of each source
REPLICAS = 16  # of each region: 10,240 in all
COST = 1e-5  # s per tuple
NEEDED = 15.5  # replicas that the load asks for at full use


class Timed(OrganicAdaptation):
    """Organic adaptation that keeps the time of each decision."""

    def __init__(self) -> None:
        super().__init__()
        self.took: list[tuple[float, AdaptationDecision, PlanObservation]] = []

    def step(self, seen: PlanObservation) -> AdaptationDecision:
        began = time.process_time()
        decision = super().step(seen)
        self.took.append((time.process_time() - began, decision, seen))
        return decision


def large_job() -> ClusterJob:
    """40 sources with a chain of 16 keyed regions each."""
    regions: list[SimulatedRegion] = []
    for source in range(SOURCES):
        regions.append(SimulatedRegion((SimulatedOperator(f"s{source}", 1e-7),), RegionKind.SOURCE))
        for number in range(REGIONS):
            operator = SimulatedOperator(f"o{source}_{number}", COST)
            regions.append(SimulatedRegion((operator,), inputs=(len(regions) - 1,)))
    return ClusterJob("large", tuple(regions))


def spread_plan(job: ClusterJob, nodes: int, replicas: int) -> ExecPlan:
    """Replicas of all regions, one PE per node, evenly spread."""
    plan, at = job.plan(), 0
    for planned in plan.regions:
        if planned.region.kind is not RegionKind.SOURCE:
            pes = [f"pe{(at + i) % nodes}" for i in range(replicas)]
            plan = plan.with_replicas(planned.region.name, replicas, pes)
            at += replicas
    return plan.with_nodes({pe: f"n{pe.removeprefix('pe')}" for pe in plan.pes})


def constant(load: Mapping[str, float]) -> LoadScript:
    return lambda _: load


def counted(seen: PlanObservation) -> str:
    replicas = sum(len(p.cpu) for region in seen.regions for p in region.pipelines)
    return f"{len(seen.nodes)} nodes, {len(seen.regions)} regions, {replicas} pipeline replicas"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.figures.cluster", description=__doc__)
    parser.parse_args()
    job = large_job()
    nodes = [SimulatedNode(f"n{i}", CPUS, zone=f"z{i % 10}") for i in range(NODES)]
    sources = [f"r{i}" for i, region in enumerate(job.regions) if not region.inputs]
    lasting = 12  # periods
    for name, replicas, factors in (
        ("all regions settled", REPLICAS, dict.fromkeys(sources, 0.8)),
        ("one source in forty grows, 16 regions", REPLICAS - 4, dict.fromkeys(sources, 0.5) | {sources[0]: 0.8}),
        ("every region grows at once", REPLICAS - 4, dict.fromkeys(sources, 0.8)),
    ):
        load: Mapping[str, float] = {s: f * NEEDED / COST for s, f in factors.items()}
        policy = Timed()
        plant = ClusterPlant(job, nodes, ClusterConstants(visit=0.0, replication=0.0, link=0.0, network=0.0))
        plan = spread_plan(job, NODES, replicas)
        simulation = ClusterSimulation(plant, policy, constant(load), period=5.0, noise=0.05, seed=1, plan=plan)
        simulation.run(lasting)
        times = [took for took, decision, _ in policy.took if not decision.changes][2:]
        changing = [(took, decision) for took, decision, _ in policy.took if decision.changes]
        print(f"{name}: {counted(policy.took[-1][2])}")
        print(f"  a decision to hold: {1e3 * statistics.median(times):.0f} ms (median of {len(times)}, CPU time)")
        for took, decision in changing[:2]:
            print(f"  a decision with {len(decision.actions)} actions: {1e3 * took:.0f} ms")
        done = simulation.trace[-1]
        print(f"  simulated: {done.throughput / done.offered:.1%} of the load carried, {done.threads} threads")
        began = time.process_time()
        change = plan_change(plan, simulation.plan)
        told = sum(len(moves.partitions) for region in change.regions for moves in region.moved)
        print(f"  the plan change: {told} partitions move, {1e3 * (time.process_time() - began):.0f} ms")
    began = time.process_time()
    found = place(plan.with_nodes({}), [Node(n.name, n.cpus, zone=n.zone) for n in nodes], {})
    print(f"placing {len(found.nodes)} PEs on {NODES} nodes: {time.process_time() - began:.2f} s CPU time")
    return 0


if __name__ == "__main__":
    sys.exit(main())
