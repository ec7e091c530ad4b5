"""Joker's algorithms rule by rule, on observations written by hand (J21-J31)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from bench.plant.cluster.job import ClusterJob, SimulatedOperator, SimulatedRegion
from rayelastic.papers.joker import PaperAdaptation
from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.regions import RegionKind
from rayelastic.policy.regions.actions import AdaptationDecision, Verdict
from rayelastic.policy.regions.observation import PipelineObservation, PlanObservation, RegionObservation
from rayelastic.policy.regions.thresholds import ActionOrder, OrganicThresholds
from rayelastic.reasons import Code
from tests.reasons import codes

KEYED, PIPELINE = RegionKind.DATA_PARALLEL, RegionKind.PIPELINE


def job(*regions: tuple[RegionKind, int, tuple[int, ...]]) -> ClusterJob:
    """A source, then regions: (kind, number of operators, who feeds it)."""
    made = [SimulatedRegion((SimulatedOperator("s", 0.0),), RegionKind.SOURCE)]
    for number, (kind, count, inputs) in enumerate(regions, start=1):
        made.append(
            SimulatedRegion(tuple(SimulatedOperator(f"o{number}_{i}", 0.0) for i in range(count)), kind, inputs)
        )
    return ClusterJob("hand", tuple(made))


@dataclass
class Hand:
    """Shows a policy what is written down, under the plan that it asked for."""

    made: ClusterJob
    policy: PaperAdaptation = field(default_factory=PaperAdaptation)
    plan: ExecPlan = field(init=False)

    def __post_init__(self) -> None:
        self.plan = self.made.plan()

    def see(self, cpu: dict[str, float], rate: float | dict[str, float] = 1000.0, **costs: float) -> AdaptationDecision:
        """Regions and pipelines without a CPU utilisation are idle; operators without a cost share 0.9 evenly."""
        regions = []
        for planned in self.plan.regions:
            name = planned.region.name
            tuples = rate if isinstance(rate, float) else rate.get(name, 1000.0)
            pipelines = []
            for p in planned.pipelines:
                busy = cpu.get(p.operators[0], cpu.get(name, 0.1))
                shares = tuple(costs.get(o, 0.9 / len(p.operators)) for o in p.operators)
                pipelines.append(
                    PipelineObservation(p.operators, (busy,) * len(p.pes), shares, (tuples,) * len(p.operators), tuples)
                )
            regions.append(RegionObservation(name, tuples, tuple(pipelines)))
        decision = self.policy.step(PlanObservation(30.0, 30.0, self.plan, tuple(regions)))
        self.plan = decision.plan
        return decision


def texts(decision: AdaptationDecision) -> list[str]:
    return [str(action.reason) for action in decision.actions]


def with_thresholds(**values: Any) -> PaperAdaptation:
    return PaperAdaptation(OrganicThresholds(**values))


def test_algorithm_1_all_bottlenecks_at_once_in_topological_order() -> None:
    hand = Hand(job((KEYED, 1, (0,)), (KEYED, 1, (1,)), (KEYED, 2, (1,))))
    decision = hand.see({"r1": 0.5, "r2": 0.9, "r3": 0.95})
    assert texts(decision) == ["r2 from 1 replica to 2", "split r3 before o3_1"]
    assert decision.verdict is Verdict.TRY
    assert decision.reset


def test_no_bottleneck_no_change_and_stable_after_three_periods() -> None:
    hand = Hand(job((KEYED, 2, (0,))))
    reasons = [hand.see({"r1": 0.8}).reasons for _ in range(3)]  # more than 0.8 is a bottleneck (J22)
    calm = Code.PIPELINES_CALM(busy=0.8)
    assert reasons == [(calm,), (calm,), (calm, Code.STABLE())]


def test_sources_are_left_alone() -> None:
    assert not Hand(job((KEYED, 1, (0,)))).see({"r0": 1.0, "r1": 0.2}).changes


def test_sources_are_left_alone_however_many_operators_they_have() -> None:
    sources = tuple(SimulatedOperator(name, 0.0) for name in ("s", "t"))
    counted = SimulatedRegion((SimulatedOperator("o1_0", 0.0),), KEYED, (0,))
    made = ClusterJob("hand", (SimulatedRegion(sources, RegionKind.SOURCE), counted))
    assert not Hand(made).see({"r0": 1.0, "r1": 0.2}).changes


def test_algorithm_2_splits_first_or_expands_first() -> None:
    region = job((KEYED, 2, (0,)))
    for order, says in (
        (ActionOrder.SPLIT_FIRST, ["split r1 before o1_1"]),
        (ActionOrder.EXPAND_FIRST, ["r1 from 1 replica to 2"]),
        (ActionOrder.SPLIT_ONLY, ["split r1 before o1_1"]),
        (ActionOrder.EXPAND_ONLY, ["r1 from 1 replica to 2"]),
    ):
        assert texts(Hand(region, with_thresholds(order=order)).see({"r1": 1.0})) == says


def test_algorithm_3_splits_where_the_costs_are_most_equal() -> None:
    decision = Hand(job((KEYED, 3, (0,)))).see({"r1": 1.0}, o1_0=0.2, o1_1=0.1, o1_2=0.4)  # the example of 4.2
    assert texts(decision) == ["split r1 before o1_2"]


def test_algorithm_3_needs_a_gain() -> None:
    """0.75 and 0.10 promise 11 % (E5): no split at 0.2, one at 0.1."""
    for threshold, says in ((0.2, "r1 from 1 replica to 2"), (0.1, "split r1 before o1_1")):
        hand = Hand(job((KEYED, 2, (0,))), with_thresholds(split_gain=threshold))
        assert texts(hand.see({"r1": 1.0}, o1_0=0.75, o1_1=0.10)) == [says]


def test_algorithm_3_skips_all_splits_if_one_bottleneck_pipeline_has_one_operator() -> None:
    hand = Hand(job((KEYED, 3, (0,))))
    hand.see({"r1": 1.0}, o1_0=0.3, o1_1=0.1, o1_2=0.4)
    hand.see({"r1": 1.0}, 1700.0)  # kept: [0, 1] and [2]
    assert texts(hand.see({"o1_0": 0.9, "o1_2": 0.9}, 1700.0)) == ["r1 from 1 replica to 2"]
    other = Hand(job((KEYED, 3, (0,))))
    other.see({"r1": 1.0}, o1_0=0.3, o1_1=0.1, o1_2=0.4)
    other.see({"r1": 1.0}, 1700.0)
    assert texts(other.see({"o1_0": 0.9, "o1_2": 0.5}, 1700.0)) == ["split r1 before o1_1"]


def test_algorithm_4_expands_keyed_regions_only_by_one_and_up_to_the_most() -> None:
    stateful = Hand(job((PIPELINE, 1, (0,))))
    assert not stateful.see({"r1": 1.0}).changes
    hand = Hand(job((KEYED, 1, (0,))), with_thresholds(max_replicas=3))
    rate = 1000.0
    for replicas in (2, 3):
        assert texts(hand.see({"r1": 1.0}, rate)) == [
            f"r1 from {replicas - 1} replica{'s' * (replicas > 2)} to {replicas}"
        ]
        rate *= 1.5
        assert hand.see({"r1": 1.0}, rate).verdict is Verdict.KEEP
    assert Code.NOTHING_LEFT(regions=["r1"]) in hand.see({"r1": 1.0}, rate).reasons


def test_evaluation_looks_at_the_regions_closest_to_the_source() -> None:
    """r1 and r2, downstream of it, adapt; r1's throughput stands for both (J27)."""
    hand = Hand(job((KEYED, 1, (0,)), (KEYED, 1, (1,))))
    hand.see({"r1": 0.9, "r2": 0.9})
    decision = hand.see({"r1": 0.9, "r2": 0.9}, {"r1": 1200.0, "r2": 1000.0})
    assert decision.verdict is Verdict.KEEP
    assert decision.reasons == (Code.REGION_GAIN(region="r1", gain=pytest.approx(0.2)),)


def test_regions_in_parallel_are_all_looked_at() -> None:
    hand = Hand(job((KEYED, 1, (0,)), (KEYED, 1, (0,))))
    hand.see({"r1": 0.9, "r2": 0.9})
    decision = hand.see({"r1": 0.9, "r2": 0.9}, {"r1": 1200.0, "r2": 1050.0})
    assert decision.verdict is Verdict.REVERT
    assert codes(decision.reasons) == [Code.REGION_GAIN, Code.NOT_WORTH_IT, Code.NOTHING_ELSE]
    assert decision.reasons[0].values == {"region": "r2", "gain": pytest.approx(0.05)}
    assert [str(action.reason) for action in decision.reverted] == ["r2 from 1 replica to 2", "r1 from 1 replica to 2"]
    assert [p.replicas for p in hand.plan.regions] == [1, 1, 1]


def test_a_change_needs_its_gain() -> None:
    for rate, verdict in ((1099.0, Verdict.REVERT), (1101.0, Verdict.KEEP)):
        hand = Hand(job((KEYED, 1, (0,))))
        hand.see({"r1": 0.9})
        assert hand.see({"r1": 0.9}, rate).verdict is verdict


def test_algorithm_6_reverts_and_tries_the_next_candidate_while_the_others_stay() -> None:
    hand = Hand(job((KEYED, 2, (0,)), (KEYED, 1, (0,))))
    hand.see({"r1": 1.0, "r2": 1.0})
    decision = hand.see({"r1": 1.0, "r2": 1.0}, {"r1": 1010.0, "r2": 1500.0})
    assert decision.verdict is Verdict.REVERT
    assert [str(action.reason) for action in decision.reverted] == ["split r1 before o1_1"]
    assert texts(decision) == ["r1 from 1 replica to 2"]
    assert [(p.cuts, p.replicas) for p in hand.plan.regions[1:]] == [((), 2), ((), 2)]
    kept = hand.see({"r1": 0.5, "r2": 0.5}, {"r1": 1500.0, "r2": 1500.0})
    assert kept.verdict is Verdict.KEEP
    assert kept.reasons == tuple(Code.REGION_GAIN(region=name, gain=pytest.approx(0.5)) for name in ("r1", "r2"))


def test_what_was_reverted_is_blacklisted_until_the_load_changes() -> None:
    hand = Hand(job((KEYED, 2, (0,))))
    hand.see({"r1": 1.0})
    hand.see({"r1": 1.0}, 1000.0)  # the split: no gain; a replica is tried
    hand.see({"r1": 1.0}, 1000.0)  # no gain either
    for _ in range(3):
        assert not hand.see({"r1": 1.0}, 1150.0).changes  # within 20 %, step by step
    assert texts(hand.see({"r1": 1.0}, 1500.0)) == ["split r1 before o1_1"]  # Algorithm 7


def test_finalize_clears_the_blacklist() -> None:
    """C003-4 needs it: the split is tried again after each replica that was kept (Algorithm 5)."""
    hand = Hand(job((KEYED, 2, (0,))))
    hand.see({"r1": 1.0})
    hand.see({"r1": 1.0}, 1040.0)
    assert hand.see({"r1": 1.0}, 1670.0).verdict is Verdict.KEEP
    assert texts(hand.see({"r1": 1.0}, 1670.0)) == ["split r1 before o1_1"]


def test_metrics_of_other_regions_rest_during_an_adaptation() -> None:
    """J30: r2 gets busy while r1 adapts; it is looked at when that is over."""
    hand = Hand(job((KEYED, 1, (0,)), (KEYED, 1, (0,))))
    hand.see({"r1": 1.0, "r2": 0.5})
    assert hand.see({"r1": 1.0, "r2": 1.0}, {"r1": 2000.0}).verdict is Verdict.KEEP
    assert texts(hand.see({"r1": 0.5, "r2": 1.0}, {"r1": 2000.0})) == ["r2 from 1 replica to 2"]


def test_it_never_shrinks() -> None:
    hand = Hand(job((KEYED, 1, (0,))))
    hand.see({"r1": 1.0})
    hand.see({"r1": 0.6}, 2000.0)
    for _ in range(30):
        assert not hand.see({"r1": 0.01}, 10.0).changes
    assert hand.plan.region("r1").replicas == 2


def test_reset_forgets() -> None:
    hand = Hand(job((KEYED, 1, (0,))))
    hand.see({"r1": 1.0})
    hand.see({"r1": 1.0}, 1000.0)
    assert not hand.see({"r1": 1.0}, 1000.0).changes
    hand.policy.reset()
    assert hand.see({"r1": 1.0}, 1000.0).changes


def test_it_waits_until_the_plan_is_in_force() -> None:
    hand = Hand(job((KEYED, 1, (0,))))
    seen = PlanObservation(30.0, 30.0, hand.plan, (), adapted=False)
    assert hand.policy.step(seen).reasons == (Code.NOT_IN_FORCE(),)
