"""`process`, `fold`, `reduce` and `top` of windows, sessions and batches, as operators.

Knows no threads, PEs, clocks or native code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rayelastic.errors import GraphError
from rayelastic.graph.operators.aggregates import Emit
from rayelastic.graph.operators.folds import check_together
from rayelastic.graph.operators.gathering.gathered import Collected, Folded, Gathered, Reduced, Top
from rayelastic.graph.operators.gathering.programs import Batches, Early, Sessions, TimeWindows
from rayelastic.graph.operators.processes import KeyedProcess
from rayelastic.graph.operators.windows import BOUNDS, Window, WindowKind
from rayelastic.graph.records.schema import Schema, laid_out
from rayelastic.graph.records.shown import shown
from rayelastic.graph.records.time_info import TimeInfo
from rayelastic.graph.records.time_values import TimeValues
from rayelastic.graph.spec.concurrency import is_async
from rayelastic.graph.spec.declaration import NewOperator, binds
from rayelastic.graph.spec.operator_spec import OperatorKind, OperatorSpec, StateKind
from rayelastic.graph.spec.ports import LATE, OUT, OutputPort
from rayelastic.graph.spec.upstream import Upstream

__all__ = ["window_fold", "window_process", "window_reduce", "window_top"]

FINAL, PLACE = "final", "place"  # fields of what is given
_MOST = 1_000_000  # tuples that `top` keeps of a window


def window_process(
    up: Upstream, window: Window, name: str, fn: object, schema: object, emit: object, every: object
) -> OperatorSpec:
    """See ``WindowedStream.process``."""
    with NewOperator(name, up.operators) as location:
        early = _checked(up, window, emit, every)
        if not callable(fn) or is_async(fn) or not binds(fn, (None, None, None)):
            raise GraphError(
                f"process calls fn(key, window, tuples), and got {shown(fn)}",
                way_out="Give a plain function of these three",
            )
        gathered = Collected(fn, up.schema)
        return _declared(up, window, name, location, gathered, early, Schema.of(schema), bounded=False)


def window_fold(
    up: Upstream,
    window: Window,
    name: str,
    fn: Callable[[Any, Any], Any],
    start: Any,
    schema: object,
    emit: object,
    every: object,
) -> OperatorSpec:
    """See ``WindowedStream.fold``."""
    with NewOperator(name, up.operators) as location:
        early = _checked(up, window, emit, every)
        check_together(fn, "fn(accumulated, t)")
        made = Schema.of(type(start) if schema is None else schema)
        columns = [(field.name, field.format, field.nullable) for field in made.fields]
        gives = _schema(up, window, name, early, columns)
        return _declared(up, window, name, location, Folded(fn, start, bool(early)), early, gives)


def window_reduce(
    up: Upstream, window: Window, name: str, fn: Callable[[Any, Any], Any], emit: object, every: object
) -> OperatorSpec:
    """See ``WindowedStream.reduce``."""
    with NewOperator(name, up.operators) as location:
        early = _checked(up, window, emit, every)
        check_together(fn, "fn(reduced, t)")
        fields = _others(up)
        gathered = Reduced(fn, up.schema, fields, bool(early))
        return _declared(up, window, name, location, gathered, early, _schema(up, window, name, early, _kept(up)))


def window_top(
    up: Upstream, window: Window, name: str, k: object, by: str, least: bool, emit: object, every: object
) -> OperatorSpec:
    """See ``WindowedStream.top``."""
    with NewOperator(name, up.operators) as location:
        early = _checked(up, window, emit, every)
        if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= _MOST:
            raise GraphError(f"top of {shown(k)} tuples", way_out=f"Give a number from 1 to {_MOST:,}")
        if by not in up.schema.names:
            raise GraphError(
                f"by={shown(by)}: {up.schema.name} has no such field", way_out=up.schema.suggestion(str(by))
            )
        gathered = Top(k, up.schema.names.index(by), least, _others(up), bool(early))
        columns = [(PLACE, "l", False), *_kept(up)]
        return _declared(up, window, name, location, gathered, early, _schema(up, window, name, early, columns))


def _checked(up: Upstream, window: Window, emit: object, every: object) -> Early:
    if window.kind is WindowKind.COUNT:
        raise GraphError(
            "windows by count are only aggregated", way_out="Use .aggregate, or .window(count=, within=) for batches"
        )
    if not up.keys:
        raise GraphError("windows of the whole stream are only aggregated", way_out="Write .key_by(...) before")
    try:
        update = Emit(emit) is Emit.UPDATE
    except ValueError:
        raise GraphError(f"emit={shown(emit)}", way_out="Choose 'final' or 'update'") from None
    if every is None and not update:
        return Early()
    if update and every is not None:
        raise GraphError("emit='update' and every=", way_out="Give one of them")
    if window.time is None or window.kind is WindowKind.BATCH:
        raise GraphError("batches are given once", way_out="Leave emit= and every= out")
    return Early(update, 0 if every is None else window.time.ticks(every, "every"))


def _declared(
    up: Upstream,
    window: Window,
    name: str,
    location: str,
    gathered: Gathered,
    early: Early,
    gives: Schema,
    *,
    bounded: bool = True,
) -> OperatorSpec:
    times = TimeValues.of(window.time, up.schema)
    instance: Any
    if window.kind is WindowKind.SESSION:
        instance = Sessions(window, times, gathered, early, partial(_gap, window, times))
    else:
        instance = (Batches if window.kind is WindowKind.BATCH else TimeWindows)(window, times, gathered, early)
    late = (OutputPort(LATE, up.schema, optional=True),) if window.time is not None else ()
    what = f"{type(gathered).__name__.lower()} in Python, of {window}"
    time = _output_time(window) if bounded else None
    body = KeyedProcess(instance, dict, up.schema, up.keys, window.time, what=what, output_time=time)
    outputs = (OutputPort(OUT, gives), *late)
    return up.operator(name, OperatorKind.PROCESS, StateKind.PARTITIONED, body, location, outputs, keys=up.keys)


def _gap(window: Window, times: TimeValues, t: Any) -> int:
    return window.size if window.gap is None else times.span(window.gap(t))


def _output_time(window: Window) -> TimeInfo | None:
    """The last tick of a window, so that what it gives isn't late for another."""
    if window.time is None:
        return None
    return TimeInfo("end", window.time.unit, 0 if window.kind is WindowKind.SESSION else -1)


def _others(up: Upstream) -> tuple[int, ...]:
    """The fields that are no keys."""
    return tuple(at for at, field in enumerate(up.schema.names) if field not in up.keys)


def _kept(up: Upstream) -> list[tuple[str, str, bool]]:
    fields = [up.schema.fields[at] for at in _others(up)]
    return [(field.name, field.format, field.nullable) for field in fields]


def _schema(up: Upstream, window: Window, name: str, early: Early, columns: list[tuple[str, str, bool]]) -> Schema:
    keys = [up.schema.field(key) for key in up.keys]
    form = "g" if window.time is None else up.schema.field(window.time.field).format
    before = [(key.name, key.format, key.nullable) for key in keys]
    before += [(bound, form, False) for bound in BOUNDS]
    if early:
        before.append((FINAL, "b", False))
    taken = {field for field, _, _ in before}
    twice = next((field for field, _, _ in columns if field in taken), None)
    if twice is not None:
        raise GraphError(f"what a window gives has a field '{twice}' already", way_out="Give yours another name")
    return laid_out(name, [*before, *columns])
