"""`scan`, `fold` and `reduce` of the tuples of each key: made of a map with state, and of the last of each key.

What runs is Python. Knows no threads, PEs or native code.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rayelastic.errors import DeclarationError, GraphError
from rayelastic.graph.aggregates import Emit, last
from rayelastic.graph.declaration import binds
from rayelastic.graph.location import caller_location
from rayelastic.graph.schema import Schema, laid_out
from rayelastic.graph.shown import shown
from rayelastic.graph.stream import check_at
from rayelastic.graph.time_to_live import check_updates

if TYPE_CHECKING:
    from rayelastic.graph.event_time import Seconds
    from rayelastic.graph.keyed_stream import KeyedStream
    from rayelastic.graph.stream import Stream

__all__ = ["fold", "reduce", "scan"]

Together = Callable[[Any, Any], Any]


class _Start:
    """Makes the state of a key: a list that holds what has come together."""

    def __init__(self, start: Any) -> None:
        self._start = start

    def __call__(self) -> list[Any]:
        return [copy.deepcopy(self._start)]


class _Scan:
    def __init__(self, fn: Together, fields: tuple[int, ...], plain: bool) -> None:
        self._fn = fn
        self._fields = fields  # of the keys
        self._plain = plain

    def __call__(self, t: Any, s: list[Any]) -> tuple[Any, ...]:
        made = s[0] = self._fn(s[0], t)
        keys = tuple(t[field] for field in self._fields)
        return (*keys, made) if self._plain else (*keys, *made)


class _Reduce:
    def __init__(self, fn: Together) -> None:
        self._fn = fn

    def __call__(self, t: Any, s: list[Any]) -> Any:
        made = t if s[0] is None else self._fn(type(t)(*s[0]), t)
        s[0] = tuple(made)  # which pickles, whatever class t is of
        return made


def scan(
    stream: KeyedStream, name: str, fn: Together, start: Any, schema: object, ttl: Seconds | None = None
) -> Stream:
    """See ``KeyedStream.scan``."""
    location = caller_location()
    check_at(name, location)
    try:
        _check(fn, "fn(accumulated, t)")
        made = Schema.of(type(start) if schema is None else schema)
        twice = next((field for field in stream.keys if made.find(field) is not None), None)
        if twice is not None:
            raise GraphError(
                f"what comes together has a field '{twice}', and so has the key", way_out="Give one another name"
            )
        gives = _keyed(name, stream, made)
        plain = not isinstance(start, tuple)
    except DeclarationError as error:
        error.at(name, location)
        raise
    fields = tuple(stream.schema.names.index(field) for field in stream.keys)
    return stream.map(name, _Scan(fn, fields, plain), state=_Start(start), ttl=ttl, schema=gives, lane="python")


def fold(stream: KeyedStream, name: str, fn: Together, start: Any, schema: object) -> Stream:
    """See ``KeyedStream.fold``."""
    check_at(name, caller_location())
    return _latest(name, stream, scan(stream, f"{name}.scan", fn, start, schema))


def reduce(stream: KeyedStream, name: str, fn: Together, emit: str | Emit, ttl: Seconds | None) -> Stream:
    """See ``KeyedStream.reduce``."""
    location = caller_location()
    check_at(name, location)
    try:
        _check(fn, "fn(reduced, t)")
        try:
            when = Emit(emit)
        except ValueError:
            raise GraphError(f"emit={shown(emit)}", way_out="Choose 'final' or 'update'") from None
        check_updates(ttl, when)
        if set(stream.schema.names) <= set(stream.keys):
            raise GraphError("there is nothing but keys to be reduced", way_out="Use .deduplicate(name)")
    except DeclarationError as error:
        error.at(name, location)
        raise
    inner = name if when is Emit.UPDATE else f"{name}.scan"
    made = stream.map(inner, _Reduce(fn), state=_Start(None), ttl=ttl, schema=stream.schema, lane="python")
    return made if when is Emit.UPDATE else _latest(name, stream, made)


def _check(fn: object, called: str) -> None:
    if not callable(fn) or not binds(fn, (None, None)):
        raise GraphError(f"{shown(fn)} can't be called as {called}", way_out="Give a function of two arguments")


def _keyed(name: str, stream: KeyedStream, made: Schema) -> Schema:
    fields = [*map(stream.schema.field, stream.keys), *made.fields]
    return laid_out(name, [(field.name, field.format, field.nullable) for field in fields])


def _latest(name: str, stream: KeyedStream, made: Stream) -> Stream:
    latest: dict[str, Any] = {field: last(field) for field in made.schema.names if field not in stream.keys}
    return made.key_by(*stream.keys).aggregate(name, **latest)
