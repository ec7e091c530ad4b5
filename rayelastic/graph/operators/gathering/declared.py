"""`process`, `fold`, `reduce`, `top` and `collect` of windows, sessions and batches, as operators.

Knows no threads, PEs, clocks or native code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rayelastic.errors import ErrorCode, GraphError, LaneError
from rayelastic.graph.operators.aggregates import AggregateFunction, AggregateSpec, Emit
from rayelastic.graph.operators.gathering.accumulators import Collected, Each, Folded, Reduced, Top
from rayelastic.graph.operators.gathering.compiled import compiled_fold, compiled_reduce
from rayelastic.graph.operators.gathering.folds import check_together
from rayelastic.graph.operators.window_function import Accumulator, Early, Shown, WindowFunction
from rayelastic.graph.operators.windows import (
    CORRECTED,
    Window,
    Windowing,
    WindowKind,
    bounds_beside,
    compiled_assigner,
)
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.schema import Schema, laid_out
from rayelastic.graph.records.shown import conflict, invalid, shown
from rayelastic.graph.records.time_info import Seconds
from rayelastic.graph.records.time_values import CLOCK
from rayelastic.graph.spec.concurrency import is_async
from rayelastic.graph.spec.declaration import NewOperator, binds
from rayelastic.graph.spec.location import caller_location
from rayelastic.graph.spec.operator_spec import OperatorSpec
from rayelastic.graph.spec.ports import LATE, OUT, OutputPort
from rayelastic.graph.spec.requests import CompiledAggregate
from rayelastic.graph.spec.upstream import Upstream
from rayelastic.graph.spec.user_objects import check_object

FINAL, PLACE = "final", "place"  # fields of emitted results
MOST = 1_000_000  # tuples that `top` keeps of a window


@dataclass(frozen=True, slots=True)
class When:
    """When a window is emitted, as the user declares it; see ``WindowedStream.process`` and ``fold``."""

    emit: str | Emit
    every: Seconds | None
    until: Callable[[Any], Any] | None


def window_process(up: Upstream, window: Window, name: str, fn: object, schema: object, when: When) -> OperatorSpec:
    """See ``WindowedStream.process``."""
    with NewOperator(name, up.operators):
        early = checked(up, window, when)
        if not callable(fn) or is_async(fn) or not binds(fn, (None, None, None)):
            raise GraphError(
                f"process calls fn(key, window, tuples), not {shown(fn)}",
                hint="Pass a plain function of these three",
                code=ErrorCode.WRONG_PARAMETERS,
            )
        check_object(fn)
        accumulator = Collected(fn, up.schema)
        return declared(up, window, name, accumulator, early, Schema.of(schema), bounded=False)


def window_fold(
    up: Upstream,
    window: Window,
    name: str,
    fn: Callable[[Any, Any], Any],
    start: Any,
    schema: object,
    when: When,
) -> OperatorSpec:
    """See ``WindowedStream.fold``."""
    with NewOperator(name, up.operators) as location:
        check_together(fn, "fn(accumulated, t)")
        accumulated = Schema.of(type(start) if schema is None else schema)
        columns = [(field.name, field.format, field.nullable) for field in accumulated.fields]
        code = _in_order(window, when, lambda: compiled_fold(up, name, fn, start, accumulated, location))
        if not isinstance(code, LaneError):
            return _native(up, window, name, code, columns)
        early = checked(up, window, when)
        shown_too = shown_of(window, early)
        gives = window_schema(up, window, name, shown_too, columns)
        return declared(up, window, name, Folded(fn, start, shown_too, accumulated), early, gives, rejected=code)


def window_reduce(up: Upstream, window: Window, name: str, fn: Callable[[Any, Any], Any], when: When) -> OperatorSpec:
    """See ``WindowedStream.reduce``."""
    with NewOperator(name, up.operators) as location:
        check_together(fn, "fn(reduced, t)")
        kept = laid_out("Reduced", _kept(up))
        code = _in_order(window, when, lambda: compiled_reduce(up, name, fn, kept, location))
        if not isinstance(code, LaneError):
            return _native(up, window, name, code, _kept(up))
        early = checked(up, window, when)
        shown_too = shown_of(window, early)
        gives = window_schema(up, window, name, shown_too, _kept(up))
        accumulator = Reduced(fn, up.schema, _others(up), shown_too)
        return declared(up, window, name, accumulator, early, gives, rejected=code)


def _in_order(window: Window, when: When, compiled: Callable[[], CompiledAggregate]) -> CompiledAggregate | LaneError:
    """Compile what windows accumulate in the order of times; else return why it runs in Python."""
    batches = window.kind is WindowKind.BATCH and not window.by_clock
    if why := why_python(window, when, batches=batches):
        return LaneError(why)
    merges = window.kind is WindowKind.SESSION and window.lateness
    if merges or window.kind in (WindowKind.COUNT, WindowKind.ASSIGNED):
        return LaneError(f"{window} are folded in Python")
    try:
        return compiled()
    except LaneError as error:
        return error


def _native(
    up: Upstream, window: Window, name: str, code: CompiledAggregate, columns: list[tuple[str, str, bool]]
) -> OperatorSpec:
    gives = window_schema(up, window, name, shown_of(window, Early()), columns)
    body = Windowing(window, (), code, in_order=True, end=end_of(up, gives))
    return up.operator(name, body, caller_location(), (OutputPort(OUT, gives), *_late(up, window)), keys=up.keys)


def window_collect(up: Upstream, window: Window, name: str, when: When) -> OperatorSpec:
    """See ``WindowedStream.collect``."""
    with NewOperator(name, up.operators):
        early = checked(up, window, when)
        shown_too = shown_of(window, early)
        gives = window_schema(up, window, name, shown_too, [(PLACE, "l", False), *_kept(up)])
        return declared(up, window, name, Each(_others(up), shown_too), early, gives)


def window_top(
    up: Upstream, window: Window, name: str, k: object, by: str, least: bool, when: When, place: str = PLACE
) -> OperatorSpec:
    """See ``WindowedStream.top``; `place` is the field of the rank."""
    with NewOperator(name, up.operators) as location:
        if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MOST:
            raise GraphError(
                f"top of {shown(k)} tuples", hint=f"Pass a number from 1 to {MOST:,}", code=ErrorCode.OUT_OF_RANGE
            )
        if by not in up.schema.names:
            raise GraphError(
                f"by={shown(by)}: {up.schema.name} has no such field",
                hint=up.schema.suggestion(str(by)),
                code=ErrorCode.UNKNOWN_FIELD,
            )
        columns, ordered = [(place, "l", False), *_kept(up)], up.schema.field(by).type
        why = why_python(window, when)
        if not why and not is_ranked(ordered):
            why = f"Python compares field '{by}', which is {ordered.value}"
        if why:
            early = checked(up, window, when)
            shown_too = shown_of(window, early)
            accumulator = Top(k, up.schema.names.index(by), least, _others(up), shown_too)
            gives = window_schema(up, window, name, shown_too, columns)
            return declared(up, window, name, accumulator, early, gives, rejected=LaneError(why))
        gives = window_schema(up, window, name, shown_of(window, Early()), columns)
        time = None if window.time is None else window.time.field
        best = AggregateSpec(AggregateFunction.TOP, by, time, float(least), k)
        assigner = compiled_assigner(up, window, name, location)
        body = Windowing(window, (("", best),), assigner=assigner, punctual=True, end=end_of(up, gives))
        outputs = (OutputPort(OUT, gives), *_late(up, window))
        return up.operator(name, body, location, outputs, keys=up.keys, ttl=window.ttl)


def is_ranked(kind: DataType) -> bool:
    """Return whether the best values of a type are kept natively."""
    return kind.is_ordered or kind.is_text


def why_python(window: Window, when: When, *, batches: bool = False) -> str:
    """Return why such results of windows run in Python; empty if nothing requires that. `batches` may be native."""
    if not (window.is_native or batches):
        return f"{window} are accumulated in Python"
    early = when.every is not None or when.until is not None or Emit(when.emit) is not Emit.FINAL
    return "Python computes early results" if early else ""


def checked(up: Upstream, window: Window, when: When) -> Early:
    """Return when windows are emitted early; reject what can't be aggregated in Python."""
    if window.kind is WindowKind.COUNT:
        raise GraphError(
            "windows by count are only aggregated",
            hint="Use .aggregate, or .window(count=, within=) for batches",
            code=ErrorCode.UNSUPPORTED_WINDOW,
        )
    if not up.keys:
        raise GraphError(
            "windows of the whole stream are only aggregated",
            hint="Write .key_by(...) before",
            code=ErrorCode.UNSUPPORTED_WINDOW,
        )
    if window.lateness and window.kind is WindowKind.SESSION:
        raise GraphError(
            "a late tuple may merge two sessions, and Python results can't be merged",
            hint="Use .aggregate, or set a longer lateness of .event_time",
            code=ErrorCode.NOT_MERGEABLE,
        )
    if not _asks(when.until):
        raise invalid("until", when.until, "Pass a function of one argument", ErrorCode.WRONG_PARAMETERS)
    update = Emit(when.emit) is Emit.UPDATE
    if when.every is None and not update:
        return Early(until=when.until)
    if update and when.every is not None:
        raise conflict("emit='update' and every=", "Leave one of them out")
    if window.kind is WindowKind.BATCH:
        raise conflict("a batch is emitted once", "Leave emit= and every= out")
    every = 0 if when.every is None else (window.time or CLOCK).ticks(when.every, "every")
    return Early(update, every, when.until)


def _asks(until: object) -> bool:
    return until is None or (callable(until) and binds(until, (None,)))


def shown_of(window: Window, early: Early) -> Shown:
    """Return which fields results have about their window."""
    flags = ((FINAL, early.may_not_be_final), (CORRECTED, window.lateness > 0))
    return Shown(tuple(flag for flag, said in flags if said))


def declared(
    up: Upstream,
    window: Window,
    name: str,
    accumulator: Accumulator,
    early: Early,
    results: Schema,
    *,
    bounded: bool = True,
    rejected: LaneError | None = None,
) -> OperatorSpec:
    """Make the operator that accumulates the tuples of windows in Python.

    Args:
        up: Its input.
        window: How tuples are assigned to windows.
        name: The operator's name.
        accumulator: What windows accumulate and emit.
        early: When a window is emitted before it is complete.
        results: The schema of results.
        bounded: Whether results have the bounds of the window.
        rejected: Why it isn't compiled, if that was tried.
    """
    moment = laid_out("Moment", _moment(up, window, bounds_beside(up.keys)))
    why, refusal = ("", None) if rejected is None else (rejected.problem, rejected.details or None)
    function = WindowFunction(accumulator, early, up.schema, moment, bounded, why, refusal)
    outputs = (OutputPort(OUT, results), *_late(up, window))
    body = Windowing(window, (), function=function, end=end_of(up, results) if bounded else "")
    return up.operator(name, body, caller_location(), outputs, keys=up.keys)


def end_of(up: Upstream, results: Schema) -> str:
    """Return the field of results that has the end of their window, if they have the bounds."""
    return next(iter(results.names[len(up.keys) + 1 :]), "")


def _late(up: Upstream, window: Window) -> tuple[OutputPort, ...]:
    return (OutputPort(LATE, up.schema, optional=True),) if window.time is not None else ()


def _moment(up: Upstream, window: Window, bounds: Sequence[str]) -> list[tuple[str, str, bool]]:
    keys = [up.schema.field(key) for key in up.keys]
    form = "g" if window.time is None else up.schema.field(window.time.field).format
    return [*((key.name, key.format, key.nullable) for key in keys), *((bound, form, False) for bound in bounds)]


def _others(up: Upstream) -> tuple[int, ...]:
    """Find the fields that aren't keys."""
    return tuple(at for at, field in enumerate(up.schema.names) if field not in up.keys)


def _kept(up: Upstream) -> list[tuple[str, str, bool]]:
    fields = [up.schema.fields[at] for at in _others(up)]
    return [(field.name, field.format, field.nullable) for field in fields]


def window_schema(
    up: Upstream, window: Window, name: str, shown_too: Shown, columns: list[tuple[str, str, bool]]
) -> Schema:
    """Lay out results: the keys, the bounds of the window, the fields about it, then the columns."""
    bounds = bounds_beside((*up.keys, *(field for field, _, _ in columns)))
    before = _moment(up, window, () if window.kind is WindowKind.COUNT else bounds)
    before += [(flag, "b", False) for flag in shown_too.flags]
    taken = {field for field, _, _ in before}
    twice = next((field for field, _, _ in columns if field in taken), None)
    if twice is not None:
        raise GraphError(
            f"the output of a window already has a field '{twice}'",
            hint="Rename yours",
            code=ErrorCode.DUPLICATE_FIELD,
        )
    return laid_out(name, [*before, *columns])
