"""What the annotations of a user's function say: which library's frames it takes, and which tuples it gives."""

from __future__ import annotations

import contextlib
import inspect
import typing
from collections.abc import Callable
from typing import Any

from rayelastic.compile.reading.bound import taken_apart
from rayelastic.errors import SchemaError
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import OperatorKind

__all__ = ["annotated_library", "annotated_output", "unknown_name"]

_FRAMES = {
    ("numpy", "ndarray"): "numpy",
    ("pyarrow", "RecordBatch"): "pyarrow",
    ("pandas", "DataFrame"): "pandas",
    ("polars", "DataFrame"): "polars",
}


def annotated_library(function: Callable[..., Any], parameter: str | None = None) -> str:
    """Return the library whose array, batch or frame a parameter, or else the first, is annotated with; empty if none.

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
    """Return the schema that the return annotation stands for, None if there is none or it is no schema.

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


def unknown_name(function: Callable[..., Any]) -> str:
    """Return the name in a function's annotations that isn't known where it was defined; empty if there is none.

    >>> def f(t) -> "Missing": ...
    >>> unknown_name(f)
    'Missing'
    """
    try:
        _read_hints(function)
    except NameError as error:
        return error.name or ""
    except Exception:  # something else is wrong with them
        return ""
    return ""


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return _read_hints(function)
    except Exception:  # an annotation that names what isn't there says nothing
        return {}


def _read_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations, those that are texts read; classes that are local where the function is defined included."""
    made_of = taken_apart(function)
    read = function if made_of is None else made_of.function
    return typing.get_type_hints(read, localns=_enclosed(read))


def _enclosed(function: Callable[..., Any]) -> dict[str, Any]:
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    found = {}
    for name, cell in zip(names, getattr(function, "__closure__", None) or (), strict=False):
        with contextlib.suppress(ValueError):  # it isn't assigned yet
            found[name] = cell.cell_contents
    return found
