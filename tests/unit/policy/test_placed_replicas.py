"""Organic adaptation knows nodes and the token: where replicas go, who asks for a node, what a lost one had."""

from __future__ import annotations

import pytest

from bench.plant.cluster.job import ClusterJob, SimulatedNode, SimulatedOperator, SimulatedRegion
from rayelastic.plan.node_placement import Node
from rayelastic.policy.regions.actions import Verdict
from rayelastic.policy.regions.actuation import Actuation
from rayelastic.policy.regions.model import RegionModel
from rayelastic.policy.regions.proposal import propose
from rayelastic.policy.regions.sizing import Sizing
from rayelastic.policy.regions.thresholds import OrganicThresholds
from rayelastic.reasons import Code
from tests.unit.policy.clusters import MICRO, ONE, simulation


def test_native_replicas_fill_the_process_before_another_one_starts() -> None:
    nodes = [SimulatedNode("a", 4), SimulatedNode("b", 4), SimulatedNode("c", 4)]
    sim = simulation(ONE, 500e3, nodes)
    sim.run(12)
    planned = sim.plan.region("r1")
    assert planned.pipelines[0].pes == ("pe0",) * 4 + ("pe1",) * 3  # 0.71 CPUs each, and 3.2 of each node by choice
    assert sim.plan.nodes["pe1"] == "b"
    assert sim.trace[-1].throughput == pytest.approx(500e3)


def test_token_bound_replicas_are_processes() -> None:
    region = SimulatedRegion((SimulatedOperator("python", 10 * MICRO, token=True),))
    sim = simulation(ClusterJob.chain("python", 0.05 * MICRO, region), 250e3)
    sim.run(12)
    assert sim.plan.region("r1").pipelines[0].pes == ("pe0", "pe1", "pe2", "pe3")
    assert sim.trace[-1].throughput == pytest.approx(250e3)


@pytest.mark.parametrize("token", [False, True])
@pytest.mark.parametrize("target", [0.2, 0.8])
def test_busy_replicas_go_where_cpus_are_free(target: float, token: bool) -> None:
    """Three hosts of one CPU: beside the first, a second replica would have no CPU of its own, nor room for bursts."""
    region = SimulatedRegion((SimulatedOperator("count", 10 * MICRO, token=token),))
    nodes, job = [SimulatedNode(name, 1) for name in "abc"], ClusterJob.chain("words", 0.05 * MICRO, region)
    most = target * 100e3  # tuples/s of one replica
    sim = simulation(
        job, lambda time: most * (0.9 + time / 200), nodes, None, OrganicThresholds.of_running_jobs(target)
    )
    while sim.plan.region("r1").replicas < 3:
        sim.step()
    assert [step.decision.plan.region("r1").replicas for step in sim.changes()] == [2, 3]
    assert [sim.plan.nodes[pe] for pe in sim.plan.region("r1").pipelines[0].pes] == ["a", "b", "c"]


def test_replicas_of_which_not_all_may_come_take_what_is_left_to_each() -> None:
    """Sixteen would take a sixth of a CPU each, and six of these one node; as six they take nearly half a CPU each."""
    region = SimulatedRegion((SimulatedOperator("python", 10 * MICRO, token=True),))
    nodes = [Node(name, 2.0) for name in "abc"]
    plan = simulation(ClusterJob.chain("python", 0.05 * MICRO, region), 1.0).plan.with_nodes({"pe0": "a"})
    model = RegionModel(plan.region("r1").region, (10 * MICRO,), overhead=0.0)
    sizing = Sizing(
        plan, {"r1": model}, offered=260e3, carried=100e3, possible=260e3, need={"r1": 260e3}, missing=0.0,
        replica_cpus={}, replica_use={}, full_nodes={}, rejected={},
        thresholds=OrganicThresholds.of_running_jobs(0.8), can=Actuation.of_running_jobs(("r1",)),
    )  # fmt: skip
    proposal = propose(sizing, {"r1": ((), 16)}, nodes)
    where = [proposal.plan.nodes[pe] for pe in proposal.plan.region("r1").pipelines[0].pes]
    assert (len(where), where.count("a")) == (6, 3)
    assert proposal.request is not None
    assert proposal.request.cpus == pytest.approx(10 * 2.6 / 16)


def test_beyond_that_nodes_are_filled_up() -> None:
    """Two nodes of one CPU and a target of a fifth: the third replica has to share, as there is nothing else."""
    nodes = [SimulatedNode(name, 1) for name in "ab"]
    sim = simulation(ONE, 50e3, nodes, thresholds=OrganicThresholds.of_running_jobs(0.2))
    sim.run(12)
    assert sim.plan.region("r1").replicas == 3
    assert [sim.plan.nodes[pe] for pe in sim.plan.region("r1").pipelines[0].pes] == ["a", "b", "a"]
    assert sim.trace[-1].decision.request is None


def test_two_token_bound_regions_in_one_process_part() -> None:
    """Neither needs a replica, but they have one token: one of them moves to a process of its own."""
    python = [SimulatedRegion((SimulatedOperator(f"python{i}", 10 * MICRO, token=True),)) for i in range(2)]
    sim = simulation(ClusterJob.chain("tokens", 0.05 * MICRO, *python), 75e3)
    sim.run(12)
    assert [p.pipelines[0].pes for p in sim.plan.regions] == [("pe0",), ("pe0",), ("pe1",)]
    assert sim.changes()[0].decision.actions[0].reason == Code.MOVE(region="r2", pes=["pe1"])
    assert sim.trace[-1].throughput == pytest.approx(75e3)


def test_no_room_asks_for_a_node() -> None:
    sim = simulation(ONE, 700e3, [SimulatedNode("a", 2), SimulatedNode("b", 2)])
    sim.run(30)
    request = sim.trace[-1].decision.request
    assert request is not None
    assert 2.0 < request.cpus < 5.0
    assert request.reason.values == {"cpus": request.cpus}
    assert sim.trace[-1].throughput > 300e3
    enough = simulation(ONE, 150e3, [SimulatedNode("a", 4)])
    enough.run(12)
    assert enough.trace[-1].decision.request is None


def test_what_was_on_a_lost_node_goes_elsewhere_at_once() -> None:
    nodes = [SimulatedNode(name, 4) for name in "abc"]
    sim = simulation(ONE, 500e3, nodes)
    sim.run(12)
    sim.plant.fail("b")
    step = sim.step()
    assert step.throughput == 0.0
    assert step.decision.verdict is Verdict.PLACE
    assert step.decision.reasons == (Code.NODE_LOST(node="b"), Code.PE_MOVES(pe="pe1", node="c"))
    assert sim.step().throughput == pytest.approx(500e3)


def test_nodes_that_are_left_are_shared_until_there_are_more() -> None:
    nodes = [SimulatedNode("a", 4), SimulatedNode("b", 4)]
    sim = simulation(ONE, 500e3, nodes)
    sim.run(12)
    sim.plant.fail("b")
    step = sim.step()
    assert step.decision.reasons == (Code.NODE_LOST(node="b"), Code.PE_MOVES(pe="pe1", node="a"))
    assert step.decision.request is not None
    assert step.decision.request.cpus == pytest.approx(5.0 - 3.8, abs=0.1)
    assert sim.step().throughput > 350e3


def test_what_fits_nowhere_is_over_booked_rather_than_left_out() -> None:
    """Four replicas of 0.8 CPUs were on the lost node; the two that are left have 1.2 free each at full load."""
    sim = simulation(ONE, 640e3, [SimulatedNode("a", 4), SimulatedNode("b", 2), SimulatedNode("c", 2)])
    sim.run(12)
    assert sim.plan.region("r1").pipelines[0].pes == ("pe0",) * 3 + ("pe1",) * 2 + ("pe2",) * 2 + ("pe0",)
    sim.plant.fail("a")
    lost, moves = sim.step().decision.reasons
    assert lost == Code.NODE_LOST(node="a")
    assert (moves.values["pe"], moves.values["node"]) in (("pe0", "b"), ("pe0", "c"))
    assert sim.step().throughput > 200e3


def test_what_is_undone_stands_where_it_stood_and_names_no_other_element() -> None:
    """The other node is so slow that its replicas hold all back."""
    region = SimulatedRegion((SimulatedOperator("python", 20 * MICRO, token=True),))
    job = ClusterJob.chain("held back", 0.1 * MICRO, region)
    sim = simulation(job, 150e3, [SimulatedNode("a", 1), SimulatedNode("b", 4, 0.02)])
    sim.run(30)
    told = [step.decision for step in sim.trace if step.decision.verdict is not Verdict.HOLD]
    assert [decision.verdict for decision in told[:2]] == [Verdict.TRY, Verdict.REVERT]
    assert set(told[0].plan.nodes.values()) == {"a", "b"}
    assert told[1].plan.nodes == {"pe0": "a"}
