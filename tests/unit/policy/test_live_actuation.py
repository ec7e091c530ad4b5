"""The policy under the rules of the performer, on simulated clusters: what is asked for can be done, and is judged."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from bench.plant.cluster.job import ClusterConstants, ClusterJob, SimulatedNode, SimulatedOperator, SimulatedRegion
from bench.plant.cluster.plant import ClusterPlant
from bench.plant.cluster.random_jobs import random_job
from bench.plant.cluster.run import ClusterSimulation
from rayelastic.errors import ChangeError
from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.plan_change import plan_change
from rayelastic.plan.regions import RegionKind
from rayelastic.policy.regions.actions import AdaptationDecision, ShareRegion, Verdict
from rayelastic.policy.regions.actuation import Actuation
from rayelastic.policy.regions.observation import PlanObservation
from rayelastic.policy.regions.organic_adaptation import OrganicAdaptation
from rayelastic.policy.regions.thresholds import OrganicThresholds
from rayelastic.reasons import Code
from rayelastic.runtime.rescale.performer import check_performable
from tests.raising import raises
from tests.reasons import codes

GRAPHS = 60
NOISE = 0.05
PERIOD = 5.0  # s
MICRO = 1e-6
PROCESSES = 20


class Performed:
    """The policy of running jobs; what it asks for is checked by the performer's own rules."""

    def __init__(self, plan: ExecPlan, key_share: float = 0.0, processes: int = PROCESSES) -> None:
        elastic = [p.region.name for p in plan.regions if p.region.kind.is_replicable]
        self.policy = OrganicAdaptation(
            thresholds=OrganicThresholds.of_running_jobs(0.8),
            actuation=Actuation.of_running_jobs(elastic, processes),
        )
        self.processes = processes
        self.key_share = key_share  # that routers see of a key

    def step(self, seen: PlanObservation) -> AdaptationDecision:
        if self.key_share:
            keyed = (replace(one, hot_key="'home'", hot_share=self.key_share) for one in seen.regions[1:])
            seen = replace(seen, regions=(seen.regions[0], *keyed))
        decision = self.policy.step(seen)
        if decision.changes:
            check_performable(plan_change(seen.plan, decision.plan))
            assert len(decision.plan.pes) <= self.processes
            assert decision.plan.regions != seen.plan.regions
        return decision


def simulated(
    job: ClusterJob,
    load: float,
    nodes: int = 3,
    cpus: float = 4,
    constants: ClusterConstants | None = None,
    seed: int = 0,
    key_share: float = 0.0,
    processes: int = PROCESSES,
) -> ClusterSimulation:
    plant = ClusterPlant(job, [SimulatedNode(f"n{i}", cpus) for i in range(nodes)], constants or ClusterConstants())
    return ClusterSimulation(
        plant, Performed(job.plan(), key_share, processes), lambda time: {"r0": load}, period=PERIOD, noise=NOISE,
        seed=seed, offered_known=False,
    )  # fmt: skip


def verdicts(simulation: ClusterSimulation) -> list[Verdict]:
    return [step.decision.verdict for step in simulation.trace if step.decision.verdict is not Verdict.HOLD]


def test_a_large_load_gets_as_many_replicas_as_it_needs_twice_as_many_at_a_time() -> None:
    """Nobody has to say that there may be more than Joker's 16, and a guess of the load doesn't ask for all at once."""
    job = ClusterJob.chain("large", 1e-8, [100 * MICRO])
    simulation = simulated(job, 600e3, nodes=16, cpus=8, processes=128)
    simulation.run(120)
    replicas = [step.plan.region("r1").replicas for step in simulation.trace]
    assert all(after <= max(16, 2 * before) for before, after in itertools.pairwise(replicas))
    assert 60 < replicas[-1] < 100
    late = [step.throughput for step in simulation.trace[-20:]]
    assert sum(late) / len(late) >= 0.95 * 600e3
    assert not any(step.decision.changes for step in simulation.trace[-40:])


def shares(decision: AdaptationDecision) -> bool:
    """Whether only keys move: a growth has that done before it is judged, if replicas aren't equally busy."""
    return decision.verdict is Verdict.TRY and all(isinstance(action, ShareRegion) for action in decision.actions)


def test_every_change_of_random_graphs_is_performable_and_judged_and_then_it_is_quiet() -> None:
    """F2, F3: each try is followed by its verdict, and at constant load nothing is asked for again and again."""
    restless = 0
    for seed in range(GRAPHS):
        job = random_job(seed)
        simulation = simulated(job, 150e3, seed=seed)
        simulation.run(120)
        decided = [step.decision for step in simulation.trace if step.decision.verdict is not Verdict.HOLD]
        told = [now.verdict for now in decided[:1]]
        for before, now in itertools.pairwise(decided):
            if not (before.verdict is Verdict.TRY and shares(now) and not shares(before)):
                told.append(now.verdict)
        if told[-1:] == [Verdict.TRY]:  # is being judged
            told.pop()
        for tried, judged in zip(told[::2], told[1::2], strict=True):
            assert (tried, judged) in [(Verdict.TRY, Verdict.KEEP), (Verdict.TRY, Verdict.REVERT)], (seed, told)
        restless += any(step.decision.changes for step in simulation.trace[60:])
    assert restless <= 0.05 * GRAPHS


@pytest.mark.parametrize("contention", [0.1, 1.0, 5.0])
def test_a_native_region_whose_replicas_hurt_each_other_is_reverted_and_left_alone(contention: float) -> None:
    job = ClusterJob.chain("contended", 1e-7, [20 * MICRO])
    simulation = simulated(job, 300e3, nodes=1, cpus=16, constants=ClusterConstants(contention=contention))
    simulation.run(240)
    alone = simulation.trace[0].throughput
    assert Verdict.REVERT in verdicts(simulation) or simulation.trace[-1].throughput > 1.8 * alone
    assert simulation.trace[-1].throughput >= 0.95 * alone
    assert len([step for step in simulation.trace if step.decision.changes]) <= 8
    assert not any(step.decision.changes for step in simulation.trace[120:])


def test_two_python_regions_in_one_process_are_not_moved_in_vain() -> None:
    token = [SimulatedRegion((SimulatedOperator(f"o{i}", 10 * MICRO, token=True),), inputs=(i,)) for i in range(2)]
    job = ClusterJob.chain("two", 1e-7, *token)
    simulation = simulated(job, 75e3)
    simulation.run(120)
    assert simulation.trace[-1].throughput >= 0.95 * 75e3
    assert not any(step.decision.changes for step in simulation.trace[60:])


@pytest.mark.parametrize("law", [2.0, 3.0])
def test_a_hot_key_stops_the_growth_and_is_told(law: float) -> None:
    """What one partition has of the load no replica takes from its owner: a few are tried, not all there may be."""
    region = SimulatedRegion((SimulatedOperator("o", 20 * MICRO),), skew=law)
    simulation = simulated(ClusterJob.chain("hot", 1e-7, region), 300e3, nodes=16)
    simulation.run(100)
    assert max(step.plan.region("r1").replicas for step in simulation.trace) <= 8
    assert not any(step.decision.changes for step in simulation.trace[50:])
    assert Code.REPLICAS_LIMIT in codes(simulation.trace[-1].decision.reasons)


def test_a_hot_key_that_is_seen_bounds_the_replicas_before_any_is_tried_and_is_named() -> None:
    """By Zipf's law of exponent 3 the first key has 83 % of the tuples: two replicas help, and hardly a third one."""
    region = SimulatedRegion((SimulatedOperator("o", 20 * MICRO),), skew=3.0)
    job = ClusterJob.chain("hot", 1e-7, region)
    replicas = []
    for share in (0.83, 0.0):
        simulation = simulated(job, 300e3, nodes=16, key_share=share)
        simulation.run(100)
        tried = [step for step in simulation.trace if step.decision.verdict is Verdict.TRY]
        named = [reason.values for reason in tried[0].decision.reasons if reason.code is Code.HOT_KEY]
        assert [(one["key"], one["region"], round(one["share"], 2)) for one in named] == [("'home'", "r1", 0.83)][
            : share > 0
        ]
        replicas.append(tried[0].decision.plan.region("r1").replicas)
        assert (Code.HOT_KEY in codes(simulation.trace[-1].decision.reasons)) is (share > 0)
        assert not any(step.decision.changes for step in simulation.trace[50:])
    assert replicas[0] == 2
    assert replicas[1] > 2, "nobody knows before it is tried"


@pytest.mark.parametrize("law", [2.0, 3.0])
def test_an_aggregate_in_two_steps_carries_a_hot_key(law: float) -> None:
    """The first step goes by no key and gets the replicas that the load needs; little is left for a hot key's owner."""
    counts = SimulatedOperator("counts", 20 * MICRO)
    whole = SimulatedRegion((counts,), skew=law)
    first = SimulatedRegion((SimulatedOperator("counts.partial", 20 * MICRO, selectivity=0.05),), RegionKind.STATELESS)
    carried = {}
    for steps in ((whole,), (first, whole)):
        simulation = simulated(ClusterJob.chain("hot", 1e-7, *steps), 300e3, nodes=16)
        simulation.run(100)
        assert not any(step.decision.changes for step in simulation.trace[50:])
        carried[len(steps)] = simulation.trace[-1].throughput
    assert carried[1] <= 0.6 * 300e3
    assert carried[2] >= 0.98 * 300e3


def test_an_aggregate_that_could_be_in_two_steps_is_named_where_a_key_is_hot() -> None:
    job = ClusterJob.chain("hot", 1e-7, SimulatedRegion((SimulatedOperator("o", 20 * MICRO),), skew=2.0))
    nodes = [SimulatedNode(f"n{i}", 4) for i in range(16)]
    policy = OrganicAdaptation(
        thresholds=OrganicThresholds.of_running_jobs(0.8),
        actuation=Actuation.of_running_jobs(["r1"], in_steps={"r1": "o"}),
    )
    plant = ClusterPlant(job, nodes, ClusterConstants())
    simulation = ClusterSimulation(plant, policy, lambda _: {"r0": 300e3}, period=5.0, seed=1, offered_known=False)
    simulation.run(100)
    assert Code.TWO_STEPS(aggregate="o") in simulation.trace[-1].decision.reasons


def test_what_could_not_be_carried_out_is_asked_for_twice_at_most_until_the_load_changes() -> None:
    job = ClusterJob.chain("stuck", 1e-7, [20 * MICRO])
    simulation = simulated(job, 80e3)
    asked = []
    for _ in range(100):
        done = simulation.step()
        if done.decision.changes:
            asked.append(done.decision.plan.region("r1").replicas)
            simulation.plan = done.plan  # it was undone
    assert 1 <= len(asked) <= 4
    assert all(asked.count(replicas) <= 2 for replicas in asked)  # once may be bad luck


def test_rules_of_the_performer() -> None:
    plan = ClusterJob.chain("plain", 1e-7, [MICRO]).plan()
    with raises(ChangeError, "bad-change"):
        check_performable(plan_change(plan, plan.with_replicas("r1", 2)))
    wide = plan.with_replicas("r1", 2, ("pe0", "pe1"))
    check_performable(plan_change(plan, wide))
    with raises(ChangeError, "bad-change"):
        check_performable(plan_change(wide, plan.with_replicas("r1", 2, ("pe0", "pe2"))))


@pytest.mark.parametrize(("half", "most"), [(10.0, 2), (60.0, 8)])
def test_a_load_that_comes_and_goes_ends_with_what_its_peaks_need(half: float, most: int) -> None:
    """Without the guard it changes 74 times in an hour at a period of 120 s."""
    job = ClusterJob.chain("flaps", 1e-7, [20 * MICRO])
    plant = ClusterPlant(job, [SimulatedNode(f"n{i}", 4) for i in range(3)], ClusterConstants())
    simulation = ClusterSimulation(
        plant, Performed(job.plan()), lambda time: {"r0": 150e3 if int(time // half) % 2 == 0 else 15e3}, period=2.0,
        noise=NOISE, seed=1, offered_known=False,
    )  # fmt: skip
    simulation.run(900)
    assert len([step for step in simulation.trace if step.decision.changes]) <= most
    assert simulation.trace[-1].plan.region("r1").replicas >= 3
    assert not any(step.decision.changes for step in simulation.trace[-300:])


def test_a_job_shrinks_to_the_most_that_was_needed_lately() -> None:
    """Not to what is needed at the moment when it has waited for long enough."""
    job = ClusterJob.chain("requests", 1e-7, [20 * MICRO])
    plant = ClusterPlant(job, [SimulatedNode(f"n{i}", 4) for i in range(3)], ClusterConstants())

    def load(time: float) -> float:
        return 180e3 if time < 60 else (100e3 if time < 72 else 20e3)

    simulation = ClusterSimulation(
        plant,
        Performed(job.plan()),
        lambda time: {"r0": load(time)},
        period=2.0,
        seed=1,
        offered_known=False,
    )
    simulation.run(100)
    after = [step.plan.region("r1").replicas for step in simulation.trace if step.time > 70]
    assert list(dict.fromkeys(after)) == [5, 3, 1]
