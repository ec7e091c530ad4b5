"""Windows: which tuples of a stream, or of each key, are aggregated together.

One native operator assigns tuples to windows and decides when a window is emitted, corrected and dropped
(native_sched/include/rayelastic/operators/time/window.hpp). It has native aggregates, or calls a function in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any

from rayelastic.errors import ErrorCode, GraphError
from rayelastic.graph.operators.aggregates import (
    AggregateFunction,
    AggregateSpec,
    TopK,
    aggregated,
    aggregates_form,
    fields_of,
)
from rayelastic.graph.operators.aggregation import aggregated_schema, expanded
from rayelastic.graph.operators.aligned import Aligned, ticks_of
from rayelastic.graph.operators.window_function import WindowFunction
from rayelastic.graph.records.schema import Schema, laid_out
from rayelastic.graph.records.shown import conflict, counted, invalid, shown
from rayelastic.graph.records.time_info import Lifetime, Seconds, TimeInfo, TimeToLive
from rayelastic.graph.records.time_values import CLOCK, TimeValues
from rayelastic.graph.spec.declaration import NewOperator, binds, declaring
from rayelastic.graph.spec.location import caller_location
from rayelastic.graph.spec.operator_spec import PICKLED, CompiledFunction, Lane, OperatorBody, OperatorSpec
from rayelastic.graph.spec.ports import LATE, OUT, OutputPort
from rayelastic.graph.spec.requests import CompiledAggregate, FunctionKind, FunctionRequest
from rayelastic.graph.spec.upstream import Upstream
from rayelastic.graph.spec.user_objects import check_object

BOUNDS = ("start", "end")  # fields that windows by time emit, after the keys
CORRECTED = "corrected"  # and a field of those that may emit corrections
LONGEST_COUNT = 2**40  # tuples of a window
FURTHEST = 2**62  # ticks from 1970 to a bound of a window: kLatestTime of time_field.hpp


class WindowKind(Enum):
    """How tuples are assigned to windows."""

    COUNT = "count"
    TIME = "time"
    SESSION = "session"
    BATCH = "batch"  # by count, or when a time has passed
    ASSIGNED = "assigned"  # by a function


@dataclass(frozen=True, slots=True)
class Window:
    """Which tuples are aggregated together.

    Args:
        kind: By count, by event time, or sessions.
        size: Tuples, or ticks; the gap of sessions.
        slide: Tuples or ticks from the start of a window to that of the next.
        time: The event time of windows by time; None: by count alone, or processing time.
        rest: Whether the last, incomplete window is emitted when the input ends; of windows by count.
        within: Ticks after the first tuple, of batches.
        gap: A function from a tuple to its session gap in seconds.
        assign: A function from a tuple to its windows, as pairs of start and end.
        lateness: Ticks of event time for which an emitted window still accepts tuples and emits corrections.
        offset: Ticks from 1970 to the start of a window, less than a slide; of windows by time.
        zone: The zone in whose days size, slide and offset are counted; '': ticks.
        ttl: The time without a tuple after which a key starts anew; of windows by count.
    """

    kind: WindowKind
    size: int
    slide: int
    time: TimeInfo | None = None
    rest: bool = False
    within: int = 0
    gap: Callable[[Any], Seconds] | None = None
    assign: Callable[[Any], Iterable[tuple[Any, Any]]] | None = None
    lateness: int = 0
    offset: int = 0
    zone: str = ""
    ttl: TimeToLive | None = None

    def __str__(self) -> str:
        late = f", open for {self._span(self.lateness)} more" if self.lateness else ""
        clock = ", by the clock" if self.by_clock else ""
        offset = f", {self._span(self.offset)} after others" if self.offset else ""
        zone = f", by days of {self.zone}" if self.zone else ""
        return f"{self._what}{offset}{zone}{clock}{late}"

    @property
    def by_clock(self) -> bool:
        """Whether it follows processing time."""
        return self.time is None and self.kind is not WindowKind.COUNT

    @property
    def is_native(self) -> bool:
        """Whether it is aggregated natively."""
        return self.kind is not WindowKind.BATCH and self.gap is None and not self.by_clock

    def output_time(self, end: str) -> TimeInfo | None:
        """Return the event time of emitted windows: their last tick, so that they aren't late for downstream windows.

        It is None for windows with corrections, which are emitted behind the watermark.

        Args:
            end: The field of their end.
        """
        if self.time is None or self.lateness:
            return None
        return TimeInfo(end, self.time.unit, 0 if self.kind is WindowKind.SESSION else -1)

    @property
    def _what(self) -> str:
        if self.kind is WindowKind.BATCH:
            return f"batches of {counted(self.size, 'tuple')}, or {self._span(self.within)}"
        if self.kind is WindowKind.ASSIGNED:
            return "windows that a function assigns"
        if self.gap is not None:
            return "sessions whose gaps are in their tuples"
        if self.kind is WindowKind.SESSION:
            return f"sessions with gaps of at most {self._span(self.size)}"
        if self.kind is WindowKind.COUNT and self.size == LONGEST_COUNT:
            return "the whole input"
        every = "" if self.slide == self.size else f", one every {self._span(self.slide)}"
        return f"windows of {self._span(self.size)}{every}"

    def _span(self, size: int) -> str:
        return counted(size, "tuple") if self.kind is WindowKind.COUNT else f"{size} {(self.time or CLOCK).unit}"


WHOLE = Window(WindowKind.COUNT, LONGEST_COUNT, LONGEST_COUNT, rest=True)  # all tuples until the input ends


@dataclass(frozen=True, slots=True)
class Windowing(OperatorBody):
    """What a window operator computes of each window.

    Args:
        window: The windows.
        aggregates: (output field, aggregate) in declared order.
        own: A user's aggregate instead.
        assigner: Of assigned windows of aggregates. It emits start and end of each window of a tuple.
        function: A user's function in Python instead.
        punctual: Whether a tuple behind the watermark is late though its window is open, as for functions.
        in_order: Whether `own` takes tuples in the order of their times, which wait for the watermark.
        end: The field of its output that has the end of a window.
    """

    window: Window
    aggregates: tuple[tuple[str, AggregateSpec], ...]
    own: CompiledAggregate | None = None
    assigner: CompiledFunction | None = None
    function: WindowFunction | None = None
    punctual: bool = False
    in_order: bool = False
    end: str = BOUNDS[1]
    operator_kind = "window"

    @property
    def lane(self) -> Lane:
        """The execution mode."""
        if self.function is not None:
            return Lane.PYTHON
        if self.assigner is not None:
            return self.assigner.lane
        return Lane.BUILT_IN if self.own is None else Lane.COMPILED

    @property
    def reason(self) -> str:
        """Describe the operator for `explain()`."""
        if self.function is not None:
            what = type(self.function.accumulator).__name__.lower()
            return f"{what} in Python, of {self.window}; {self.function.why}".removesuffix("; ")
        assigned = "" if self.assigner is None else f"; assign: {self.assigner.reason}"
        return f"{aggregated(self.aggregates, self.own)} of {self.window}{assigned}"

    @property
    def refusal(self) -> Mapping[str, Any] | None:
        """The code and values of why it isn't compiled, if that was tried."""
        return None if self.function is None else self.function.refusal

    @property
    def output_time(self) -> TimeInfo | None:
        """The event time of its output."""
        return self.window.output_time(self.end) if self.function is None or self.function.bounded else None

    @property
    def uses_clock(self) -> bool:
        """Whether its windows follow the clock."""
        return self.window.by_clock

    def keeps_keys(self, keys: tuple[str, ...]) -> bool:  # noqa: ARG002
        """Return whether these fields of its input are known to pass it unchanged: a function may emit anything."""
        return self.function is None

    @property
    def user_function(self) -> CompiledFunction | None:
        """The function that assigns windows, with checks of what it returns."""
        code: Any = self.assigner
        return None if code is None else replace(code, function=partial(_checked_windows, self.window, code))

    @property
    def keeps_tuples(self) -> bool:
        """Whether its state may have any field of its input."""
        if self.function is not None or self.in_order:
            return True
        return any(one.function is AggregateFunction.TOP for _, one in self.aggregates)

    @property
    def runs_user_code(self) -> bool:
        """Whether the aggregate or the assigner is the user's own."""
        return self.own is not None or self.assigner is not None or self.function is not None

    def reads(self, spec: OperatorSpec, port: int) -> Collection[str] | None:  # noqa: ARG002
        """Return the aggregated fields and the event time; None where whole tuples are kept, or a function runs."""
        if self.runs_user_code or self.keeps_tuples or self.window.gap is not None:
            return None
        return fields_of(self.aggregates).union(() if self.window.time is None else (self.window.time.field,))

    def passes(self, spec: OperatorSpec) -> tuple[str, ...]:
        """Return the port of late tuples, if it has one."""
        return tuple(port.name for port in spec.outputs if port.name == LATE)

    def kept_form(self, spec: OperatorSpec) -> str:
        """Describe its state."""
        time = f" of {self.window.time.field}" if self.window.time is not None else ""
        kept = aggregates_form(self.aggregates, self.own) if self.function is None else PICKLED
        order = ", in the order of times" if self.in_order else ""
        return f"{spec.key_form}, {self.window}{time}, {kept}{order}"


def _checked_windows(window: Window, code: Any, t: Any) -> Iterable[Any]:
    """Call the function that assigns windows. Raise what it raises, or what is wrong with its windows."""
    assert window.time is not None
    times = TimeValues.of(window.time, code.input_schema)
    checked_spans(window, times, t, times.ticks(getattr(t, window.time.field)))
    spans: Iterable[Any] = code.function(t)
    return spans


@dataclass(frozen=True, slots=True, kw_only=True)
class Framing(Aligned):
    """The arguments of ``Stream.window``; None: not passed."""

    count: int | None
    slide: Seconds | None
    rest: bool | None
    within: Seconds | None
    assign: Callable[[Any], Iterable[tuple[Any, Any]]] | None
    lateness: Seconds | None
    clock: bool
    ttl: Lifetime | None


def window(up: Upstream, wanted: Framing) -> Window:
    """See ``Stream.window``."""
    count, slide, rest, within = wanted.count, wanted.slide, wanted.rest, wanted.within
    assign, lateness, clock, ttl = wanted.assign, wanted.lateness, wanted.clock, wanted.ttl
    with declaring(up.called, caller_location()):
        if [count, wanted.seconds, wanted.days, assign].count(None) != 3:
            raise conflict(
                "a window has a count, seconds or days, or a function assigns it",
                "Write .window(count=...), .window(seconds=...), .window(days=...) or .window(assign=...)",
            )
        by_time = count is None
        if not (wanted.align_to is None and wanted.zone is None) and (assign is not None or not by_time):
            raise conflict("align_to and zone are for windows of seconds or days", "Leave them out")
        if lateness is not None and (clock or not by_time):
            raise conflict("lateness is for windows by event time", "By count, or by the clock, no tuple is late")
        if clock and not by_time:
            raise conflict("clock is for windows by time", "Write .window(seconds=..., clock=True)")
        if ttl is not None and (by_time or within is not None):
            problem = f"ttl={shown(ttl)} is for windows by count alone"
            raise GraphError(problem, hint="Others end by themselves", code=ErrorCode.UNSUPPORTED_TTL)
        if within is not None:
            return _batch(up, count, within, slide, rest)
        if not by_time:
            return _by_count(up, count, slide, rest, ttl)
        if rest is not None:
            raise conflict("rest is for windows by count", "Windows by time are all emitted at the end")
        time = None if clock else _time_of(up, "a window by time")
        late = 0 if lateness is None else (time or CLOCK).ticks(lateness, "lateness")
        if assign is not None:
            return _assigned(assign, slide, time, late)
        at = ticks_of(up, time, wanted, slide)
        return Window(WindowKind.TIME, at.size, at.slide, time, lateness=late, offset=at.offset, zone=at.zone)


def _assigned(assign: object, slide: object, time: TimeInfo | None, lateness: int) -> Window:
    if slide is not None:
        raise conflict("slide is for windows of seconds", "The function says where windows begin and end")
    return Window(WindowKind.ASSIGNED, 1, 1, time, assign=_of_tuple("assign", assign), lateness=lateness)


def _batch(up: Upstream, count: object, within: Seconds, slide: object, rest: object) -> Window:
    if count is None or slide is not None or rest is not None:
        raise conflict("within is for batches by count alone", "Write .window(count=..., within=...)")
    size, time = _tuples(count, "count"), up.event_time
    return Window(WindowKind.BATCH, size, size, time, within=(time or CLOCK).ticks(within, "within"))


def session(up: Upstream, gap: Seconds | Callable[[Any], Seconds], lateness: Seconds | None, clock: bool) -> Window:
    """See ``Stream.session``."""
    with declaring(up.called, caller_location()):
        if lateness is not None and clock:
            raise conflict("lateness is for sessions by event time", "By the clock no tuple is late")
        time = None if clock else _time_of(up, "a session")
        late = 0 if lateness is None else (time or CLOCK).ticks(lateness, "lateness")
        if callable(gap):
            return Window(WindowKind.SESSION, 0, 0, time, gap=_of_tuple("gap", gap), lateness=late)
        ticks = (time or CLOCK).ticks(gap, "gap")
        return Window(WindowKind.SESSION, ticks, ticks, time, lateness=late)


def windowed(up: Upstream, window: Window, name: str, aggregates: Mapping[str, AggregateSpec | TopK]) -> OperatorSpec:
    """See ``WindowedStream.aggregate``."""
    with NewOperator(name, up.operators) as location:
        if not window.is_native:
            hint = "Use .fold, .reduce, .top or .process"
            raise GraphError(f"{window} don't support .aggregate", hint=hint, code=ErrorCode.UNSUPPORTED_WINDOW)
        wanted = {output: _by_time(aggregate, window) for output, aggregate in expanded(aggregates).items()}
        late = (OutputPort(LATE, up.schema, optional=True),) if window.time is not None else ()
        assigner = compiled_assigner(up, window, name, location)
        _, end = bounds_beside((*up.keys, *wanted))
        return up.operator(
            name,
            Windowing(window, tuple(wanted.items()), assigner=assigner, end=end),
            location,
            (OutputPort(OUT, _schema(up, window, name, wanted)), *late),
            keys=up.keys,
            ttl=window.ttl,
        )


def bounds_beside(names: Collection[str]) -> tuple[str, str]:
    """Return the names of a window's bounds beside other fields: `window_start` where one is `start` or `end`."""
    first, last = BOUNDS
    return (f"window_{first}", f"window_{last}") if {*BOUNDS} & {*names} else (first, last)


def compiled_assigner(up: Upstream, window: Window, name: str, location: str) -> CompiledFunction | None:
    """Compile the function that assigns windows. It emits their start and end; None for other windows.

    Raises:
        GraphError: Its parameter is annotated with an array or a frame.
        SchemaError: It uses an unknown field.
    """
    if window.assign is None or window.time is None:
        return None
    form = up.schema.field(window.time.field).format
    bounds = laid_out("Span", [(bound, form, False) for bound in BOUNDS])
    request = FunctionRequest(name, FunctionKind.FLAT_MAP, window.assign, up.schema, bounds, location=location)
    assigner = up.compiler.compile(request)
    if assigner.lane is Lane.VECTORISED:
        raise GraphError("assign is annotated with an array or a frame", hint="Give a function of one tuple")
    return assigner


def checked_spans(window: Window, times: TimeValues, t: Any, at: int) -> list[tuple[int, int]]:
    """Call the function that assigns windows. Return start and end of each, in ticks.

    Args:
        window: The assigned windows.
        times: The form of event times.
        t: A tuple.
        at: Its event time in ticks.

    Raises:
        ValueError: A window ends before its start or its tuple, or a time is out of range.
    """
    assert window.assign is not None
    spans, bounds = list[tuple[int, int]](), times.unshifted
    for start, end in window.assign(t):
        span = bounds.ticks(start), bounds.ticks(end)
        if not (span[0] < span[1] and at < span[1]):
            raise ValueError(
                f"assign returned a window from {start!r} to {end!r} for a tuple at {times.value(at)!r}: "
                "it must end after its start and after its tuples"
            )
        if max(map(abs, span)) >= FURTHEST:
            raise ValueError(
                f"assign returned a window from {start!r} to {end!r}: times must be less than 2**62 {times.time.unit}"
            )
        spans.append(span)
    return spans


def _by_time(one: AggregateSpec, window: Window) -> AggregateSpec:
    """Make first and last follow the event time of a window by event time, whatever the order of arrival."""
    goes = window.time is not None and one.function in (AggregateFunction.FIRST, AggregateFunction.LAST)
    return replace(one, weight=window.time.field) if goes and window.time is not None else one


def _schema(up: Upstream, window: Window, name: str, wanted: dict[str, AggregateSpec]) -> Schema:
    keys, time = up.keys, window.time
    gives = aggregated_schema(name, up.schema, keys, wanted)
    if time is None:
        return gives
    form = up.schema.field(time.field).format
    bounds = [(bound, form, False) for bound in bounds_beside((*keys, *wanted))]
    if window.lateness:
        bounds.append((CORRECTED, "b", False))
    for bound, _, _ in bounds:
        if bound in (*keys, *wanted):
            problem = f"a window by time has a field '{bound}' already"
            raise GraphError(problem, hint="Rename yours", code=ErrorCode.DUPLICATE_FIELD)
    columns = [(f.name, f.format, f.nullable) for f in gives.fields]
    return laid_out(name, [*columns[: len(keys)], *bounds, *columns[len(keys) :]])


def _by_count(up: Upstream, count: object, slide: object, rest: bool | None, ttl: Lifetime | None) -> Window:
    size = _tuples(count, "count")
    every = size if slide is None else _tuples(slide, "slide")
    lives = up.time_to_live(ttl, None if up.keys else "key_by(...)", changes="each tuple changes a window")
    if lives is not None and rest:
        raise GraphError(
            f"ttl={shown(ttl)}: rest=True emits the rest of each key at the end, and some would have expired",
            hint="Leave rest= out, or use within= in place of ttl=",
            code=ErrorCode.STATE_EXPIRES_EARLY,
        )
    rest = lives is None and every >= size if rest is None else rest
    return Window(WindowKind.COUNT, size, every, rest=rest, ttl=lives)


def _of_tuple(what: str, function: object) -> Callable[[Any], Any]:
    if not callable(function) or not binds(function, (None,)):
        problem = f"{what}={shown(function)} can't be called as {what}(t)"
        raise GraphError(problem, hint="Pass a function of a tuple", code=ErrorCode.WRONG_PARAMETERS)
    check_object(function)
    return function


def _tuples(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LONGEST_COUNT:
        raise invalid(what, value, "Pass a number of tuples, 1 or more")
    return value


def _time_of(up: Upstream, what: str) -> TimeInfo:
    time = up.event_time
    if time is None:
        raise GraphError(
            f"{what} needs an event time, and this stream has none, or has lost it",
            hint="Write .event_time(field) before; united streams need the same, and maps keep the field",
            code=ErrorCode.NO_EVENT_TIME,
        )
    return time
