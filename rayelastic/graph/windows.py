"""Windows: which tuples of a stream, or of each key, are aggregated together.

By count, by event time, and sessions. What runs is native; see native_sched/include/rayelastic/window.hpp.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from rayelastic.errors import GraphError
from rayelastic.graph.aggregates import AggregateSpec, TopK, aggregated_schema, expanded
from rayelastic.graph.declaration import check_new
from rayelastic.graph.event_time import Seconds, TimeInfo, event_time_of
from rayelastic.graph.location import caller_location
from rayelastic.graph.operator_spec import Lane, OperatorKind, OperatorSpec, StateKind
from rayelastic.graph.ports import OutputPort, stream_name
from rayelastic.graph.schema import Schema, laid_out
from rayelastic.graph.shown import shown
from rayelastic.graph.stream import Stream, check_at, declaring

if TYPE_CHECKING:
    from rayelastic.graph.topology import Topology

__all__ = [
    "TimelyStream",
    "Window",
    "WindowKind",
    "WindowedStream",
    "Windowing",
    "count_window",
    "session",
    "time_window",
]

LATE = "late"  # the output port of tuples that came too late
BOUNDS = ("start", "end")  # fields that windows by time give, behind the keys
LONGEST_COUNT = 2**40  # tuples of a window


class WindowKind(Enum):
    """How tuples come together."""

    COUNT = "count"
    TIME = "time"
    SESSION = "session"


@dataclass(frozen=True, slots=True)
class Window:
    """Which tuples come together.

    Args:
        kind: by count, by event time, or sessions.
        size: tuples, or ticks; of sessions the gap.
        slide: the same; from the start of one window to that of the next.
        time: the event time, of windows by time.
        rest: whether tuples that are in no full window are given when the input ends; of windows by count.
    """

    kind: WindowKind
    size: int
    slide: int
    time: TimeInfo | None = None
    rest: bool = False

    def __str__(self) -> str:
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


class WindowedStream:
    """Tuples in windows, waiting to be told what is to become of them; see ``Stream.window`` and ``Stream.session``."""

    __slots__ = ("stream", "window")

    def __init__(self, stream: Stream, window: Window) -> None:
        self.stream = stream
        self.window = window

    def aggregate(self, name: str, /, **aggregates: AggregateSpec | TopK) -> TimelyStream:
        """Aggregate the tuples of each window, natively.

        Args:
            name: of the operator.
            aggregates: output field = rel.count(), rel.sum(field), ...; see ``Stream.aggregate``.

        Returns:
            A stream with one tuple a window: the key fields; of windows by time `start` and `end`, of the type of the
            event time (the end is no part of the window; a session's is its gap after its last tuple); the aggregates.
            Windows given at once are in the order of their end, then of their keys' hashes, however the job runs.
            `.late()` of it has the tuples that came too late.

        Raises:
            GraphError: no aggregate, or one named like a key field, `start` or `end`.
            SchemaError: unknown field, or one that can't be aggregated so.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("clicks")
        >>> rows = [(0, "a"), (4, "b"), (9, "a"), (11, "a"), (2, "b"), (31, "b")]
        >>> clicks = topology.source("clicks", rel.rows(rows, schema={"at": int, "user": str}))
        >>> counts = clicks.event_time("time", "at", lateness=5).window(seconds=10).aggregate("counts", n=rel.count())
        >>> counts.sink("out", rel.list())
        <sink out>
        >>> counts.late().sink("late", rel.list())
        <sink late>
        >>> result = rel.run(topology)
        >>> [tuple(t) for t in result["out"]], [tuple(t) for t in result["late"]]
        ([(0, 10, 4), (10, 20, 1), (30, 40, 1)], [])
        """
        stream, topology = self.stream, self.stream.topology
        location = caller_location()
        check_at(name, location)
        with declaring(name, location):
            check_new(name, topology.operators)
            wanted = expanded(aggregates)
            gives = self._schema(name, wanted)
            by_time = self.window.time is not None
            spec = OperatorSpec(
                name,
                OperatorKind.WINDOW,
                stream.inputs,
                stream.schema,
                gives,
                stream.keys,
                StateKind.PARTITIONED if stream.keys else StateKind.STATEFUL,
                Windowing(self.window, tuple(wanted.items())),
                location,
                further_outputs=(OutputPort(LATE, stream.schema, optional=True),) if by_time else (),
            )
        return TimelyStream.of(topology._add(spec), spec)

    def _schema(self, name: str, wanted: dict[str, AggregateSpec]) -> Schema:
        source, keys = self.stream.schema, self.stream.keys
        gives = aggregated_schema(name, source, keys, wanted)
        time = self.window.time
        if time is None:
            return gives
        for bound in BOUNDS:
            if bound in (*keys, *wanted):
                raise GraphError(f"a window by time has a field '{bound}' already", way_out="Give yours another name")
        columns = [(f.name, f.format, f.nullable) for f in gives.fields]
        bounds = [(bound, source.field(time.field).format, False) for bound in BOUNDS]
        return laid_out(name, [*columns[: len(keys)], *bounds, *columns[len(keys) :]])

    def __repr__(self) -> str:
        return f"<{self.window} of {self.stream!r}>"


class TimelyStream(Stream):
    """The stream of an operator that doesn't take tuples that come too late."""

    __slots__ = ("_spec",)
    _spec: OperatorSpec

    @staticmethod
    def of(stream: Stream, spec: OperatorSpec) -> TimelyStream:
        """Make it of the stream of an operator."""
        made = TimelyStream(stream.topology, stream.inputs, stream.schema)
        made._spec = spec
        return made

    def late(self) -> Stream:
        """Give the tuples that came too late, as they were; nobody needs to take them.

        Raises:
            GraphError: the operator goes by count: nothing comes too late.
        """
        if not any(port.name == LATE for port in self._spec.output_ports):
            raise GraphError(
                "nothing comes too late for a window by count",
                operator=self._spec.name,
                location=caller_location(),
                way_out="Leave .late() out, or use windows by event time",
            )
        topology: Topology = self.topology
        assert self._spec.input_schema is not None
        return Stream(topology, (stream_name(self._spec.name, LATE),), self._spec.input_schema)


def count_window(stream: Stream, count: object, slide: object, rest: bool | None) -> WindowedStream:
    """See ``Stream.window``."""
    size = _tuples(count, "count")
    every = size if slide is None else _tuples(slide, "slide")
    return WindowedStream(stream, Window(WindowKind.COUNT, size, every, rest=every >= size if rest is None else rest))


def _tuples(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LONGEST_COUNT:
        raise GraphError(f"{what}={shown(value)}", way_out="Give a number of tuples, 1 or more")
    return value


def time_window(stream: Stream, seconds: Seconds, slide: Seconds | None) -> WindowedStream:
    """See ``Stream.window``."""
    time = _time_of(stream, "a window by time")
    size = time.ticks(seconds, "seconds")
    every = size if slide is None else time.ticks(slide, "slide")
    return WindowedStream(stream, Window(WindowKind.TIME, size, every, time))


def session(stream: Stream, gap: Seconds) -> WindowedStream:
    """See ``Stream.session``."""
    time = _time_of(stream, "a session")
    ticks = time.ticks(gap, "gap")
    return WindowedStream(stream, Window(WindowKind.SESSION, ticks, ticks, time))


def _time_of(stream: Stream, what: str) -> TimeInfo:
    time = event_time_of(stream.topology.operators, stream.inputs)
    if time is None:
        raise GraphError(
            f"{what} needs an event time, and this stream has none, or has lost it",
            way_out="Write .event_time(name, field) before; united streams need the same, and maps keep the field",
        )
    return time
