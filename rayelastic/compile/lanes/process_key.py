"""A key of a class with timers: its state and timers, and the `out` that the class calls.

Knows no other keys, and not when it is called.
"""

from __future__ import annotations

import sys
from typing import Any, Protocol

from rayelastic.graph.records.time_values import TimeValues

NEVER = -sys.maxsize
FOR_EVER = sys.maxsize


class Timers(Protocol):
    """The timers of all keys."""

    def note(self, ticks: int, kept: Kept) -> None:
        """Set a timer."""
        ...

    def cancel(self, ticks: int, kept: Kept) -> None:
        """Cancel a timer."""
        ...

    def forget(self, kept: Kept) -> None:
        """Cancel all timers of a key, and reset its state."""
        ...


class Kept:
    """The state of a key, with its timers and waiting tuples.

    Args:
        state: The user's state.
    """

    __slots__ = ("expires", "gone", "key", "state", "timers", "touched", "waiting")

    def __init__(self, state: Any) -> None:
        self.gone = True  # no tuple has arrived, or none since it was dropped
        self.key: tuple[Any, ...] = ()
        self.state = state
        self.timers: set[int] = set()
        self.touched = NEVER  # when its time to live began
        self.expires = NEVER  # when that is checked
        self.waiting: dict[int, tuple[int, tuple[Any, ...]]] = {}  # by number: ticks, and the tuple's values

    @property
    def is_empty(self) -> bool:
        """Whether the key can be freed: a new one would be the same."""
        return self.gone and not self.timers and not self.waiting


class Out:
    """What a process may do for its current key.

    Attributes:
        ended: Whether the input has ended, and only timers are left.
        ticks: The time, in the unit of the event time, or in microseconds since 1970.

    >>> import rayelastic as rel
    >>> from rayelastic import testing
    >>> class Silence:  # a row for each sensor that is silent for a minute
    ...     def on_tuple(self, t, state, out):
    ...         if t.reading == 0:
    ...             return out.forget()  # switched off: drop state and timers
    ...         if "timer" in state:
    ...             out.cancel(state["timer"])
    ...         state["timer"] = out.time + 60
    ...         out.timer(state["timer"])  # out.after(60) is the same; out.wake(ticks) takes the unit of the field
    ...     def on_time(self, time, state, out):
    ...         out.give((out.key[0], time))
    >>> silent = lambda s: s.event_time("at").key_by("sensor").process(Silence, schema={"sensor": str, "at": int})
    >>> rows = [("a", 0, 7), ("a", 30, 7), ("b", 40, 7), ("b", 50, 0), ("a", 200, 7)]
    >>> testing.collect(silent, rows, {"sensor": str, "at": int, "reading": int})
    [('a', 90), ('a', 260)]
    """

    __slots__ = ("_after", "_function", "_kept", "_times", "ended", "given", "ticks")

    def __init__(self, function: Timers, times: TimeValues) -> None:
        self._function = function
        self._times = times
        self.given: list[Any] = []
        self.ended = False

    @property
    def key(self) -> tuple[Any, ...]:
        """The values of the key fields."""
        return self._kept.key

    @property
    def time(self) -> Any:
        """The time of the tuple or of the timer; in processing time, the time now. None in on_end."""
        return self._times.value(self.ticks) if NEVER < self.ticks < FOR_EVER else None

    def give(self, item: Any) -> None:
        """Emit `item`: a tuple of the new schema, or a plain value for records of one field."""
        self.given.append(item)

    def timer(self, at: Any) -> None:
        """Set a timer that calls on_time, of the type of the stream's times, or as seconds since 1970 by the clock.

        A key has one timer for each time, however often it is set.

        Raises:
            ValueError: The time is in the past.
        """
        self.wake(self._times.ticks(at))

    def after(self, seconds: Any) -> None:
        """Set a timer that calls on_time so long after `time`: seconds, more than 0, or a timedelta."""
        self.wake(self.ticks + self._times.span(seconds))

    def cancel(self, at: Any) -> None:
        """Cancel the timer of time `at`; without one, nothing happens."""
        self._function.cancel(self._times.ticks(at), self._kept)

    def forget(self) -> None:
        """Cancel all timers of the key, and reset its state; no on_end until the key's next tuple."""
        self._function.forget(self._kept)

    def wake(self, ticks: int) -> None:
        """Set a timer, as `timer` does, at a time in ticks."""
        if ticks < self._after:
            raise ValueError(f"a timer at {self._times.value(ticks)!r}, and it is {self.time!r} already")
        self._function.note(ticks, self._kept)

    def _at(self, kept: Kept, ticks: int, after: int) -> None:
        self._kept, self.ticks, self._after = kept, ticks, after
