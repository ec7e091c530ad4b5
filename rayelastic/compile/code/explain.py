"""Explains why a compiled function failed: runs the user's Python function on that tuple (findings section 4)."""

from __future__ import annotations

import numbers
import traceback
from dataclasses import dataclass
from typing import Any

from rayelastic.compile.code.answers import Changed, inexact, items_of
from rayelastic.compile.code.operator_code import OperatorCode
from rayelastic.compile.code.state import MutableState
from rayelastic.graph.records.schema import Field, Schema
from rayelastic.graph.spec.requests import FunctionKind

SHOWN = 80  # characters of a value
_REFUSED = (
    "its machine code rejected what Python allows, such as an intermediate number beyond 64 bits, an int and a float "
    "in one variable, or a lone surrogate"
)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a compiled function failed on one tuple.

    Args:
        message: One sentence.
        exception: The user's own exception; None if the Python function doesn't raise for that tuple.
        traceback: Its traceback as text, with the lines of the user's file.
    """

    message: str
    exception: BaseException | None
    traceback: str


def explain(code: OperatorCode, record: tuple[Any, ...], state: tuple[Any, ...] | None = None) -> Explanation:
    """Run the function on one tuple and a copy of its key's state; see `LoadedFunction.explain`."""
    arguments: list[Any] = [_as_tuple(code.input_schema, record)]
    if code.state_schema is not None and code.state is not None:
        values = tuple(code.state()) if state is None else state
        arguments.append(MutableState(**dict(zip(code.state_schema.names, values, strict=True))))
    try:
        items = items_of(code, arguments)
    except Exception as error:
        shown = "".join(traceback.format_exception(_without_this_package(error)))
        reason = "".join(traceback.format_exception_only(error)).strip()
        return Explanation(reason, error, shown)
    return Explanation(_difference(code, items), None, "")


def _as_tuple(schema: Schema, record: tuple[Any, ...]) -> Any:
    made: Any = schema.tuple_type
    return made._make(record)


def _without_this_package(error: BaseException) -> BaseException:
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename in (__file__, items_of.__code__.co_filename):
        frames = frames.tb_next
    return error.with_traceback(frames)


def _difference(code: OperatorCode, items: list[Any]) -> str:
    """Describe what can make compiled code fail where Python doesn't."""
    if code.kind is not FunctionKind.FILTER:
        for item in items:
            problem = _problem(code.output_schema, item)
            if problem:
                return problem
    if code.state is not None:
        return (
            f"{_REFUSED}. Python's answer can't be taken, because the state of the tuple's key may have changed since. "
            "Use lane='python'"
        )
    if Changed(code)():
        return (
            f"{_REFUSED}. Python's answer can't be taken: {', '.join(code.frozen)} may not be as at declaration "
            "any more. Use lane='python'"
        )
    return f"{_REFUSED}. Use lane='python'"


def _problem(schema: Schema, item: Any) -> str:
    """Describe why an output record can't hold Python's result; empty if it can."""
    values = schema.values(item)
    if len(values) != len(schema.fields):
        return f"it gave {len(values)} values where {schema} has {len(schema.fields)} fields"
    for field, value in zip(schema.fields, values, strict=True):
        if value is None:
            if not field.nullable:
                return f"it gave None for '{field.name}' of {schema.name}, which is not nullable"
        elif isinstance(value, str) and not _is_encodable(value):
            return f"it gave {_shown(value)} for '{field.name}', which has a lone surrogate and can't be UTF-8"
        elif _is_too_big(field, value) or not _is_kind(field, value):
            return f"it gave {_shown(value)} for '{field.name}' of {schema.name}, which is {field.type.value}"
    name = inexact(schema, item)
    if name is not None:
        value = dict(zip(schema.names, values, strict=True))[name]
        return (
            f"it gave {_shown(value)} for '{name}' of {schema.name}, which is a float and would hold another "
            "number: return float(...), or declare the field as int"
        )
    return ""


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # more digits than Python prints
        return "an int of thousands of digits"
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_kind(field: Field, value: object) -> bool:
    if field.type.is_integer:
        return isinstance(value, numbers.Integral)
    if field.type.is_float:
        return isinstance(value, numbers.Real)
    return True


def _is_too_big(field: Field, value: object) -> bool:
    if not field.type.is_integer or not isinstance(value, numbers.Integral):
        return False
    bits = 8 * field.type.size
    low, high = (0, 2**bits) if field.type.value.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    return not low <= int(value) < high
