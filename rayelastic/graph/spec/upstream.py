"""`Upstream`: what the declaration of an operator may know of its input.

Knows nothing of streams as users hold them, of threads, PEs or native code.
"""

from __future__ import annotations

import contextlib
import dis
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, get_args

from rayelastic.errors import ErrorCode, GraphError
from rayelastic.graph.records.forms import plain_form
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.records.shown import shown
from rayelastic.graph.records.time_info import (
    LONGEST_SPAN,
    TICKS_PER_SECOND,
    Since,
    TimeInfo,
    TimeToLive,
    Ttl,
    seconds_of,
)
from rayelastic.graph.spec.declaration import declaring
from rayelastic.graph.spec.event_time import event_time_of
from rayelastic.graph.spec.location import caller_location
from rayelastic.graph.spec.operator_spec import OperatorBody, OperatorSpec, StateKind
from rayelastic.graph.spec.ports import IN, InputPort, OutputPort
from rayelastic.graph.spec.requests import FunctionCompiler

_CLOCK_UNIT = "ns"  # of the native clock


_READING = (
    "RESUME",
    "CACHE",
    "NOP",
    "LOAD_FAST",
    "STORE_FAST",
    "LOAD_ATTR",
    "LOAD_CONST",
    "BINARY_SUBSCR",
    "BUILD_TUPLE",
    "RETURN_VALUE",
)  # byte code


class _AnyTuple:
    """Stands for every tuple, so that a function reports the fields that it reads."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def __getattr__(self, name: str) -> _Field:
        return _Field(name)

    def __getitem__(self, place: int | str) -> _Field:
        return _Field(place if isinstance(place, str) else self._names[place])


@dataclass(frozen=True, slots=True)
class _Field:
    name: str


def _read(fn: Callable[[Any], Any], names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the fields that a function returns as they are: one, a tuple of several, or all of one.

    Raises:
        GraphError: It does more than to read fields.
    """
    code = getattr(fn, "__code__", None)
    reads = code is not None and all(one.opname.startswith(_READING) for one in dis.get_instructions(code))
    if reads or isinstance(fn, attrgetter):
        every = _AnyTuple(names)
        read: Any = None
        with contextlib.suppress(TypeError, IndexError):
            read = fn(every)
        if read is every and len(names) == 1:
            return names
        fields = read if isinstance(read, tuple) else (read,)
        if fields and all(isinstance(one, _Field) for one in fields):
            return tuple(one.name for one in fields)
    raise GraphError(
        "key_by takes fields, and the function computes",
        hint="Write .with_columns(key=fn), then .key_by('key')",
        code=ErrorCode.WRONG_TYPE,
    )


def _chosen(given: object, names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the fields of one argument of key_by: a name, a list of names, or a function."""
    if isinstance(given, list):
        return tuple(given)
    return _read(given, names) if callable(given) else (given,)


@dataclass(frozen=True, slots=True)
class Upstream:
    """One or several united streams, as the next operator sees them.

    Args:
        inputs: Their names, see ports.stream_name.
        schema: The schema of their tuples.
        keys: Fields that key the operator's state.
        operators: The operators declared so far, by name.
        compiler: Makes operator functions of Python functions.
    """

    inputs: tuple[str, ...]
    schema: Schema
    keys: tuple[str, ...]
    operators: Mapping[str, OperatorSpec]
    compiler: FunctionCompiler

    @property
    def called(self) -> str:
        """Their names, for messages."""
        return ", ".join(self.inputs)

    @property
    def event_time(self) -> TimeInfo | None:
        """Their event time; None: they have none, or several."""
        return event_time_of(self.operators, self.inputs)

    def keyed(self, given: tuple[object, ...]) -> Upstream:
        """Return the same streams with keys: names of fields, or functions that return fields of their tuple.

        Raises:
            GraphError: No field, or an unknown one.
        """
        with declaring(self.called, caller_location()):
            if not given:
                raise GraphError(
                    "key_by needs a field", hint=self.schema.suggestion(""), code=ErrorCode.MISSING_ARGUMENT
                )
            fields: tuple[Any, ...] = tuple(name for one in given for name in _chosen(one, self.schema.names))
            for name in fields:
                if name not in self.schema.names:
                    raise GraphError(
                        f"key_by({shown(name)}): {self.schema.name} has no such field",
                        hint=self.schema.suggestion(name),
                        code=ErrorCode.UNKNOWN_FIELD,
                    )
                form = plain_form(self.schema.field(name).format)
                if not form.kind.is_key:
                    raise GraphError(
                        f"key_by({shown(name)}): field '{name}' of {self.schema.name} is {form.shown}, not a key",
                        hint="Map what distinguishes the keys to a field of its own, such as a str or a number",
                        code=ErrorCode.WRONG_FIELD_TYPE,
                    )
            if len(set(fields)) < len(fields):
                raise GraphError(
                    f"key_by{fields!r} names a field twice", hint="Name each field once", code=ErrorCode.DUPLICATE_FIELD
                )
        return replace(self, keys=fields)

    def behind(self, spec: OperatorSpec, keys: tuple[str, ...] = ()) -> Upstream:
        """Return the first output stream of an operator that is declared as well."""
        operators = {**self.operators, spec.name: spec}
        return Upstream(spec.streams[:1], spec.output_schema or self.schema, keys, operators, self.compiler)

    def operator(
        self,
        name: str,
        body: OperatorBody,
        location: str,
        outputs: tuple[OutputPort, ...],
        *,
        keys: tuple[str, ...] = (),
        others: tuple[InputPort, ...] = (),
        ttl: TimeToLive | None = None,
    ) -> OperatorSpec:
        """Make an operator with these streams at its first port, and `others` at further ones."""
        state_kind = body.state_kind(keys)
        inputs = (InputPort(IN, self.schema, self.inputs, keys), *others)
        known = state_kind is not StateKind.STATEFUL and body.lane.needs_python
        remembers = self.compiler.remembered(body) if known else ()
        return OperatorSpec(name, inputs, outputs, state_kind, body, location, ttl=ttl, remembers=remembers)

    def time_to_live(
        self, ttl: object, lacks: str | None, *, clock: bool = False, changes: str = ""
    ) -> TimeToLive | None:
        """Check a user's ttl=; None if it isn't set.

        Args:
            ttl: Seconds, a timedelta, or a Ttl.
            lacks: What the operator lacks to have a time to live; None: nothing.
            clock: Whether it follows the clock although there is an event time.
            changes: Why a time since the last change has no meaning; empty: it has one.

        Raises:
            GraphError: The operator lacks something, ttl isn't a time above 0, or since='change' has no meaning.
        """
        if ttl is None:
            return None
        if lacks is not None:
            raise GraphError(
                f"ttl={shown(ttl)} without {lacks}",
                hint=f"Pass {lacks} too, or leave ttl= out",
                code=ErrorCode.MISSING_ARGUMENT,
            )
        since = ttl.since if isinstance(ttl, Ttl) else "last"
        if since not in get_args(Since):
            raise GraphError(
                f"since={shown(since)} of ttl= is invalid",
                hint="Choose 'last', 'first' or 'change'",
                code=ErrorCode.UNKNOWN_CHOICE,
            )
        ttl = ttl.seconds if isinstance(ttl, Ttl) else ttl
        time = None if clock else self.event_time
        if changes and since == "change":
            raise GraphError(
                f"{changes}, so since='change' has no meaning",
                hint="Use since='last', or 'first'",
                code=ErrorCode.UNSUPPORTED_TTL,
            )
        if time is not None:
            return TimeToLive(time.ticks(ttl, "ttl"), time, since)
        ticks = round(seconds_of(ttl, "ttl") * TICKS_PER_SECOND[_CLOCK_UNIT])
        if not 1 <= ticks <= LONGEST_SPAN:
            longest = LONGEST_SPAN // TICKS_PER_SECOND[_CLOCK_UNIT]
            raise GraphError(
                f"ttl={shown(ttl)} is out of range",
                hint=f"Pass seconds, more than 0 and no more than {longest:,}, or a timedelta",
                code=ErrorCode.OUT_OF_RANGE,
            )
        return TimeToLive(ticks, None, since)
