"""Why a compiled function failed: the user's Python function is run again on that one tuple (findings section 4)."""

from __future__ import annotations

import traceback
from typing import Any

from rayelastic.compile.code import Explanation, OperatorCode
from rayelastic.compile.state import MutableState
from rayelastic.graph.operator_spec import OperatorKind
from rayelastic.graph.schema import Field, Schema

__all__ = ["explain"]


def explain(code: OperatorCode, record: tuple[Any, ...], state: tuple[Any, ...] | None = None) -> Explanation:
    """Runs the function on one tuple and a copy of its key's state; see `LoadedFunction.explain`."""
    arguments: list[Any] = [_as_tuple(code.input_schema, record)]
    if code.state_schema is not None and code.state is not None:
        values = tuple(code.state()) if state is None else state
        arguments.append(MutableState(**dict(zip(code.state_schema.names, values, strict=True))))
    try:
        items = _items(code, arguments)
    except Exception as error:
        shown = "".join(traceback.format_exception(_without_this_file(error)))
        reason = "".join(traceback.format_exception_only(error)).strip()
        return Explanation(reason, error, shown)
    return Explanation(_difference(code, arguments, items), None, "")


def _as_tuple(schema: Schema, record: tuple[Any, ...]) -> Any:
    made: Any = schema.tuple_type
    return made._make(record)


def _items(code: OperatorCode, arguments: list[Any]) -> list[Any]:
    result = code.function(*arguments)
    if code.kind is OperatorKind.FLAT_MAP:
        return list(result) if result is not None else []
    return [result]


def _without_this_file(error: BaseException) -> BaseException:
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    return error.with_traceback(frames)


def _difference(code: OperatorCode, arguments: list[Any], items: list[Any]) -> str:
    """What can make compiled code fail where Python doesn't."""
    for field, value in zip(code.input_schema.fields, arguments[0], strict=True):
        if isinstance(value, int) and value >= 2**63:
            return f"'{field.name}' is {value}: compiled integers are signed, of 64 bits. Use lane='python'"
    if code.kind is not OperatorKind.FILTER:
        for item in items:
            values = item if isinstance(item, tuple) else (item,)
            for field, value in zip(code.output_schema.fields, values, strict=False):
                if value is None and not field.nullable:
                    return f"it gave None for '{field.name}' of {code.output_schema.name}, which is not nullable"
                if _is_too_big(field, value):
                    return (
                        f"it gave {value} for '{field.name}' of {code.output_schema.name}, which is {field.type.value}"
                    )
    return (
        "the compiled function raised, the Python function doesn't for the same tuple: compiled integers have 64 bits, "
        "and state may have changed since. Use lane='python' if it needs more"
    )


def _is_too_big(field: Field, value: object) -> bool:
    if not field.type.is_integer or not isinstance(value, int):
        return False
    bits = 8 * field.type.size
    low, high = (0, 2**bits) if field.type.value.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    return not low <= value < high
