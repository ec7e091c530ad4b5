"""How a window accumulates its tuples and what it emits: all tuples, a fold, a reduced tuple, or the best ones.

Runs in Python. Knows no time but the bounds that its caller passes.
"""

from __future__ import annotations

import copy
import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rayelastic.graph.operators.window_function import Bounds, Shown
from rayelastic.graph.records.schema import Schema

__all__ = ["Collected", "Each", "Folded", "Reduced", "Top"]


class _Kept:
    """Keeps all tuples, in the order of their times."""

    __slots__ = ()

    def new(self) -> list[tuple[Any, ...]]:
        """Return an empty list."""
        return []

    def add(self, gathered: list[tuple[Any, ...]], t: Any) -> list[tuple[Any, ...]]:
        """Append the tuple as a plain one, which pickles whatever its class."""
        gathered.append(tuple(t))
        return gathered

    def asked(self, gathered: list[tuple[Any, ...]], t: Any) -> Any:  # noqa: ARG002
        """Return the tuple."""
        return t


@dataclass(frozen=True, slots=True)
class Collected(_Kept):
    """Keeps all tuples, in the order of their times, and calls a function with them."""

    fn: Callable[..., Any]
    schema: Schema  # of the tuples

    def given(self, key: tuple[Any, ...], bounds: Bounds, gathered: list[tuple[Any, ...]]) -> Iterable[Any]:
        """Return what the function returns."""
        results = self.fn(key, bounds, [self.schema.tuple_type(*values) for values in gathered])
        return () if results is None else results


@dataclass(frozen=True, slots=True)
class Folded:
    """`accumulated = fn(accumulated, t)`."""

    fn: Callable[[Any, Any], Any]
    start: Any
    shown: Shown
    made: Schema  # of the accumulated value

    def new(self) -> Any:
        """Return a copy of the start value."""
        return copy.deepcopy(self.start)

    def add(self, gathered: Any, t: Any) -> Any:
        """Fold a tuple in."""
        return self.fn(gathered, t)

    def asked(self, gathered: Any, t: Any) -> Any:  # noqa: ARG002
        """Return the accumulated value."""
        return gathered

    def given(self, key: tuple[Any, ...], bounds: Bounds, gathered: Any) -> Iterable[Any]:
        """Return key, bounds, and the accumulated value."""
        return ((*key, *self.shown.of(bounds), *self.made.values(gathered)),)


@dataclass(frozen=True, slots=True)
class Reduced:
    """`reduced = fn(reduced, t)`, the first being the first tuple."""

    fn: Callable[[Any, Any], Any]
    schema: Schema
    fields: Sequence[int]  # positions of those that aren't keys
    shown: Shown

    def new(self) -> None:
        """Return None."""

    def add(self, gathered: tuple[Any, ...] | None, t: Any) -> tuple[Any, ...]:
        """Reduce with a tuple."""
        return tuple(t) if gathered is None else self.schema.values(self.fn(self.schema.tuple_type(*gathered), t))

    def asked(self, gathered: tuple[Any, ...], t: Any) -> Any:  # noqa: ARG002
        """Return the reduced tuple."""
        return self.schema.tuple_type(*gathered)

    def given(self, key: tuple[Any, ...], bounds: Bounds, gathered: tuple[Any, ...]) -> Iterable[Any]:
        """Return key, bounds, and the other fields."""
        return ((*key, *self.shown.of(bounds), *(gathered[field] for field in self.fields)),)


@dataclass(frozen=True, slots=True)
class Each(_Kept):
    """Keeps all tuples, in the order of their times, with their rank."""

    fields: Sequence[int]
    shown: Shown

    def given(self, key: tuple[Any, ...], bounds: Bounds, gathered: list[tuple[Any, ...]]) -> Iterable[Any]:
        """Return key, bounds, rank from 1 on, and the other fields."""
        for place, values in enumerate(gathered, start=1):
            yield (*key, *self.shown.of(bounds), place, *(values[field] for field in self.fields))


@dataclass(frozen=True, slots=True)
class Top:
    """Keeps the tuples with the largest, or least, values of a field; of equal ones the first to arrive."""

    k: int
    by: int
    least: bool
    fields: Sequence[int]
    shown: Shown

    def new(self) -> list[Any]:
        """Return the count of arrived tuples, 0, followed by an empty heap of (rank, tuple) with the worst first."""
        return [0]

    def add(self, gathered: list[Any], t: Any) -> list[Any]:
        """Keep the tuple if it is among the best."""
        gathered[0] += 1
        value = t[self.by]
        if value is None or value != value:  # NaN
            return gathered
        entry = (_Rank(value, gathered[0], self.least), tuple(t))
        heap = gathered[1:]
        if len(heap) < self.k:
            heapq.heappush(heap, entry)
        else:
            heapq.heappushpop(heap, entry)
        gathered[1:] = heap
        return gathered

    def asked(self, gathered: list[Any], t: Any) -> Any:  # noqa: ARG002
        """Return the tuple."""
        return t

    def given(self, key: tuple[Any, ...], bounds: Bounds, gathered: list[Any]) -> Iterable[Any]:
        """Return key, bounds, rank from 1 on, and the other fields; the best first."""
        shown = self.shown.of(bounds)
        best = sorted(gathered[1:], key=lambda entry: entry[0], reverse=True)
        for place, (_, values) in enumerate(best, start=1):
            yield (*key, *shown, place, *(values[field] for field in self.fields))


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
