"""What the policy of running jobs does on the cluster model, within what a live job can carry out."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from bench.plant.cluster.job import ClusterConstants, ClusterJob, SimulatedNode
from bench.plant.cluster.plant import ClusterPlant
from bench.plant.cluster.random_jobs import random_job
from bench.plant.cluster.run import ClusterSimulation
from rayelastic.policy.regions.actions import AdaptationDecision
from rayelastic.policy.regions.actuation import Actuation
from rayelastic.policy.regions.observation import PlanObservation
from rayelastic.policy.regions.organic_adaptation import OrganicAdaptation
from rayelastic.policy.regions.thresholds import OrganicThresholds

MICRO = 1e-6
PERIOD = 5.0  # s
NOISE = 0.05
NODES, CPUS = 16, 8.0
PERIODS = 200
LAST = 40  # periods over which a rate is taken
OFFERED = 150e3  # tuples/s
BY_HAND = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)  # replicas
BEST = 0.95  # of what can be carried at all
MOST_CHANGES = 3
MANY_NODES, MANY_TIMES, MANY_PERIODS = 1_000, 60, 60  # of a large cluster, with so many times the load
DOWN, UP = 50e3, 300e3  # tuples/s of the load that alternates
HOUR = 3600.0


class Live:
    """The policy of a running job, and how long its decisions took."""

    def __init__(self, job: ClusterJob, nodes: int = NODES, target: float = 0.8) -> None:
        elastic = [p.region.name for p in job.plan().regions if p.region.kind.is_replicable]
        thresholds = OrganicThresholds.of_running_jobs(target)
        actuation = Actuation.of_running_jobs(elastic, int(nodes * CPUS))
        self.policy = OrganicAdaptation(thresholds=thresholds, actuation=actuation)
        self.longest = 0.0

    def step(self, seen: PlanObservation) -> AdaptationDecision:
        began = time.perf_counter()
        decision = self.policy.step(seen)
        self.longest = max(self.longest, time.perf_counter() - began)
        return decision


def played(
    job: ClusterJob, load: Callable[[float], float], seed: int = 0, nodes: int = NODES
) -> tuple[ClusterSimulation, Live]:
    live = Live(job, nodes)
    plant = ClusterPlant(job, [SimulatedNode(f"n{i}", CPUS) for i in range(nodes)], ClusterConstants())
    return ClusterSimulation(
        plant, live, lambda at: {"r0": load(at)}, period=PERIOD, noise=NOISE, seed=seed, offered_known=False
    ), live


def graphs(count: int) -> dict[str, Any]:
    """How many random graphs get to the best that replicas can do within three changes, and stay there."""
    good = quiet = carried = 0
    longest = 0.0
    for seed in range(count):
        job = random_job(seed)
        simulation, live = played(job, lambda _: OFFERED, seed)
        simulation.run(PERIODS)
        tried = [step for step in simulation.trace if step.decision.verdict.value == "try"]
        late = simulation.trace[-LAST:]
        reached = sum(step.throughput for step in late) / len(late)
        enough = reached >= BEST * best_by_hand(simulation)
        carried += enough
        good += enough and len(tried) <= MOST_CHANGES
        quiet += not any(step.decision.changes for step in simulation.trace[PERIODS // 2 :])
        longest = max(longest, live.longest)
    print(
        f"{count} random graphs on the live actuation, {NOISE:.0%} noise: {good / count:.1%} at 95 % of the best "
        f"within {MOST_CHANGES} changes ({carried / count:.1%} at all), {quiet / count:.1%} without a change in the "
        f"second half; longest decision {longest * 1e3:.1f} ms"
    )
    return {"count": count, "within_three": good, "at_best": carried, "quiet": quiet, "longest": longest}


def decisions(count: int) -> dict[str, float]:
    """How long a decision takes at most where there are many nodes, and how many processes the plans have."""
    longest, most = 0.0, 0
    for seed in range(count):
        simulation, live = played(random_job(seed), lambda _: MANY_TIMES * OFFERED, seed, MANY_NODES)
        simulation.run(MANY_PERIODS)
        longest, most = max(longest, live.longest), max(most, len(simulation.trace[-1].plan.pes))
    print(
        f"{count} random graphs on {MANY_NODES:,} nodes of {CPUS:.0f} CPUs: longest decision {longest * 1e3:.1f} ms, "
        f"plans of up to {most:,} processes"
    )
    return {"count": count, "nodes": MANY_NODES, "longest": longest, "processes": most}


def alternating(period: float) -> Callable[[float], float]:
    return lambda at: UP if at % period < period / 2 else DOWN


def best_by_hand(simulation: ClusterSimulation) -> float:
    """Return the most that plans carry which give all regions that can have replicas the same number of them."""
    plant, best = simulation.plant, 0.0
    for replicas in BY_HAND:
        plan = plant.job.plan()
        for planned in plan.regions:
            if planned.region.kind.is_replicable:
                plan = plan.with_replicas(planned.region.name, replicas, ("pe0", *plan.fresh_pes(replicas - 1)))
        placed = plan.with_nodes({pe: f"n{number % NODES}" for number, pe in enumerate(plan.pes)})
        best = max(best, float(plant.solve(placed, {"r0": OFFERED}).rate[0]))
    return best


def flapping() -> list[dict[str, float]]:
    """Change an hour, and how much is carried, of a load that alternates."""
    found = []
    for period in (10.0, 60.0, 120.0, 300.0):
        job = ClusterJob.chain("alternating", 1e-7, [10 * MICRO])
        simulation, _ = played(job, alternating(period))
        simulation.run(int(HOUR / PERIOD))
        changes = len(simulation.changes())
        offered = sum(step.offered for step in simulation.trace)
        carried = sum(step.throughput for step in simulation.trace) / offered
        print(
            f"load {DOWN:,.0f} / {UP:,.0f} tuples/s, period {period:.0f} s: {changes} changes/h, {carried:.1%} carried"
        )
        found.append({"period": period, "changes": changes, "carried": carried})
    return found
