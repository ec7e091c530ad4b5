"""`rel.compile_report`: the execution mode of a function, and its reason, before it is in a topology."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from rayelastic.compile.compiler import Compiler, is_cached
from rayelastic.compile.reading.bound import taken_apart
from rayelastic.compile.reasons import Reason, compiled_reason, text_of
from rayelastic.errors import ErrorCode, LaneError, SchemaError
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.requests import FunctionKind, FunctionRequest

Kind = Literal["map", "filter", "flat_map"]


@dataclass(frozen=True, slots=True)
class CompileReport:
    """The execution mode of a function.

    Args:
        function: Its name and location.
        lane: 'compiled', 'vectorised', 'python', or empty if no mode supports it.
        reason: The reason, with the line if there is one.
        input_schema: The schema of its input.
        output_schema: The schema of its output; None if unknown.
        was_cached: Whether its machine code was in the cache already.
        as_declared: Names of data outside the function, which is copied at declaration.
        refusal: The code and values of the reason why it isn't compiled; None if it is, or that wasn't tried.
    """

    function: str
    lane: str
    reason: str
    input_schema: Schema
    output_schema: Schema | None
    was_cached: bool = False
    as_declared: tuple[str, ...] = ()
    refusal: Reason | None = None

    def __str__(self) -> str:
        lines = [f"{self.function}: {self.lane or 'no'} lane: {self.reason}", f"  takes {self.input_schema}"]
        if self.output_schema is not None:
            lines.append(f"  returns {self.output_schema}")
        if self.lane == "compiled":
            lines.append(f"  machine code {'from the cache' if self.was_cached else 'made now'}")
        if self.as_declared:
            lines.append(f"  {', '.join(self.as_declared)}: as at declaration; later changes aren't seen")
        return "\n".join(lines)


def compile_report(
    fn: Callable[..., Any], schema: object = None, *, kind: Kind | None = None, state: Callable[[], Any] | None = None
) -> CompileReport:
    """Report the execution mode of a function and the reason, and compile it into the cache if possible.

    Args:
        fn: A function of a tuple, or of a tuple and its key's state.
        schema: The schema of its input, see Schema.of; by default the class that annotates its first parameter.
        kind: Its use; by default 'flat_map' for generators and 'map' for others.
        state: The state of a key, as for KeyedStream.map.

    Raises:
        SchemaError: No schema is passed and none annotated.

    >>> from typing import NamedTuple
    >>> class Trade(NamedTuple):
    ...     price: float
    ...     volume: int
    >>> def turnover(t: Trade):
    ...     return t.price * t.volume
    >>> report = compile_report(turnover)
    >>> report.lane, str(report.output_schema)
    ('compiled', 'Record(value: float64)')
    >>> def shown(t: Trade):
    ...     print(t.price)
    >>> compile_report(shown).lane
    'python'
    >>> "print isn't compiled" in compile_report(shown).reason
    True
    """
    taken, made_of = _schema_of(fn, schema), taken_apart(fn)
    chosen = FunctionKind(kind or ("flat_map" if made_of and inspect.isgeneratorfunction(made_of.function) else "map"))
    keys = () if state is None else taken.names[:1]
    name = getattr(fn, "__name__", type(fn).__name__)
    request = FunctionRequest(name, chosen, fn, taken, keys=keys, state=state)
    was_cached = is_cached(request)
    try:
        code = Compiler().compile(request)
    except LaneError as error:
        return CompileReport(_shown(fn), "", error.problem, taken, None)
    except SchemaError as error:
        refusal = Reason.from_dict(error.details) if error.details else None
        lane = "python" if error.code is ErrorCode.NO_SCHEMA else ""
        reason = error.problem if refusal is None else f"not compiled: {text_of(refusal)}"
        return CompileReport(_shown(fn), lane, reason, taken, None, refusal=refusal)
    is_compiled = code.machine is not None
    reason = compiled_reason(()) if is_compiled else code.reason
    refusal = Reason.from_dict(code.refusal) if code.refusal else None
    lane, output = code.lane.value, code.output_schema
    return CompileReport(_shown(fn), lane, reason, taken, output, was_cached, code.frozen, refusal)


def _schema_of(fn: Callable[..., Any], schema: object) -> Schema:
    if schema is not None:
        return Schema.of(schema)
    try:
        first = next(iter(inspect.signature(fn).parameters), "")
        declared = typing.get_type_hints(fn).get(first)
    except (NameError, TypeError, ValueError):
        declared = None
    if declared is None:
        raise SchemaError(
            "the function's input schema is unknown",
            hint="Pass schema=, or annotate its parameter with a NamedTuple class",
            code=ErrorCode.NO_SCHEMA,
        )
    return Schema.of(declared)


def _shown(fn: Any) -> str:
    made_of = taken_apart(fn)
    code = None if made_of is None else made_of.function.__code__
    name = getattr(fn, "__name__", type(fn).__name__)
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code else name
