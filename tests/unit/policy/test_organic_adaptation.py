"""Organic adaptation by true rates: jumps, reverts, shrinks, waits, knows nodes and the token, replays."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.plant.cluster.job import ClusterConstants, ClusterJob, SimulatedNode, SimulatedOperator, SimulatedRegion
from bench.plant.cluster.plant import ClusterPlant
from bench.plant.cluster.random_jobs import random_job
from bench.plant.cluster.run import ClusterSimulation, ClusterStep
from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.node_placement import Node
from rayelastic.plan.plan_change import plan_change
from rayelastic.plan.regions import RegionKind
from rayelastic.policy.regions.actions import AdaptationDecision, Verdict
from rayelastic.policy.regions.observation import PipelineObservation, PlanObservation, RegionObservation
from rayelastic.policy.regions.organic_adaptation import OrganicAdaptation
from rayelastic.policy.regions.thresholds import OrganicThresholds

MICRO = 1e-6
ONE = ClusterJob.chain("one", 0.05 * MICRO, [10 * MICRO])  # 100,000 tuples/s with one replica
BIG = [SimulatedNode("big", 64)]


def simulation(
    job: ClusterJob,
    load: float | Callable[[float], float],
    nodes: list[SimulatedNode] = BIG,
    constants: ClusterConstants | None = None,
    thresholds: OrganicThresholds | None = None,
    **settings: Any,
) -> ClusterSimulation:
    rate = load if callable(load) else lambda time: load
    plant = ClusterPlant(job, nodes, constants or ClusterConstants(visit=0.0))
    policy = OrganicAdaptation(thresholds=thresholds)
    return ClusterSimulation(plant, policy, lambda time: {"r0": rate(time)}, period=5.0, **settings)


def verdicts(trace: list[ClusterStep]) -> list[str]:
    return [step.decision.verdict.value for step in trace if step.decision.verdict is not Verdict.HOLD]


def test_it_jumps_to_what_the_load_needs() -> None:
    """700,000 tuples/s at 80 % of 100,000 each are nine replicas, in one change."""
    sim = simulation(ONE, 700e3)
    sim.run(10)
    assert verdicts(sim.trace) == ["try", "keep"]
    assert sim.plan.region("r1").replicas == 9
    decision = sim.changes()[0].decision
    assert decision.reset
    assert decision.reason.startswith("700k tuples/s offered, ")
    assert "r1 from 1 replica to 9: expected gain" in decision.reason


def test_where_local_levels_cut_pipelines_it_never_does() -> None:
    """Two operators would be cut in two first; a running job gets replicas, sized for its target."""
    job = ClusterJob.chain("two", 0.05 * MICRO, [10 * MICRO, 10 * MICRO])
    for target, replicas in ((0.8, 3), (0.4, 5)):
        sim = simulation(job, 100e3, thresholds=OrganicThresholds.of_running_jobs(target))
        sim.run(12)
        assert [step.decision.plan.region("r1").replicas for step in sim.changes()] == [replicas]
        assert not sim.plan.region("r1").cuts
    assert len(simulation(job, 70e3).run(12)[-1].decision.plan.region("r1").cuts) == 1


def test_a_source_that_doesnt_know_its_load_is_taken_by_its_waiting() -> None:
    sim = simulation(ClusterJob.chain("slow source", 5 * MICRO, [10 * MICRO]), 1e9, offered_known=False)
    sim.run(10)
    assert sim.plan.region("r1").replicas == 3  # the source makes 200,000/s
    assert sim.trace[-1].throughput == pytest.approx(200e3)


def test_a_paced_source_that_doesnt_know_its_load_isnt_taken_for_an_endless_one() -> None:
    """Held back, it looks like one that could make 20 million/s; twice the load gets four times at most, then less."""
    sim = simulation(ONE, lambda time: 75e3 if time < 60 else 150e3, offered_known=False)
    sim.run(40)
    assert [step.decision.plan.region("r1").replicas for step in sim.changes()] == [5, 2]
    assert sim.trace[-1].throughput == pytest.approx(150e3)


ASKS = ClusterJob.chain(
    "asks",
    0.05 * MICRO,
    SimulatedRegion((SimulatedOperator("parse", 5e-6), SimulatedOperator("ask", 45e-6, token=True, wait=2e-3))),
)  # 488 tuples/s with one replica, which uses 2.4 % of a CPU


def test_an_operator_that_waits_gets_replicas_by_its_waiting_not_by_its_cpu_time() -> None:
    """1,500 tuples/s at 80 % of 488 each are four replicas, in one change, on two CPUs; fewer when it falls (DS2)."""
    sim = simulation(ASKS, lambda time: 1500.0 if time < 100 else 600.0, [SimulatedNode("small", 2)])
    sim.run(50)
    assert verdicts(sim.trace) == ["try", "keep", "try", "keep"]
    assert [step.decision.plan.region("r1").replicas for step in sim.changes()] == [4, 2]
    first = sim.changes()[0].decision.plan
    assert len(set(first.region("r1").pipelines[0].pes)) == 4  # processes: they sleep with the token
    assert not first.region("r1").cuts
    assert sim.trace[19].throughput == pytest.approx(1500.0)
    assert sim.trace[-1].throughput == pytest.approx(600.0)


def test_a_source_that_doesnt_know_its_load_finds_what_waits_for_it() -> None:
    sim = simulation(ASKS, lambda time: 900.0, offered_known=False)
    sim.run(60)
    assert sim.plan.region("r1").replicas == 3
    assert sim.trace[-1].throughput == pytest.approx(900.0)


def test_a_service_that_gets_slower_is_a_change_of_load() -> None:
    """The same rate and the same CPU time, but answers take twice as long."""
    sim = simulation(ASKS, 1000.0)
    sim.run(20)
    assert sim.plan.region("r1").replicas == 3
    ask = SimulatedOperator("ask", 45 * MICRO, token=True, wait=4e-3)
    slower = replace(ASKS.regions[1], operators=(ASKS.regions[1].operators[0], ask))
    sim.plant = ClusterPlant(replace(ASKS, regions=(ASKS.regions[0], slower)), BIG, ClusterConstants(visit=0.0))
    sim.run(20)
    assert sim.plan.region("r1").replicas == 6
    assert sim.trace[-1].throughput == pytest.approx(1000.0)


def test_all_bottlenecks_at_once() -> None:
    """Those that are hidden behind others too, as each operator's true rate is known (J21)."""
    sim = simulation(ClusterJob.chain("three", 0.05 * MICRO, [10 * MICRO], [5 * MICRO], [20 * MICRO]), 150e3)
    sim.run(10)
    assert verdicts(sim.trace) == ["try", "keep"]
    assert [p.replicas for p in sim.plan.regions] == [1, 2, 1, 4]
    assert sim.trace[-1].throughput == pytest.approx(150e3)


def test_it_splits_where_replicas_cant_be() -> None:
    region = SimulatedRegion(tuple(SimulatedOperator(f"o{i}", 3 * MICRO) for i in range(4)), RegionKind.PIPELINE)
    sim = simulation(ClusterJob.chain("stateful", 0.05 * MICRO, region), 120e3)
    sim.run(10)
    assert sim.plan.region("r1").cuts == ("o2",)
    assert sim.trace[-1].throughput == pytest.approx(120e3)


def test_a_split_is_preferred_to_a_replica_as_it_moves_no_keys() -> None:
    sim = simulation(ClusterJob.chain("two", 0.05 * MICRO, [5 * MICRO, 5 * MICRO]), 150e3)
    sim.run(10)
    assert [(p.cuts, p.replicas) for p in sim.plan.regions[1:]] == [(("o0_1",), 1)]


def test_it_shrinks_when_the_load_has_fallen_for_long() -> None:
    """1 -> 4 -> 1 replicas; later than it grows, never while sources are held back, and it merges."""
    sim = simulation(ONE, lambda time: 300e3 if time < 100 else 50e3)
    sim.run(50)
    grown, shrunk = sim.changes()
    assert [step.decision.plan.region("r1").replicas for step in (grown, shrunk)] == [4, 1]
    assert shrunk.time - 100 > 8 * 5
    assert shrunk.decision.rule == "less is enough for long"
    assert sim.trace[-1].throughput == pytest.approx(50e3)
    two = simulation(
        ClusterJob.chain("two", 0.05 * MICRO, [5 * MICRO, 5 * MICRO]), lambda t: 150e3 if t < 100 else 50e3
    )
    two.run(50)
    assert two.plan == replace(two.plant.job.plan(), epoch=2, nodes={"pe0": "big"})


def test_a_job_that_was_stable_is_left_alone_for_longer() -> None:
    """At 93 %, between the borders for new and for stable jobs (J31)."""
    fresh = simulation(ONE, 93e3)
    fresh.run(12)
    assert fresh.plan.region("r1").replicas == 2
    stable = simulation(ONE, lambda time: 60e3 if time < 60 else 93e3)
    stable.run(40)
    assert stable.plan.region("r1").replicas == 1
    assert stable.trace[-1].throughput == pytest.approx(93e3)


def test_a_change_that_gives_nothing_is_reverted_and_rejected() -> None:
    """A plant whose second replica helps nobody: tried, taken back, the next shape tried, then left alone (4.3)."""
    useless = ClusterConstants(visit=0.0, speedup={2: 1.0, 3: 2.0, 4: 3.0, 5: 4.0, 20: 19.0})
    sim = simulation(ONE, 150e3, constants=useless)
    sim.run(60)
    assert verdicts(sim.trace) == ["try", "revert"] * (len(sim.changes()) // 2)
    assert 1 <= len(sim.changes()) // 2 <= 2
    assert sim.plan.region("r1").replicas == 1
    assert "reverted and rejected until the load changes" in sim.changes()[1].decision.reason


def test_a_region_that_two_shapes_didnt_help_is_left_alone() -> None:
    """Three operators could be split, replicated, or both."""
    useless = ClusterConstants(visit=0.0, speedup={2: 1.0, 3: 2.0, 4: 3.0, 5: 4.0, 20: 19.0})
    sim = simulation(ClusterJob.chain("three", 0.05 * MICRO, [4 * MICRO] * 3), 150e3, constants=useless)
    sim.run(100)
    assert verdicts(sim.trace) == ["try", "revert"] * 2


def test_rejections_are_forgotten_when_the_load_changes() -> None:
    useless = ClusterConstants(visit=0.0, speedup={2: 1.0, 3: 2.0, 4: 3.0, 5: 4.0, 20: 19.0})
    sim = simulation(ONE, lambda time: 150e3 if time < 300 else 250e3, constants=useless)
    sim.run(60)
    before = len(sim.changes())
    sim.run(40)
    assert len(sim.changes()) > before


def test_a_change_has_to_earn_its_cost() -> None:
    """700 GB of state take half an hour to move; until it was measured nobody knows, and then it isn't done again."""
    job = ClusterJob.chain("heavy", 0.05 * MICRO, SimulatedRegion((SimulatedOperator("o", 10 * MICRO),), state=140e9))
    sim = simulation(job, lambda time: 150e3 if time < 200 else 300e3)
    sim.run(80)
    assert len(sim.changes()) == 1
    assert "not worth it" in "".join(step.decision.reason for step in sim.trace)


def test_it_waits_for_local_levels_but_not_for_ever() -> None:
    sim = simulation(ONE, lambda time: 150e3 if time < 60 else 700e3, settles=1000)
    sim._unsettled = 1000
    sim.run(40)
    assert [step.decision.plan.region("r1").replicas for step in sim.changes()] == [2, 9]
    waits = [s for s in sim.trace if "local levels have not settled" in s.decision.reason]
    assert len(waits) == 3 * OrganicThresholds().settle_periods


def test_nothing_is_decided_before_the_plan_is_in_force() -> None:
    sim = simulation(ONE, 700e3)
    seen = sim.observe(sim.plant.solve(sim.plan, {"r0": 700e3}), {"r0": 700e3})
    policy = OrganicAdaptation()
    for _ in range(20):
        decision = policy.step(replace(seen, adapted=False))
        assert not decision.changes
        assert decision.reason == "the plan that was asked for is not in force yet"


def test_a_change_that_was_rolled_back_is_neither_judged_nor_rejected() -> None:
    """The performer could not carry it out: the old plan is in force again, and what was wanted is asked for again."""
    for variant in ("rates", "paper"):
        sim = simulation(ONE, 700e3)
        sim.policy = OrganicAdaptation(variant)
        asked = None
        for _ in range(30):
            step = sim.step()
            if step.decision.changes and asked is None:
                asked = step.decision
                sim.plan = step.plan
        assert asked is not None
        assert any("rolled back" in step.decision.reason for step in sim.trace)
        later = [s.decision for s in sim.changes()[1:]]
        assert later[0].verdict is Verdict.TRY
        assert later[0].actions == asked.actions
        assert sim.trace[-1].throughput > 600e3


def test_a_plan_that_others_changed_is_learned_afresh() -> None:
    sim = simulation(ONE, 300e3)
    sim.run(12)
    sim.plan = replace(sim.plan.with_replicas("r1", 2), epoch=9)
    sim.load = lambda time: {"r0": 0.0}
    assert "changed by others" in sim.step().decision.reason
    sim.run(6)  # with nothing to learn from
    sim.load = lambda time: {"r0": 300e3}
    sim.run(12)
    assert sim.plan.region("r1").replicas == 4


# --- nodes and the token --------------------------------------------------------------------------------------------


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
    assert sim.changes()[0].decision.actions[0].text() == "move replicas of r2 to pe1"
    assert sim.trace[-1].throughput == pytest.approx(75e3)


def test_no_room_asks_for_a_node() -> None:
    sim = simulation(ONE, 700e3, [SimulatedNode("a", 2), SimulatedNode("b", 2)])
    sim.run(30)
    request = sim.trace[-1].decision.request
    assert request is not None
    assert 2.0 < request.cpus < 5.0
    assert "CPUs" in request.reason
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
    assert step.decision.reason == "b is gone: pe1 to c"
    assert sim.step().throughput == pytest.approx(500e3)


def test_nodes_that_are_left_are_shared_until_there_are_more() -> None:
    nodes = [SimulatedNode("a", 4), SimulatedNode("b", 4)]
    sim = simulation(ONE, 500e3, nodes)
    sim.run(12)
    sim.plant.fail("b")
    step = sim.step()
    assert step.decision.reason == "b is gone: pe1 to a"
    assert step.decision.request is not None
    assert step.decision.request.cpus == pytest.approx(5.0 - 3.8, abs=0.1)
    assert sim.step().throughput > 350e3


def test_what_fits_nowhere_is_over_booked_rather_than_left_out() -> None:
    """Four replicas of 0.8 CPUs were on the lost node; the two that are left have 1.2 free each at full load."""
    sim = simulation(ONE, 640e3, [SimulatedNode("a", 4), SimulatedNode("b", 2), SimulatedNode("c", 2)])
    sim.run(12)
    assert sim.plan.region("r1").pipelines[0].pes == ("pe0",) * 3 + ("pe1",) * 2 + ("pe2",) * 2 + ("pe0",)
    sim.plant.fail("a")
    assert sim.step().decision.reason in ("a is gone: pe0 to b", "a is gone: pe0 to c")
    assert sim.step().throughput > 200e3


# --- journal, variants ----------------------------------------------------------------------------------------------


def test_a_journal_replays_byte_for_byte() -> None:
    lines: list[tuple[str, str]] = []

    class Recorder(OrganicAdaptation):
        def step(self, seen: PlanObservation) -> AdaptationDecision:
            decision = super().step(seen)
            lines.append((json.dumps(seen.as_dict()), json.dumps(decision.as_dict())))
            return decision

    def load(time: float) -> Mapping[str, float]:
        return {"r0": 150e3 if time < 100 else 700e3}

    nodes = [SimulatedNode(name, 4, zone="x") for name in "abc"]
    ClusterSimulation(ClusterPlant(ONE, nodes), Recorder(), load, period=5.0, noise=0.05, seed=7).run(60)
    again = OrganicAdaptation()
    for seen, decided in lines:
        decision = again.step(PlanObservation.from_dict(json.loads(seen)))
        assert json.dumps(decision.as_dict()) == decided
        assert AdaptationDecision.from_dict(json.loads(decided)) == decision
    assert sum(json.loads(decided)["verdict"] != "hold" for _, decided in lines) >= 2


def test_an_idle_job_stays_as_it_is() -> None:
    sim = simulation(ONE, 0.0)
    sim.run(20)
    assert sim.changes() == []
    assert sim.trace[-1].decision.reason.endswith("; stable")


@st.composite
def observations(draw: st.DrawFn) -> PlanObservation:
    """Anything that could be measured, and some that couldn't."""
    plan = random_job(draw(st.integers(0, 50))).plan()
    for planned in plan.regions:
        if planned.region.kind is RegionKind.DATA_PARALLEL:
            plan = plan.with_replicas(planned.region.name, draw(st.integers(1, 4)))
    share, rate = st.floats(0, 1), st.one_of(st.just(0.0), st.floats(0, 1e7))
    regions = []
    for planned in plan.regions:
        pipelines = []
        for p in planned.pipelines:
            count = len(p.operators)
            cpu, costs = (tuple(draw(st.lists(share, min_size=n, max_size=n))) for n in (len(p.pes), count))
            pipelines.append(PipelineObservation(p.operators, cpu, costs, (draw(rate),) * count, draw(rate)))
        offered = draw(st.none() | rate)
        regions.append(
            RegionObservation(planned.region.name, draw(rate), tuple(pipelines), offered, draw(share), draw(share))
        )
    nodes = tuple(Node(f"n{i}", draw(st.floats(0.5, 8))) for i in range(draw(st.integers(0, 3))))
    plan = plan.with_nodes({"pe0": draw(st.sampled_from(["n0", "n9"]))})
    return PlanObservation(draw(st.floats(0, 1e6)), 5.0, plan, tuple(regions), nodes, draw(st.booleans()))


def _under(plan: ExecPlan, seen: PlanObservation) -> PlanObservation:
    """The same measurements under another plan."""
    regions = []
    for planned, region in zip(plan.regions, seen.regions, strict=True):
        cpus = [cpu for p in region.pipelines for cpu in p.cpu]
        costs = [cost for p in region.pipelines for cost in p.costs]
        pipelines = []
        for p in planned.pipelines:
            mine = tuple(costs[planned.region.operators.index(o)] for o in p.operators)
            cpu = tuple(cpus[i % len(cpus)] for i in range(len(p.pes)))
            taken = (region.throughput,) * len(p.operators)
            pipelines.append(PipelineObservation(p.operators, cpu, mine, taken, region.throughput))
        regions.append(replace(region, pipelines=tuple(pipelines)))
    return replace(seen, plan=plan, regions=tuple(regions))


@given(observations(), st.sampled_from(["rates", "paper"]))
def test_whatever_is_measured_gives_a_plan_that_can_be_applied(seen: PlanObservation, variant: str) -> None:
    policy = OrganicAdaptation(variant)
    for i in range(8):
        decision = policy.step(seen)
        assert decision.reason
        change = plan_change(seen.plan, decision.plan)
        assert bool(change.regions or decision.plan.nodes != seen.plan.nodes) == decision.changes
        plan = seen.plan
        for action in decision.reverted:
            plan = action.revert(plan)
        for action in decision.actions:
            plan = action.apply(plan)
        assert plan.regions == decision.plan.regions
        for action in reversed(decision.actions):
            plan = action.revert(plan)
        assert decision.reverted or plan.regions == seen.plan.regions
        if i % 3:  # otherwise the old plan stays in force, as after a change that was rolled back
            seen = _under(decision.plan, seen)


def test_an_unknown_variant() -> None:
    with pytest.raises(ValueError, match="choose 'rates' or 'paper'"):
        OrganicAdaptation("magic")


def test_observations_are_averages_of_samples() -> None:
    """J18: the averages of a window are those of its samples, number by number."""
    from rayelastic.policy.regions.observation import ObservationWindow

    plan = ONE.plan()
    window = ObservationWindow(samples=2, warm_up=1)

    def sample(time: float, rate: float, cpu: float) -> PlanObservation:
        regions = tuple(
            RegionObservation(
                p.region.name, rate, (PipelineObservation(p.region.operators, (cpu,), (cpu / 2,), (rate,), rate),)
            )
            for p in plan.regions
        )
        return PlanObservation(time, 1.0, plan, regions, (Node("a", 4.0),))

    assert window.add(sample(1, 1e9, 1.0)) is None  # warming up
    assert window.add(sample(2, 100.0, 0.25)) is None
    seen = window.add(sample(3, 200.0, 0.75))
    assert seen is not None
    assert (seen.time, seen.period, seen.of("r1").throughput, seen.of("r1").offered) == (3, 2.0, 150.0, None)
    assert seen.of("r1").pipelines[0] == PipelineObservation(("o0_0",), (0.5,), (0.25,), (150.0,), 150.0)
    changed = replace(sample(4, 1.0, 1.0), plan=replace(plan, epoch=1))
    assert window.add(changed) is None  # another plan warms up again
    with pytest.raises(ValueError, match="samples=0"):
        ObservationWindow(samples=0)
