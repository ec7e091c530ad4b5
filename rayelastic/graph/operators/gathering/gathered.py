"""What comes together in a window, and what is given of it: all tuples, a fold, a reduced tuple, the best ones.

Runs in Python. Knows no time but the bounds that it is told.
"""

from __future__ import annotations

import copy
import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from rayelastic.graph.records.schema import Schema

__all__ = ["Bounds", "Collected", "Folded", "Gathered", "Reduced", "Top"]


class Bounds(NamedTuple):
    """When a window begins and ends, written as the times of its stream; the end is no part of it.

    `final` says that it is complete; else this is what it has until now.
    """

    start: Any
    end: Any
    final: bool = True


class Gathered(Protocol):
    """How tuples come together. What it makes pickles."""

    def new(self) -> Any:
        """What there is before the first tuple."""
        ...

    def add(self, gathered: Any, t: Any) -> Any:
        """What there is with another tuple; it may be the same object."""
        ...

    def given(self, key: tuple[Any, ...], bounds: Bounds, gathered: Any) -> Iterable[Any]:
        """What is given of it."""
        ...


@dataclass(frozen=True, slots=True)
class Collected:
    """All tuples, in the order of their times; a function makes of them what it likes."""

    fn: Callable[..., Any]
    schema: Schema  # of the tuples

    def new(self) -> list[tuple[Any, ...]]:
        """No tuple."""
        return []

    def add(self, gathered: list[tuple[Any, ...]], t: Any) -> list[tuple[Any, ...]]:
        """One more; as a plain tuple, which pickles whatever class it is of."""
        gathered.append(tuple(t))
        return gathered

    def given(self, key: tuple[Any, ...], bounds: Bounds, gathered: list[tuple[Any, ...]]) -> Iterable[Any]:
        """What the function gives."""
        made = self.fn(key, bounds, [self.schema.tuple_type(*values) for values in gathered])
        return () if made is None else made


@dataclass(frozen=True, slots=True)
class Folded:
    """`accumulated = fn(accumulated, t)`."""

    fn: Callable[[Any, Any], Any]
    start: Any
    early: bool  # whether what is given says whether it is final

    def new(self) -> Any:
        """The start, copied."""
        return copy.deepcopy(self.start)

    def add(self, gathered: Any, t: Any) -> Any:
        """Folds a tuple in."""
        return self.fn(gathered, t)

    def given(self, key: tuple[Any, ...], bounds: Bounds, gathered: Any) -> Iterable[Any]:
        """Key, bounds, and what was accumulated."""
        made = gathered if isinstance(gathered, tuple) else (gathered,)
        return ((*key, *(bounds if self.early else bounds[:2]), *made),)


@dataclass(frozen=True, slots=True)
class Reduced:
    """`reduced = fn(reduced, t)`, the first being the first tuple."""

    fn: Callable[[Any, Any], Any]
    schema: Schema
    fields: Sequence[int]  # those that are no keys
    early: bool

    def new(self) -> None:
        """Nothing."""

    def add(self, gathered: tuple[Any, ...] | None, t: Any) -> tuple[Any, ...]:
        """Reduces with a tuple."""
        return tuple(t) if gathered is None else tuple(self.fn(self.schema.tuple_type(*gathered), t))

    def given(self, key: tuple[Any, ...], bounds: Bounds, gathered: tuple[Any, ...]) -> Iterable[Any]:
        """Key, bounds, and the other fields."""
        return ((*key, *(bounds if self.early else bounds[:2]), *(gathered[field] for field in self.fields)),)


@dataclass(frozen=True, slots=True)
class Top:
    """The tuples with the largest, or least, values of a field; of equal ones those that came first."""

    k: int
    by: int
    least: bool
    fields: Sequence[int]
    early: bool

    def new(self) -> list[Any]:
        """None yet: how many came, then a heap of (rank, tuple), the worst first."""
        return [0]

    def add(self, gathered: list[Any], t: Any) -> list[Any]:
        """Keeps it if it is among the best."""
        gathered[0] += 1
        value = t[self.by]
        if value is None or value != value:  # not a number
            return gathered
        entry = (_Rank(value, gathered[0], self.least), tuple(t))
        heap = gathered[1:]
        if len(heap) < self.k:
            heapq.heappush(heap, entry)
        else:
            heapq.heappushpop(heap, entry)
        gathered[1:] = heap
        return gathered

    def given(self, key: tuple[Any, ...], bounds: Bounds, gathered: list[Any]) -> Iterable[Any]:
        """Key, bounds, place from 1 on, and the other fields; the best first."""
        shown = bounds if self.early else bounds[:2]
        best = sorted(gathered[1:], key=lambda entry: entry[0], reverse=True)
        for place, (_, values) in enumerate(best, start=1):
            yield (*key, *shown, place, *(values[field] for field in self.fields))


class _Rank:
    """Later is larger: by value, then the one that came first."""

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
