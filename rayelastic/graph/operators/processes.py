"""`process`: a user's class that is called with the tuples of each key, and by the timers that it sets.

Knows no threads, PEs, clocks or native code.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from rayelastic.errors import ErrorCode, GraphError, LaneError
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.records.shown import check_flag
from rayelastic.graph.records.time_info import Lifetime, TimeInfo, TimeToLive
from rayelastic.graph.records.time_values import TimeValues
from rayelastic.graph.spec.concurrency import is_async
from rayelastic.graph.spec.declaration import NewOperator, binds, check_state, lane_of
from rayelastic.graph.spec.operator_spec import PICKLED, Lane, OperatorBody, OperatorSpec, StateKind, fields_form
from rayelastic.graph.spec.ports import LATE, OUT, OutputPort
from rayelastic.graph.spec.requests import CompiledProcess, ProcessRequest
from rayelastic.graph.spec.upstream import Upstream
from rayelastic.graph.spec.user_objects import LIFE, check_object

METHODS: Mapping[str, str] = {  # and their arguments
    "on_tuple": "t, state, out",
    "on_time": "time, state, out",
    "on_end": "state, out",
}


@dataclass(frozen=True, slots=True)
class KeyedProcess(OperatorBody):
    """What a `process` operator runs.

    Args:
        instance: An object of the user's class.
        state: Makes the state of a key.
        input_schema: The schema of its input.
        keys: The key fields.
        time: The event time of its timers; None: processing time.
        code: Its compiled methods; None: they run in Python.
        why: The reason for the execution mode.
        refusal: The code and values of why it isn't compiled, if that was tried.
        what: What the operator is, as text; the name of its class by default.
        ttl: The time without a tuple after which it drops a key.
    """

    instance: Any
    state: Callable[[], Any]
    input_schema: Schema
    keys: tuple[str, ...]
    time: TimeInfo | None
    code: CompiledProcess | None = None
    why: str = ""
    refusal: Mapping[str, Any] | None = None
    what: str = ""
    ttl: TimeToLive | None = None
    operator_kind = "process"
    object_field = "instance"
    runs_user_code = True

    @property
    def lane(self) -> Lane:
        """The execution mode."""
        return Lane.PYTHON if self.code is None else Lane.COMPILED

    @property
    def reason(self) -> str:
        """Describe the operator for `explain()`."""
        of = "the clock" if self.time is None else f"the event time, {self.time.field}"
        what = self.what or f"an object of class {type(self.instance).__name__}"
        ttl = "" if self.ttl is None else f", keys forgotten after {self.ttl_ticks} {self.times.time.unit}"
        return f"{what}, timers by {of}{ttl}; {self.why}".removesuffix("; ")

    @property
    def state_schema(self) -> Schema | None:
        """The schema of a key's state, if it has a fixed layout."""
        return None if self.code is None else self.code.state_schema

    @property
    def uses_clock(self) -> bool:
        """Whether its timers follow the clock."""
        return self.time is None

    def state_kind(self, keys: tuple[str, ...]) -> StateKind:  # noqa: ARG002
        """Return PARTITIONED: the whole stream counts as one key."""
        return StateKind.PARTITIONED

    def keeps_keys(self, keys: tuple[str, ...]) -> bool:  # noqa: ARG002
        """Return False: it may emit anything."""
        return False

    def kept_form(self, spec: OperatorSpec) -> str:
        """Describe its state."""
        state = PICKLED if self.state_schema is None else f"record ({fields_form(self.state_schema)})"
        return f"{spec.key_form}, {state}"

    @property
    def ttl_ticks(self) -> int:
        """The time to live in ticks, 0 for none; one more in processing time, because a tick begins within a tick."""
        if self.ttl is None:
            return 0
        return self.ttl.ticks if self.time is not None else self.ttl.ticks * self.times.ticks_per_second // 10**9 + 1

    @property
    def times(self) -> TimeValues:
        """How its times are represented."""
        return TimeValues.of(self.time, self.input_schema)


def process(
    up: Upstream,
    name: str,
    cls: object,
    schema: object,
    state: Callable[[], Any] | None,
    ttl: Lifetime | None,
    clock: object,
    lane: object,
) -> OperatorSpec:
    """See ``KeyedStream.process``."""
    with NewOperator(name, up.operators) as location:
        check_flag("clock", clock)
        instance = instance_of(cls)
        _check_methods(type(instance))
        check_object(instance, LIFE)
        if state is not None:
            check_state(state)
        time = None if clock else up.event_time
        late = (OutputPort(LATE, up.schema, optional=True),) if time is not None else ()
        gives = Schema.of(schema)
        lives = up.time_to_live(ttl, None, clock=time is None, changes="a method may change its state at any time")
        request = ProcessRequest(name, instance, up.schema, gives, up.keys, state or dict, time, location)
        return up.operator(
            name,
            replace(_in_lane(up, request, lane_of(lane)), ttl=lives),
            location,
            (OutputPort(OUT, gives), *late),
            keys=up.keys,
        )


def _in_lane(up: Upstream, request: ProcessRequest, lane: Literal["auto"] | Lane) -> KeyedProcess:
    body = KeyedProcess(request.instance, request.state, up.schema, up.keys, request.time)
    if lane is Lane.PYTHON:
        return replace(body, why="asked for")
    if lane is Lane.VECTORISED:
        raise LaneError("it can't be vectorised", hint="Use lane='python'", code=ErrorCode.NOT_VECTORISED)
    try:
        return replace(body, code=up.compiler.compile_process(request), why="compiled to machine code")
    except LaneError as error:
        if lane != "auto":
            raise
        return replace(body, why=error.problem, refusal=error.details)


def instance_of(cls: object) -> object:
    """Return the user's object, or make one of the user's class."""
    if not isinstance(cls, type):
        return cls
    try:
        return cls()
    except TypeError as error:
        raise GraphError(
            f"an object of class {cls.__name__} can't be created: {error}",
            hint=f"Pass the object itself: {cls.__name__}(...)",
            code=ErrorCode.FUNCTION_RAISED,
        ) from None


def _check_methods(cls: type) -> None:
    for name in vars(cls):
        if name.startswith("on_") and name not in METHODS:
            near = difflib.get_close_matches(name, METHODS, 1)
            hint = f"Did you mean {near[0]}?" if near else f"It may have {', '.join(METHODS)}"
            raise GraphError(
                f"class {cls.__name__} has a method {name} that the runtime doesn't call",
                hint=hint,
                code=ErrorCode.UNKNOWN_METHOD,
            )
    if not hasattr(cls, "on_tuple"):
        raise GraphError(
            f"class {cls.__name__} has no method on_tuple",
            hint="Write def on_tuple(self, t, state, out)",
            code=ErrorCode.MISSING_METHOD,
        )
    for name, takes in METHODS.items():
        method = getattr(cls, name, None)
        if method is None:
            continue
        if is_async(method) or inspect.isgeneratorfunction(method):
            raise GraphError(
                f"{name} is async, or yields",
                hint="Make it a plain method that calls out.give(tuple)",
                code=ErrorCode.ASYNC_FUNCTION,
            )
        if not binds(method, (None, *takes.split(", "))):
            raise GraphError(
                f"{name} is called as {name}({takes}), but takes {inspect.signature(method)}",
                hint=f"Write def {name}(self, {takes})",
                code=ErrorCode.WRONG_PARAMETERS,
            )
