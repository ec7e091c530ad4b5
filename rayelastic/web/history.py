"""The history of a job in the web UI, within a bound of memory: frames, series, events, plans.

Older frames are thinned out, so that users can look back to the start at a coarser grain. Used from one thread.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rayelastic.errors import ConfigError, ErrorCode
from rayelastic.web.events import ROUTINE
from rayelastic.web.frames import COLUMNS, SERIES, Frame, Rows

if TYPE_CHECKING:
    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.plan.explain import OperatorInfo
    from rayelastic.web.events import Event

FRAME_BYTES = 32 << 20  # of all frames that are kept
LONGEST_SERIES = 7_200  # points, and frames: two hours at one a second, then every other one is kept
MOST_EVENTS = 20_000
KEPT_EVENTS = 18_000  # of more than these
MOST_POINTS = 600  # of the series of one operator
OPERATOR_SERIES = ("rate_in", "rate_out", "busy", "waited", "blocked", "fill")


class History:
    """One job over time.

    Args:
        plan: the first one.

    >>> from rayelastic.plan.exec_plan import ExecPlan
    >>> history = History(ExecPlan("empty", ()))
    >>> history.frame_at(1.0) is None
    True
    """

    def __init__(self, plan: ExecPlan) -> None:
        self.state = "created"
        self.over = False
        self.started: float | None = None  # seconds since 1970; None: unknown
        self.failure: dict[str, Any] | None = None
        self.status: dict[str, Any] = {}  # more of it: elements, checkpoints, whether elasticity is paused
        self.operator_infos: dict[str, OperatorInfo] = {}
        self.event_count = 0
        self._events: list[tuple[int, Event]] = []
        self._plans: list[tuple[float, ExecPlan]] = [(0.0, plan)]
        self._frames: list[Frame] = []
        self._bytes = 0
        self._times: list[float] = []
        self._series: dict[str, list[float | None]] = {name: [] for name in SERIES}
        self.rows = Rows(plan)
        self.operators = self.rows.operators
        self.places = self.rows.places

    @property
    def plan(self) -> ExecPlan:
        """Return the plan in force."""
        return self._plans[-1][1]

    def plan_at(self, seconds: float | None) -> ExecPlan:
        """Return the plan that was in force then; None: now."""
        if seconds is None:
            return self.plan
        return self._plans[max(0, bisect_right(self._plans, seconds, key=lambda one: one[0]) - 1)][1]

    def set_plan(self, plan: ExecPlan, seconds: float) -> None:
        """Take another plan of the same operators."""
        if plan != self.plan:
            self._plans.append((seconds, plan))

    def add(self, frame: Frame) -> None:
        """Keep a frame."""
        self._frames.append(frame)
        self._bytes += frame.operators.nbytes
        if self._bytes > FRAME_BYTES or len(self._frames) > LONGEST_SERIES:
            kept = self._frames[: len(self._frames) // 2 : 2] + self._frames[len(self._frames) // 2 :]
            self._frames = kept
            self._bytes = sum(one.operators.nbytes for one in kept)
        self._times.append(frame.seconds)
        for name, values in self._series.items():
            value = frame.series.get(name)
            values.append(None if value is None else round(value, 6))
        if len(self._times) > LONGEST_SERIES:
            del self._times[: LONGEST_SERIES // 2 : 2]
            for values in self._series.values():
                del values[: LONGEST_SERIES // 2 : 2]

    def add_events(self, events: Iterable[Event]) -> None:
        """Keep events. If there are too many, drop passes and checkpoints first, then decisions, the oldest first."""
        for event in events:
            self._events.append((self.event_count, event))
            self.event_count += 1
        if len(self._events) <= MOST_EVENTS:
            return
        surplus, kept = len(self._events) - KEPT_EVENTS, []
        for numbered in self._events:
            if surplus > 0 and numbered[1].kind in ROUTINE:
                surplus -= 1
            else:
                kept.append(numbered)
        self._events = kept[surplus:]

    @property
    def events(self) -> list[Event]:
        """Return the events that are kept, the oldest first."""
        return [event for _, event in self._events]

    def events_from(self, number: int) -> list[dict[str, Any]]:
        """Return the events from a number on, counted from the start of the history, as JSON values."""
        at = bisect_left(self._events, number, key=lambda one: one[0])
        return [{"number": number, **event.as_dict()} for number, event in self._events[at:]]

    def operator_series(self, operator: str) -> dict[str, list[float]]:
        """Return the rates, shares of time and queue fill of one operator over time, at most MOST_POINTS each.

        Raises:
            ConfigError: no such operator.
        """
        if operator not in self.places:
            raise ConfigError(
                f"no operator {operator!r}", hint="Choose one that the graph shows", code=ErrorCode.UNKNOWN_OPERATOR
            )
        step = -(-len(self._frames) // MOST_POINTS) or 1
        frames = self._frames[::-step][::-1]  # the last one among them
        row = self.places[operator]
        columns = {name: COLUMNS.index(name) for name in OPERATOR_SERIES}
        series = {name: [round(float(one.operators[row, at]), 4) for one in frames] for name, at in columns.items()}
        return {"seconds": [_rounded(one.seconds) for one in frames], **series}

    def frame_at(self, seconds: float | None) -> Frame | None:
        """Return the frame nearest to a time; None: the last one. Return None if there is none yet."""
        if not self._frames:
            return None
        if seconds is None:
            return self._frames[-1]
        at = bisect_left(self._frames, seconds, key=lambda one: one.seconds)
        near = self._frames[max(0, at - 1) : at + 1]
        return min(near, key=lambda one: abs(one.seconds - seconds))

    def series(self, behind: float = -1.0) -> dict[str, Any]:
        """Return all points after a time: times in seconds, and the values of each series."""
        first = bisect_right(self._times, behind, key=_rounded)
        return {
            "seconds": [_rounded(t) for t in self._times[first:]],
            **{name: values[first:] for name, values in self._series.items()},
        }

    def report(self, frame: Frame | None) -> dict[str, Any]:
        """Return what is known of the job now, with what a frame has beside its table, as JSON values."""
        report: dict[str, Any] = {
            "state": self.state,
            "over": self.over,
            "started": self.started,
            "verdict": None,
            "failure": self.failure,
            "status": self.status,
            "epoch": self.plan.epoch,
            "events": self.event_count,
        }
        if frame is not None:
            report |= {
                "seconds": _rounded(frame.seconds),
                "series": {name: None if value is None else round(value, 6) for name, value in frame.series.items()},
                "pes": list(frame.pes),
                "links": list(frame.links),
                "regions": list(frame.regions),
            }
            if not (self.over and frame is self._frames[-1]):
                report["verdict"] = frame.verdict
        return report


def _rounded(seconds: float) -> float:
    """Round a time for browsers."""
    return round(seconds, 2)
