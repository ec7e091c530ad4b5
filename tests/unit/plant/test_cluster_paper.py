"""The decisions that the Joker paper prints, on plants that behave as it prints: C003-4, C003-5, C003-6 (simulated)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from bench.figures.cluster_runs import judged
from bench.figures.cluster_runs import play as figure_of
from bench.plant.cluster.job import ClusterConstants, ClusterJob
from bench.plant.cluster.paper import HOST, load_steps_job, selectivity_job, two_operator_job
from bench.plant.cluster.plant import ClusterPlant
from bench.plant.cluster.run import ClusterSimulation
from rayelastic.papers.joker import PaperAdaptation, best_split, split_utility
from rayelastic.policy.regions.actions import AdaptationDecision, Verdict
from rayelastic.policy.regions.observation import PlanObservation
from rayelastic.policy.regions.thresholds import OrganicThresholds
from rayelastic.reasons import Code, Reason

GOLDEN = Path(__file__).parent / "golden"
Load = Callable[[float], Mapping[str, float]]


def saturated(time: float) -> Mapping[str, float]:
    return {"r0": 1e9}


def doubling(time: float) -> Mapping[str, float]:
    """40 ktps, twice as much every 300 s, to 640 ktps (Fig. 11)."""
    return {"r0": 40e3 * 2 ** min(4, int(time // 300))}


def played(job: tuple[ClusterJob, ClusterConstants], load: Load, periods: int, **thresholds: Any) -> ClusterSimulation:
    policy = PaperAdaptation(OrganicThresholds(**thresholds))
    simulation = ClusterSimulation(ClusterPlant(job[0], [HOST], job[1]), policy, load)
    simulation.run(periods)
    return simulation


def told(simulation: ClusterSimulation) -> list[str]:
    """One line for each decision that isn't to hold: load, throughput, what was decided and why."""
    return [
        f"{s.time:5.0f} s  {s.offered / 1e3 if s.offered < 1e9 else 0:4.0f} {s.throughput / 1e3:6.1f} ktps  "
        f"{s.decision.verdict.value:6}  {', '.join(map(_coded, s.decision.reasons))}"
        for s in simulation.trace
        if s.decision.verdict is not Verdict.HOLD
    ]


def _coded(reason: Reason) -> str:
    """The code and values, shares with two digits."""
    told = (
        f"{name}={value:.2f}" if isinstance(value, float) else f"{name}={value}"
        for name, value in reason.values.items()
    )
    return f"{reason.code.name.lower()}({', '.join(told)})"


RUNS = {
    "selectivity": lambda: played(selectivity_job(), saturated, 14),
    "cpu_threshold_0.5": lambda: played(load_steps_job(), doubling, 60, cpu_bottleneck=0.5),
    "cpu_threshold_0.8": lambda: played(load_steps_job(), doubling, 60, cpu_bottleneck=0.8),
    "cpu_threshold_0.95": lambda: played(load_steps_job(), doubling, 60, cpu_bottleneck=0.95),
    "unbalanced_0.2": lambda: played(two_operator_job(0.75, 0.10, 4.6), saturated, 20, split_gain=0.2),
    "unbalanced_0.1": lambda: played(two_operator_job(0.75, 0.10, 4.6), saturated, 20, split_gain=0.1),
    "balanced_0.2": lambda: played(two_operator_job(0.45, 0.40, 20), saturated, 30, split_gain=0.2),
    "balanced_0.9": lambda: played(two_operator_job(0.45, 0.40, 20), saturated, 30, split_gain=0.9),
}


@pytest.mark.parametrize("run", RUNS)
def test_golden(run: str) -> None:
    assert "\n".join(told(RUNS[run]())) + "\n" == (GOLDEN / f"joker_{run}.txt").read_text()


def test_figure_10() -> None:
    """C003-4: +4 % reverted, +67 %, +9 % reverted, +46 %, +14 % kept; 230 ktps with 2 pipelines x 3 replicas."""
    simulation = RUNS["selectivity"]()
    decisions = [s.decision for s in simulation.trace]
    judged = [
        (d.verdict.value, round(d.reasons[0].values["gain"], 2))
        for d in decisions
        if d.verdict in (Verdict.KEEP, Verdict.REVERT)
    ]
    assert judged == [
        ("revert", 0.04), ("keep", 0.67), ("revert", 0.09), ("keep", 0.46), ("keep", 0.14),
    ]  # fmt: skip
    assert simulation.trace[-1].throughput == pytest.approx(230e3, rel=0.01)
    planned = simulation.plan.region("r1")
    assert [p.operators for p in planned.pipelines] == [("m1", "s1", "m2"), ("s2", "m3", "s3", "m4")]
    assert planned.replicas == 3
    assert decisions[-1].reasons[-1] == Code.STABLE()


def test_figure_11() -> None:
    """C003-5: tries at 160 and 320 ktps (0.5), at 320 (0.8), none (0.95) are reverted; 640 ktps needs two replicas."""
    tried = {}
    for threshold in ("0.5", "0.8", "0.95"):
        simulation = RUNS[f"cpu_threshold_{threshold}"]()
        tried[threshold] = [
            (round(s.offered / 1e3), s.decision.verdict.value)
            for s in simulation.trace
            if s.decision.verdict in (Verdict.KEEP, Verdict.REVERT)
        ]
        assert simulation.plan.region("r1").replicas == 2
        assert simulation.trace[-1].throughput == pytest.approx(640e3)
    assert tried == {
        "0.5": [(160, "revert"), (320, "revert"), (640, "keep"), (640, "revert")],
        "0.8": [(320, "revert"), (640, "keep"), (640, "revert")],
        "0.95": [(640, "keep")],
    }


def test_figures_14_and_15() -> None:
    """C003-6: unbalanced costs take 4 steps, without a split at 0.2; at 0.1 each step tries one and reverts it."""
    kept = {run: [line for line in told(RUNS[run]()) if " keep " in line] for run in RUNS}
    assert len(kept["unbalanced_0.2"]) == len(kept["unbalanced_0.1"]) == 4
    assert not any("split" in line for line in told(RUNS["unbalanced_0.2"]()))
    assert sum("split" in line and "try" in line for line in told(RUNS["unbalanced_0.1"]())) == 5
    assert RUNS["balanced_0.9"]().plan.region("r1").replicas == 8
    ratio = RUNS["balanced_0.9"]().trace[-1].throughput / RUNS["balanced_0.2"]().trace[-1].throughput
    assert ratio == pytest.approx(0.6, abs=0.1)


def test_split_utility_is_a_gain() -> None:
    """E5: the two cost distributions of section 5.2 against the thresholds that they were tried with."""
    assert split_utility([0.75, 0.10], 1) - 1 == pytest.approx(0.11, abs=0.005)
    assert split_utility([0.45, 0.40], 1) - 1 == pytest.approx(0.67, abs=0.005)
    assert best_split([0.2, 0.1, 0.4]) == 2


def test_a_journal_replays() -> None:
    """Observations and decisions survive JSON, and the same observations give the same decisions."""

    class Recorder(PaperAdaptation):
        def step(self, seen: PlanObservation) -> AdaptationDecision:
            lines.append(json.dumps([seen.as_dict(), (decision := super().step(seen)).as_dict()]))
            return decision

    lines: list[str] = []
    job, constants = selectivity_job()
    ClusterSimulation(ClusterPlant(job, [HOST], constants), Recorder(), saturated, noise=0.05, seed=3).run(20)
    again = PaperAdaptation()
    for line in lines:
        seen, decided = json.loads(line)
        decision = again.step(PlanObservation.from_dict(seen))
        assert json.loads(json.dumps(decision.as_dict())) == decided
        assert AdaptationDecision.from_dict(decided) == decision


@pytest.mark.parametrize(("variant", "of"), [("paper", "r1 +"), ("rates", "all +")])
def test_a_figure_shows_what_each_kept_change_gained(variant: str, of: str) -> None:
    gains = judged(figure_of(*two_operator_job(0.5, 0.5, 1e6), variant=variant, periods=20))
    assert any(verdict == "keep" and gain.startswith(of) for verdict, gain in gains), gains
