"""What happened in a job, as the page tells it: each with its reason, what was seen, and what it changed.

Made of passes of adaptation loops and of what differs between two statuses. Must not know who keeps them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from rayelastic.plan.config import ThreadingModel
from rayelastic.plan.plan_text import counted
from rayelastic.runtime.loops.region_loop import ADVICE
from rayelastic.runtime.values.region_adaptation import RegionAdaptation
from rayelastic.runtime.values.status import CheckpointCounters

if TYPE_CHECKING:
    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.policy.element.observation import OperatorObservation
    from rayelastic.runtime.values.adaptation import Adaptation
    from rayelastic.runtime.values.failure import Failure
    from rayelastic.runtime.values.status import JobStatus, RegionCounters

__all__ = ["Event", "EventKind", "event_of", "moved", "state_changes"]

NAMED = 3  # operators that a title names
SHOWN = 12  # operators whose numbers an event keeps: the most expensive ones
PERCENT = 100


class EventKind(Enum):
    """What sort of thing happened; each has its own marker."""

    PASS = "pass"  # a loop looked and left everything as it was
    THREADS = "threads"
    QUEUES = "queues"
    REPLICAS = "replicas"
    CHECKPOINT = "checkpoint"
    STATE = "state"
    FAILURE = "failure"
    ADVICE = "advice"  # what a job that only advises would do
    ACTION = "action"  # somebody asked for something at the page


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened.

    Args:
        seconds: since the start of the job.
        kind: what sort.
        where: a processing element, 'regions', or 'job'.
        title: what, in a few words.
        reason: why, in the words of whoever decided.
        rule: where the rule is written.
        seen: {what was seen: its value as text}.
        operators: names that it is about.
        detail: more text, such as a traceback.
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

    def as_dict(self) -> dict[str, Any]:
        """Return the same as JSON values."""
        return asdict(self) | {"kind": self.kind.value, "seconds": round(self.seconds, 2)}


def event_of(done: Adaptation | RegionAdaptation) -> Event:
    """Tell a pass of an adaptation loop."""
    return _of_regions(done) if isinstance(done, RegionAdaptation) else _of_element(done)


def _of_element(done: Adaptation) -> Event:
    seen, decision = done.observation, done.decision
    on = sorted(name for name, model in decision.models.items() if model is not ThreadingModel.MANUAL)
    off = sorted(name for name, model in decision.models.items() if model is ThreadingModel.MANUAL)
    what = [_changed("adds", on), _changed("takes away", off)]
    if decision.thread_count != seen.thread_count:
        what.insert(0, f"threads {seen.thread_count} → {decision.thread_count}")
    kind = EventKind.PASS
    if done.changed:
        kind = EventKind.QUEUES if decision.models else EventKind.THREADS
    whole = max(seen.samples, 1)
    dearest = sorted(seen.operators, key=lambda one: -one.samples)[:SHOWN]
    told = {
        "tuples/s over all operators": f"{seen.throughput:,.0f}",
        "threads": f"{seen.thread_count} of at most {seen.maximum_threads}",
        "threads asleep": _share(seen.idle),
        "waiting for room": _share(seen.blocked),
        "waiting for the Python token": _share(seen.token_wait),
        "CPUs used by this element": f"{seen.own_cpu:.2f} of {seen.cpu_count}",
        "host busy": _share(seen.host_cpu),
    }
    told |= {f"cost of {one.name}": _share(one.samples / whole) + _queue(one) for one in dearest if one.samples}
    title = ", ".join(part for part in what if part) or "as it is"
    return Event(seen.time, kind, done.pe, title, decision.reason, decision.rule, told, (*on, *off))


def _of_regions(done: RegionAdaptation) -> Event:
    seen, decision = done.observation, done.decision
    title = ", ".join(action.text() for action in (*decision.reverted, *decision.actions)) or "as it is"
    told = {"tuples/s of the sources": f"{done.throughput:,.0f}", "routing epoch": f"{done.in_force.epoch}"}
    if done.seconds:
        told["the change took"] = f"{done.seconds:.2f} s"
    kind = EventKind.REPLICAS if done.changed else EventKind.PASS
    detail = f"not done: {done.problem}" if done.problem else ""
    if done.problem == ADVICE:
        kind, title = EventKind.ADVICE, f"advises: {title}"
    return Event(seen.time, kind, done.pe, title, decision.reason, decision.rule, told, (), detail)


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
    """Tell what differs between two statuses."""
    for pe in now.pes:
        then = next((one for one in before.pes if one.pe == pe.pe), None) if before is not None else None
        if before is not None and (then is None or then.state is not pe.state):
            said = f"{pe.pe} is {pe.state.value}" + (f" on {pe.node}" if pe.node and then is None else "")
            if pe.failure is not None:
                yield _failed(pe.failure, seconds, pe.pe)
            else:
                yield Event(seconds, EventKind.STATE, pe.pe, said)
    if before is None or before.state is not now.state:
        if now.failure is not None:
            yield _failed(now.failure, seconds, "job")
        else:
            yield Event(seconds, EventKind.STATE, "job", f"the job is {now.state.value}")
    if now.paused != (before.paused if before is not None else False):
        title = "elasticity is paused: the job stays as it is" if now.paused else "elasticity goes on"
        yield Event(seconds, EventKind.STATE, "job", title)
    counted = before.checkpoints if before is not None else CheckpointCounters()
    yield from _checkpoints(counted, now.checkpoints, seconds)


def _checkpoints(before: CheckpointCounters, now: CheckpointCounters, seconds: float) -> Iterator[Event]:
    told = before.recent[-1].at if before.recent else -1.0
    for one in now.recent:
        if one.at <= told:
            continue
        if one.problem:
            title = "a checkpoint was given up, the job goes on"
            yield Event(
                one.at, EventKind.CHECKPOINT, "job", title, one.problem, "", {"it took": f"{one.seconds:.2f} s"}
            )
            continue
        seen = {
            "it took": f"{one.seconds:.2f} s",
            "sources were held": f"{one.paused * 1000:.0f} ms",
            "state written": f"{one.bytes:,} bytes",
        }
        if one.held:
            seen["stood still"] = f"{one.held}, for {one.held_seconds * 1000:.0f} ms"
        if one.slowest:
            seen["slowest operator"] = f"{one.slowest}, after {one.slowest_seconds:.2f} s"
        title = f"savepoint {one.number} at {one.place}" if one.place else f"checkpoint {one.number}"
        reason = "another job can go on from here" if one.place else "after a loss the job goes on from here"
        slowest = (one.slowest,) if one.slowest else ()
        yield Event(one.at, EventKind.CHECKPOINT, "job", title, reason, "", seen, slowest)
    if now.restarts > before.restarts:
        whence = f"checkpoint {now.last}" if now.last else "its start"
        yield Event(seconds, EventKind.FAILURE, "job", f"something was lost: the job goes on from {whence}")


def _failed(failure: Failure, seconds: float, where: str) -> Event:
    told = {"tuple": failure.failing_tuple} if failure.failing_tuple is not None else {}
    operators = (failure.operator,) if failure.operator is not None else ()
    title = f"{where} failed" + (f" in {failure.operator}" if failure.operator else "")
    return Event(seconds, EventKind.FAILURE, where, title, failure.reason, "", told, operators, failure.traceback)


def moved(
    before: tuple[ExecPlan, Mapping[str, RegionCounters]],
    now: tuple[ExecPlan, Mapping[str, RegionCounters]],
    seconds: float,
) -> Iterator[Event]:
    """Tell which regions have other replicas than before, and which keys moved for it."""
    (old, counts_then), (new, counts) = before, now
    then = {planned.region.name: planned for planned in old.regions}
    for planned in new.regions:
        name = planned.region.name
        if name not in then or then[name].replicas == planned.replicas:
            continue
        was, is_now = counts_then.get(name), counts.get(name)
        told = {"routing epoch": f"{old.epoch} → {new.epoch}"}
        if is_now is not None:
            told["keys moved"] = f"{is_now.moved_keys - (was.moved_keys if was else 0):,}"
            told["bytes moved"] = f"{is_now.moved_bytes - (was.moved_bytes if was else 0):,}"
            told["longest wait of a moving key so far"] = f"{is_now.longest_hold * 1000:.0f} ms"
        title = f"{name}: {then[name].replicas} → {counted(planned.replicas, 'replica')}"
        yield Event(seconds, EventKind.REPLICAS, name, title, "", "", told, planned.region.operators)
