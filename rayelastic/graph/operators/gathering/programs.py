"""Windows, sessions and batches as classes with timers (processes.py): what a key has of each that is open.

Tuples come in the order of their times, so at most one session of a key is open, and a batch is the next tuples.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rayelastic.graph.operators.gathering.gathered import Bounds, Gathered
from rayelastic.graph.operators.windows import Window
from rayelastic.graph.records.time_values import TimeValues

__all__ = ["Batches", "Early", "Sessions", "TimeWindows"]


@dataclass(frozen=True, slots=True)
class Early:
    """When a window is given before it is complete, too.

    Args:
        update: after each tuple.
        every: or so many ticks after its start, and again and again, if tuples have come since; 0: not.
    """

    update: bool = False
    every: int = 0

    def __bool__(self) -> bool:
        return self.update or self.every > 0


class _Program:
    """What all have: how tuples come together, and how times are written."""

    def __init__(self, window: Window, times: TimeValues, gathered: Gathered, early: Early) -> None:
        self.window = window
        self.times = times
        self.gathered = gathered
        self.early = early

    def give(self, start: int, end: int, has: Any, out: Any, *, final: bool) -> None:
        """Send what is given of a window."""
        bounds = Bounds(self.times.value(start), self.times.value(end), final)
        for item in self.gathered.given(out.key, bounds, has):
            out.give(item)

    def look_again(self, start: int, at: int, end: int, out: Any) -> None:
        """Have what will have come before the next time given early, if that is before the end."""
        every = self.early.every
        if every and (until := start + ((at - start) // every + 1) * every) < end:
            out.timer(self.times.value(until - 1))

    def is_early(self, start: int, at: int) -> bool:
        """Whether something is given early behind all tuples of a time."""
        every = self.early.every
        return every > 0 and start <= at and (at + 1 - start) % every == 0


class TimeWindows(_Program):
    """Windows by time: {end: (what has come together, whether there is something new since it was given)}."""

    def on_tuple(self, t: Any, state: dict[int, Any], out: Any) -> None:
        """Adds to each window that it is in."""
        size, slide = self.window.size, self.window.slide
        at = self.times.ticks(out.time)
        last = at - at % slide
        for start in range(last, at - size, -slide):
            end = start + size
            has = state[end][0] if end in state else self.gathered.new()
            has = self.gathered.add(has, t)
            state[end] = (has, True)
            out.timer(self.times.value(end - 1))
            self.look_again(start, at, end, out)
            if self.early.update:
                self.give(start, end, has, out, final=False)

    def on_time(self, time: Any, state: dict[int, Any], out: Any) -> None:
        """A window is complete, or others have something new."""
        at = self.times.ticks(time)
        for end in sorted(state):
            start = end - self.window.size
            has, is_new = state[end]
            if end == at + 1:
                del state[end]
                self.give(start, end, has, out, final=True)
            elif is_new and self.is_early(start, at):
                state[end] = (has, False)
                self.give(start, end, has, out, final=False)


class Sessions(_Program):
    """Sessions: start, end and what has come together of the one that is open, and whether there is something new.

    Args:
        gap: of a tuple, in ticks.
    """

    def __init__(
        self, window: Window, times: TimeValues, gathered: Gathered, early: Early, gap: Callable[[Any], int]
    ) -> None:
        super().__init__(window, times, gathered, early)
        self.gap = gap

    def on_tuple(self, t: Any, state: dict[str, Any], out: Any) -> None:
        """Goes on with the session, or begins one."""
        at = self.times.ticks(out.time)
        if not state:
            state.update(start=at, end=at, has=self.gathered.new())
        state["has"] = self.gathered.add(state["has"], t)
        state["new"] = True
        state["end"] = max(state["end"], at + self.gap(t))
        out.timer(self.times.value(state["end"]))
        self.look_again(state["start"], at, state["end"], out)
        if self.early.update:
            self.give(state["start"], state["end"], state["has"], out, final=False)

    def on_time(self, time: Any, state: dict[str, Any], out: Any) -> None:
        """It is over, unless it has become longer."""
        if not state:
            return
        at = self.times.ticks(time)
        start, end = state["start"], state["end"]
        if at == end:
            self.give(start, end, state["has"], out, final=True)
            out.forget()
        elif state["new"] and self.is_early(start, at):
            state["new"] = False
            self.give(start, end, state["has"], out, final=False)


class Batches(_Program):
    """So many tuples, or those of a time since the first: when that was, how many came, what has come together."""

    def on_tuple(self, t: Any, state: dict[str, Any], out: Any) -> None:
        """The batch is full, perhaps."""
        at = self.times.ticks(out.time)
        if not state:
            state.update(start=at, count=0, has=self.gathered.new())
            out.timer(self.times.value(at + self.window.within))
        state["has"] = self.gathered.add(state["has"], t)
        state["count"] += 1
        state["last"] = at
        if state["count"] == self.window.size:
            self._over(state, out)

    def on_time(self, time: Any, state: dict[str, Any], out: Any) -> None:  # noqa: ARG002
        """Its time is over."""
        self._over(state, out)

    def on_end(self, state: dict[str, Any], out: Any) -> None:
        """What is left, by the clock."""
        self._over(state, out)

    def _over(self, state: dict[str, Any], out: Any) -> None:
        if state:
            self.give(state["start"], state["last"] + 1, state["has"], out, final=True)
        out.forget()
