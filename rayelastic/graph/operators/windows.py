"""Windows: which tuples of a stream, or of each key, are aggregated together.

By count, by event time, and sessions. What runs is native:
native_sched/include/rayelastic/operators/time/window.hpp.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from rayelastic.errors import GraphError
from rayelastic.graph.operators.aggregates import AggregateSpec, TopK, aggregated_schema, expanded
from rayelastic.graph.records.schema import Schema, laid_out
from rayelastic.graph.records.shown import shown
from rayelastic.graph.records.time_info import Seconds, TimeInfo
from rayelastic.graph.records.time_values import CLOCK
from rayelastic.graph.spec.declaration import NewOperator, binds, declaring
from rayelastic.graph.spec.location import caller_location
from rayelastic.graph.spec.operator_spec import Lane, OperatorKind, OperatorSpec, StateKind
from rayelastic.graph.spec.ports import LATE, OUT, OutputPort
from rayelastic.graph.spec.upstream import Upstream

__all__ = ["Window", "WindowKind", "Windowing", "session", "window", "windowed"]

BOUNDS = ("start", "end")  # fields that windows by time give, behind the keys
LONGEST_COUNT = 2**40  # tuples of a window


class WindowKind(Enum):
    """How tuples come together."""

    COUNT = "count"
    TIME = "time"
    SESSION = "session"
    BATCH = "batch"  # by count, or when its time is over


@dataclass(frozen=True, slots=True)
class Window:
    """Which tuples come together.

    Args:
        kind: by count, by event time, or sessions.
        size: tuples, or ticks; of sessions the gap.
        slide: the same; from the start of one window to that of the next.
        time: the event time, of windows by time.
        rest: whether tuples that are in no full window are given when the input ends; of windows by count.
        within: of batches, ticks after the first tuple.
        gap: of sessions whose tuples say theirs: of a tuple, in seconds.
    """

    kind: WindowKind
    size: int
    slide: int
    time: TimeInfo | None = None
    rest: bool = False
    within: int = 0
    gap: Callable[[Any], Seconds] | None = None

    def __str__(self) -> str:
        if self.kind is WindowKind.BATCH:
            unit = CLOCK.unit if self.time is None else self.time.unit
            return f"batches of {self.size} tuples, or {self.within} {unit}"
        if self.gap is not None:
            return "sessions with gaps that their tuples tell"
        if self.kind is WindowKind.SESSION:
            return f"sessions with gaps of at most {self._span(self.size)}"
        every = "" if self.slide == self.size else f", one every {self._span(self.slide)}"
        return f"windows of {self._span(self.size)}{every}"

    def _span(self, size: int) -> str:
        return f"{size} tuples" if self.time is None else f"{size} {self.time.unit}"


@dataclass(frozen=True, slots=True)
class Windowing:
    """What a window operator computes: (output field, aggregate) in declared order, for each window."""

    window: Window
    aggregates: tuple[tuple[str, AggregateSpec], ...]
    lane: Lane = Lane.BUILT_IN

    @property
    def reason(self) -> str:
        """What runs, in words."""
        return f"{', '.join(f'{name}={spec}' for name, spec in self.aggregates)} of {self.window}"

    @property
    def output_time(self) -> TimeInfo | None:
        """The event time of what it gives: the last tick of a window, so that it isn't late for another."""
        time = self.window.time
        if time is None:
            return None
        return TimeInfo("end", time.unit, 0 if self.window.kind is WindowKind.SESSION else -1)


def window(
    up: Upstream,
    count: int | None,
    seconds: Seconds | None,
    slide: Seconds | None,
    rest: bool | None,
    within: Seconds | None,
) -> Window:
    """See ``Stream.window``."""
    with declaring(up.called, caller_location()):
        if (count is None) == (seconds is None):
            raise GraphError(
                "a window has a count or seconds", way_out="Write .window(count=...) or .window(seconds=...)"
            )
        if within is not None:
            return _batch(up, count, within, slide, rest)
        if seconds is None:
            return _by_count(count, slide, rest)
        if rest is not None:
            raise GraphError("rest is for windows by count", way_out="Windows by time are all given at the end")
        time = _time_of(up, "a window by time")
        size = time.ticks(seconds, "seconds")
        return Window(WindowKind.TIME, size, size if slide is None else time.ticks(slide, "slide"), time)


def _batch(up: Upstream, count: object, within: Seconds, slide: object, rest: object) -> Window:
    if count is None or slide is not None or rest is not None:
        raise GraphError("within is for batches by count alone", way_out="Write .window(count=..., within=...)")
    size, time = _tuples(count, "count"), up.event_time
    return Window(WindowKind.BATCH, size, size, time, within=(time or CLOCK).ticks(within, "within"))


def session(up: Upstream, gap: Seconds | Callable[[Any], Seconds]) -> Window:
    """See ``Stream.session``."""
    with declaring(up.called, caller_location()):
        time = _time_of(up, "a session")
        if callable(gap):
            if not binds(gap, (None,)):
                raise GraphError(f"gap={shown(gap)} can't be called as gap(t)", way_out="Give a function of a tuple")
            return Window(WindowKind.SESSION, 0, 0, time, gap=gap)
        ticks = time.ticks(gap, "gap")
        return Window(WindowKind.SESSION, ticks, ticks, time)


def windowed(up: Upstream, window: Window, name: str, aggregates: Mapping[str, AggregateSpec | TopK]) -> OperatorSpec:
    """See ``WindowedStream.aggregate``."""
    with NewOperator(name, up.operators) as location:
        if window.gap is not None or window.kind is WindowKind.BATCH:
            raise GraphError(f"{window} aren't aggregated natively", way_out="Use .fold, .reduce, .top or .process")
        wanted = expanded(aggregates)
        late = (OutputPort(LATE, up.schema, optional=True),) if window.time is not None else ()
        return up.operator(
            name,
            OperatorKind.WINDOW,
            StateKind.PARTITIONED if up.keys else StateKind.STATEFUL,
            Windowing(window, tuple(wanted.items())),
            location,
            (OutputPort(OUT, _schema(up, window, name, wanted)), *late),
            keys=up.keys,
        )


def _schema(up: Upstream, window: Window, name: str, wanted: dict[str, AggregateSpec]) -> Schema:
    keys, time = up.keys, window.time
    gives = aggregated_schema(name, up.schema, keys, wanted)
    if time is None:
        return gives
    for bound in BOUNDS:
        if bound in (*keys, *wanted):
            raise GraphError(f"a window by time has a field '{bound}' already", way_out="Give yours another name")
    columns = [(f.name, f.format, f.nullable) for f in gives.fields]
    bounds = [(bound, up.schema.field(time.field).format, False) for bound in BOUNDS]
    return laid_out(name, [*columns[: len(keys)], *bounds, *columns[len(keys) :]])


def _by_count(count: object, slide: object, rest: bool | None) -> Window:
    size = _tuples(count, "count")
    every = size if slide is None else _tuples(slide, "slide")
    return Window(WindowKind.COUNT, size, every, rest=every >= size if rest is None else rest)


def _tuples(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LONGEST_COUNT:
        raise GraphError(f"{what}={shown(value)}", way_out="Give a number of tuples, 1 or more")
    return value


def _time_of(up: Upstream, what: str) -> TimeInfo:
    time = up.event_time
    if time is None:
        raise GraphError(
            f"{what} needs an event time, and this stream has none, or has lost it",
            way_out="Write .event_time(name, field) before; united streams need the same, and maps keep the field",
        )
    return time
