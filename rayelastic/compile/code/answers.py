"""Python's answer for a tuple that compiled code refuses: what the user's function gives, if the output can hold it.

Not for functions with state of keys: compiled code may have changed the state before it refused. Not where something
outside the function isn't as it was at declaration any more: machine code goes by what was then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from rayelastic.compile.code.operator_code import OperatorCode
from rayelastic.compile.reading.identity import frozen_digest
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import OperatorKind

__all__ = ["answers", "inexact", "items_of"]

Answer = Sequence[Any] | bool | None


def answers(code: OperatorCode) -> Callable[[tuple[Any, ...]], Answer]:
    """What the engine asks: of a tuple gives the list of what it becomes, of a filter whether it passes; or None.

    Args:
        code: in the compiled lane, without state.
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
        if code.kind is OperatorKind.FILTER:
            return bool(items[0])
        return None if any(inexact(code.output_schema, item) is not None for item in items) else items

    return answer


def items_of(code: OperatorCode, arguments: list[Any]) -> list[Any]:
    """What the user's function gives, as a list."""
    result = code.function(*arguments)
    if code.kind is OperatorKind.FLAT_MAP:
        return list(result) if result is not None else []
    return [result]


def inexact(schema: Schema, item: Any) -> str | None:
    """Return the field that would hold another number than the function gave, 2**53 + 1 in a float; None if none would.

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
    """Whether something outside a function isn't as it was when the function was declared."""

    def __init__(self, code: OperatorCode) -> None:
        self._code = code

    def __call__(self) -> bool:
        return bool(self._code.frozen) and frozen_digest(self._code.function) != self._code.frozen_digest
