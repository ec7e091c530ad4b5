"""Runs of the Joker paper's experiments on the cluster model, under its algorithm and under ours."""

from __future__ import annotations

from bench.plant.cluster.job import ClusterConstants, ClusterJob
from bench.plant.cluster.paper import ENGINE, HOST
from bench.plant.cluster.plant import ClusterPlant
from bench.plant.cluster.run import ClusterSimulation, LoadScript
from rayelastic.papers.joker import PaperAdaptation
from rayelastic.policy.regions.actions import AdaptationDecision, Verdict
from rayelastic.policy.regions.organic_adaptation import OrganicAdaptation
from rayelastic.policy.regions.thresholds import OrganicThresholds

PERIOD = 30.0  # s, as in Joker section 4.1
SATURATING = 1e9  # tuples/s; the source makes what it can


def play(
    job: ClusterJob,
    constants: ClusterConstants = ENGINE,
    variant: str = "paper",
    periods: int = 60,
    load: LoadScript | None = None,
    thresholds: OrganicThresholds | None = None,
) -> ClusterSimulation:
    """Run a job on the paper's host until its plan has long settled."""
    sources = [f"r{i}" for i, region in enumerate(job.regions) if not region.inputs]
    plant = ClusterPlant(job, [HOST], constants)
    paper = variant == "paper"
    policy = PaperAdaptation(thresholds) if paper else OrganicAdaptation(thresholds=thresholds)
    script = load or (lambda _: dict.fromkeys(sources, SATURATING))
    simulation = ClusterSimulation(plant, policy, script, period=PERIOD, offered_known=load is not None)
    simulation.run(periods)
    return simulation


def speedup(simulation: ClusterSimulation) -> float:
    """Throughput at the end over throughput at the start."""
    return simulation.trace[-1].throughput / simulation.trace[0].throughput


def shape(simulation: ClusterSimulation) -> str:
    """Pipelines x replicas of each region but the sources."""
    planned = [p for p in simulation.plan.regions if simulation.plan.upstream(p.region.name)]
    return " ".join(f"{len(p.pipelines)}x{p.replicas}" for p in planned)


def judged(simulation: ClusterSimulation) -> list[tuple[str, str]]:
    """(verdict, gain) of each change that was judged, as in ('revert', 'r1 +4%')."""
    decisions = [step.decision for step in simulation.trace]
    return [(d.verdict.value, _gained(d)) for d in decisions if d.verdict in (Verdict.KEEP, Verdict.REVERT)]


def _gained(decision: AdaptationDecision) -> str:
    gain = next((one.values for one in decision.reasons if "gain" in one.values), None)
    return "" if gain is None else f"{gain.get('region', 'all')} {gain['gain']:+.0%}"
