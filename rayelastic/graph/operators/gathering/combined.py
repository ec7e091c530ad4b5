"""`combine`: a user's own aggregate, of keys and of windows; native where its methods compile, else in Python.

Knows no threads, PEs, clocks or native code.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from rayelastic.errors import ErrorCode, GraphError, LaneError
from rayelastic.graph.operators.aggregates import Emit, check_updates
from rayelastic.graph.operators.aggregation import Aggregation
from rayelastic.graph.operators.functions import function_operator
from rayelastic.graph.operators.gathering.declared import (
    When,
    checked,
    declared,
    end_of,
    shown_of,
    why_python,
    window_schema,
)
from rayelastic.graph.operators.processes import KeyedProcess, instance_of
from rayelastic.graph.operators.window_function import Accumulator, Early, Shown
from rayelastic.graph.operators.windows import Window, Windowing, WindowKind, compiled_assigner
from rayelastic.graph.records.mutable_state import MutableState
from rayelastic.graph.records.schema import Schema, laid_out
from rayelastic.graph.records.shown import counted, shown
from rayelastic.graph.records.time_info import Lifetime
from rayelastic.graph.spec.concurrency import is_async
from rayelastic.graph.spec.declaration import NewOperator, binds, lane_of
from rayelastic.graph.spec.operator_spec import Lane, OperatorSpec
from rayelastic.graph.spec.ports import LATE, OUT, OutputPort
from rayelastic.graph.spec.requests import AggregateRequest, CompiledAggregate, FunctionKind, FunctionRequest
from rayelastic.graph.spec.upstream import Upstream
from rayelastic.graph.spec.user_objects import check_object

_METHODS = {"init": "", "add": "t, state", "result": "state", "merge": "other, state"}
_OPTIONAL = ("merge",)
_UNCHANGING = (bool, int, float, complex, str, bytes, tuple, frozenset)
_NO_MERGE = "it has no method merge, which windows need"


def combine(
    up: Upstream, name: str, own: object, schema: object, emit: str | Emit, ttl: Lifetime | None, lane: object
) -> OperatorSpec:
    """See ``KeyedStream.combine``."""
    with NewOperator(name, up.operators) as location:
        request = _request(up, name, own, schema, location)
        when = Emit(emit)
        check_updates(ttl, when)
        code = _code(up, request, lane, "")
        gives = _keyed(up, name, _results(up, request, code))
        outputs = (OutputPort(OUT, gives),)
        if not isinstance(code, LaneError):
            lives = up.time_to_live(ttl, None, changes="each tuple changes an aggregate")
            body = Aggregation((), when, code)
            return up.operator(name, body, location, outputs, keys=up.keys, ttl=lives)
        combined = Combined(request.instance, Shown(), len(gives.fields) - len(up.keys))
        if when is Emit.FINAL:
            what = f"an object of class {type(request.instance).__name__}"
            ends = KeyedProcess(_AtEnd(combined), combined.new, up.schema, up.keys, None, what=what)
            ends = replace(ends, why=code.problem, refusal=code.details or None)
            return up.operator(name, ends, location, outputs, keys=up.keys)
    fields = tuple(up.schema.names.index(field) for field in up.keys)
    each = _Each(combined, fields)
    return function_operator(up, FunctionKind.MAP, name, each, state=combined.new, ttl=ttl, schema=gives, lane="python")


def window_combine(
    up: Upstream, window: Window, name: str, own: object, schema: object, when: When, lane: object
) -> OperatorSpec:
    """See ``WindowedStream.combine``."""
    with NewOperator(name, up.operators) as location:
        request = _request(up, name, own, schema, location)
        code = _code(up, request, lane, _not_native(window, when, request.instance))
        columns = [(field.name, field.format, field.nullable) for field in _results(up, request, code).fields]
        if not isinstance(code, LaneError):
            if window.kind is WindowKind.COUNT:
                gives = _keyed(up, name, laid_out(name, columns))
            else:
                gives = window_schema(up, window, name, shown_of(window, Early()), columns)
            late = (OutputPort(LATE, up.schema, optional=True),) if window.time is not None else ()
            outputs = (OutputPort(OUT, gives), *late)
            body = Windowing(window, (), code, compiled_assigner(up, window, name, location), end=end_of(up, gives))
            return up.operator(name, body, location, outputs, keys=up.keys, ttl=window.ttl)
        if window.kind is WindowKind.COUNT or not up.keys:
            raise LaneError(
                f"windows by count, and of the whole stream, take no aggregate in Python, and it runs there: {code}",
                details=code.details,
                hint="Change that, or write .key_by(...) before, and windows by time",
                code=ErrorCode.NOT_COMPILED,
            )
        early = checked(up, window, when)
        shown_too = shown_of(window, early)
        gives = window_schema(up, window, name, shown_too, columns)
        return declared(
            up, window, name, Combined(request.instance, shown_too, len(columns)), early, gives, rejected=code
        )


@dataclass(frozen=True, slots=True)
class Combined(Accumulator):
    """Runs a user's aggregate in Python.

    Args:
        instance: The user's object.
        shown: The fields about the window in a result.
        columns: The number of columns of a result.
    """

    instance: Any
    shown: Shown
    columns: int

    def new(self) -> Any:
        """Return the initial state; for a NamedTuple, a mutable object with the same fields."""
        first = self.instance.init()
        return MutableState(**first._asdict()) if _is_record(first) else first

    def add(self, state: Any, t: Any) -> Any:
        """Add a tuple to the state."""
        if self._called(self.instance.add, t, state) is not None:
            raise TypeError(f"{type(self.instance).__name__}.add returns something: it has to change the state instead")
        return state

    def until_argument(self, state: Any, t: Any) -> Any:  # noqa: ARG002
        """Return the result."""
        return self._called(self.instance.result, state)

    def rows(self, state: Any) -> Iterable[Iterable[Any]]:
        """Return the result as the fields of one tuple."""
        return (self.values(state),)

    def values(self, state: Any) -> tuple[Any, ...]:
        """Return the result as the fields of a tuple."""
        result = self._called(self.instance.result, state)
        values = result if isinstance(result, tuple) else (result,)
        if len(values) != self.columns:
            raise TypeError(
                f"{type(self.instance).__name__}.result returns {result!r}, and its schema has "
                f"{counted(self.columns, 'field')}: change one of both"
            )
        return values

    def _called(self, method: Callable[..., Any], *arguments: Any) -> Any:
        """Call a method; errors name it."""
        try:
            return method(*arguments)
        except Exception as error:
            error.add_note(f"in {method.__name__} of {type(self.instance).__name__}")
            raise


@dataclass(frozen=True, slots=True)
class _AtEnd:
    """Emits the result of each key when the input has ended."""

    made: Combined

    def on_tuple(self, t: Any, state: Any, out: Any) -> None:  # noqa: ARG002
        """Add a tuple to the state."""
        self.made.add(state, t)

    def on_end(self, state: Any, out: Any) -> None:
        """Emit the result."""
        out.give((*out.key, *self.made.values(state)))


@dataclass(frozen=True, slots=True)
class _Each:
    """Emits the result after each tuple."""

    made: Combined
    fields: tuple[int, ...]  # positions of the keys

    def __call__(self, t: Any, s: Any) -> tuple[Any, ...]:
        self.made.add(s, t)
        return (*(t[field] for field in self.fields), *self.made.values(s))


def _is_record(value: object) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _request(up: Upstream, name: str, own: object, schema: object, location: str) -> AggregateRequest:
    instance: Any = instance_of(own)
    check_object(instance)
    for called, takes in _METHODS.items():
        method = getattr(instance, called, None)
        if method is None and called in _OPTIONAL:
            continue
        if not callable(method):
            raise GraphError(
                f"class {type(instance).__name__} has no method {called}",
                hint=f"Write def {called}(self{', ' if takes else ''}{takes})",
                code=ErrorCode.MISSING_METHOD,
            )
        if is_async(method) or inspect.isgeneratorfunction(method):
            raise GraphError(
                f"{called} is async, or yields", hint="Make it a plain method", code=ErrorCode.ASYNC_FUNCTION
            )
        if not binds(method, (None,) * len(takes.split())):
            raise GraphError(
                f"{called} is called as {called}({takes}), but takes {inspect.signature(method)}",
                hint=f"Write def {called}(self{', ' if takes else ''}{takes})",
                code=ErrorCode.WRONG_PARAMETERS,
            )
    output = None if schema is None else Schema.of(schema)
    return AggregateRequest(name, instance, _first(instance), up.schema, output, location)


def _first(instance: Any) -> Any:
    """Return the initial state; reject what can't be a state."""
    cls = type(instance).__name__
    hint = "Pass what add can change, new each time: a NamedTuple, an object, a list or a dict"
    try:
        first, second = instance.init(), instance.init()
    except Exception as error:
        raise GraphError(
            f"init of {cls} raises {type(error).__name__}: {error}", hint=hint, code=ErrorCode.FUNCTION_RAISED
        ) from error
    if first is None or (isinstance(first, _UNCHANGING) and not _is_record(first)):
        raise GraphError(
            f"init of {cls} returns {shown(first)}, which add can't change", hint=hint, code=ErrorCode.BAD_RETURN
        )
    if first is second and not _is_record(first):
        raise GraphError(
            f"init of {cls} returns the same {type(first).__name__} for each key", hint=hint, code=ErrorCode.BAD_RETURN
        )
    return first


def _code(up: Upstream, request: AggregateRequest, lane: object, refusal: str) -> CompiledAggregate | LaneError:
    """Return the compiled methods, or why they run in Python."""
    wanted = lane_of(lane)
    if wanted is Lane.PYTHON:
        return LaneError("asked for")
    if wanted is Lane.VECTORISED:
        raise LaneError("it can't be vectorised", hint="Use lane='python'", code=ErrorCode.NOT_VECTORISED)
    try:
        if refusal:
            hint = "Change that, or use lane='python'"
            raise LaneError(f"it can't be compiled: {refusal}", hint=hint, code=ErrorCode.NOT_COMPILED)
        return up.compiler.compile_aggregate(request)
    except LaneError as error:
        if wanted != "auto":
            raise
        return error


def _not_native(window: Window, when: When, instance: object) -> str:
    return why_python(window, when) or ("" if hasattr(instance, "merge") else _NO_MERGE)


def _results(up: Upstream, request: AggregateRequest, code: CompiledAggregate | LaneError) -> Schema:
    if not isinstance(code, LaneError):
        return code.output_schema
    result: Callable[..., Any] = request.instance.result
    asked = FunctionRequest(request.operator, FunctionKind.MAP, result, up.schema, request.output, lane=Lane.PYTHON)
    return up.compiler.compile(asked).output_schema


def _keyed(up: Upstream, name: str, made: Schema) -> Schema:
    twice = next((field for field in up.keys if made.find(field) is not None), None)
    if twice is not None:
        raise GraphError(
            f"both the result and the key have a field '{twice}'",
            hint="Rename one of them",
            code=ErrorCode.DUPLICATE_FIELD,
        )
    fields = [*map(up.schema.field, up.keys), *made.fields]
    return laid_out(name, [(field.name, field.format, field.nullable) for field in fields])
