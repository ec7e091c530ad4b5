"""What windows accumulate of their tuples and emit, in Python: all tuples, a fold, a reduced one, or the best."""

from __future__ import annotations

import copy
import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rayelastic.graph.operators.window_function import Accumulator, Bounds, Shown
from rayelastic.graph.records.schema import Schema


class _AllTuples(Accumulator):
    """Keeps all tuples, in the order of their times, as plain ones, which pickle whatever their class."""

    __slots__ = ()

    def new(self) -> list[tuple[Any, ...]]:
        """Return an empty list."""
        return []

    def add(self, state: list[tuple[Any, ...]], t: Any) -> list[tuple[Any, ...]]:
        """Append the tuple."""
        state.append(tuple(t))
        return state


@dataclass(frozen=True, slots=True)
class Collected(_AllTuples):
    """Calls a function with all tuples."""

    fn: Callable[..., Any]
    schema: Schema  # of the tuples

    def results(self, key: tuple[Any, ...], bounds: Bounds, state: list[tuple[Any, ...]]) -> Iterable[Any]:
        """Return what the function returns."""
        results = self.fn(key, bounds, [self.schema.tuple_type(*values) for values in state])
        return () if results is None else results


@dataclass(frozen=True, slots=True)
class Folded(Accumulator):
    """`accumulated = fn(accumulated, t)`."""

    fn: Callable[[Any, Any], Any]
    start: Any
    shown: Shown
    schema: Schema  # of the accumulated value

    def new(self) -> Any:
        """Return a copy of the start value."""
        return copy.deepcopy(self.start)

    def add(self, state: Any, t: Any) -> Any:
        """Fold a tuple in."""
        return self.fn(state, t)

    def until_argument(self, state: Any, t: Any) -> Any:  # noqa: ARG002
        """Return the accumulated value."""
        return state

    def rows(self, state: Any) -> Iterable[Iterable[Any]]:
        """Return the accumulated value."""
        return (self.schema.values(state),)


@dataclass(frozen=True, slots=True)
class Reduced(Accumulator):
    """`reduced = fn(reduced, t)`, the first being the first tuple."""

    fn: Callable[[Any, Any], Any]
    schema: Schema
    fields: Sequence[int]  # positions of those that aren't keys
    shown: Shown

    def new(self) -> None:
        """Return None."""

    def add(self, state: tuple[Any, ...] | None, t: Any) -> tuple[Any, ...]:
        """Reduce with a tuple."""
        return tuple(t) if state is None else self.schema.values(self.fn(self.schema.tuple_type(*state), t))

    def until_argument(self, state: tuple[Any, ...], t: Any) -> Any:  # noqa: ARG002
        """Return the reduced tuple."""
        return self.schema.tuple_type(*state)

    def rows(self, state: tuple[Any, ...]) -> Iterable[Iterable[Any]]:
        """Return the fields that aren't keys."""
        return ([state[field] for field in self.fields],)


@dataclass(frozen=True, slots=True)
class Each(_AllTuples):
    """Emits all tuples, with their rank."""

    fields: Sequence[int]
    shown: Shown

    def rows(self, state: list[tuple[Any, ...]]) -> Iterable[Iterable[Any]]:
        """Return rank from 1 on, and the fields that aren't keys."""
        return _ranked(state, self.fields)


@dataclass(frozen=True, slots=True)
class Top(Accumulator):
    """Keeps the tuples with the largest, or least, values of a field; of equal ones the first to arrive."""

    k: int
    by: int
    least: bool
    fields: Sequence[int]
    shown: Shown

    def new(self) -> list[Any]:
        """Return the count of arrived tuples, 0, followed by an empty heap of (rank, tuple) with the worst first."""
        return [0]

    def add(self, state: list[Any], t: Any) -> list[Any]:
        """Keep the tuple if it is among the best."""
        state[0] += 1
        value = t[self.by]
        if value is None or value != value:  # NaN
            return state
        entry = (_Rank(value, state[0], self.least), tuple(t))
        heap = state[1:]
        if len(heap) < self.k:
            heapq.heappush(heap, entry)
        else:
            heapq.heappushpop(heap, entry)
        state[1:] = heap
        return state

    def rows(self, state: list[Any]) -> Iterable[Iterable[Any]]:
        """Return rank from 1 on, and the fields that aren't keys; the best first."""
        best = sorted(state[1:], key=lambda entry: entry[0], reverse=True)
        return _ranked((values for _, values in best), self.fields)


def _ranked(tuples: Iterable[tuple[Any, ...]], fields: Sequence[int]) -> Iterable[Iterable[Any]]:
    return ((place, *(values[field] for field in fields)) for place, values in enumerate(tuples, start=1))


class _Rank:
    """Orders by value, then the first to arrive; later ranks are larger."""

    __slots__ = ("least", "number", "value")

    def __init__(self, value: Any, number: int, least: bool) -> None:
        self.value = value
        self.number = number
        self.least = least

    def __lt__(self, other: _Rank) -> bool:
        if self.value == other.value:
            return self.number > other.number
        below: bool = self.value > other.value if self.least else self.value < other.value
        return below
