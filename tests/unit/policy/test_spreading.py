"""Native operators without replicas go to another host where the CPUs of theirs are all in use, and only there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from bench.plant.cluster.job import ClusterConstants, ClusterJob, SimulatedNode, SimulatedOperator, SimulatedRegion
from bench.plant.cluster.plant import ClusterPlant
from bench.plant.cluster.run import ClusterSimulation
from rayelastic.plan.node_placement import Node
from rayelastic.plan.regions import RegionKind
from rayelastic.policy.regions.actions import Verdict
from rayelastic.policy.regions.actuation import Actuation
from rayelastic.policy.regions.loads import cpu_loads, host_use
from rayelastic.policy.regions.model import RegionModel
from rayelastic.policy.regions.organic_adaptation import OrganicAdaptation
from rayelastic.policy.regions.sizing import Sizing
from rayelastic.policy.regions.spreading import spread, why_together
from rayelastic.policy.regions.thresholds import OrganicThresholds
from rayelastic.reasons import Code
from tests.reasons import codes

MICRO = 1e-6
PERIOD = 5.0  # s
LIVE = Actuation.of_running_jobs((), restarts=True)


def native(*costs: float) -> SimulatedRegion:
    """A region without keys, of compiled operators."""
    operators = tuple(SimulatedOperator(f"f{i}", cost) for i, cost in enumerate(costs))
    return SimulatedRegion(operators, kind=RegionKind.PIPELINE)


def simulated(
    costs: Sequence[float],
    nodes: Sequence[float],
    load: Callable[[float], float] = lambda _: 40e3,
    constants: ClusterConstants | None = None,
    can: Actuation = LIVE,
) -> ClusterSimulation:
    """A chain of compiled operators on hosts of so many CPUs."""
    policy = OrganicAdaptation(thresholds=OrganicThresholds.of_running_jobs(0.8), actuation=can)
    hosts = [SimulatedNode(f"n{i}", cpus) for i, cpus in enumerate(nodes)]
    plant = ClusterPlant(ClusterJob.chain("native", 1e-7, native(*costs)), hosts, constants or ClusterConstants())
    return ClusterSimulation(
        plant, policy, lambda time: {"r0": load(time)}, period=PERIOD, noise=0.02, seed=1, offered_known=False
    )  # fmt: skip


def hosts(simulation: ClusterSimulation) -> int:
    plan = simulation.trace[-1].plan
    return len({plan.nodes[pe] for pe in plan.pes})


# --- over time ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "least"), [(2, 1.8), (3, 2.5)])
def test_operators_use_all_hosts(count: int, least: float) -> None:
    simulation = simulated([50 * MICRO] * 6, [1.0] * count)
    simulation.run(80)
    first, last = simulation.trace[0], simulation.trace[-1]
    assert hosts(simulation) == count
    assert last.throughput >= least * first.throughput
    assert len(simulation.changes()) <= count
    assert not any(step.decision.changes for step in simulation.trace[40:])
    changed = next(step.decision for step in simulation.trace if step.decision.changes)
    assert Code.HOST_FULL in codes(changed.reasons)
    assert Code.REPLICAS_KEPT in [code for step in simulation.trace for code in codes(step.decision.reasons)]


def test_they_come_together_again_when_the_load_is_gone() -> None:
    simulation = simulated([50 * MICRO] * 4, [1.0, 1.0], lambda time: 40e3 if time < 200 else 1e3)
    simulation.run(120)
    assert max(len(step.plan.pes) for step in simulation.trace) == 2
    assert len(simulation.trace[-1].plan.pes) == 1
    assert simulation.trace[-1].throughput >= 0.95e3


def test_they_stay_apart_while_one_host_is_too_little() -> None:
    simulation = simulated([50 * MICRO] * 4, [1.0, 1.0], lambda time: 40e3 if time < 200 else 6e3)
    simulation.run(160)
    processes = [len(step.plan.pes) for step in simulation.trace]
    assert set(processes[processes.index(2) :]) == {2}, "not even for a trial"
    assert simulation.trace[-1].throughput >= 0.95 * 6e3


def test_what_does_not_help_is_taken_back() -> None:
    """The second host is far slower than its CPUs say."""
    simulation = simulated([50 * MICRO] * 4, [1.0, 1.0])
    simulation.plant.set_speed("n1", 0.4)
    simulation.run(60)
    assert Verdict.REVERT in [step.decision.verdict for step in simulation.trace]
    assert len(simulation.trace[-1].plan.pes) == 1
    assert len(simulation.changes()) == 2
    assert Code.TRIED_IN_VAIN in codes(simulation.trace[-1].decision.reasons)


# --- where nothing goes -------------------------------------------------------------------------------------------


def test_idle_cpus_of_the_host_are_left_to_threads() -> None:
    simulation = simulated([50 * MICRO] * 4, [4.0, 4.0])
    simulation.run(40)
    assert len(simulation.trace[-1].plan.pes) == 1
    assert Code.HOST_HAS_ROOM in codes(simulation.trace[-1].decision.reasons)


def test_a_process_on_the_same_host_is_no_help() -> None:
    simulation = simulated([50 * MICRO] * 4, [1.0])
    simulation.run(40)
    assert len(simulation.trace[-1].plan.pes) == 1
    assert Code.ONE_HOST in codes(simulation.trace[-1].decision.reasons)


def test_links_that_cost_more_than_they_free_are_not_made() -> None:
    can = replace(LIVE, links=dict.fromkeys(("f0", "f1", "source"), 40 * MICRO))
    simulation = simulated([20 * MICRO] * 2, [1.0, 1.0], constants=ClusterConstants(network=40 * MICRO), can=can)
    simulation.run(40)
    assert len(simulation.trace[-1].plan.pes) == 1
    assert Code.LINKS_TOO_MUCH in codes(simulation.trace[-1].decision.reasons)


def test_an_operator_that_fills_a_thread_gains_nothing() -> None:
    simulation = simulated([100 * MICRO, 1 * MICRO], [1.0, 1.0])
    simulation.run(40)
    assert len(simulation.trace[-1].plan.pes) == 1
    assert Code.ONE_THREAD in codes(simulation.trace[-1].decision.reasons)


def test_without_leave_to_restart_nothing_goes_and_it_says_so() -> None:
    why = Code.CANT_SEEK(sources=["source"])
    simulation = simulated([50 * MICRO] * 2, [1.0, 1.0], can=Actuation.of_running_jobs((), together=why))
    simulation.run(40)
    assert len(simulation.trace[-1].plan.pes) == 1
    assert {Code.HOST_FULL_STAYS, Code.CANT_SEEK} <= set(codes(simulation.trace[-1].decision.reasons))


# --- one decision -------------------------------------------------------------------------------------------------


def sized(costs: Sequence[float], nodes: Sequence[Node], full: Sequence[str], spread_over: float = 1.0) -> Sizing:
    """What is known of a chain on the first node that carries a fourth of what it is offered."""
    plan = ClusterJob.chain("one", 0.0, native(*costs)).plan().with_nodes({"pe0": nodes[0].name})
    region = plan.region("r1").region
    rate = 1.0 / sum(costs)
    return Sizing(
        plan, {"r1": RegionModel(region, tuple(costs), overhead=0.0, spread=spread_over)},
        offered=4 * rate, carried=rate, possible=rate, need={"r0": rate, "r1": rate}, missing=0.0,
        replica_cpus={}, replica_use={}, full_nodes=dict.fromkeys(full, 1.0), rejected={},
        thresholds=OrganicThresholds.of_running_jobs(0.8), can=LIVE,
    )  # fmt: skip


def test_threads_of_one_process_are_counted_as_what_they_use() -> None:
    """Four operators that two threads run keep two CPUs busy; a share of one CPU each is moved for half of them."""
    nodes = [Node("a", 2.0), Node("b", 2.0)]
    sizing = sized([0.25] * 4, nodes, ["a"], spread_over=2.0)
    assert cpu_loads(sizing.plan, sizing) == {"pe0": pytest.approx(2.0)}
    found = spread(sizing, nodes)
    assert found is not None
    assert found.plan.region("r1").cuts == ("f2",)
    assert found.plan.nodes == {"pe0": "a", "pe1": "b"}
    assert host_use(found.plan, sizing, nodes) == {"a": pytest.approx(0.5, abs=1e-6), "b": pytest.approx(0.5, abs=1e-6)}


def test_the_freest_host_is_taken() -> None:
    nodes = [Node("a", 1.0), Node("b", 0.1), Node("c", 1.0)]
    found = spread(sized([0.25] * 4, nodes, ["a"]), nodes)
    assert found is not None
    assert found.plan.nodes == {"pe0": "a", "pe1": "c"}


def test_hosts_without_room_are_no_help() -> None:
    nodes = [Node("a", 1.0), Node("b", 0.05)]
    sizing = sized([0.25] * 4, nodes, ["a"])
    assert spread(sizing, nodes) is None
    assert codes(why_together(sizing, nodes)) == [Code.HOSTS_FULL]


def test_a_cut_goes_where_few_tuples_pass() -> None:
    nodes = [Node("a", 1.0), Node("b", 1.0)]
    sizing = sized([0.25e-6, 0.25e-6, 0.05e-6, 0.45e-6], nodes, ["a"])
    model = replace(sizing.models["r1"], passes=(1.0, 1.0, 1.0, 0.01))
    found = spread(replace(sizing, models={"r1": model}), nodes)
    assert found is not None
    assert found.plan.region("r1").cuts == ("f3",)
