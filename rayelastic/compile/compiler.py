"""Chooses the execution mode of a user's function, and prepares the function for it (architecture section 4).

`lane='auto'`: vectorised if its parameter is annotated with an array, batch or frame; else compiled; else Python,
always with the reason. An unsupported `lane=` is a LaneError.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from rayelastic.compile.aggregate_compiler import compile_aggregate
from rayelastic.compile.cache.code_cache import CacheEntry, CodeCache, key_of
from rayelastic.compile.cache.keys import code_inputs, refusal_inputs
from rayelastic.compile.cache.loader import host_target
from rayelastic.compile.cache.outputs import described_output, output_of
from rayelastic.compile.code.aggregate_code import AggregateCode
from rayelastic.compile.code.operator_code import MachineCode, OperatorCode, View
from rayelastic.compile.code.ports_code import PortsCode
from rayelastic.compile.code.process_code import ProcessCode
from rayelastic.compile.code.state import initial_record, is_record_class, state_factory
from rayelastic.compile.config import cache_directory, missing_package
from rayelastic.compile.effects.effects import first_change
from rayelastic.compile.effects.remembering import remembered_by
from rayelastic.compile.originals import replaced_member
from rayelastic.compile.ports_compiler import compile_operator
from rayelastic.compile.process_compiler import compile_process
from rayelastic.compile.reading.bound import taken_apart
from rayelastic.compile.reading.identity import Identity, frozen_digest
from rayelastic.compile.reading.methods.left_out import yielding
from rayelastic.compile.reading.methods.plain_values import of_value
from rayelastic.compile.reading.signatures import annotated_library, annotated_output, check_arguments, unknown_name
from rayelastic.compile.reading.syntax import NotRewrittenError, names_of, rewritten
from rayelastic.compile.reasons import NotCompiledError, compiled_reason, missing_schema, not_compiled, plain_reason
from rayelastic.compile.useless_results import check_results
from rayelastic.errors import ErrorCode, LaneError, SchemaError
from rayelastic.graph.records.schema import DataType, Schema
from rayelastic.graph.spec.concurrency import Concurrency
from rayelastic.graph.spec.operator_spec import Lane, OperatorBody
from rayelastic.graph.spec.requests import (
    AggregateRequest,
    FunctionKind,
    FunctionRequest,
    OperatorRequest,
    ProcessRequest,
)
from rayelastic.graph.spec.user_objects import LIFE, has_method
from rayelastic.reasons import Code, Reason

_VIEWS = {"numpy": View.NUMPY, "pyarrow": View.ARROW, "pandas": View.ARROW, "polars": View.ARROW}


class Compiler:
    """Makes operator functions of Python functions; implements the graph's FunctionCompiler.

    Args:
        cache: where machine code is kept; the user's cache folder if not given.

    >>> from rayelastic.graph.spec.requests import FunctionKind, FunctionRequest
    >>> trade = Schema.of({"price": float, "volume": int})
    >>> code = Compiler().compile(FunctionRequest("turnover", FunctionKind.MAP, lambda t: t.price * t.volume, trade))
    >>> code.lane.value, str(code.output_schema)
    ('compiled', 'Record(value: float64)')
    """

    def __init__(self, cache: CodeCache | None = None) -> None:
        self._cache = user_cache() if cache is None else cache

    def compile(self, request: FunctionRequest) -> OperatorCode:
        """Compile the function, or choose the mode that supports it.

        Raises:
            LaneError: The requested execution mode is unsupported.
            SchemaError: The function uses an unknown field, or its output is unknown.
        """
        with _naming(request):
            return self._compiled_of_record_or_value(request)

    def compile_operator(self, request: OperatorRequest) -> OperatorCode | PortsCode:
        """Choose the execution mode of an operator class.

        Raises:
            LaneError: The requested execution mode is unsupported.
            SchemaError: A compiled `invoke` uses an unknown field.
        """
        with _naming(request):
            return compile_operator(request, self.compile)

    def compile_process(self, request: ProcessRequest) -> ProcessCode:
        """Compile a class with timers.

        Raises:
            LaneError: It doesn't compile; `details` has the reason.
            SchemaError: A method uses an unknown field.
        """
        with _naming(request):
            return compile_process(request, self.compile)

    def compile_aggregate(self, request: AggregateRequest) -> AggregateCode:
        """Compile a user's aggregate.

        Raises:
            LaneError: It doesn't compile; `details` has the reason.
            SchemaError: A method uses an unknown field.
        """
        with _naming(request):
            return compile_aggregate(request, self.compile)

    def remembered(self, body: OperatorBody) -> tuple[str, ...]:
        """Name what the functions and objects of a body are known to change outside their state."""
        return remembered_by(body)

    def of_record(self, function: Callable[..., Any], schema: Schema, given: int) -> Callable[..., Any]:
        """Return a function of a record, for one that may be of the record's only value."""
        return of_value(function, schema, given) or function

    def _compiled_of_record_or_value(self, request: FunctionRequest) -> OperatorCode:
        """Compile a function of a record, or of the one value of a record: `line.split()`."""
        function = request.function
        if request.lane is not Lane.VECTORISED and not annotated_library(function):
            given, of_truth = 1 if request.state is None else 2, request.kind is FunctionKind.FILTER
            function = of_value(function, request.input_schema, given, of_truth=of_truth) or function
        if request.drops_none:
            function = yielding(function, request.function)
        return self._compiled_somehow(replace(request, function=function))

    def _compiled_somehow(self, request: FunctionRequest) -> OperatorCode:
        check_arguments(request.function, 1 if request.state is None else 2)
        check_results(request.function, request.kind, request.input_schema)
        if request.concurrent is not None:
            return _waiting(request, request.concurrent)
        library = annotated_library(request.function)
        if request.lane is Lane.VECTORISED or (request.lane == "auto" and library):
            return _vectorised(request, library)
        if request.lane is Lane.PYTHON:
            return _python(request, "asked for")
        if request.lane is Lane.COMPILED and library:
            raise LaneError(
                f"its parameter is annotated with {library}: it is vectorised, not compiled",
                hint="Write it for one tuple, or drop lane='compiled'",
            )
        try:
            if absent := missing_package():
                raise NotCompiledError(Code.NO_COMPILER(package=absent), lasting=False)
            if lives := next((name for name in LIFE if has_method(request.function, name)), None):
                raise NotCompiledError(Code.IN_EACH_PROCESS(method=lives))
            if replaced := replaced_member():
                raise NotCompiledError(Code.PATCHED(name=replaced), lasting=False)
            if request.sides:
                raise NotCompiledError(Code.SIDE_OUTPUT(name=request.sides[0]))
            return self._machine(request)
        except NotCompiledError as error:
            if request.lane is Lane.COMPILED:
                raise not_compiled(error.reason) from None
            return _python(request, f"not compiled: {error}", error.reason)

    def _machine(self, request: FunctionRequest) -> OperatorCode:
        state_schema, initial = _statelayout(request)
        machine, output = machine_code(request, state_schema, self._cache)
        frozen = tuple(sorted(Identity(request.function).frozen))
        return _code(
            request,
            Lane.COMPILED,
            compiled_reason(frozen),
            output,
            state_schema=state_schema,
            state_initial=initial,
            machine=machine,
            frozen=frozen,
            frozen_digest=frozen_digest(request.function) if frozen else None,
        )


@contextlib.contextmanager
def _naming(request: FunctionRequest | OperatorRequest | ProcessRequest | AggregateRequest) -> Iterator[None]:
    """Add the operator's name to errors."""
    try:
        if replaced := replaced_member(("builtins",)):
            raise LaneError(
                f"{replaced} was replaced, and declarations need Python's own",
                hint="Patch it after the declaration, or in the module that calls it",
                code=ErrorCode.PATCHED_FUNCTION,
            )
        yield
    except (LaneError, SchemaError) as error:
        raise error.at(request.operator, request.location) from None


@functools.cache
def user_cache() -> CodeCache:
    """Return the cache in the user's cache folder."""
    return CodeCache(cache_directory())


def _statelayout(request: FunctionRequest) -> tuple[Schema | None, bytes]:
    if request.state is None:
        return None, b""
    if not is_record_class(request.state):
        raise NotCompiledError(Code.STATE_CLASS())
    try:
        initial = request.state()
    except TypeError as error:
        hint = "Write a default for every field of its class"
        raise SchemaError(f"its state can't be created: {error}", hint=hint, code=ErrorCode.BAD_DEFAULT) from None
    try:
        schema = Schema.of(request.state)
        return schema, initial_record(schema, initial)
    except SchemaError as error:
        raise NotCompiledError(Code.STATE_LAYOUT(error=error.problem)) from None


def _python(request: FunctionRequest, reason: str, refusal: Reason | None = None) -> OperatorCode:
    output = _declared_output(request, reason, refusal)
    return _code(request, Lane.PYTHON, reason, output, refusal=None if refusal is None else refusal.as_dict())


def _code(request: FunctionRequest, lane: Lane, reason: str, output: Schema, **more: Any) -> OperatorCode:
    return OperatorCode(
        operator=request.operator,
        kind=request.kind,
        lane=lane,
        reason=reason,
        function=request.function,
        input_schema=request.input_schema,
        output_schema=output,
        keys=request.keys if request.state is not None else (),
        state=state_factory(request.state),
        location=request.location,
        **more,
    )


def _waiting(request: FunctionRequest, how: Concurrency) -> OperatorCode:
    if isinstance(request.lane, Lane) and request.lane is not Lane.PYTHON:
        hint = "Drop lane=, or concurrent= and async"
        raise LaneError(
            f"concurrent calls run in Python, not {request.lane.value}", hint=hint, code=ErrorCode.ASYNC_LANE
        )
    return replace(_python(request, how.shown), concurrent=how)


def _vectorised(request: FunctionRequest, library: str) -> OperatorCode:
    if not library:
        hint = "Annotate it with numpy.ndarray, pyarrow.RecordBatch, pandas.DataFrame or polars.DataFrame"
        problem = "it can't be vectorised: its parameter has no annotation of a library"
        raise LaneError(problem, hint=hint, code=ErrorCode.NOT_VECTORISED)
    if request.state is not None:
        hint = "Write it for one tuple and the state of its key"
        raise LaneError("a keyed function can't be vectorised", hint=hint, code=ErrorCode.NOT_VECTORISED)
    reason, output = f"its parameter is annotated with {library}", _declared_output(request, "a vectorised function")
    return _code(request, Lane.VECTORISED, reason, output, view=_VIEWS[library])


def _declared_output(request: FunctionRequest, reason: str, refusal: Reason | None = None) -> Schema:
    if request.kind is FunctionKind.FILTER:
        return request.input_schema
    batched = request.concurrent is not None and request.concurrent.max_batch > 0
    output = request.output or annotated_output(request.function, request.kind, batched=batched)
    if output is None and (missing := unknown_name(request.function)):
        raise SchemaError(
            f"its output schema is unknown: its annotations name '{missing}', which is unknown where it is defined",
            hint="Define that at the top of the module, or pass schema=",
            code=ErrorCode.BAD_ANNOTATION,
        )
    if output is None:
        raise SchemaError(
            f"its output schema is unknown, because it runs in Python ({reason})",
            hint=missing_schema(refusal),
            code=ErrorCode.NO_SCHEMA,
            details=None if refusal is None else refusal.as_dict(),
        )
    return output


# --- compiled functions ---------------------------------------------------------------------------------------------


def machine_code(request: FunctionRequest, state_schema: Schema | None, cache: CodeCache) -> tuple[MachineCode, Schema]:
    """Return machine code for this machine and its output schema, from the cache or compiled now.

    Raises:
        NotCompiledError: It doesn't compile, with the reason.
        SchemaError: A field is misspelt.
    """
    identity = _identity(request)
    inputs = code_inputs(request, state_schema, identity)
    key = key_of(inputs)
    entry = cache.get(key) if identity.known else None
    output = None if entry is None else output_of(entry, request, identity)
    if entry is None or output is None:
        refusal = refusal_inputs(inputs, request) if identity.known else b""
        entry, output = _compiled_once(request, state_schema, cache, refusal)
        if identity.known:
            cache.put(replace(entry, inputs=inputs))
        else:
            key = key_of(entry.image)
    return MachineCode(entry.entry, entry.image, entry.imports, host_target(), key, entry.in_place), output


def _compiled_once(
    request: FunctionRequest, state_schema: Schema | None, cache: CodeCache, refusal: bytes
) -> tuple[CacheEntry, Schema]:
    """Compile now, unless an earlier process cached that it fails; `refusal` is the key of that, or empty."""
    if refusal and (known := cache.get(key_of(refusal))) is not None:
        with contextlib.suppress(KeyError, ValueError):  # an entry of another release
            raise NotCompiledError(Reason.from_dict(json.loads(known.output)))
    try:
        return _compile_now(request, state_schema)
    except NotCompiledError as error:
        if refusal and error.lasting:
            cache.put(CacheEntry("", b"", (), False, json.dumps(error.reason.as_dict()), refusal))
        raise


def _identity(request: FunctionRequest) -> Identity:
    state: Any = request.state if is_record_class(request.state) else None
    identity = Identity(request.function, request.input_schema.tuple_type, state)
    if identity.is_too_large:
        raise NotCompiledError(Code.TOO_LARGE())
    return identity


_TIMES = (DataType.TIMESTAMP, DataType.DURATION, DataType.DATE32, DataType.DATE64)


def _compile_now(request: FunctionRequest, state_schema: Schema | None) -> tuple[CacheEntry, Schema]:
    from rayelastic.compile.lowering.compiler import PROVIDED, Plan, compile_function, flattened

    found = taken_apart(request.function, 1 if state_schema is None else 2)
    if found is None:
        raise NotCompiledError(Code.NOT_PYTHON(kind=type(request.function).__name__))
    user: Callable[..., Any] = found.function
    if changed := first_change(request.function, 1 if state_schema is None else 2):
        error = NotRewrittenError(Code.CHANGES_OUTSIDE, *changed[1:], name=changed[0])
        raise NotCompiledError(plain_reason(error, user))
    fields = [*request.input_schema.fields, *(state_schema.fields if state_schema else ())]
    nullable = frozenset(field.name for field in fields if field.nullable)
    identity = _identity(request)
    members = frozenset(identity.members)
    times = identity.times or any(field.type in _TIMES for field in fields)
    try:
        function = rewritten(
            user,
            PROVIDED,
            flat=request.kind is FunctionKind.FLAT_MAP,
            nullable=nullable,
            record=request.input_schema.tuple_type,
            bound=found.values,
            members=members,
            times=times,
            emits=request.kind is not FunctionKind.FILTER,
            output=request.output,
        )
    except NotRewrittenError as error:
        raise NotCompiledError(plain_reason(error, user)) from None
    names = names_of(function)
    if request.kind is FunctionKind.FLAT_MAP and not inspect.isgeneratorfunction(function):
        function = flattened(function, keyed=state_schema is not None)
    plan = Plan(function, request.kind, request.output, members, names, may_be_none=bool(nullable), times=times)
    try:
        made = compile_function(plan, request.input_schema, state_schema)
    except Exception as error:
        if plan.mistake is not None:
            raise _with_line(plan.mistake, error, user) from None
        passing = isinstance(error, MemoryError | OSError | ImportError | RecursionError)
        raise NotCompiledError(plain_reason(error, user, plan.problem), lasting=not passing) from None
    described = described_output(made.output, request)
    return CacheEntry(made.entry, made.image, made.imports, made.in_place, described), made.output


def _with_line(mistake: SchemaError, error: Exception, function: Callable[..., Any]) -> SchemaError:
    mistake.problem += f" ({plain_reason(error, function).values['where']})"
    return mistake


def is_cached(request: FunctionRequest) -> bool:
    """Return whether the machine code of a function that can be compiled is in the user's cache."""
    try:
        state_schema, _ = _statelayout(request)
    except NotCompiledError:
        return False
    identity = _identity(request)
    return identity.known and user_cache().get(key_of(code_inputs(request, state_schema, identity))) is not None
