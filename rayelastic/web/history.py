"""What the page knows of a job over time, within a bound of memory: frames, series, events, plans.

Older frames are thinned out, so that one can go back to the start at a coarser grain. Used from one thread.
"""

from __future__ import annotations

import base64
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rayelastic.web.frames import COLUMNS, SERIES, Frame

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
        self.operators = tuple(o for planned in plan.regions for o in planned.region.operators)
        self.places = {name: row for row, name in enumerate(self.operators)}

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
            values.append(frame.series.get(name))
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

    def series(self) -> dict[str, Any]:
        """All points: times in seconds, and the values of each series."""
        return {"seconds": [round(t, 2) for t in self._times], **self._series}

    def encoded(self, frame: Frame | None) -> str:
        """A frame as JSON, with the table of operators as base64 of little-endian float32, row by row."""
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
                "seconds": round(frame.seconds, 2),
                "series": {name: None if value is None else round(value, 6) for name, value in frame.series.items()},
                "operators": base64.b64encode(frame.operators.astype("<f4").tobytes()).decode(),
                "columns": len(COLUMNS),
                "pes": list(frame.pes),
                "links": list(frame.links),
                "regions": list(frame.regions),
            }
        return json.dumps(said)
