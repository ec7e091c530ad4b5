"""Plays a load against the cluster model under a policy, period by period, with noise, failures and stragglers.

The policy is the one that real jobs run. The same seed gives the same trace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bench.plant.cluster.plant import ClusterPlant, Floats, SteadyState
from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.node_placement import Node
from rayelastic.plan.plan_change import plan_change
from rayelastic.policy.regions.actions import AdaptationDecision, Verdict
from rayelastic.policy.regions.observation import PipelineObservation, PlanObservation, RegionObservation

LoadScript = Callable[[float], Mapping[str, float]]  # s -> {source region: tuples/s}


class OrganicPolicy(Protocol):
    """What decides on plans."""

    def step(self, seen: PlanObservation) -> AdaptationDecision:
        """Take what was seen in the last period and return the plan for the next one."""


@dataclass(frozen=True, slots=True)
class ClusterStep:
    """One period of a simulated run.

    Args:
        time: s, at its end.
        offered: tuples/s, all sources together.
        throughput: tuples/s that the sources made, without noise.
        plan: in force during the period.
        decision: what followed from it.
        cost: s of throughput that the change before this period took away.
    """

    time: float
    offered: float
    throughput: float
    plan: ExecPlan
    decision: AdaptationDecision
    cost: float

    @property
    def threads(self) -> int:
        """Pipeline replicas in force."""
        return self.plan.threads


class ClusterSimulation:
    """A job on a simulated cluster under a policy.

    Args:
        plant: the model.
        policy: what decides.
        load: what the sources are offered over time.
        period: s between decisions.
        noise: standard deviation of every measured number, relative.
        seed: of the noise.
        plan: to start with; None: one pipeline and one replica per region.
        offered_known: whether sources can tell what they are offered while they are held back.
        settles: periods for which local levels are unsettled after a change.
    """

    def __init__(
        self,
        plant: ClusterPlant,
        policy: OrganicPolicy,
        load: LoadScript,
        *,
        period: float = 30.0,
        noise: float = 0.0,
        seed: int = 0,
        plan: ExecPlan | None = None,
        offered_known: bool = True,
        settles: int = 0,
    ) -> None:
        self.plant, self.policy, self.load = plant, policy, load
        self.period, self.noise = period, noise
        self.plan = plan or plant.job.plan().with_nodes({"pe0": next(iter(plant.nodes))})
        self.time = 0.0
        self.trace: list[ClusterStep] = []
        self._random = np.random.default_rng(seed)
        self._offered_known = offered_known
        self._settles, self._unsettled = settles, 0
        self._cost: float | None = None

    def run(self, periods: int) -> Sequence[ClusterStep]:
        """Play some periods and return the whole trace."""
        for _ in range(periods):
            self.step()
        return self.trace

    def step(self) -> ClusterStep:
        """Play one period."""
        load = self.load(self.time)
        self.time += self.period
        state = self.plant.solve(self.plan, load)
        seen = self.observe(state, load)
        decision = self.policy.step(seen)
        sources = [i for i, r in enumerate(self.plant.job.regions) if not r.inputs]
        made = float(state.rate[sources].sum()) * self._kept()
        done = ClusterStep(self.time, sum(load.values()), made, self.plan, decision, self._cost or 0.0)
        self.trace.append(done)
        self._unsettled = max(0, self._unsettled - 1)
        self._cost = None
        if decision.changes:
            change = plan_change(self.plan, decision.plan)
            self._cost = self.plant.cost(change)
            self.plan = change.new
            self._unsettled = self._settles if decision.reset else 0
        return done

    def changes(self) -> list[ClusterStep]:
        """Return the periods that ended with another plan."""
        return [step for step in self.trace if step.decision.changes and step.decision.verdict is not Verdict.PLACE]

    def observe(self, state: SteadyState, load: Mapping[str, float]) -> PlanObservation:
        """Return what a profiler would have seen of a state after its warm-up, with noise."""
        threads = self.plant.threads(self.plan)
        cpu = np.minimum(self._noisy(state.cpu), 1.0).tolist()
        starved = state.starved.tolist()
        rates = self._noisy(state.rate).tolist()
        noise = iter(self._noisy(np.ones(sum(len(p.region.operators) + 1 for p in self.plan.regions))).tolist())
        regions, at = [], 0
        for number, planned in enumerate(self.plan.regions):
            rate, source = rates[number], not self.plant.job.regions[number].inputs
            operators = {o.name: o for o in self.plant.job.regions[number].operators}
            pipelines, passing = [], 1.0
            for pipeline in planned.pipelines:
                mine = slice(at, at + planned.replicas)
                at += planned.replicas
                busy = float(threads.busy[mine].sum())  # s of CPU per tuple of the region
                costs, taken, sleeps = [], [], []
                for name in pipeline.operators:
                    costs.append(min(1.0, passing * operators[name].cost / busy * next(noise)) if busy else 0.0)
                    taken.append(passing * rate)
                    sleeps.append(passing * operators[name].wait)
                    passing *= operators[name].selectivity
                asleep = sum(sleeps)
                seen = PipelineObservation(
                    pipeline.operators,
                    tuple(cpu[mine]),
                    tuple(costs),
                    tuple(taken),
                    passing * rate,
                    tuple(min(1.0, rate * share * asleep) for share in self.plant.key_shares(number, planned.ring)),
                    tuple(sleep / asleep if asleep else 0.0 for sleep in sleeps),
                    starved=tuple(starved[mine]),
                )
                pipelines.append(seen)
            offered, factor = None, next(noise)
            if source and self._offered_known:
                offered = min(load.get(planned.region.name, 0.0), float(state.capacity[number])) * factor
            blocked, fill = float(state.blocked[number]), float(state.fill[number])
            regions.append(RegionObservation(planned.region.name, rate, tuple(pipelines), offered, blocked, fill))
        nodes = tuple(
            Node(node.name, node.cpus, node.memory, node.zone)
            for node in self.plant.nodes.values()
            if node.name not in self.plant.failed
        )
        return PlanObservation(
            self.time, self.period, self.plan, tuple(regions), nodes, self._unsettled == 0, True, self._cost
        )

    def _kept(self) -> float:
        """Return the share of a period's throughput that the change before it left."""
        return max(0.0, 1.0 - (self._cost or 0.0) / self.period)

    def _noisy(self, values: Floats) -> Floats:
        if not self.noise:
            return values
        return values * np.maximum(0.0, 1.0 + self.noise * self._random.standard_normal(np.shape(values)))
