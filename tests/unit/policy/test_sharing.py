"""Partitions move from replicas that are busier than others to these: warm keys, slow and busy nodes."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from bench.plant.cluster.job import ClusterConstants, ClusterJob, SimulatedNode, SimulatedOperator, SimulatedRegion
from bench.plant.cluster.plant import ClusterPlant
from bench.plant.cluster.run import ClusterSimulation
from rayelastic.errors import ConfigError
from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.hash_ring import PARTITIONS, HashRing
from rayelastic.plan.plan_change import plan_change
from rayelastic.policy.regions.actions import ShareRegion, action_from_dict
from rayelastic.policy.regions.actuation import Actuation
from rayelastic.policy.regions.model import RegionModel
from rayelastic.policy.regions.organic_adaptation import OrganicAdaptation
from rayelastic.policy.regions.sharing.shares import even_use, shared_out
from rayelastic.policy.regions.sizing import Sizing
from rayelastic.policy.regions.thresholds import OrganicThresholds
from rayelastic.reasons import Code
from tests.raising import raises
from tests.reasons import codes, values

MICRO = 1e-6
SEEDS = 200


def test_shares_add_up_whatever_replicas_are_busy_with() -> None:
    for seed in range(SEEDS):
        dice = Random(seed)
        loads = HashRing.of(dice.randint(2, 40)).loads()
        use = [dice.choice([0.0, dice.random(), 1.0]) for _ in loads]
        if max(use) == 0:
            continue
        shares = even_use(loads, use)
        assert sum(shares) == PARTITIONS
        assert min(shares) >= 1
        assert HashRing.of(len(loads)).sharing(shares).loads() == list(shares)


def test_between_two_sharings_of_two_replicas_only_the_difference_moves() -> None:
    ring = HashRing.of(2)
    for more in range(1, PARTITIONS, 15):
        before, after = ring.sharing((more, PARTITIONS - more)), ring.sharing((1500, PARTITIONS - 1500))
        assert sum(map(len, before.moves(after).values())) == abs(more - 1500)


def plan_of(replicas: int) -> ExecPlan:
    plan = ClusterJob.chain("plain", 1e-7, [MICRO]).plan()
    return plan.with_replicas("r1", replicas, tuple(f"pe{n}" for n in range(replicas)))


def test_a_plan_with_shares_is_told_and_changed_live_and_back() -> None:
    plan = plan_of(2)
    action = ShareRegion("r1", (3000, 1096))
    there = action_from_dict({"kind": "share", "region": "r1", "shares": [3000, 1096], "previous": []}).apply(plan)
    assert there == action.apply(plan)
    assert ExecPlan.from_dict(there.to_record()) == there
    change = plan_change(plan, there)
    assert change.is_live
    [moves] = change.regions[0].moved
    assert (moves.source, moves.target, len(moves.partitions)) == (1, 0, 3000 - 2048)
    assert action.revert(there) == plan
    assert "1 of 2 replicas, 1,096 of 4,096 partitions" in there.text()
    assert there.with_shares("r1", HashRing.of(2).loads()) == plan, "even shares have one spelling"
    assert there.with_replicas("r1", 3).region("r1").shares == ()
    assert there.with_replicas("r1", 2, ("pe0", "pe7")).region("r1").shares == (3000, 1096)


@pytest.mark.parametrize("shares", [(1, 2), (4096,), (4096, 0), (5000, -904)])
def test_shares_that_there_can_not_be_are_refused(shares: tuple[int, ...]) -> None:
    with raises(ConfigError, "out-of-range"):
        plan_of(2).with_shares("r1", shares)
    with raises(ConfigError, "fixed-region"):
        plan_of(2).with_shares("r0", (1,))


def simulated(
    job: ClusterJob, load: float, nodes: list[SimulatedNode], most: int, payback: float = OrganicThresholds().payback
) -> ClusterSimulation:
    can = Actuation.of_running_jobs(["r1"], processes=most)
    thresholds = replace(OrganicThresholds.of_running_jobs(0.8, most), payback=payback)
    policy = OrganicAdaptation(thresholds=thresholds, actuation=can)
    plant = ClusterPlant(job, nodes, ClusterConstants(visit=0.0))
    return ClusterSimulation(plant, policy, lambda _: {"r0": load}, period=5.0, noise=0.05)


def test_a_slow_node_gets_fewer_keys_not_the_job_more_replicas() -> None:
    """Of three nodes one has half the speed: 2.5 of what one carries can be had, evenly but 1.5."""
    nodes = [SimulatedNode("a", 1), SimulatedNode("b", 1), SimulatedNode("slow", 1, speed=0.5)]
    simulation = simulated(ClusterJob.chain("three", 1e-8, [20 * MICRO]), 200e3, nodes, most=3)
    simulation.run(80)
    last = simulation.trace[-1]
    shares = last.plan.region("r1").ring.loads()
    slow = [pe for pe, node in last.plan.nodes.items() if node == "slow"]
    assert last.plan.region("r1").replicas == 3
    assert [loads for pe, loads in zip(last.plan.region("r1").pipelines[0].pes, shares, strict=True) if pe in slow] == [
        pytest.approx(PARTITIONS / 5, rel=0.15)
    ]
    best = 2.5 / (20 * MICRO)
    assert last.throughput >= 0.9 * best, "within a tenth of the best split"
    assert not any(step.decision.changes for step in simulation.trace[50:])


def test_warm_keys_are_spread() -> None:
    warm = SimulatedRegion((SimulatedOperator("o", 20 * MICRO),), skew=0.5)
    simulation = simulated(ClusterJob.chain("warm", 1e-8, warm), 400e3, [SimulatedNode("a", 8)], most=4)
    simulation.run(80)
    assert simulation.trace[-1].throughput >= 0.9 * 4 / (20 * MICRO)


def test_partitions_stay_where_their_move_costs_more_than_it_earns() -> None:
    """A slow node, and 0.6 s in which 1 s of pause has to be earned: replicas do that three times, partitions half."""
    nodes = [SimulatedNode("a", 1), SimulatedNode("b", 1), SimulatedNode("slow", 1, speed=0.5)]
    simulation = simulated(ClusterJob.chain("three", 1e-8, [20 * MICRO]), 200e3, nodes, most=3, payback=0.6)
    simulation.run(30)
    told = [step.decision for step in simulation.trace]
    assert simulation.trace[-1].plan.region("r1").replicas == 3
    assert not any(isinstance(action, ShareRegion) for decision in told for action in decision.actions)
    refused = next(d.reasons for d in told if Code.UNEVEN in codes(d.reasons) and Code.NOT_WORTH_IT in codes(d.reasons))
    assert values(refused, Code.GAIN)["cost"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("hot", "key", "gain"),
    [(0.0, "", 2.45), (0.55, "'home'", 0.25), (0.8, "'home'", None), (0.8, "", 2.45)],
    ids=["even keys", "a hot key", "nothing but a hot key", "a guess"],
)
def test_what_sharing_promises_is_bounded_by_the_hottest_key(hot: float, key: str, gain: float | None) -> None:
    """The replica of a key with 55 % of the work keeps that: five replicas can't promise 254 %."""
    plan, use = plan_of(5), (0.99, 0.11, 0.11, 0.11, 0.115)
    region = plan.region("r1").region
    sizing = Sizing(
        plan=plan,
        models={"r1": RegionModel(region, (MICRO,), overhead=0.0, hot=hot, key=key)},
        offered=4e6,
        carried=1e6,
        possible=4e6,
        need={"r1": 9e6},
        missing=0.0,
        replica_cpus={},
        replica_use={"r1": use},
        full_nodes={},
        rejected={},
        thresholds=OrganicThresholds.of_running_jobs(0.8, 5),
        can=Actuation.of_running_jobs(["r1"], processes=5),
    )
    sharing = shared_out(sizing, ())
    assert (sharing.gain if sharing is not None else None) == (pytest.approx(gain, abs=0.01) if gain else None)
