"""`scan`, `fold` and `reduce` of the tuples of each key: a map with state, and the last result of each key.

They run in Python. Knows no threads, PEs or native code.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from rayelastic.errors import ErrorCode, GraphError
from rayelastic.graph.operators.aggregates import Emit, check_updates, last
from rayelastic.graph.operators.aggregation import aggregate
from rayelastic.graph.operators.functions import function_operator
from rayelastic.graph.records.schema import Schema, laid_out
from rayelastic.graph.records.shown import shown
from rayelastic.graph.records.time_info import Lifetime
from rayelastic.graph.spec.declaration import NewOperator, binds
from rayelastic.graph.spec.operator_spec import OperatorSpec
from rayelastic.graph.spec.requests import FunctionKind
from rayelastic.graph.spec.upstream import Upstream
from rayelastic.graph.spec.user_objects import check_object

Together = Callable[[Any, Any], Any]


class _Start:
    """Makes the state of a key: a list that holds the accumulated value."""

    def __init__(self, start: Any) -> None:
        self._start = start

    def __call__(self) -> list[Any]:
        return [copy.deepcopy(self._start)]


class _Scan:
    def __init__(self, fn: Together, fields: tuple[int, ...], made: Schema) -> None:
        self._fn = fn
        self._fields = fields  # positions of the keys
        self._made = made

    def __call__(self, t: Any, s: list[Any]) -> tuple[Any, ...]:
        s[0] = self._fn(s[0], t)
        return (*(t[field] for field in self._fields), *self._made.values(s[0]))


class _Reduce:
    def __init__(self, fn: Together, schema: Schema, places: tuple[int, ...]) -> None:
        self._fn = fn
        self._schema = schema
        self._places = places  # positions of the fields, keys first

    def __call__(self, t: Any, s: list[Any]) -> tuple[Any, ...]:
        merged = t if s[0] is None else self._fn(type(t)(*s[0]), t)
        reduced = s[0] = tuple(self._schema.values(merged))  # pickles, whatever the class of t
        return tuple(reduced[place] for place in self._places)


def scan(
    up: Upstream, name: str, fn: Together, start: Any, schema: object, ttl: Lifetime | None = None
) -> OperatorSpec:
    """See ``KeyedStream.scan``."""
    with NewOperator(name, up.operators):
        check_together(fn, "fn(accumulated, t)")
        accumulated = Schema.of(type(start) if schema is None else schema)
        twice = next((field for field in up.keys if accumulated.find(field) is not None), None)
        if twice is not None:
            raise GraphError(
                f"both the reduced tuple and the key have a field '{twice}'",
                hint="Rename one of them",
                code=ErrorCode.DUPLICATE_FIELD,
            )
        gives = _keyed(name, up, accumulated)
    fields = tuple(up.schema.names.index(field) for field in up.keys)
    return _with_state(up, name, _Scan(fn, fields, accumulated), start, gives, ttl)


def fold(up: Upstream, name: str, fn: Together, start: Any, schema: object) -> tuple[OperatorSpec, OperatorSpec]:
    """See ``KeyedStream.fold``."""
    with NewOperator(name, up.operators):
        scanned = scan(up, f"{name}.scan", fn, start, schema)
    return scanned, _latest(name, up, scanned)


def reduce(up: Upstream, name: str, fn: Together, emit: str | Emit, ttl: Lifetime | None) -> tuple[OperatorSpec, ...]:
    """See ``KeyedStream.reduce``."""
    with NewOperator(name, up.operators):
        check_together(fn, "fn(reduced, t)")
        when = Emit(emit)
        check_updates(ttl, when)
        if set(up.schema.names) <= set(up.keys):
            raise GraphError(
                "the stream has only key fields: nothing to reduce", hint="Use .deduplicate()", code=ErrorCode.NO_FIELDS
            )
    inner = name if when is Emit.UPDATE else f"{name}.scan"
    others = [field.name for field in up.schema.fields if field.name not in up.keys]
    fields = [up.schema.field(field) for field in (*up.keys, *others)]
    gives = laid_out(name, [(field.name, field.format, field.nullable) for field in fields])
    scanned = _with_state(
        up, inner, _Reduce(fn, up.schema, tuple(map(up.schema.fields.index, fields))), None, gives, ttl
    )
    return (scanned,) if when is Emit.UPDATE else (scanned, _latest(name, up, scanned))


def _with_state(
    up: Upstream, name: str, function: Together, start: Any, gives: Schema, ttl: Lifetime | None
) -> OperatorSpec:
    return function_operator(
        up, FunctionKind.MAP, name, function, state=_Start(start), ttl=ttl, schema=gives, lane="python"
    )


def check_together(fn: object, called: str) -> None:
    """Raise GraphError unless it is a function of an accumulated value and a tuple."""
    if not callable(fn) or not binds(fn, (None, None)):
        raise GraphError(
            f"{shown(fn)} can't be called as {called}",
            hint="Pass a function of two arguments",
            code=ErrorCode.WRONG_PARAMETERS,
        )
    check_object(fn)


def _keyed(name: str, up: Upstream, made: Schema) -> Schema:
    fields = [*map(up.schema.field, up.keys), *made.fields]
    return laid_out(name, [(field.name, field.format, field.nullable) for field in fields])


def _latest(name: str, up: Upstream, made: OperatorSpec) -> OperatorSpec:
    behind = up.behind(made, up.keys)
    latest = {field: last(field, nulls=True) for field in behind.schema.names if field not in up.keys}
    return aggregate(behind, name, latest)
