"""Windows, sessions and batches as classes with timers (processes.py); a key's state holds its open ones.

Tuples arrive in the order of their times. So at most one session of a key is open, and a batch is the next tuples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from rayelastic.graph.operators.gathering.gathered import Bounds, Gathered
from rayelastic.graph.operators.windows import Window, checked_spans
from rayelastic.graph.records.time_values import TimeValues

__all__ = ["Batches", "Early", "Sessions", "TimeWindows"]

Span = tuple[int, int]  # start and end of a window, in ticks


@dataclass(frozen=True, slots=True)
class Early:
    """When a window is emitted before it is complete.

    Args:
        update: After each tuple.
        every: Every so many ticks after its start, if tuples have arrived since; 0: not.
        until: As soon as this holds; later tuples are accumulated anew.
    """

    update: bool = False
    every: int = 0
    until: Callable[[Any], Any] | None = None

    @property
    def may_not_be_final(self) -> bool:
        """Whether a result may be followed by another one of the same tuples."""
        return self.update or self.every > 0


class _Program:
    """The common part: how tuples are accumulated and times are represented. Times are ticks until they are emitted."""

    in_ticks = True

    def __init__(self, window: Window, times: TimeValues, gathered: Gathered, early: Early) -> None:
        self.window = window
        self.times = times
        self.bounds = times.unshifted
        self.gathered = gathered
        self.early = early
        self.step = max(1, times.ticks_per_second // 1_000_000)  # the resolution of Python's times

    def give(self, start: int, end: int, has: Any, out: Any, *, final: bool, corrected: bool = False) -> None:
        """Emit the results of a window."""
        bounds = Bounds(self.bounds.value(start), self.bounds.value(end), final, corrected)
        for item in self.gathered.given(out.key, bounds, has):
            out.give(item)

    def is_over(self, has: Any, t: Any) -> bool:
        """Return whether a window is emitted as it is, after a tuple."""
        return self.early.until is not None and bool(self.early.until(self.gathered.asked(has, t)))

    def look_again(self, start: int, at: int, end: int, out: Any) -> None:
        """Set a timer for the next early result, if that is before the window's end."""
        every = self.early.every
        if every and (until := start + ((at - start) // every + 1) * every) < end:
            out.wake(until - 1)

    def is_early(self, start: int, at: int) -> bool:
        """Return whether an early result follows all tuples of a time."""
        every = self.early.every
        return every > 0 and start <= at and (at + 1 - start) % every == 0


class TimeWindows(_Program):
    """Windows by time: {(start, end): (accumulated value, whether it changed since it was last emitted)}.

    Emitted windows are kept for as long as late tuples may arrive.
    """

    def on_tuple(self, t: Any, state: dict[Span, Any], out: Any) -> None:
        """Add the tuple to each of its windows."""
        at = out.ticks
        for span in self._spans(t, at):
            self._add(t, at, span, state, out)
        if not state:
            out.forget()

    def on_late(self, t: Any, state: dict[Span, Any], out: Any, reached: int) -> bool:
        """Add the tuple to its windows that still accept it, and emit corrections. Return False if none does."""
        at = out.ticks
        lateness = self.window.lateness
        every = list(self._spans(t, at))
        spans = [span for span in every if span[1] + lateness > reached + 1]
        for span in spans:
            start, end = span
            if end > reached + 1:
                self._add(t, at, span, state, out)
                continue
            was_given = span in state
            has = state[span][0] if was_given else self.gathered.new()
            state[span] = (self.gathered.add(has, t), False)
            out.wake(end - 1 + lateness)
            self.give(start, end, state[span][0], out, final=True, corrected=was_given)
        if spans and not state:
            out.forget()
        return bool(spans) or not every

    def on_time(self, at: int, state: dict[Span, Any], out: Any) -> None:
        """Emit a complete window, or early results of others."""
        lateness = self.window.lateness
        for span in sorted(state, key=lambda span: (span[1], span[0])):
            start, end = span
            has, is_new = state[span]
            if end == at + 1:
                state[span] = (has, False)
                if lateness:
                    out.wake(at + lateness)
                else:
                    del state[span]
                self.give(start, end, has, out, final=True)
            elif end + lateness == at + 1:
                del state[span]
            elif is_new and self.is_early(start, at):
                state[span] = (has, False)
                self.give(start, end, has, out, final=False)
        if not state:
            out.forget()

    def on_end(self, state: dict[Span, Any], out: Any) -> None:
        """Emit what is left, in processing time; in event time nothing is."""
        for start, end in sorted(state, key=lambda span: (span[1], span[0])):
            if self.window.by_clock:
                self.give(start, end, state[start, end][0], out, final=True)
        out.forget()

    def _add(self, t: Any, at: int, span: Span, state: dict[Span, Any], out: Any) -> None:
        start, end = span
        has = state[span][0] if span in state else self.gathered.new()
        has = self.gathered.add(has, t)
        if self.is_over(has, t):
            state.pop(span, None)
            self.give(start, end, has, out, final=True)
            return
        state[span] = (has, True)
        out.wake(end - 1)
        self.look_again(start, at, end, out)
        if self.early.update:
            self.give(start, end, has, out, final=False)

    def _spans(self, t: Any, at: int) -> Iterable[Span]:
        if self.window.assign is not None:
            return checked_spans(self.window, self.times, t, at)
        return self.window.spans(at)


class Sessions(_Program):
    """Sessions: start, end and accumulated value of the open one, and whether it changed since it was last emitted.

    Args:
        gap: A function from a tuple to its gap in ticks.
    """

    def __init__(
        self, window: Window, times: TimeValues, gathered: Gathered, early: Early, gap: Callable[[Any], int]
    ) -> None:
        super().__init__(window, times, gathered, early)
        self.gap = gap

    def on_tuple(self, t: Any, state: dict[str, Any], out: Any) -> None:
        """Extend the session, or begin one."""
        at = out.ticks
        if not state:
            state.update(start=at, end=at, has=self.gathered.new())
        state["has"] = self.gathered.add(state["has"], t)
        state["new"] = True
        state["end"] = max(state["end"], at + self.gap(t))
        if self.is_over(state["has"], t):
            self._over(state, out)
            return
        out.wake(state["end"])
        self.look_again(state["start"], at, state["end"], out)
        if self.early.update:
            self.give(state["start"], state["end"], state["has"], out, final=False)

    def on_time(self, at: int, state: dict[str, Any], out: Any) -> None:
        """Emit the session, unless it was extended."""
        if not state:
            return
        start, end = state["start"], state["end"]
        if at == end:
            self._over(state, out)
        elif state["new"] and self.is_early(start, at):
            state["new"] = False
            self.give(start, end, state["has"], out, final=False)

    def on_end(self, state: dict[str, Any], out: Any) -> None:
        """Emit what is left, in processing time."""
        if state:
            self._over(state, out)

    def _over(self, state: dict[str, Any], out: Any) -> None:
        self.give(state["start"], state["end"], state["has"], out, final=True)
        out.forget()


class Batches(_Program):
    """Batches by count, or by time since the first tuple; the state is that time, the count, the accumulated value."""

    def on_tuple(self, t: Any, state: dict[str, Any], out: Any) -> None:
        """Emit the batch if it is full."""
        at = out.ticks
        if not state:
            state.update(start=at, count=0, has=self.gathered.new())
            out.wake(at + self.window.within)
        state["has"] = self.gathered.add(state["has"], t)
        state["count"] += 1
        state["last"] = at
        if state["count"] == self.window.size or self.is_over(state["has"], t):
            self._over(state, out)

    def on_time(self, at: int, state: dict[str, Any], out: Any) -> None:  # noqa: ARG002
        """Emit the batch when its time is over."""
        self._over(state, out)

    def on_end(self, state: dict[str, Any], out: Any) -> None:
        """Emit what is left, in processing time."""
        self._over(state, out)

    def _over(self, state: dict[str, Any], out: Any) -> None:
        if state:
            self.give(state["start"], state["last"] + self.step, state["has"], out, final=True)
        out.forget()
