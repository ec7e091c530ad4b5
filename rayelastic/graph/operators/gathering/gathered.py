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

__all__ = ["Bounds", "Collected", "Each", "Folded", "Gathered", "Reduced", "Shown", "Top"]


class Bounds(NamedTuple):
    """When a window begins and ends, written as the times of its stream; the end is no part of it.

    `final` says that it is complete; else this is what it has until now. `corrected`: a tuple came late, and this
    replaces a result of the window that was emitted before; False for the first one, also where it is late.
    """

    start: Any
    end: Any
    final: bool = True
    corrected: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """What a result says of its window, beside when it begins and ends: `final`, `corrected`, both or none."""

    flags: tuple[str, ...] = ()

    def of(self, bounds: Bounds) -> tuple[Any, ...]:
        """The values of these fields."""
        return (bounds.start, bounds.end, *(getattr(bounds, flag) for flag in self.flags))


class Gathered(Protocol):
    """How tuples come together. What it makes pickles."""

    def new(self) -> Any:
        """What there is before the first tuple."""
        ...

    def add(self, gathered: Any, t: Any) -> Any:
        """What there is with another tuple; it may be the same object."""
        ...

    def asked(self, gathered: Any, t: Any) -> Any:
        """What `until` is asked about, behind a tuple."""
        ...

    def given(self, key: tuple[Any, ...], bounds: Bounds, gathered: Any) -> Iterable[Any]:
        """What is given of it."""
        ...


class _Kept:
    """All tuples, in the order of their times."""

    __slots__ = ()

    def new(self) -> list[tuple[Any, ...]]:
        """No tuple."""
        return []

    def add(self, gathered: list[tuple[Any, ...]], t: Any) -> list[tuple[Any, ...]]:
        """One more; as a plain tuple, which pickles whatever class it is of."""
        gathered.append(tuple(t))
        return gathered

    def asked(self, gathered: list[tuple[Any, ...]], t: Any) -> Any:  # noqa: ARG002
        """The tuple."""
        return t


@dataclass(frozen=True, slots=True)
class Collected(_Kept):
    """All tuples, in the order of their times; a function makes of them what it likes."""

    fn: Callable[..., Any]
    schema: Schema  # of the tuples

    def given(self, key: tuple[Any, ...], bounds: Bounds, gathered: list[tuple[Any, ...]]) -> Iterable[Any]:
        """What the function gives."""
        made = self.fn(key, bounds, [self.schema.tuple_type(*values) for values in gathered])
        return () if made is None else made


@dataclass(frozen=True, slots=True)
class Folded:
    """`accumulated = fn(accumulated, t)`."""

    fn: Callable[[Any, Any], Any]
    start: Any
    shown: Shown
    made: Schema  # of what is accumulated

    def new(self) -> Any:
        """The start, copied."""
        return copy.deepcopy(self.start)

    def add(self, gathered: Any, t: Any) -> Any:
        """Folds a tuple in."""
        return self.fn(gathered, t)

    def asked(self, gathered: Any, t: Any) -> Any:  # noqa: ARG002
        """What was accumulated."""
        return gathered

    def given(self, key: tuple[Any, ...], bounds: Bounds, gathered: Any) -> Iterable[Any]:
        """Key, bounds, and what was accumulated."""
        return ((*key, *self.shown.of(bounds), *self.made.values(gathered)),)


@dataclass(frozen=True, slots=True)
class Reduced:
    """`reduced = fn(reduced, t)`, the first being the first tuple."""

    fn: Callable[[Any, Any], Any]
    schema: Schema
    fields: Sequence[int]  # those that are no keys
    shown: Shown

    def new(self) -> None:
        """Nothing."""

    def add(self, gathered: tuple[Any, ...] | None, t: Any) -> tuple[Any, ...]:
        """Reduces with a tuple."""
        return tuple(t) if gathered is None else self.schema.values(self.fn(self.schema.tuple_type(*gathered), t))

    def asked(self, gathered: tuple[Any, ...], t: Any) -> Any:  # noqa: ARG002
        """The reduced tuple."""
        return self.schema.tuple_type(*gathered)

    def given(self, key: tuple[Any, ...], bounds: Bounds, gathered: tuple[Any, ...]) -> Iterable[Any]:
        """Key, bounds, and the other fields."""
        return ((*key, *self.shown.of(bounds), *(gathered[field] for field in self.fields)),)


@dataclass(frozen=True, slots=True)
class Each(_Kept):
    """All tuples, in the order of their times, with their place."""

    fields: Sequence[int]
    shown: Shown

    def given(self, key: tuple[Any, ...], bounds: Bounds, gathered: list[tuple[Any, ...]]) -> Iterable[Any]:
        """Key, bounds, place from 1 on, and the other fields."""
        for place, values in enumerate(gathered, start=1):
            yield (*key, *self.shown.of(bounds), place, *(values[field] for field in self.fields))


@dataclass(frozen=True, slots=True)
class Top:
    """The tuples with the largest, or least, values of a field; of equal ones those that came first."""

    k: int
    by: int
    least: bool
    fields: Sequence[int]
    shown: Shown

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

    def asked(self, gathered: list[Any], t: Any) -> Any:  # noqa: ARG002
        """The tuple."""
        return t

    def given(self, key: tuple[Any, ...], bounds: Bounds, gathered: list[Any]) -> Iterable[Any]:
        """Key, bounds, place from 1 on, and the other fields; the best first."""
        shown = self.shown.of(bounds)
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
