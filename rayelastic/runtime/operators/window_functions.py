"""Makes native parts of windows of users' functions in Python, and of what reads the state of such windows."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rayelastic import _native
from rayelastic.graph.operators.window_function import Bounds
from rayelastic.graph.operators.windows import checked_spans
from rayelastic.graph.records.time_values import TimeValues
from rayelastic.runtime.operators.native_schema import native_schema

if TYPE_CHECKING:
    from rayelastic.graph.operators.window_function import WindowFunction
    from rayelastic.graph.operators.windows import Window
    from rayelastic.graph.records.schema import Schema


class _Methods:
    """What the native operator calls for its windows.

    Args:
        window: How tuples are assigned to windows.
        function: What they accumulate and emit; copied, since two operators may have been declared with one object.
    """

    loads = staticmethod(pickle.loads)

    def __init__(self, window: Window, function: WindowFunction) -> None:
        accumulator, until = copy.deepcopy((function.accumulator, function.early.until))
        self.new, self.add = accumulator.new, accumulator.add
        self._results = accumulator.results
        self.over: Callable[[Any, Any], Any] | None = None
        if until is not None:
            self.over = lambda state, t: until(accumulator.until_argument(state, t))
        self.assign: Callable[[Any, int], list[tuple[int, int]]] | None = None
        times, gap = TimeValues.of(window.time, function.input_schema), window.gap
        if window.assign is not None:
            self.assign = lambda t, at: checked_spans(window, times, t, at)
        elif gap is not None:
            self.assign = lambda t, at: [(at, at + times.span(gap(t)))]

    def results(self, moment: tuple[Any, ...], state: Any, final: bool, corrected: bool) -> list[Any]:
        """Return the tuples to emit of a window."""
        *key, start, end = moment
        return list(self._results(tuple(key), Bounds(start, end, final, corrected), state))


class _Reading:
    """Emits each open window with its pickled state; takes no tuples."""

    new = add = over = None
    loads = bytes

    def assign(self, t: Any, at: int) -> list[tuple[int, int]]:  # noqa: ARG002
        """Return no windows."""
        return []

    def results(self, moment: tuple[Any, ...], state: bytes, final: bool, corrected: bool) -> list[Any]:  # noqa: ARG002
        """Return the window and its state."""
        return [(*moment, state)]


def window_function(
    name: str, window: Window, function: WindowFunction | None, output: Schema
) -> _native.WindowFunction | None:
    """Return the native part of an operator's function; None: its windows have aggregates."""
    if function is None:
        return None
    schemas = native_schema(function.input_schema), native_schema(output), native_schema(function.moment)
    source, target, moment = schemas
    record = function.input_schema.tuple_type
    return _native.WindowFunction(name, source, record, target, moment, _Methods(window, function))


def state_reader(source: Schema, output: Schema, moment: Schema) -> _native.WindowFunction:
    """Return a function that emits the state of windows as it was pickled."""
    target = native_schema(output)
    return _native.WindowFunction("state", native_schema(source), None, target, native_schema(moment), _Reading())
