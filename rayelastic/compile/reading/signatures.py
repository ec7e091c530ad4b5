"""Reads the annotations of a user's function: the library of its frames, and the schema of its results."""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
import types
import typing
from collections.abc import Callable
from typing import Any

from rayelastic.compile.reading.bound import taken_apart
from rayelastic.errors import LaneError, SchemaError
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.requests import FunctionKind

_FRAMES = {
    ("numpy", "ndarray"): "numpy",
    ("pyarrow", "RecordBatch"): "pyarrow",
    ("pandas", "DataFrame"): "pandas",
    ("polars", "DataFrame"): "polars",
}


def annotated_library(function: Callable[..., Any], parameter: str | None = None) -> str:
    """Return the library that annotates a parameter, or else the first; empty if it isn't an array, batch or frame.

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


def annotated_output(function: Callable[..., Any], kind: FunctionKind, *, batched: bool = False) -> Schema | None:
    """Return the schema of the return annotation; None if there is none or it isn't a schema.

    Args:
        function: The user's function.
        kind: Its operator's kind.
        batched: Whether it returns a list of results.

    >>> def f(t) -> float: ...
    >>> print(annotated_output(f, FunctionKind.MAP))
    Record(value: float64)
    """
    hint = _hints(function).get("return")
    for _ in range((kind is FunctionKind.FLAT_MAP) + batched):
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


def annotated_result(function: Callable[..., Any]) -> Any:
    """Return the return annotation without its None; None if there is none.

    >>> def f(t) -> int | None: ...
    >>> annotated_result(f)
    <class 'int'>
    """
    hint = _hints(function).get("return")
    if not isinstance(hint, types.UnionType) and typing.get_origin(hint) is not typing.Union:
        return hint
    rest = [one for one in typing.get_args(hint) if one is not type(None)]
    return functools.reduce(operator.or_, rest)


def unknown_name(function: Callable[..., Any]) -> str:
    """Return a name in a function's annotations that is undefined where the function is; empty if there is none.

    >>> def f(t) -> "Missing": ...
    >>> unknown_name(f)
    'Missing'
    """
    try:
        _read_hints(function)
    except NameError as error:
        return error.name or ""
    except Exception:  # another error in the annotations
        return ""
    return ""


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return _read_hints(function)
    except Exception:  # an annotation with an undefined name is ignored
        return {}


def _read_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations, with texts evaluated; they may name classes that are local to the defining function."""
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


def check_arguments(function: Any, wanted: int) -> None:
    """Check that a function can be called with a tuple, or with a tuple and a state.

    Raises:
        LaneError: it takes other arguments.
    """
    try:
        signature = inspect.signature(function)
        signature.bind(*[None] * wanted)
    except ValueError:
        return  # a builtin without a signature
    except TypeError:
        given = "(t)" if wanted == 1 else "(t, s): a tuple and the state of its key"
        raise LaneError(
            f"its function is called with {given}, but takes {signature}", hint="Change its parameters"
        ) from None
