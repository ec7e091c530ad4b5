"""What a change of plan is judged by: what passes, not what queues take, and not while others have the CPUs."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from bench.plant.cluster.job import ClusterConstants, ClusterJob, SimulatedNode, SimulatedOperator, SimulatedRegion
from bench.plant.cluster.plant import ClusterPlant
from bench.plant.cluster.run import ClusterSimulation
from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.regions import RegionKind
from rayelastic.policy.regions.actions import AdaptationDecision, RebalanceRegion, SplitPipeline, Verdict
from rayelastic.policy.regions.actuation import Actuation
from rayelastic.policy.regions.observation import PlanObservation, RegionObservation
from rayelastic.policy.regions.organic_adaptation import OrganicAdaptation
from rayelastic.policy.regions.parting import Parting
from rayelastic.policy.regions.thresholds import SETTLE_PERIODS, OrganicThresholds
from rayelastic.policy.regions.tried.trial import Carried, Fewer, Trial
from rayelastic.reasons import Code, Reason
from tests.reasons import codes

MICRO = 1e-6


def slowed(seen: RegionObservation, factor: float) -> RegionObservation:
    """A region that gets so much of its work done, in so much of its time."""
    pipelines = [
        replace(
            p,
            cpu=tuple(factor * cpu for cpu in p.cpu),
            taken=tuple(factor * taken for taken in p.taken),
            emitted=factor * p.emitted,
        )
        for p in seen.pipelines
    ]
    return replace(seen, throughput=factor * seen.throughput, pipelines=tuple(pipelines))


class StartingProcesses:
    """The default, on a host whose CPUs go to what each change starts, for some periods; it tells so, or not."""

    ELASTIC: tuple[str, ...] = ()

    def __init__(self, periods: int, *, tells: bool = True, left: float = 0.3, from_start: bool = False) -> None:
        self._policy = OrganicAdaptation(
            thresholds=OrganicThresholds.of_running_jobs(0.8),
            actuation=Actuation.of_running_jobs(self.ELASTIC, 8, restarts=True),
        )
        self._periods = periods
        self._tells, self._share = tells, left
        self._plan: ExecPlan | None = None
        self._left = periods if from_start else 0
        self.reasons: list[tuple[Reason, ...]] = []

    def step(self, seen: PlanObservation) -> AdaptationDecision:
        if self._plan is not None and seen.plan.regions != self._plan.regions:
            self._left = self._periods
        self._plan = seen.plan
        if self._left:
            self._left -= 1
            regions = tuple(slowed(region, self._share) for region in seen.regions)
            seen = replace(seen, regions=regions, waits_for_cpus=0.6 if self._tells else 0.0)
        decision = self._policy.step(seen)
        self.reasons.append(decision.reasons)
        return decision


def played(policy: StartingProcesses) -> ClusterSimulation:
    """Two Python functions under one token, that two processes make twice as fast."""
    operators = tuple(SimulatedOperator(name, 100 * MICRO, token=True) for name in "fg")
    job = ClusterJob.chain("two", 1e-7, SimulatedRegion(operators, kind=RegionKind.PIPELINE))
    plant = ClusterPlant(job, [SimulatedNode("n0", 4.0)], ClusterConstants())
    simulation = ClusterSimulation(
        plant, policy, lambda _: {"r0": 20e3}, period=2.0, noise=0.02, seed=1, offered_known=False
    )
    simulation.run(40)
    return simulation


def test_a_change_is_judged_once_the_processes_that_it_starts_leave_the_cpus() -> None:
    policy = StartingProcesses(periods=3)  # the first one is the warm-up
    simulation = played(policy)
    assert [step.decision.verdict for step in simulation.changes()] == [Verdict.TRY]
    assert len(simulation.trace[-1].plan.pes) == 2
    assert sum(codes(reasons)[:2] == [Code.NO_CPU, Code.NOT_JUDGED] for reasons in policy.reasons) == 2


def test_it_would_be_taken_back_otherwise() -> None:
    simulation = played(StartingProcesses(periods=3, tells=False))
    assert Verdict.REVERT in [step.decision.verdict for step in simulation.changes()]


def test_who_never_gets_cpus_is_judged_all_the_same() -> None:
    policy = StartingProcesses(periods=1000)
    simulation = played(policy)
    assert Verdict.REVERT in [step.decision.verdict for step in simulation.changes()]
    assert any(Code.NOT_JUDGED(periods=SETTLE_PERIODS, most=SETTLE_PERIODS) in reasons for reasons in policy.reasons)


def test_why_nothing_grows_where_others_have_the_cpus_is_told() -> None:
    policy = StartingProcesses(periods=1000, left=0.1, from_start=True)
    simulation = played(policy)
    assert simulation.changes() == []
    assert Code.BUSIEST in codes(policy.reasons[-1])
    assert Code.NO_CPU(share=0.6) in policy.reasons[-1]


def test_queues_that_sources_fill_are_no_rate_to_beat() -> None:
    before = Carried(sources=1_100.0, offered=4_400.0, passed={"r2": 570.0})  # what was taken, and what fills queues
    after = Carried(sources=1_080.0, offered=4_320.0, passed={"r2": 1_080.0})
    actions = (SplitPipeline("r2", "g"),)
    parting = Parting(ExecPlan("two", ()), actions, ("g",), Code.GIL_FULL(operators=["g"]), gain=0.9)
    trial = Trial(ExecPlan("two", ()), actions, {}, before, gain=0.9, grows=True, parting=parting)
    assert trial.gained(after) == 1_080 / 570 - 1
    assert trial.is_good(after, OrganicThresholds())
    unseen = replace(trial, carried=replace(before, passed={}))
    assert unseen.gained(after) == 0.0  # the share of what is offered, a guess, is as it was
    assert not unseen.is_good(after, OrganicThresholds())


def test_a_growth_is_kept_where_each_region_that_grew_takes_more_than_before() -> None:
    """As with a parting: 595 were made while queues filled, of which the region took 490."""
    before = Carried(sources=595.0, offered=2_380.0, passed={"r1": 490.0, "r2": 490.0})
    actions = tuple(RebalanceRegion(name, 4, 1) for name in ("r1", "r2"))
    trial, t = Trial(ExecPlan("two", ()), actions, {}, before, gain=0.23, grows=True), OrganicThresholds()
    after = Carried(sources=569.0, offered=2_276.0, passed={"r1": 569.0, "r2": 560.0})
    assert trial.gained(after) == pytest.approx(560 / 490 - 1), "of the two the one that gained less"
    assert trial.is_good(after, t)
    assert not trial.is_good(replace(after, passed={"r1": 569.0, "r2": 490.0}), t), "what fills a queue is no gain"
    smaller = replace(trial, grows=False, carried=replace(before, sources=595.0))
    assert smaller.gained(after) == pytest.approx(0.0), "less is judged by sources alone"


def test_less_is_kept_while_it_carries_what_counts_as_all() -> None:
    plan, t = ExecPlan("one", ()), OrganicThresholds()
    trial = Trial(plan, (), {}, Carried(sources=100.0, offered=100.0, passed={}), gain=0.0, grows=False)
    assert trial.is_good(Carried(sources=100.0 * t.carried, offered=100.0, passed={}), t)
    assert not trial.is_good(Carried(sources=94.0, offered=100.0, passed={}), t)
    standing = Carried(sources=0.0, offered=0.0, passed={}, stands=True)
    assert replace(trial, carried=standing).is_good(standing, t)  # nothing was carried, and nothing is lost


class StandingSources(StartingProcesses):
    """The default, where what a change starts lets nothing pass at first: sources wait for room and make nothing."""

    def step(self, seen: PlanObservation) -> AdaptationDecision:
        if self._plan is not None and seen.plan.regions != self._plan.regions:
            self._left = self._periods
        self._plan = seen.plan
        if self._left:
            self._left -= 1
            regions = tuple(replace(slowed(region, 0.0), blocked=1.0) for region in seen.regions)
            seen = replace(seen, regions=regions)
        decision = self._policy.step(seen)
        self.reasons.append(decision.reasons)
        return decision


def test_a_change_behind_which_sources_stand_is_not_kept_for_that() -> None:
    """Nothing of nothing isn't all that is offered: it is judged once they make something, or taken back."""
    policy = StandingSources(periods=4)
    simulation = played(policy)
    assert [step.decision.verdict for step in simulation.changes()] == [Verdict.TRY]
    assert Code.RATES(offered=0.0, carried=0.0) not in [reason for reasons in policy.reasons for reason in reasons]
    assert any(codes(reasons)[:2] == [Code.NOTHING_MADE, Code.NOT_JUDGED] for reasons in policy.reasons)
    policy = StandingSources(periods=30)
    verdicts = [step.decision.verdict for step in played(policy).changes()]
    assert verdicts[:2] == [Verdict.TRY, Verdict.REVERT]


class FewCores(StartingProcesses):
    """The default, on a node that has two cores for all its processes, and says that it has more: others use them."""

    ELASTIC = ("r1",)
    CORES, LOSS = 2.0, 0.05  # of what is carried, for each process that there is too many

    def step(self, seen: PlanObservation) -> AdaptationDecision:
        replicas = len(seen.plan.pes)
        if (over := replicas - self.CORES) > 0:
            share = self.CORES / replicas * (1.0 - self.LOSS * over)
            regions = (seen.regions[0], *(slowed(region, share) for region in seen.regions[1:]))
            regions = (replace(regions[0], throughput=regions[1].throughput), *regions[1:])
            seen = replace(seen, regions=regions, waits_for_cpus=1.0 - share if self._tells else 0.0)
        decision = self._policy.step(seen)
        self.reasons.append(decision.reasons)
        return decision


def crowded(policy: FewCores, until: float = math.inf) -> ClusterSimulation:
    region = SimulatedRegion((SimulatedOperator("f", 100 * MICRO, token=True),), kind=RegionKind.DATA_PARALLEL)
    plant = ClusterPlant(ClusterJob.chain("one", 1e-7, region), [SimulatedNode("n0", 8.0)], ClusterConstants())
    simulation = ClusterSimulation(
        plant,
        policy,
        lambda time: {"r0": 200e3 if time < until else 100.0},
        period=2.0,
        noise=0.02,
        seed=1,
        offered_known=False,
    )
    simulation.run(120)
    return simulation


@pytest.mark.parametrize("cores", [2, 3])
def test_where_no_cpu_is_free_as_many_processes_stay_as_pay(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FewCores, "CORES", float(cores))
    policy = FewCores(1)
    simulation = crowded(policy)
    assert len(simulation.trace[-1].plan.pes) == cores
    assert any(Code.FEWER_REPLICAS_MAY_DO in codes(one) for one in policy.reasons)
    assert simulation.changes()[-1].time < 80.0, "and then nothing changes any more"


@pytest.mark.parametrize("until", range(10, 80, 4))
def test_a_load_that_goes_meanwhile_leaves_one_process(until: float) -> None:
    simulation = crowded(FewCores(1), until)
    back = [step.time for step in simulation.changes() if step.time > until]
    assert len(simulation.trace[-1].plan.pes) == 1
    assert back[-1] < until + 60.0, back


def test_fewer_replicas_are_kept_where_the_load_is_gone() -> None:
    carried, t = Carried(sources=100.0, offered=400.0, passed={}), OrganicThresholds()
    fewer = Fewer({}, {}, enough=95.0)
    trial = Trial(ExecPlan("one", ()), (), {}, carried, gain=0.0, grows=False, fewer=fewer)
    assert trial.is_good(Carried(sources=96.0, offered=384.0, passed={}), t)
    assert not trial.is_good(Carried(sources=94.0, offered=376.0, passed={}), t)
    assert trial.is_good(Carried(sources=10.0, offered=10.0, passed={}), t)


def test_what_saves_is_kept_where_as_much_as_before_is_carried() -> None:
    t = OrganicThresholds()
    carried = Carried(sources=1.0, offered=1.0, passed={})
    trial = Trial(ExecPlan("one", ()), (), {}, carried, gain=0.0, grows=False)
    assert trial.is_good(Carried(sources=t.carried, offered=1.0, passed={}), t)
    assert not trial.is_good(Carried(sources=0.999 * t.carried, offered=1.0, passed={}), t)
    half = replace(trial, carried=replace(carried, sources=0.5))
    assert half.is_good(Carried(sources=0.5 * t.carried, offered=1.0, passed={}), t)
    assert not half.is_good(Carried(sources=0.499 * t.carried, offered=1.0, passed={}), t)


def test_replicas_are_halved_where_sources_are_held_back_alone() -> None:
    job = ClusterJob.chain(
        "one", 1e-7, SimulatedRegion((SimulatedOperator("f", MICRO),), kind=RegionKind.DATA_PARALLEL)
    )
    before, t = Carried(sources=100.0, offered=400.0, passed={}), OrganicThresholds()
    trial = Trial(job.plan(), (), {"r1": ((), 7)}, before, gain=3.0, grows=True)
    fewer = trial.halved(Carried(sources=200.0, offered=800.0, passed={}), t, good=True)
    assert fewer == Fewer({"r1": ((), 4)}, {"r1": 1}, enough=200.0)
    nearly = replace(trial, carried=Carried(sources=180.0, offered=200.0, passed={}))
    assert nearly.halved(Carried(sources=200.0, offered=200.0, passed={}), t, good=True) is None, "the rest is room"
    assert trial.halved(Carried(sources=390.0, offered=1_560.0, passed={}), t, good=True) is None, "as promised"
    assert trial.halved(Carried(sources=90.0, offered=360.0, passed={}), t, good=False) is None, "it is taken back"


def test_nothing_is_given_back_where_nobody_waits_for_cpus() -> None:
    policy = FewCores(1, tells=False)
    assert len(crowded(policy).trace[-1].plan.pes) == 4
    assert not any(Code.FEWER_REPLICAS_MAY_DO in codes(one) for one in policy.reasons)
