"""`fold` and `reduce` of windows as aggregates that compile: the accumulated fields are the state and the result.

The method that adds a tuple is generated, since it names the fields. Knows no threads, PEs or native code.
"""

from __future__ import annotations

import datetime as dt
import linecache
import typing
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any

from rayelastic.errors import ErrorCode, LaneError
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.requests import AggregateRequest, CompiledAggregate
from rayelastic.graph.spec.upstream import Upstream

LONGEST_TEXT = 12  # bytes of a text in the first state: what a record holds inside
_ZEROS: dict[type, Any] = {
    bool: False, int: 0, float: 0.0, str: "", bytes: b"",
    dt.datetime: dt.datetime(1970, 1, 1),  # noqa: DTZ001 -- as a field has it
    dt.date: dt.date(1970, 1, 1), dt.timedelta: dt.timedelta(),
}  # fmt: skip

Together = Callable[[Any, Any], Any]


def compiled_fold(
    up: Upstream, name: str, fn: Together, start: Any, accumulated: Schema, location: str
) -> CompiledAggregate:
    """Compile a fold.

    Raises:
        LaneError: It runs in Python, with the reason.
    """
    has_fields = hasattr(start, "_fields")
    fits = accumulated.declared_type is type(start) if has_fields else type(start) in _ZEROS
    record = start if has_fields or not fits else _class("Value", [(accumulated.names[0], type(start))])(start)
    if not fits or not Schema.of(type(record)).same_fields(accumulated):
        raise _rejected("its start value hasn't the types of its schema, or is no NamedTuple or plain value")
    if any(len(text.encode() if isinstance(text, str) else text) > LONGEST_TEXT for text in _texts(record)):
        raise _rejected(f"its start value has a text of more than {LONGEST_TEXT} bytes")
    names = record._fields
    if has_fields:
        add = [f"made = self.fn(Record({_listed('state', names)}), t)", *_assigned(names, "made")]
    else:
        add = [f"state.{names[0]} = self.fn(state.{names[0]}, t)"]
    instance = _instance("fold", fn, type(record), record, tuple(add))
    return up.compiler.compile_aggregate(
        AggregateRequest(name, instance, record, up.schema, accumulated, location, "a compiled fold")
    )


def compiled_reduce(up: Upstream, name: str, fn: Together, kept: Schema, location: str) -> CompiledAggregate:
    """Compile a reduction of tuples to one, of which `kept` are the fields that aren't keys.

    Raises:
        LaneError: It runs in Python, with the reason.
    """
    seen = "seen"
    while seen in kept.names:
        seen += "_"
    hints = [(seen, bool), *((field.name, _hint(kept, at)) for at, field in enumerate(kept.fields))]
    state = _class("Reduced", hints)
    if [field.format for field in Schema.of(state).fields[1:]] != [field.format for field in kept.fields]:
        raise _rejected("a field of its tuples has a type that no state has")
    first = state(False, *(None if field.nullable else _ZEROS[field.type.python_type] for field in kept.fields))
    so_far = ", ".join(f"{'state' if field in kept.names else 't'}.{field}" for field in up.schema.names)
    add = [
        f"made = Record({_listed('t', up.schema.names)})",
        f"if state.{seen}:",
        f"    made = self.fn(Record({so_far}), made)",
        *_assigned(kept.names, "made"),
        f"state.{seen} = True",
    ]
    instance = _instance("reduce", fn, up.schema.tuple_type, first, tuple(add))
    return up.compiler.compile_aggregate(
        AggregateRequest(name, instance, first, up.schema, kept, location, "a compiled reduce")
    )


def _instance(what: str, fn: Together, record: type, first: Any, add: Sequence[str]) -> Any:
    """Make the object that aggregates.

    Args:
        what: Its name.
        fn: The user's function.
        record: The class that the function's first argument has.
        first: The first state.
        add: The statements of `add`.
    """
    lines = [f"class {what}:", "    def add(self, t, state):", *(f"        {line}" for line in add)]
    source = "\n".join(lines) + "\n"
    by = getattr(fn, "__qualname__", type(fn).__name__)
    path = f"<{what} by {by}, {zlib.crc32(source.encode()):x}>"
    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
    scope: dict[str, Any] = {"Record": record, "__name__": __name__}
    exec(compile(source, path, "exec"), scope)  # names of fields are identifiers
    instance = scope[what]()
    instance.fn = fn
    instance.init = lambda: first
    scope[what].__reduce__ = lambda _: (_instance, (what, fn, record, first, add))  # its source goes along
    return instance


def _assigned(names: Iterable[str], of: str) -> list[str]:
    return [f"state.{name} = {of}.{name}" for name in names]


def _listed(of: str, names: Iterable[str]) -> str:
    return ", ".join(f"{of}.{name}" for name in names)


def _class(name: str, hints: Sequence[tuple[str, Any]]) -> Any:
    made: Any = typing.NamedTuple(name, hints)  # type: ignore[misc]
    return made


def _hint(schema: Schema, at: int) -> Any:
    """Return the annotation of a field of its type.

    Raises:
        LaneError: A state can't begin with a value of it.
    """
    field = schema.fields[at]
    if field.type.python_type not in _ZEROS:
        raise _rejected(f"field '{field.name}' is {field.type.value}")
    hint: Any = Annotated[field.type.python_type, schema.to_arrow().field(at).type]
    return hint | None if field.nullable else hint


def _texts(record: Iterable[Any]) -> list[Any]:
    return [value for value in record if isinstance(value, str | bytes)]


def _rejected(why: str) -> LaneError:
    return LaneError(why, hint="Nothing to do: it runs in Python", code=ErrorCode.NOT_COMPILED)
