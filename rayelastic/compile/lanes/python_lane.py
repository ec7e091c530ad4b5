"""Per-run callables for operators that run in Python: one call per run, under the Python token.

The engine calls `function(tuples)`, or `function(tuples, states)` with the state of each tuple's key, and receives a
list. A map returns one item per input, a filter one bool, a flat_map the items of all inputs in order. A user's
exception has the index of the failing tuple in its attribute `rel_index`. In the vectorised mode, the argument is a
structured array or a pyarrow.RecordBatch over the run, converted here for pandas and Polars functions.
"""

from __future__ import annotations

import contextlib
import functools
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from rayelastic.compile.lanes.frames import frame_of, run_of
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.requests import FunctionKind

INDEX_ATTRIBUTE = "rel_index"
TUPLE_ATTRIBUTE = "rel_tuple"  # the failing tuple as text, if it is in no run any more


def marked(error: BaseException, index: int) -> None:
    """Attach the number of the failing tuple to an exception."""
    with contextlib.suppress(AttributeError):  # the class allows no attributes: the index stays unknown
        setattr(error, INDEX_ATTRIBUTE, index)


def about(error: BaseException, item: object) -> None:
    """Attach the failing tuple to an exception."""
    with contextlib.suppress(AttributeError):
        setattr(error, TUPLE_ATTRIBUTE, repr(item))


def error_text(error: BaseException) -> str:
    """Return an exception as one line.

    >>> error_text(ValueError("no number"))
    'ValueError: no number'
    """
    return "".join(traceback.format_exception_only(error)).strip()


def call_each(function: Callable[[Any], Any]) -> Callable[[Sequence[Any]], None]:
    """Return a sink's per-run callable: calls `function` with each tuple.

    >>> seen = []
    >>> call_each(seen.append)([1, 2])
    >>> seen
    [1, 2]
    """

    def run(rest: Iterator[Any]) -> None:
        for item in rest:
            function(item)

    return _marking(run)


def position(tuples: Sequence[Any], rest: Any) -> int:
    """Return the index of the tuple that was read last from a list iterator; costs nothing per tuple."""
    return len(tuples) - 1 - int(rest.__length_hint__())


def _marking(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return the per-run callable of a function of an iterator, and of states if there are any."""

    def marking(tuples: Sequence[Any], *states: Sequence[Any]) -> Any:
        rest = iter(tuples)
        try:
            return run(rest, *states)
        except BaseException as error:
            marked(error, position(tuples, rest))
            raise

    return marking


def per_run(function: Callable[..., Any], kind: FunctionKind, *, keyed: bool) -> Callable[..., list[Any]]:
    """Return the per-run callable of a function of one tuple, or of a tuple and its key's state.

    >>> per_run(lambda t: (t[0] + 1,), FunctionKind.MAP, keyed=False)([(1,), (2,)])
    [(2,), (3,)]
    >>> per_run(lambda t: range(t[0]), FunctionKind.FLAT_MAP, keyed=False)([(1,), (2,)])
    [0, 0, 1]
    """
    pairs = functools.partial(zip, strict=True)  # of tuples and states
    if kind is FunctionKind.FLAT_MAP:
        return _marking(_flat_keyed(function) if keyed else _flat(function))
    if kind is FunctionKind.FILTER:
        if keyed:
            return _marking(lambda rest, states: [bool(function(item, state)) for item, state in pairs(rest, states)])
        return _marking(lambda rest: [bool(function(item)) for item in rest])
    if keyed:
        return _marking(lambda rest, states: [function(item, state) for item, state in pairs(rest, states)])
    return _marking(lambda rest: [function(item) for item in rest])


def _flat(function: Callable[[Any], Iterable[Any] | None]) -> Callable[[Iterator[Any]], list[Any]]:
    def run(rest: Iterator[Any]) -> list[Any]:
        items: list[Any] = []
        for item in rest:
            made = function(item)
            if made is not None:
                items.extend(made)
        return items

    return run


def _flat_keyed(
    function: Callable[[Any, Any], Iterable[Any] | None],
) -> Callable[[Iterator[Any], Sequence[Any]], list[Any]]:
    def run(rest: Iterator[Any], states: Sequence[Any]) -> list[Any]:
        items: list[Any] = []
        for item, state in zip(rest, states, strict=True):
            made = function(item, state)
            if made is not None:
                items.extend(made)
        return items

    return run


def vectorised(function: Callable[[Any], Any], library: str, output: Schema) -> Callable[[Any], Any]:
    """Return the per-run callable of a function over a whole run.

    Args:
        function: The user's function.
        library: 'numpy', 'pyarrow', 'pandas' or 'polars', from the annotation of its parameter.
        output: The schema of its result.
    """
    if library in ("pandas", "polars"):
        return lambda batch: run_of(function(frame_of(batch, library)), library, output)
    return function
