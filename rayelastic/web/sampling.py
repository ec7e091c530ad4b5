"""Read a job once for all viewers: counters, state, plan and passes go into the history.

`read` may block and runs anywhere; `keep` belongs to the thread of the history. A job that doesn't answer any more is
shown as lost and isn't read again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from rayelastic.errors import ErrorCode, RayelasticError, code_of
from rayelastic.runtime.values.status import State
from rayelastic.runtime.watch.bottleneck import Bottleneck, find_bottleneck
from rayelastic.web.events import Event, EventKind, event_of, moved, state_changes
from rayelastic.web.frames import frame_between
from rayelastic.web.history import History

if TYPE_CHECKING:
    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.runtime.values.adaptation import Adaptation
    from rayelastic.runtime.values.region_adaptation import RegionAdaptation
    from rayelastic.runtime.values.status import JobMetrics, JobStatus
    from rayelastic.web.watched import Watched

LAST_PASSES = 64  # of which the bottleneck's rule is taken
LARGE = 250  # operators: for each so many, one more reading passes between two searches for the bottleneck


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of a job; `at` is the time of the counters in seconds since 1970."""

    status: JobStatus
    metrics: JobMetrics
    at: float
    plan: ExecPlan
    passes: tuple[Adaptation | RegionAdaptation, ...]


class Sampler:
    """Read one job, once a period for all viewers.

    Args:
        job: to read.
        clock: seconds since 1970.
    """

    def __init__(self, job: Watched, clock: Callable[[], float] = time.time) -> None:
        self.job = job
        self._clock = clock
        self.history = History(job.plan())
        self.history.state = job.status.state.value
        self.history.operator_infos = job.describe()
        self._verdict: dict[str, Any] | None = None
        self.over = False
        self._before: Reading | None = None
        self._since: dict[str, int] = {}
        self._starts: dict[str, float] = {}  # of elements, in seconds since that of the job
        self._passes: tuple[Adaptation | RegionAdaptation, ...] = ()
        self._readings = 0
        self._advised = ""

    def read(self) -> Reading:
        """Read the job; blocks until it answers."""
        status = self.job.status  # first: what is final stays as it is
        passes = tuple(self.job.adaptations(every_pass=True, since=dict(self._since)))
        metrics = self.job.metrics()
        return Reading(status, metrics, self._clock(), self.job.plan(), passes)

    def keep(self, now: Reading) -> None:
        """Put a reading into the history."""
        before, history, seconds = self._before, self.history, now.metrics.seconds
        for done in now.passes:
            self._since[done.pe] = done.number + 1
        self._passes = (*self._passes, *now.passes)[-LAST_PASSES:]
        self._note_starts(now)
        events = [self._event(done) for done in now.passes]
        if before is not None:
            events += moved((before.plan, before.metrics.regions), (now.plan, now.metrics.regions), seconds)
        events += state_changes(before.status if before is not None else None, now.status, seconds)
        history.add_events(events)
        history.set_plan(now.plan, seconds)
        if history.started is None:
            history.started = round(now.at - seconds, 2)
        self.over = history.over = now.status.state.is_final
        history.state = now.status.state.value
        history.status = _status_values(now.status)
        failure = now.status.failure
        if failure is not None:
            history.failure = {
                "reason": failure.reason,
                "code": failure.code,
                "operator": failure.operator,
                "tuple": failure.failing_tuple,
                "traceback": failure.traceback,
            }
        if before is None or now.metrics.seconds > before.metrics.seconds:
            earlier = before.metrics if before is not None else None
            if earlier is not None and self._readings % (1 + len(history.places) // LARGE) == 0:
                found = find_bottleneck(earlier, now.metrics, now.plan, self._passes)
                self._verdict = _verdict(found) if now.status.state is State.RUNNING else None
            frame = frame_between(earlier, now.metrics, now.plan, history.rows)
            history.add(replace(frame, verdict=self._verdict))
        self._readings += 1
        self._before = now

    def _note_starts(self, now: Reading) -> None:
        """Note when elements started, for passes have the time since then. One that has ended doesn't grow older."""
        ended = {one.pe for one in now.status.pes if one.state.is_final}
        for pe in now.metrics.pes:
            if pe.pe not in ended:
                self._starts[pe.pe] = max(0.0, now.metrics.seconds - pe.seconds)

    def _event(self, done: Adaptation | RegionAdaptation) -> Event:
        """Return the event of a pass; repeated advice is a pass that changed nothing."""
        event = event_of(done)
        event = replace(event, seconds=event.seconds + self._starts.get(done.pe, 0.0))
        if event.kind is not EventKind.ADVICE:
            return event
        advised, self._advised = self._advised, event.title
        return replace(event, kind=EventKind.PASS) if event.title == advised else event

    def lose(self, error: RayelasticError | TimeoutError) -> None:
        """Note that the job doesn't answer any more."""
        self.over = self.history.over = True
        self.history.state = "lost"
        self.history.failure = {
            "reason": f"{error}",
            "code": code_of(error, ErrorCode.UNAVAILABLE),
            "operator": None,
            "tuple": None,
            "traceback": "",
        }
        at = self._before.metrics.seconds if self._before is not None else 0.0
        self.history.add_events([Event(at, EventKind.FAILURE, "job", "the job doesn't answer any more", f"{error}")])


def _verdict(found: Bottleneck) -> dict[str, Any]:
    """Return the verdict as a code and values, from which the web UI makes the sentence."""
    values = {
        "operator": found.operator,
        "pe": found.pe,
        "cause": found.cause.name.lower(),
        "reason": found.reason,
        "rule": found.rule,
        "reasons": [reason.as_dict() for reason in found.reasons],
        "held": [reason.as_dict() for reason in found.held],
    }
    busiest = {"busiest": found.busiest, "share": round(found.share, 3), "blocked": round(found.blocked, 3)}
    if found.limits_sources:
        return {"code": "bottleneck", **values, **busiest}
    return {"code": "keeps_up" if found.keeps_up else "no_bottleneck", **busiest}


def _status_values(status: JobStatus) -> dict[str, Any]:
    """Return what the web UI shows of a status beside its state and failure."""
    counted = status.checkpoints
    return {
        "paused": status.paused,
        "history": status.history,
        "elements": {
            one.pe: {"state": one.state.value, "node": one.node, "pid": one.pid, "links": one.encryption}
            for one in status.pes
        },
        "checkpoints": [asdict(one) for one in counted.recent],
        "taken": counted.taken,
        "abandoned": counted.abandoned,
        "restarts": counted.restarts,
        "problem": counted.problem if status.outage is None else str(status.outage),
        "standstill": counted.standstill,
        "called_again": list(counted.called_again),
    }
