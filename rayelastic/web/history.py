"""What the page knows of a job over time, within a bound of memory: frames, series, events, plans.

Older frames are thinned out, so that one can go back to the start at a coarser grain. Used from one thread.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rayelastic.web.frames import SERIES, Frame, Rows

if TYPE_CHECKING:
    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.web.events import Event

__all__ = ["History"]

FRAME_BYTES = 32 << 20  # of all frames that are kept
LONGEST_SERIES = 7_200  # points: two hours at one a second, then every other one is kept
MOST_EVENTS = 20_000


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
        self.bottleneck = ""
        self.failure: dict[str, Any] | None = None
        self.status: dict[str, Any] = {}  # more of it: elements, checkpoints, whether elasticity is paused
        self.events: list[Event] = []
        self.first_event = 0  # how many events were given up before the first that is kept
        self.lanes: dict[str, str] = {}
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
        """The plan in force."""
        return self._plans[-1][1]

    def plan_at(self, seconds: float | None) -> ExecPlan:
        """The plan that was in force then; None: now."""
        if seconds is None:
            return self.plan
        return self._plans[max(0, bisect_right(self._plans, seconds, key=lambda one: one[0]) - 1)][1]

    def set_plan(self, plan: ExecPlan, seconds: float) -> None:
        """Takes another plan; its operators are the same."""
        if plan != self.plan:
            self._plans.append((seconds, plan))

    def add(self, frame: Frame) -> None:
        """Keeps a frame."""
        self._frames.append(frame)
        self._bytes += frame.operators.nbytes
        if self._bytes > FRAME_BYTES:
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

    def tell(self, events: Iterable[Event]) -> None:
        """Keeps events, in the order in which they are told."""
        self.events.extend(events)
        if len(self.events) > MOST_EVENTS:
            self.first_event += len(self.events) - MOST_EVENTS
            del self.events[: len(self.events) - MOST_EVENTS]

    def events_from(self, number: int) -> list[dict[str, Any]]:
        """Events from one on, counted from the start of the history, as JSON values."""
        at = max(0, number - self.first_event)
        return [{"number": self.first_event + i, **one.as_dict()} for i, one in enumerate(self.events[at:], at)]

    @property
    def event_count(self) -> int:
        """How many events there were."""
        return self.first_event + len(self.events)

    def frame_at(self, seconds: float | None) -> Frame | None:
        """The frame nearest to a time; None: the last. None if there is none yet."""
        if not self._frames:
            return None
        if seconds is None:
            return self._frames[-1]
        at = bisect_left(self._frames, seconds, key=lambda one: one.seconds)
        near = self._frames[max(0, at - 1) : at + 1]
        return min(near, key=lambda one: abs(one.seconds - seconds))

    def series(self, behind: float = -1.0) -> dict[str, Any]:
        """All points behind a time: times in seconds, and the values of each series."""
        first = bisect_right(self._times, behind, key=_told)
        return {
            "seconds": [_told(t) for t in self._times[first:]],
            **{name: values[first:] for name, values in self._series.items()},
        }

    def said(self, frame: Frame | None) -> dict[str, Any]:
        """What is known of the job now, with what a frame says beside its table, as JSON values."""
        said: dict[str, Any] = {
            "state": self.state,
            "bottleneck": self.bottleneck,
            "failure": self.failure,
            "status": self.status,
            "epoch": self.plan.epoch,
            "events": self.event_count,
        }
        if frame is not None:
            said |= {
                "seconds": _told(frame.seconds),
                "series": {name: None if value is None else round(value, 6) for name, value in frame.series.items()},
                "pes": list(frame.pes),
                "links": list(frame.links),
                "regions": list(frame.regions),
            }
        return said


def _told(seconds: float) -> float:
    """A time as browsers get it."""
    return round(seconds, 2)
