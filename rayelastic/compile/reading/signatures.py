"""What the annotations of a user's function say: which library's frames it takes, and which tuples it gives."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any

from rayelastic.compile.reading.bound import taken_apart
from rayelastic.errors import SchemaError
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import OperatorKind

__all__ = ["annotated_library", "annotated_output"]

_FRAMES = {
    ("numpy", "ndarray"): "numpy",
    ("pyarrow", "RecordBatch"): "pyarrow",
    ("pandas", "DataFrame"): "pandas",
    ("polars", "DataFrame"): "polars",
}


def annotated_library(function: Callable[..., Any], parameter: str | None = None) -> str:
    """The library whose array, batch or frame a parameter, or else the first, is annotated with; empty if none.

    >>> import numpy as np
    >>> def f(t: np.ndarray): ...
    >>> annotated_library(f)
    'numpy'
    """
    hints = _hints(function)
    try:
        first = parameter or next(iter(inspect.signature(function).parameters), None)
    except ValueError:
        return ""
    hint = hints.get(first) if first else None
    hint = typing.get_origin(hint) or hint
    if not isinstance(hint, type):
        return ""
    return _FRAMES.get((hint.__module__.partition(".")[0], hint.__name__), "")


def annotated_output(function: Callable[..., Any], kind: OperatorKind, *, batched: bool = False) -> Schema | None:
    """The schema that the return annotation stands for, None if there is none or it is no schema.

    Args:
        function: the user's.
        kind: of its operator.
        batched: whether it returns a list of results.

    >>> def f(t) -> float: ...
    >>> print(annotated_output(f, OperatorKind.MAP))
    Record(value: float64)
    """
    hint = _hints(function).get("return")
    for _ in range((kind is OperatorKind.FLAT_MAP) + batched):
        arguments = typing.get_args(hint)
        hint = arguments[0] if arguments and typing.get_origin(hint) is not tuple else None
    if hint is None:
        return None
    if typing.get_origin(hint) is tuple:
        hint = {f"f{index}": kind_ for index, kind_ in enumerate(typing.get_args(hint))}
    try:
        return Schema.of(hint)
    except SchemaError:
        return None


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    made_of = taken_apart(function)
    try:
        return typing.get_type_hints(function if made_of is None else made_of.function)
    except Exception:  # an annotation that names what isn't there says nothing
        return {}
