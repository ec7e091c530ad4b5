"""Observations of regions from counters of PEs, and what of a plan can be carried out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rayelastic.errors import ChangeError
from rayelastic.plan.exec_plan import ExecPlan, Pipeline, RegionPlan
from rayelastic.plan.node_placement import Node
from rayelastic.plan.regions import Region, RegionKind
from rayelastic.policy.regions.actions import AdaptationDecision, NodeRequest, RebalanceRegion, Verdict
from rayelastic.policy.regions.observation import PlanObservation
from rayelastic.reasons import Code
from rayelastic.runtime.loops.region_loop import RegionLoop
from rayelastic.runtime.loops.region_profile import observe_regions
from rayelastic.runtime.values.status import OperatorSample, PESample

SOURCE = RegionPlan(Region("r0", RegionKind.SOURCE, ("lines",)), (Pipeline(("lines",), ("pe0",)),))
COUNT = RegionPlan(
    Region("r1", RegionKind.DATA_PARALLEL, ("parse", "count"), ("word",)), (Pipeline(("parse", "count"), ("pe0",)),)
)
PLAN = ExecPlan("words", (SOURCE, COUNT), edges=(("lines", "parse"), ("parse", "count")))


def sample(pe: str, seconds: float, cpu: float, *operators: OperatorSample) -> PESample:
    return PESample(pe, seconds, 1, 0.0, operators, cpu_seconds=cpu)


def operator(
    name: str, taken: int, given: int, cpu: float, inside: float | None = None, waited: float = 0.0
) -> OperatorSample:
    inside = cpu if inside is None else inside
    return OperatorSample(
        name, "manual", taken, given, 0, cpu_seconds=cpu, inside_seconds=inside, waited_seconds=waited
    )


def test_shares_of_the_period_not_of_the_life() -> None:
    before = {"pe0": sample("pe0", 100.0, 50.0, operator("lines", 0, 1000, 10.0), operator("parse", 1000, 900, 20.0))}
    after = {
        "pe0": sample(
            "pe0", 110.0, 60.0, operator("lines", 0, 3000, 12.0), operator("parse", 3000, 2700, 24.0)
        )  # 2 s + 4 s in operators of 10 s of the element's CPU time
    }
    plan = PLAN
    seen = observe_regions(plan, before, after, at=110.0)
    source, region = seen.regions
    assert seen.period == 10.0
    assert (source.throughput, region.throughput) == (200.0, 200.0)
    assert source.blocked == pytest.approx(0.8)  # in its function for 2 of 10 s
    assert source.pipelines[0].cpu == (pytest.approx(0.2 * 10 / 6),)
    assert region.pipelines[0].taken == (200.0, 0.0)  # type: ignore[unreachable]
    assert region.pipelines[0].costs[0] == pytest.approx(0.6)
    assert region.pipelines[0].overhead == pytest.approx(0.4)


def test_threads_without_a_cpu_are_told() -> None:
    """Of the element where it is most: 2 s of CPU time in 8 s inside operators, of which 1 s is asleep.

    One that sleeps for nearly all of it lacks next to nothing, however long it waits for the little that it computes.
    """
    short = operator("parse", 100, 9, 2.0, 8.0, 1.0)
    after = {
        "pe0": sample("pe0", 10.0, 3.0, operator("lines", 0, 100, 1.0), operator("parse", 100, 9, 2.0)),
        "pe1": sample("pe1", 10.0, 2.0, short),
    }
    assert observe_regions(PLAN, {}, after, at=10.0).waits_for_cpus == pytest.approx(5 / 8)
    asks = sample("pe1", 10.0, 1.0, operator("parse", 100, 9, 0.2, 8.0, 7.2))
    seen = observe_regions(PLAN, {}, {**after, "pe1": asks}, at=10.0)
    assert seen.waits_for_cpus == pytest.approx(0.6 / 8)
    del after["pe1"]
    assert observe_regions(PLAN, {}, after, at=10.0).waits_for_cpus == 0.0


@pytest.mark.parametrize(("inside", "blocked"), [(6.0, 0.0), (2.5, 0.75)])
def test_a_source_that_waits_for_its_next_tuple_is_not_held_back(inside: float, blocked: float) -> None:
    """What else its thread does meanwhile doesn't matter; waits for a CPU, which all have, are no spare time."""
    after = {
        "pe0": sample("pe0", 10.0, 3.0, operator("lines", 0, 100, 1.0, inside), operator("parse", 100, 9, 2.0, 4.0))
    }
    source, _ = observe_regions(PLAN, {}, after, at=10.0).regions
    assert source.blocked == pytest.approx(blocked)


def test_what_python_operators_wait_for_is_told_apart_from_their_cpu_time() -> None:
    """Only theirs: native ones sleep for the clock or for room. And it is no wait for a CPU, which sources have too."""
    region = replace(COUNT.region, token_bound=("count",))
    plan = replace(PLAN, regions=(SOURCE, replace(COUNT, region=region)))
    lines, parse = operator("lines", 0, 100, 0.5, 1.0), operator("parse", 100, 100, 1.0, 2.0, 0.5)
    after = {"pe0": sample("pe0", 10.0, 2.5, lines, parse, operator("count", 100, 100, 1.0, 6.5, 5.5))}
    source, seen = observe_regions(plan, {}, after, at=10.0).regions
    assert seen.pipelines[0].waiting == (pytest.approx(0.55),)
    assert seen.pipelines[0].waits == (0.0, pytest.approx(1.0))  # type: ignore[unreachable]
    assert seen.pipelines[0].useful[0] == pytest.approx(seen.pipelines[0].cpu[0] + 0.55)
    assert source.pipelines[0].waiting == (0.0,)
    assert source.blocked == pytest.approx(0.9)  # in its function for 1 of 10 s, all of which it worked


def test_replicas_are_summed_and_a_new_one_starts_at_nothing() -> None:
    plan = PLAN.with_replicas("r1", 2, ("pe0", "pe1"))
    before = {"pe0": sample("pe0", 10.0, 1.0, operator("parse", 100, 100, 1.0), operator("count", 100, 0, 0.0))}
    after = {
        "pe0": sample("pe0", 20.0, 6.0, operator("parse", 600, 600, 6.0), operator("count", 600, 0, 0.0)),
        "pe1": sample("pe1", 5.0, 1.0, operator("parse", 300, 300, 1.0), operator("count", 300, 20, 0.0)),
    }
    region = observe_regions(plan, before, after, at=20.0).of("r1")
    assert region.throughput == 50.0 + 60.0
    assert region.pipelines[0].cpu == (pytest.approx(0.5), pytest.approx(0.2))
    assert region.pipelines[0].emitted == 4.0  # type: ignore[unreachable]


class Grows:
    """Wants some replicas, whatever it sees."""

    def __init__(self, replicas: int = 2) -> None:
        self.replicas = replicas

    def step(self, seen: PlanObservation) -> AdaptationDecision:
        pes = tuple(f"pe{number}" for number in range(self.replicas))
        action = RebalanceRegion.of(seen.plan, "r1", self.replicas, pes)
        plan = action.apply(seen.plan).with_nodes(dict.fromkeys(pes, "n0"))
        return AdaptationDecision(plan, Verdict.TRY, actions=(action,), reasons=(Code.BOUNDS(),), rule="test")


def test_a_pass_is_kept_with_what_it_cost_and_why_it_failed() -> None:
    counts = iter([2000, 2500])  # tuples made before and after a change of 2 s; 100 a second before

    def lines(made: int) -> dict[str, PESample]:
        return {"pe0": sample("pe0", made / 100, 1.0, operator("lines", 0, made, 1.0))}

    clock = iter([0.0, 2.0, 10.0, 11.0])
    plans = [PLAN]

    def change(wanted: ExecPlan) -> ExecPlan:
        if len(plans) > 1:
            raise ChangeError("a node is gone")
        plans.append(wanted)
        return wanted

    loop = RegionLoop(
        Grows(),
        sample=lambda: lines(next(counts)),
        plan=lambda: plans[-1],
        change=change,
        nodes=tuple,
        period=5.0,
        clock=lambda: next(clock),
    )
    next(counts)
    done = loop.step(lines(1000), lines(2400), at=5.0)
    assert done.in_force.region("r1").replicas == 2
    assert str(done) == f"regions     5.0 s  r1 from 1 replica to 2 (2.00 s): {done.decision.reason} [test]"
    plans[:] = [PLAN, PLAN]
    counts = iter([2500])
    failed = loop.step(lines(1000), lines(2500), at=10.0)
    assert failed.observation.cost == pytest.approx(1.0)  # 100 tuples of the 200 that 2 s would have brought
    assert failed.problem == "a node is gone"
    assert [adaptation.number for adaptation in loop.journal.since(1)] == [1]


def test_the_first_periods_are_short() -> None:
    loop = RegionLoop(
        Grows(1), sample=dict, plan=lambda: PLAN, change=lambda _: PLAN, nodes=tuple, period=2.0, clock=lambda: 0.0
    )
    waited = []
    for number in range(6):
        waited.append(loop.due)
        loop.step({}, {}, at=float(number))
    assert waited == [1.0, 1.0, 1.0, 1.0, 2.0, 2.0]


def test_the_first_of_several_elements_works_while_the_others_start_wherever_it_found_a_place() -> None:
    plans = [PLAN.with_nodes({"pe0": "n0"})]

    def change(wanted: ExecPlan) -> ExecPlan:
        if wanted.region("r1").replicas > limit:
            raise ChangeError("a node is gone")
        nodes = {pe: "n1" if pe == "pe1" else node for pe, node in wanted.nodes.items()}
        plans.append(wanted.with_nodes(nodes))
        return plans[-1]

    loop = RegionLoop(
        Grows(4), sample=dict, plan=lambda: plans[-1], change=change, nodes=tuple, period=5.0, clock=lambda: 0.0
    )
    limit = 4
    done = loop.step({}, {}, at=5.0)
    assert [plan.region("r1").replicas for plan in plans] == [1, 2, 4]
    assert done.in_force is plans[-1]
    assert dict(plans[-1].nodes) == {"pe0": "n0", "pe1": "n1", "pe2": "n0", "pe3": "n0"}
    del plans[1:]
    limit = 3
    failed = loop.step({}, {}, at=10.0)
    assert failed.problem == "a node is gone"
    assert failed.in_force.region("r1").replicas == 2, "what is there stays"


class Lacks:
    """Holds, and lacks CPUs."""

    cpus = 0.0

    def step(self, seen: PlanObservation) -> AdaptationDecision:
        return AdaptationDecision(
            seen.plan, request=NodeRequest(Code.CPUS_MISSING(cpus=self.cpus), self.cpus) if self.cpus else None
        )


def test_cpus_that_are_lacking_are_asked_for_once_and_again_where_that_failed_or_some_came() -> None:
    asked, fails, policy = list[int](), False, Lacks()
    nodes = [Node("n0", 2.0)]

    def request(cpus: int) -> None:
        asked.append(cpus)
        if fails:
            raise ConnectionError("the store starts again")

    loop = RegionLoop(
        policy, sample=dict, plan=lambda: PLAN, change=lambda _: PLAN, nodes=lambda: tuple(nodes), period=2.0,
        clock=lambda: 0.0, request=request,
    )  # fmt: skip

    def told(cpus: float) -> list[int]:
        asked.clear()
        policy.cpus = cpus
        loop.step({}, {}, at=1.0)
        return list(asked)

    assert told(0.0) == [0], "another coordinator of this job may have asked for some"
    fails = True
    assert told(2.5) == [3]
    fails = False
    assert [told(2.5), told(2.5)] == [[3], []]
    nodes.append(Node("n1", 2.0))
    assert [told(2.5), told(2.5)] == [[3], []]
    assert [told(0.0), told(0.0)] == [[0], []]
