"""Turns two samples of every PE into one observation of the job's regions (Joker 4.1; J18-J20).

Pure. The engine's pipelines share the threads of their element. So a pipeline's CPU time is that of its operators, with
their share of what the element used outside operators. Costs come from the native profiler. A source is blocked while
its thread isn't in its function, because then it waits or runs what is downstream. But a source with time to wait for
its next tuple emits all its input, whatever else its thread does. An operator in Python that sleeps inside its function
waits for an answer from outside. That is useful time, as in DS2, though it uses no CPU.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from rayelastic.plan.exec_plan import ExecPlan, Pipeline, RegionPlan
from rayelastic.plan.node_placement import Node
from rayelastic.plan.regions import Region, RegionKind
from rayelastic.policy.regions.observation import PipelineObservation, PlanObservation, RegionObservation
from rayelastic.runtime.values.hot_key import HotKey, hot_keys_of
from rayelastic.runtime.values.period import SHORTEST, pe_period
from rayelastic.runtime.values.status import PESample

SPARE = 0.1  # of its time that an unblocked source waits in its function; less may be noise
MOST_OVERHEAD = 2.0  # times the operators' CPU time: more is wake-ups and timers, which don't grow with the load

Samples = Mapping[str, PESample]


@dataclass(frozen=True, slots=True)
class _Gone:
    """The work of an operator in the period, in one PE: shares of the period, and tuples/s."""

    cpu: float = 0.0
    inside: float = 0.0
    waited: float = 0.0
    blocked: float = 0.0
    taken: float = 0.0
    given: float = 0.0
    fill: float = 0.0


def observe_regions(
    plan: ExecPlan,
    before: Samples,
    after: Samples,
    *,
    at: float,
    nodes: Sequence[Node] = (),
    adapted: bool = True,
    cost: float | None = None,
) -> PlanObservation:
    """Make an observation of two samples.

    Args:
        plan: The plan in force during the whole period.
        before: {PE: its counters at the start}; a missing one had none.
        after: {PE: its counters at the end}.
        at: Seconds since the start of the job, at the end.
        nodes: The nodes that may be used.
        adapted: Whether the last requested plan is in force.
        cost: The cost of the last change, in seconds of throughput.
    """
    periods = {pe: pe_period(before.get(pe), sample) for pe, sample in after.items()}
    gone = {pe: _gone(period) for pe, period in periods.items()}
    sources = {p.region.operators[0] for p in plan.regions if p.region.kind is RegionKind.SOURCE}
    stretches = {pe: _stretch(here, sources) for pe, here in gone.items()}
    factors = {pe: _factor(period) for pe, period in periods.items()}
    marks = [one.latency for period in periods.values() for one in period.operators]
    hot = hot_keys_of(sample.hot_keys for sample in after.values())
    settled = all(pe in before and _same_shape(before[pe], sample) for pe, sample in after.items())
    return PlanObservation(
        time=at,
        period=max((period.seconds for period in periods.values()), default=0.0),
        plan=plan,
        regions=tuple(
            _region(planned, gone, factors, stretches, hot.get(planned.region.name)) for planned in plan.regions
        ),
        nodes=tuple(nodes),
        settled=settled,
        adapted=adapted,
        cost=cost,
        waits_for_cpus=max((_waits_for_cpus(here, sources) for here in gone.values()), default=0.0),
        wanted={pe: _wanted(period, gone[pe], sources) for pe, period in periods.items()},
        latencies=tuple(map(sum, zip_longest(*marks, fillvalue=0))),
    )


def _gone(period: PESample) -> dict[str, _Gone]:
    seconds = max(period.seconds, SHORTEST)
    return {
        one.name: _Gone(
            cpu=one.cpu_seconds / seconds,
            inside=one.inside_seconds / seconds,
            waited=one.waited_seconds / seconds,
            blocked=one.blocked_seconds / seconds,
            taken=one.tuples_in / seconds,
            given=one.tuples_out / seconds,
            fill=one.queue_fill,
        )
        for one in period.operators
    }


def _factor(period: PESample) -> float:
    """Return the CPU time of an element for each second in its operators."""
    inside = sum(sample.cpu_seconds for sample in period.operators)
    return min(max(1.0, period.cpu_seconds / inside), MOST_OVERHEAD) if inside > 0 else 1.0


def _stretch(gone: Mapping[str, _Gone], sources: set[str]) -> float:
    """Return the time in operators, but asleep, for each second of CPU time: they wait for a CPU, as sources do."""
    others = [operator for name, operator in gone.items() if name not in sources]
    cpu = sum(operator.cpu for operator in others)
    return max(1.0, sum(operator.inside - operator.waited for operator in others) / cpu) if cpu > 0 else 1.0


def _waits_for_cpus(gone: Mapping[str, _Gone], sources: set[str]) -> float:
    """Return the share of their time in operators in which threads neither had a CPU nor slept."""
    others = [operator for name, operator in gone.items() if name not in sources]
    inside = sum(operator.inside for operator in others)
    return max(0.0, 1.0 - sum(operator.cpu + operator.waited for operator in others) / inside) if inside > 0 else 0.0


def _wanted(period: PESample, gone: Mapping[str, _Gone], sources: set[str]) -> float:
    """Return the CPUs that an element used, and those that its threads were ready for in operators and didn't get."""
    ready = sum(one.inside - one.waited - one.cpu for name, one in gone.items() if name not in sources)
    return period.cpu_seconds / max(period.seconds, SHORTEST) + max(0.0, ready)


def _same_shape(before: PESample, after: PESample) -> bool:
    models = [[sample.model for sample in one.operators] for one in (before, after)]
    return before.threads == after.threads and models[0] == models[1]


def _region(
    planned: RegionPlan,
    gone: Mapping[str, Mapping[str, _Gone]],
    factors: Mapping[str, float],
    stretches: Mapping[str, float],
    hot: HotKey | None,
) -> RegionObservation:
    source = planned.region.kind is RegionKind.SOURCE
    pes = planned.pipelines[0].pes
    first = [gone.get(pe, {}).get(planned.region.operators[0], _Gone()) for pe in pes]
    spare = max(one.inside - stretches.get(pe, 1.0) * one.cpu for pe, one in zip(pes, first, strict=True))
    held_back = 0.0 if spare > SPARE else max(0.0, 1.0 - max(one.inside for one in first))
    return RegionObservation(
        region=planned.region.name,
        throughput=sum(one.given if source else one.taken for one in first),
        pipelines=tuple(_pipeline(planned.region, pipeline, gone, factors) for pipeline in planned.pipelines),
        blocked=min(1.0, held_back if source else max(one.blocked for one in first)),
        fill=max(one.fill for one in first),
        hot_key=hot.key if hot is not None else "",
        hot_share=hot.share if hot is not None else 0.0,
    )


def _pipeline(
    region: Region, pipeline: Pipeline, gone: Mapping[str, Mapping[str, _Gone]], factors: Mapping[str, float]
) -> PipelineObservation:
    source = region.kind is RegionKind.SOURCE
    here = [[gone.get(pe, {}).get(operator, _Gone()) for operator in pipeline.operators] for pe in pipeline.pes]
    used = [factors.get(pe, 1.0) * sum(o.cpu for o in each) for pe, each in zip(pipeline.pes, here, strict=True)]
    count = len(pipeline.pes)
    costs = tuple(
        sum(each[i].cpu / max(cpu, SHORTEST) for each, cpu in zip(here, used, strict=True)) / count
        for i in range(len(pipeline.operators))
    )
    taken = tuple(sum(e[i].given if source else e[i].taken for e in here) for i in range(len(pipeline.operators)))
    # Sources sleep until the next tuple, native operators for the clock or while they are blocked.
    asks = [not source and operator in region.token_bound for operator in pipeline.operators]
    waited = [[o.waited if outside else 0.0 for o, outside in zip(each, asks, strict=True)] for each in here]
    waiting = tuple(min(1.0, sum(each)) for each in waited)
    total = max(sum(map(sum, waited)), SHORTEST)
    return PipelineObservation(
        pipeline.operators,
        tuple(min(1.0, cpu) for cpu in used),
        costs,
        taken,
        sum(each[-1].given for each in here),
        waiting,
        tuple(sum(of) / total for of in zip(*waited, strict=True)),
        tuple(used),
        () if source else tuple(_starved(each) for each in here),
    )


def _starved(operators: Sequence[_Gone]) -> float:
    """Return the share of a period that a replica's thread was inside operators, and neither had a CPU nor slept."""
    return min(1.0, sum(max(0.0, one.inside - one.cpu - one.waited) for one in operators))
