"""The bottleneck of a job, its cause, and why the runtime doesn't scale it, from two readings of its counters.

In each PE, one thread at a time runs an operator (PLDI'17 section 4.1.1, P09). So an operator that is inside its
function all the time is full, however many threads there are. Must not know how the counters were carried.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rayelastic.graph.spec.ports import operator_of
from rayelastic.reasons import Code, Reason, sentence
from rayelastic.runtime.values.hot_key import HotKey, hot_keys_of
from rayelastic.runtime.values.operator_table import OperatorTable
from rayelastic.runtime.values.period import SHORTEST, job_period
from rayelastic.runtime.values.region_adaptation import REGIONS

if TYPE_CHECKING:
    from rayelastic.plan.exec_plan import ExecPlan, RegionPlan
    from rayelastic.runtime.values.adaptation import Adaptation
    from rayelastic.runtime.values.region_adaptation import RegionAdaptation
    from rayelastic.runtime.values.status import JobMetrics, OperatorSample

REPORTED = 0.3  # of a region's tuples: the share from which its most frequent key is reported as a reason
ALWAYS = 0.9  # share of the time inside its function from which an operator is full
IDLE = 0.1  # share of the time that a source sleeps from which it has less input than the job can take
FELT = 0.05  # share of the time blocked on output from which an operator upstream is slower for it


class Cause(enum.Enum):
    """Why an operator limits the job."""

    WAITING = "waiting"  # its function waits for something outside: a stalled sink
    SKEWED_KEY = "skewed key"  # one of its replicas gets far more than its share
    EXPENSIVE = "expensive"  # its function computes all the time
    GIL = "GIL"  # threads wait for the GIL
    INPUT = "input"  # nothing is full: the source gets no more


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From where on something counts; shares of the time between two readings.

    Args:
        full: an operator that is inside its function for longer is full. The rest is noise of 100 samples a second.
        waiting: share of the time inside that it is asleep, above which an operator waits rather than computes.
        skew: tuples of the busiest replica over the mean.
        token: time that threads waited for the GIL.
    """

    full: float = 0.6
    waiting: float = 0.7
    skew: float = 1.5
    token: float = 0.5


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """The operator that limits a job.

    Args:
        operator: its name.
        pe: the PE.
        cause: why, as a code.
        reasons: why.
        held: why the runtime doesn't scale it, or what it is about to do.
        share: of the time that the busiest operator is inside its function, 0..1.
        blocked: share of the time that an operator upstream, or a link, is blocked on output. It is the highest one.
        busiest: the busiest operator that is no source. It is empty if there is none.
        idle: share of the time that the busiest source sleeps without input.
    """

    operator: str
    pe: str
    cause: Cause
    reasons: tuple[Reason, ...]
    held: tuple[Reason, ...]
    share: float = 0.0
    blocked: float = 0.0
    busiest: str = ""
    idle: float = 0.0

    @property
    def reason(self) -> str:
        """Why, as people read it."""
        return sentence(self.reasons)

    @property
    def rule(self) -> str:
        """Why the runtime doesn't scale it, as people read it."""
        return sentence(self.held)

    @property
    def limits_sources(self) -> bool:
        """Whether the operator keeps the sources from emitting more: it is full, or something upstream is blocked."""
        if self.cause in (Cause.WAITING, Cause.EXPENSIVE):
            return self.share >= ALWAYS or self.blocked >= FELT
        return self.cause is not Cause.INPUT

    @property
    def keeps_up(self) -> bool:
        """Whether the sources have less input than the job can take."""
        return not self.limits_sources and self.idle >= IDLE

    def __str__(self) -> str:
        return f"{self.operator} on {self.pe} ({self.cause.value}): {self.reason} {self.rule}"


@dataclass(frozen=True, slots=True)
class _Use:
    """The activity of one operator on one PE between the readings, as shares of the time."""

    pe: str
    sample: OperatorSample
    inside: float
    cpu: float
    blocked: float
    asleep: float  # it waits for something outside; a thread that is ready and has no CPU isn't asleep
    taken: int


def find_bottleneck(
    before: JobMetrics,
    after: JobMetrics,
    plan: ExecPlan,
    adaptations: Sequence[Adaptation | RegionAdaptation] = (),
    thresholds: Thresholds | None = None,
) -> Bottleneck:
    """Find the operator that limits the job between two readings.

    Args:
        before: the counters at the first reading.
        after: those at the second.
        plan: the plan in force.
        adaptations: the latest passes of the adaptation loops, oldest first.
        thresholds: the defaults of `Thresholds` if None.
    """
    limits = thresholds or Thresholds()
    targets = {operator_of(target) for _, target in plan.edges}
    period = job_period(before, after)
    uses = list(_uses(period, targets, limits))
    inner = [use for use in uses if use.sample.name in targets]
    # a link waits for credit: room on the other side
    links = [one["blocked_seconds"] / max(pe.seconds, SHORTEST) for pe in period.pes for one in pe.links.values()]
    blocked = max([*(use.blocked for use in uses), *links], default=0.0)
    gil = max((pe.gil_wait_seconds / max(pe.seconds, SHORTEST) for pe in period.pes), default=0.0)
    hot = hot_keys_of(pe.hot_keys for pe in after.pes)
    bottleneck = _found(uses, inner, blocked, gil, limits, plan, adaptations, hot)
    busiest = max(inner, key=lambda use: use.inside, default=None)
    idle = max((use.asleep for use in uses if use not in inner), default=0.0)
    if busiest is None:
        return replace(bottleneck, blocked=blocked, idle=idle)
    return replace(bottleneck, share=busiest.inside, blocked=blocked, busiest=busiest.sample.name, idle=idle)


def _found(
    uses: Sequence[_Use],
    inner: Sequence[_Use],
    blocked: float,
    token: float,
    limits: Thresholds,
    plan: ExecPlan,
    adaptations: Sequence[Adaptation | RegionAdaptation],
    hot: Mapping[str, HotKey],
) -> Bottleneck:
    """Return the operator that limits the job: a skewed one, one that waits, one that needs the GIL, an expensive
    one.
    """
    upstream = Code.UPSTREAM_BLOCKED(blocked=blocked)
    if (skewed := _skewed(inner, limits, plan, hot)) is not None:
        return skewed
    stalled = max((use for use in inner if _stalls(use, limits)), key=lambda use: use.asleep, default=None)
    if stalled is not None and stalled.sample.lane != "python":
        return _stall(stalled, upstream, plan, adaptations, hot)
    python = max((use for use in inner if use.sample.lane == "python"), key=lambda use: use.inside, default=None)
    if python is not None and token >= limits.token and python.inside >= limits.full and not _stalls(python, limits):
        reason = Code.HOLDS_GIL(wait=token, busy=python.inside)
        return Bottleneck(python.sample.name, python.pe, Cause.GIL, (reason,), (Code.ONE_GIL(),))
    if stalled is not None:
        return _stall(stalled, upstream, plan, adaptations, hot)
    busiest = max(inner, key=lambda use: use.inside, default=None)
    if busiest is not None and (busiest.inside >= limits.full or blocked >= limits.full):
        reasons = Code.COMPUTES(busy=busiest.inside), upstream
        held = _held_threads(busiest, plan, adaptations, hot)
        return Bottleneck(busiest.sample.name, busiest.pe, Cause.EXPENSIVE, reasons, held)
    sources = [use for use in uses if use not in inner]
    source = max(sources, key=lambda use: use.inside, default=uses[0] if uses else None)
    name, pe = (source.sample.name, source.pe) if source is not None else ("", "")
    reason = Code.BUSIEST_OPERATOR(busy=busiest.inside) if busiest is not None else Code.NOTHING_RUNS()
    keeps_up = source is not None and source.asleep >= IDLE
    return Bottleneck(name, pe, Cause.INPUT, (reason,), (Code.KEEPS_UP() if keeps_up else Code.SOURCES_FULL_SPEED(),))


def _uses(period: JobMetrics, targets: AbstractSet[str], limits: Thresholds) -> Iterator[_Use]:
    """Yield the activity of operators: of thousands, those that may limit the job, and all replicas of these."""
    tables = [OperatorTable.of(pe.operators) for pe in period.pes]
    where = [(pe, row) for pe, table in zip(period.pes, tables, strict=True) for row in range(len(table))]
    if not where:
        return
    names = [name for table in tables for name in table.names]
    python = np.array([lane == "python" for table in tables for lane in table.lanes])
    inner = np.array([name in targets for name in names])
    counted = np.concatenate([table.numbers for table in tables])
    seconds = np.array([max(pe.seconds, SHORTEST) for pe, _ in where])
    inside, cpu, blocked, asleep = (
        counted[name] / seconds for name in ("inside_seconds", "cpu_seconds", "blocked_seconds", "waited_seconds")
    )
    room = counted["queue_capacity"]
    busy = (inside >= limits.full) | ((room > 0) & (counted["queued"] >= limits.full * room))
    names_busy = {names[row] for row in np.flatnonzero(busy)}
    wanted = {row for row, name in enumerate(names) if name in names_busy} | {int(blocked.argmax())}
    wanted |= {int(np.where(some, inside, -1.0).argmax()) for some in (inner, ~inner, inner & python)}
    for row in sorted(wanted):
        pe, at = where[row]
        yield _Use(
            pe=pe.pe,
            sample=pe.operators[at],
            inside=float(inside[row]),
            cpu=float(cpu[row]),
            blocked=float(blocked[row]),
            asleep=float(asleep[row]),
            taken=int(counted["tuples_in"][row]),
        )


def _skewed(uses: Sequence[_Use], limits: Thresholds, plan: ExecPlan, hot: Mapping[str, HotKey]) -> Bottleneck | None:
    """Return the replica with more than its share, if it is full and a key that routers counted explains it.

    One replica alone may have a burst, such as the windows that end together, though all keys are even.
    """
    by_name: dict[str, list[_Use]] = {}
    for use in uses:
        by_name.setdefault(use.sample.name, []).append(use)
    for name, replicas in by_name.items():
        mean = sum(use.taken for use in replicas) / len(replicas)
        most = max(replicas, key=lambda use: use.taken)
        busy = most.inside >= limits.full or most.sample.queue_fill >= limits.full
        key = hot.get(plan.region_of(name).region.name)
        explains = key is not None and key.sure_share > (limits.skew - 1) / len(replicas)
        if len(replicas) > 1 and busy and most.taken > limits.skew * mean and explains:
            share = most.taken / (mean * len(replicas))
            reasons = Code.SKEWED(share=share, pe=most.pe, replicas=len(replicas)), *_hottest(plan.region_of(name), hot)
            held = Code.KEY_HAS_ONE_REPLICA(), Code.TWO_STEPS_DIVIDE()
            return Bottleneck(name, most.pe, Cause.SKEWED_KEY, reasons, held)
    return None


def _stalls(use: _Use, limits: Thresholds) -> bool:
    return use.inside >= limits.full and use.asleep >= limits.waiting * use.inside


def _stall(
    use: _Use,
    upstream: Reason,
    plan: ExecPlan,
    adaptations: Sequence[Adaptation | RegionAdaptation],
    hot: Mapping[str, HotKey],
) -> Bottleneck:
    reasons = Code.WAITS_OUTSIDE(asleep=use.asleep, cpu=use.cpu), upstream
    planned = plan.region_of(use.sample.name)
    held = _held(use.sample.name, planned, adaptations, hot)
    return Bottleneck(use.sample.name, use.pe, Cause.WAITING, reasons, held)


def _hottest(planned: RegionPlan, hot: Mapping[str, HotKey], least: float = 0.0) -> tuple[Reason, ...]:
    """Return the key with the most tuples of a region."""
    region = planned.region.name
    key = hot.get(region)
    if key is None or key.share < least:
        return ()
    return (Code.HOTTEST_KEY(key=key.key, share=key.share, region=region),)


def _held(
    operator: str, planned: RegionPlan, adaptations: Sequence[Adaptation | RegionAdaptation], hot: Mapping[str, HotKey]
) -> tuple[Reason, ...]:
    """Return what keeps a region from getting more replicas."""
    region = planned.region
    last = next((one for one in reversed(adaptations) if one.pe == REGIONS), None)
    if (why := region.why_fixed(operator)) is not None:  # but its operators may go to another process
        decided = () if last is None else (Code.LAST_REGION_DECISION(), *last.decision.reasons)
        return Code.KEEPS_ONE(region=region.name), why, *decided
    runs = Code.RUNS_AS(region=region.name, replicas=planned.replicas), *_hottest(planned, hot, REPORTED)
    if last is None:
        return (*runs, Code.NOT_ELASTIC())
    return (*runs, Code.LAST_REGION_DECISION(), *last.decision.reasons)


def _held_threads(
    use: _Use,
    plan: ExecPlan,
    adaptations: Sequence[Adaptation | RegionAdaptation],
    hot: Mapping[str, HotKey],
) -> tuple[Reason, ...]:
    """Why the runtime doesn't scale an expensive operator."""
    held = _held(use.sample.name, plan.region_of(use.sample.name), adaptations, hot)
    last = next((one for one in reversed(adaptations) if one.pe == use.pe), None)
    if last is None:
        return (*held, Code.THREADS_FIXED())
    return (*held, Code.LAST_THREAD_DECISION(pe=use.pe), *last.decision.reasons)
