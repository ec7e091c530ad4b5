"""Organic adaptation by true rates: it jumps, reverts, shrinks and waits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.plant.cluster.job import ClusterConstants, ClusterJob, SimulatedNode, SimulatedOperator, SimulatedRegion
from bench.plant.cluster.plant import ClusterPlant
from rayelastic.papers.joker import PaperAdaptation
from rayelastic.plan.regions import RegionKind
from rayelastic.policy.regions.actions import Verdict
from rayelastic.policy.regions.organic_adaptation import OrganicAdaptation
from rayelastic.policy.regions.thresholds import OrganicThresholds
from rayelastic.reasons import Code
from tests.reasons import codes, values
from tests.unit.policy.clusters import BIG, MICRO, ONE, simulation, verdicts


def test_it_jumps_to_what_the_load_needs() -> None:
    """700,000 tuples/s at 80 % of 100,000 each are nine replicas, in one change."""
    sim = simulation(ONE, 700e3)
    sim.run(10)
    assert verdicts(sim.trace) == ["try", "keep"]
    assert sim.plan.region("r1").replicas == 9
    decision = sim.changes()[0].decision
    assert decision.reset
    assert values(decision.reasons, Code.RATES)["offered"] == pytest.approx(700e3)
    assert Code.REPLICAS(region="r1", before=1, replicas=9) in decision.reasons
    assert codes(decision.reasons)[-1] is Code.GAIN


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
    assert [step.decision.plan.region("r1").replicas for step in sim.changes()] == [4, 2]
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
    assert Code.REPLICAS_REVERTED in codes(sim.changes()[1].decision.reasons)


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
    assert any(Code.NOT_WORTH_IT in codes(step.decision.reasons) for step in sim.trace)


def test_it_waits_for_local_levels_but_not_for_ever() -> None:
    sim = simulation(ONE, lambda time: 150e3 if time < 60 else 700e3, settles=1000)
    sim._unsettled = 1000
    sim.run(40)
    assert [step.decision.plan.region("r1").replicas for step in sim.changes()] == [2, 9]
    waits = [s for s in sim.trace if Code.LOCAL_UNSETTLED in codes(s.decision.reasons)]
    assert len(waits) == 3 * OrganicThresholds().settle_periods


def test_nothing_is_decided_before_the_plan_is_in_force() -> None:
    sim = simulation(ONE, 700e3)
    seen = sim.observe(sim.plant.solve(sim.plan, {"r0": 700e3}), {"r0": 700e3})
    policy = OrganicAdaptation()
    for _ in range(20):
        decision = policy.step(replace(seen, adapted=False))
        assert not decision.changes
        assert decision.reasons == (Code.NOT_IN_FORCE(),)


def test_a_change_that_was_rolled_back_is_neither_judged_nor_rejected() -> None:
    """The performer could not carry it out: the old plan is in force again, and what was wanted is asked for again."""
    for policy in (OrganicAdaptation(), PaperAdaptation()):
        sim = simulation(ONE, 700e3)
        sim.policy = policy
        asked = None
        for _ in range(30):
            step = sim.step()
            if step.decision.changes and asked is None:
                asked = step.decision
                sim.plan = step.plan
        assert asked is not None
        assert any(Code.REGIONS_ROLLED_BACK in codes(step.decision.reasons) for step in sim.trace)
        later = [s.decision for s in sim.changes()[1:]]
        assert later[0].verdict is Verdict.TRY
        assert later[0].actions == asked.actions
        assert sim.trace[-1].throughput > 600e3


def test_a_plan_that_others_changed_is_learned_afresh() -> None:
    sim = simulation(ONE, 300e3)
    sim.run(12)
    sim.plan = replace(sim.plan.with_replicas("r1", 2), epoch=9)
    sim.load = lambda time: {"r0": 0.0}
    assert Code.REGIONS_ROLLED_BACK in codes(sim.step().decision.reasons)
    sim.run(6)  # with nothing to learn from
    sim.load = lambda time: {"r0": 300e3}
    sim.run(12)
    assert sim.plan.region("r1").replicas == 4
