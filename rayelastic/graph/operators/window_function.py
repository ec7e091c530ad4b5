"""What a user's function accumulates of a window, and what it emits: the last part of a window that isn't an aggregate.

The native window operator assigns tuples to windows and decides when a window is emitted. Runs in Python.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from rayelastic.graph.records.schema import Schema


class Bounds(NamedTuple):
    """When a window begins and ends, represented as the times of its stream; the end is exclusive.

    `final` is False for an early result. `corrected` is True for a result that replaces an earlier one after a late
    tuple. It is False for the first result, even if that is late.
    """

    start: Any
    end: Any
    final: bool = True
    corrected: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """The fields that a result has about its window, besides its bounds: `final`, `corrected`, both or none."""

    flags: tuple[str, ...] = ()

    def of(self, bounds: Bounds) -> tuple[Any, ...]:
        """Return the values of these fields."""
        return (bounds.start, bounds.end, *(getattr(bounds, flag) for flag in self.flags))


@dataclass(frozen=True, slots=True)
class Early:
    """When a window is emitted before it is complete.

    Args:
        update: After each tuple.
        every: Every so many ticks after its start, if tuples have arrived since; 0: not.
        until: As soon as this holds; later tuples are accumulated anew.
    """

    update: bool = False
    every: int = 0
    until: Callable[[Any], Any] | None = None

    @property
    def may_not_be_final(self) -> bool:
        """Whether a result may be followed by another one of the same tuples."""
        return self.update or self.every > 0


class Accumulator(ABC):
    """What a window accumulates of its tuples, and emits. The accumulated value, its state, pickles."""

    __slots__ = ()
    shown: Shown

    @abstractmethod
    def new(self) -> Any:
        """Return the state before the first tuple."""

    @abstractmethod
    def add(self, state: Any, t: Any) -> Any:
        """Return the state with another tuple; it may be the same object."""

    def until_argument(self, state: Any, t: Any) -> Any:  # noqa: ARG002
        """Return the argument of `until`, after a tuple: the tuple."""
        return t

    def rows(self, state: Any) -> Iterable[Iterable[Any]]:
        """Return the values that follow key and bounds, of each tuple to emit."""
        return ((state,),)

    def results(self, key: tuple[Any, ...], bounds: Bounds, state: Any) -> Iterable[Any]:
        """Return the tuples to emit."""
        about = self.shown.of(bounds)
        return [(*key, *about, *row) for row in self.rows(state)]


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """A user's function of windows.

    Args:
        accumulator: What a window accumulates and emits.
        early: When a window is emitted before it is complete.
        input_schema: The schema of its tuples.
        moment: The schema of the key fields, then of start and end of a window.
        bounded: Whether results have the bounds of the window.
        why: The reason for the execution mode; empty: it has no other.
        refusal: The code and values of why it isn't compiled, if that was tried.
    """

    accumulator: Accumulator
    early: Early
    input_schema: Schema
    moment: Schema
    bounded: bool = True
    why: str = ""
    refusal: Mapping[str, Any] | None = None
