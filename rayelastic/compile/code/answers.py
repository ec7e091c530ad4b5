"""Python's result for a tuple that compiled code rejects: the user's function runs, if the output can hold its result.

Not for functions with keyed state: compiled code may have changed the state before it rejected the tuple. Not if data
outside the function has changed since the declaration, because machine code uses the original.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from rayelastic.compile.code.operator_code import OperatorCode
from rayelastic.compile.reading.identity import frozen_digest
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.requests import FunctionKind

Answer = Sequence[Any] | bool | None


def answers(code: OperatorCode) -> Callable[[tuple[Any, ...]], Answer]:
    """Return a function for the engine: a tuple to the list of its results, of a filter whether it passes; or None.

    Args:
        code: A compiled function without state.
    """
    as_tuple: Any = code.input_schema.tuple_type
    changed = Changed(code)

    def answer(record: tuple[Any, ...]) -> Answer:
        try:
            items = items_of(code, [as_tuple._make(record)])
        except Exception:
            return None
        if changed():
            return None
        if code.kind is FunctionKind.FILTER:
            return bool(items[0])
        return None if any(inexact(code.output_schema, item) is not None for item in items) else items

    return answer


def items_of(code: OperatorCode, arguments: list[Any]) -> list[Any]:
    """Return what the user's function emits, as a list."""
    result = code.function(*arguments)
    if code.kind is FunctionKind.FLAT_MAP:
        return list(result) if result is not None else []
    return [result]


def inexact(schema: Schema, item: Any) -> str | None:
    """Return a field that would change the function's result, such as 2**53 + 1 in a float; None if none would.

    >>> inexact(Schema.of(float), 2**53 + 1), inexact(Schema.of(float), 2**53)
    ('value', None)
    """
    for field, value in zip(schema.fields, schema.values(item), strict=False):
        if field.type.is_float and isinstance(value, int) and not _holds(value):
            return field.name
    return None


def _holds(value: int) -> bool:
    try:
        real = float(value)
    except OverflowError:
        return False
    return math.isfinite(real) and int(real) == value


class Changed:
    """Whether something outside a function has changed since the function was declared."""

    def __init__(self, code: OperatorCode) -> None:
        self._code = code

    def __call__(self) -> bool:
        """Compare what it froze with what was frozen."""
        return bool(self._code.frozen) and frozen_digest(self._code.function) != self._code.frozen_digest
