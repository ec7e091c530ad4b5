"""The events of a job for the web UI, each with its reason, the observed values, and its effect.

Made of passes of adaptation loops and of what differs between two statuses. Must not know who keeps them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from rayelastic.plan.plan_text import counted
from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.runtime.loops.region_loop import ADVICE
from rayelastic.runtime.values.checkpoint_record import CheckpointCounters
from rayelastic.runtime.values.region_adaptation import RegionAdaptation

if TYPE_CHECKING:
    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.policy.element.decision import Decision
    from rayelastic.policy.element.observation import OperatorObservation
    from rayelastic.policy.regions.actions import AdaptationDecision
    from rayelastic.runtime.values.adaptation import Adaptation
    from rayelastic.runtime.values.failure import Failure
    from rayelastic.runtime.values.region_counters import RegionCounters
    from rayelastic.runtime.values.status import JobStatus

NAMED = 3  # operators that a title names
SHOWN = 12  # operators whose numbers an event keeps: the most expensive ones
PERCENT = 100
UNCHANGED = "no change"


class EventKind(Enum):
    """What sort of thing happened; each has its own marker."""

    PASS = "pass"  # a loop looked and changed nothing
    THREADS = "threads"
    QUEUES = "queues"
    REPLICAS = "replicas"
    CHECKPOINT = "checkpoint"  # a complete one, or one that was abandoned for the same problem as the one before
    ABANDONED = "abandoned"  # the first checkpoint that was abandoned for a problem
    SAVEPOINT = "savepoint"
    STATE = "state"
    FAILURE = "failure"
    RECOVERY = "recovery"
    ADVICE = "advice"  # what a job that only advises would do
    ACTION = "action"  # a user asked for it in the web UI


ROUTINE = frozenset({EventKind.PASS, EventKind.CHECKPOINT})  # regular ones, among which decisions would drown


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened.

    Args:
        seconds: since the start of the job.
        kind: each has its own marker.
        where: a PE, 'regions', or 'job'.
        title: what, in a few words. The sentence is for people, kind and seen are for programs.
        reason: why. It comes from the loop that decided.
        rule: the place of the rule in a paper.
        seen: {name: value as text} of what was measured.
        operators: names of those concerned. Their panels list the event.
        detail: more text, such as a traceback.
        reasons: the codes and values of `reason`, where it is a decision's.
    """

    seconds: float
    kind: EventKind
    where: str
    title: str
    reason: str = ""
    rule: str = ""
    seen: Mapping[str, str] = field(default_factory=dict)
    operators: tuple[str, ...] = ()
    detail: str = ""
    reasons: tuple[dict[str, Any], ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the same as JSON values."""
        return asdict(self) | {"kind": self.kind.value, "seconds": round(self.seconds, 2)}


def event_of(done: Adaptation | RegionAdaptation) -> Event:
    """Return the event of a pass of an adaptation loop."""
    return _of_regions(done) if isinstance(done, RegionAdaptation) else _of_element(done)


def _of_element(done: Adaptation) -> Event:
    seen, decision = done.observation, done.decision
    on = sorted(name for name, model in decision.models.items() if model is not ThreadingModel.MANUAL)
    off = sorted(name for name, model in decision.models.items() if model is ThreadingModel.MANUAL)
    what = [_changed("adds", on), _changed("removes", off)]
    if decision.thread_count != seen.thread_count:
        what.insert(0, f"threads {seen.thread_count} → {decision.thread_count}")
    kind = EventKind.PASS
    if done.changed:
        kind = EventKind.QUEUES if decision.models else EventKind.THREADS
    whole = max(seen.samples, 1)
    costliest = sorted(seen.operators, key=lambda one: -one.samples)[:SHOWN]
    facts = {
        "tuples/s, all operators together": f"{seen.throughput:,.0f}",
        "threads": f"{seen.thread_count} of at most {seen.maximum_threads}",
        "threads idle": _share(seen.idle),
        "blocked on output": _share(seen.blocked),
        "waiting for the GIL": _share(seen.token_wait),
        "CPUs used by this PE": f"{seen.cpus_used:.2f} of {seen.cpus}",
        "host busy": _share(seen.host_busy),
    }
    facts |= {f"cost of {one.name}": _share(one.samples / whole) + _queue(one) for one in costliest if one.samples}
    title = ", ".join(part for part in what if part) or UNCHANGED
    return Event(
        seen.time, kind, done.pe, title, decision.reason, decision.rule, facts, (*on, *off), reasons=_codes(decision)
    )


def _of_regions(done: RegionAdaptation) -> Event:
    seen, decision = done.observation, done.decision
    title = decision.title or UNCHANGED
    facts = {"tuples/s from sources": f"{done.throughput:,.0f}", "routing epoch": f"{done.in_force.epoch}"}
    if done.seconds:
        facts["the change took"] = f"{done.seconds:.2f} s"
    kind = EventKind.REPLICAS if done.changed else EventKind.PASS
    detail = f"not done: {done.problem}" if done.problem else ""
    if done.problem == ADVICE:
        kind, title = EventKind.ADVICE, f"advises: {title}"
    return Event(seen.time, kind, done.pe, title, decision.reason, decision.rule, facts, (), detail, _codes(decision))


def _codes(decision: Decision | AdaptationDecision) -> tuple[dict[str, Any], ...]:
    return tuple(reason.as_dict() for reason in decision.reasons)


def _queue(seen: OperatorObservation) -> str:
    return "" if seen.model is ThreadingModel.MANUAL else f", queue {_share(seen.queue_fill)} full"


def _changed(verb: str, names: list[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    queues = "a queue" if len(names) == 1 else counted(len(names), "queue")
    return f"{verb} {queues} ({', '.join(names[:NAMED])}{more})"


def _share(value: float) -> str:
    return f"{value * PERCENT:.0f} %"


def state_changes(before: JobStatus | None, now: JobStatus, seconds: float) -> Iterator[Event]:
    """Yield an event for each difference between two statuses."""
    for pe in now.pes:
        then = next((one for one in before.pes if one.pe == pe.pe), None) if before is not None else None
        if before is not None and (then is None or then.state is not pe.state):
            title = f"{pe.pe} is {pe.state.value}" + (f" on {pe.node}" if pe.node and then is None else "")
            if pe.failure is not None:
                yield _failed(pe.failure, seconds, pe.pe)
            else:
                yield Event(seconds, EventKind.STATE, pe.pe, title)
    if before is None or before.state is not now.state:
        if now.failure is not None:
            yield _failed(now.failure, seconds, "job")
        else:
            title = "the job stopped with a savepoint" if now.savepoint else f"the job is {now.state.value}"
            yield Event(seconds, EventKind.STATE, "job", title, f"saved in {now.savepoint}" if now.savepoint else "")
    if now.paused != (before.paused if before is not None else False):
        title = "elasticity paused" if now.paused else "elasticity resumed"
        yield Event(seconds, EventKind.STATE, "job", title)
    counted = before.checkpoints if before is not None else CheckpointCounters()
    yield from _checkpoints(counted, now.checkpoints, seconds)


def _checkpoints(before: CheckpointCounters, now: CheckpointCounters, seconds: float) -> Iterator[Event]:
    last = before.recent[-1] if before.recent else None
    problem = last.problem if last is not None else ""
    for one in now.recent:
        if last is not None and one.at <= last.at:
            continue
        again, problem = one.problem == problem, one.problem
        if one.problem:
            kind = EventKind.CHECKPOINT if again else EventKind.ABANDONED
            took = {"duration": f"{one.seconds:.2f} s"}
            yield Event(one.at, kind, "job", "checkpoint abandoned, the job continues", one.problem, "", took)
            continue
        seen = {
            "duration": f"{one.seconds:.2f} s",
            "sources paused": f"{one.paused * 1000:.0f} ms",
            "state written": f"{one.bytes:,} bytes",
        }
        if one.held:
            seen["paused"] = f"{one.held}, for {one.held_seconds * 1000:.0f} ms"
        if one.slowest:
            seen["slowest operator"] = f"{one.slowest}, after {one.slowest_seconds:.2f} s"
        title = f"savepoint {one.number} at {one.place}" if one.place else f"checkpoint {one.number}"
        reason = "another job can restore from it" if one.place else "restore point"
        kind = EventKind.SAVEPOINT if one.place else EventKind.CHECKPOINT
        slowest = (one.slowest,) if one.slowest else ()
        yield Event(one.at, kind, "job", title, reason, "", seen, slowest)
    if now.restarts > before.restarts:
        restored = f"checkpoint {now.last}" if now.last else "the start"
        yield Event(
            seconds, EventKind.RECOVERY, "job", f"recovered from {restored}", "", "", {"restored from": restored}
        )


def _failed(failure: Failure, seconds: float, where: str) -> Event:
    facts = {"tuple": failure.failing_tuple} if failure.failing_tuple is not None else {}
    operators = (failure.operator,) if failure.operator is not None else ()
    title = f"{where} failed" + (f" in {failure.operator}" if failure.operator else "")
    return Event(seconds, EventKind.FAILURE, where, title, failure.reason, "", facts, operators, failure.traceback)


def moved(
    before: tuple[ExecPlan, Mapping[str, RegionCounters]],
    now: tuple[ExecPlan, Mapping[str, RegionCounters]],
    seconds: float,
) -> Iterator[Event]:
    """Yield an event for each region whose number of replicas changed, with the keys that moved for it."""
    (old, counts_then), (new, counts) = before, now
    then = {planned.region.name: planned for planned in old.regions}
    for planned in new.regions:
        name = planned.region.name
        if name not in then or then[name].replicas == planned.replicas:
            continue
        was, is_now = counts_then.get(name), counts.get(name)
        facts = {"routing epoch": f"{old.epoch} → {new.epoch}"}
        if is_now is not None:
            facts["keys moved"] = f"{is_now.moved_keys - (was.moved_keys if was else 0):,}"
            facts["bytes moved"] = f"{is_now.moved_bytes - (was.moved_bytes if was else 0):,}"
            facts["longest wait of a moving key"] = f"{is_now.longest_hold * 1000:.0f} ms"
        title = f"{name}: {then[name].replicas} → {counted(planned.replicas, 'replica')}"
        yield Event(seconds, EventKind.REPLICAS, name, title, "", "", facts, planned.region.operators)
