"""What flows in the naive interpreter: all tuples of a stream at once, each with the watermark before it."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.random_topologies.values import Field, Schema

Row = tuple[Any, ...]
QUIRKS: set[str] = set()  # of the engine, that the interpreter shares for the moment: known.py
_TYPES: dict[tuple[str, ...], Any] = {}


@dataclass(frozen=True, slots=True)
class Flow:
    """The tuples of a stream.

    Args:
        schema: of them.
        rows: in an order that they may come in.
        ordered: whether they come in no other.
        marks: {row: watermark before it}, None: none yet; no list: the stream has no event time.
        splits: {row: which of several ordered streams it is of}; no list: nobody knows.
    """

    schema: Schema
    rows: list[Row]
    ordered: bool = True
    marks: list[int | None] | None = None
    splits: list[int] | None = None

    @property
    def names(self) -> list[str]:
        return [f.name for f in self.schema]

    def at(self, name: str) -> int:
        return self.names.index(name)

    def column(self, name: str) -> list[Any]:
        place = self.at(name)
        return [row[place] for row in self.rows]

    def has(self, name: str) -> bool:
        return name in self.names

    def times(self) -> list[int]:
        return self.column("at")

    @property
    def is_timed(self) -> bool:
        return self.marks is not None

    @property
    def late(self) -> list[bool]:
        assert self.marks is not None
        return [mark is not None and at <= mark for at, mark in zip(self.times(), self.marks, strict=True)]

    @property
    def is_punctual(self) -> bool:
        """Whether no tuple is behind the watermark, however it is united with others."""
        return self.is_timed and not any(self.late)

    def tuples(self) -> list[Any]:
        """As functions have them."""
        made = tuple_type(self.names)
        return [made(*row) for row in self.rows]

    def keys(self, fields: Sequence[str]) -> list[Row]:
        places = [self.at(name) for name in fields]
        return [tuple(row[place] for place in places) for row in self.rows]

    def picked(self, chosen: Sequence[int]) -> Flow:
        """Some of the rows."""
        return replace(
            self,
            rows=[self.rows[i] for i in chosen],
            marks=None if self.marks is None else [self.marks[i] for i in chosen],
            splits=None if self.splits is None else [self.splits[i] for i in chosen],
        )

    def mapped(self, made: Callable[[int], Iterator[Row]], schema: Schema) -> Flow:
        """Any number of rows in place of each, which keep its watermark and its split."""
        every = [(i, row) for i in range(len(self.rows)) for row in made(i)]
        return Flow(
            schema,
            [row for _, row in every],
            self.ordered,
            None if self.marks is None else [self.marks[i] for i, _ in every],
            None if self.splits is None else [self.splits[i] for i, _ in every],
        )

    def punctual(self) -> list[int]:
        """Rows that aren't late, in the order of their times."""
        times, late = self.times(), self.late
        return sorted((i for i in range(len(self.rows)) if not late[i]), key=times.__getitem__)

    def too_late(self) -> Flow:
        return Flow(self.schema, [row for row, late in zip(self.rows, self.late, strict=True) if late], self.ordered)


def tuple_type(names: Sequence[str]) -> Any:
    key = tuple(names)
    if key not in _TYPES:
        _TYPES[key] = namedtuple("Row", key)  # noqa: PYI024  (made of names)
    return _TYPES[key]


def grouped(keys: Sequence[Row], chosen: Sequence[int] | None = None) -> dict[Row, list[int]]:
    """The numbers of rows by key, in the order of their first ones."""
    found: dict[Row, list[int]] = {}
    for i in range(len(keys)) if chosen is None else chosen:
        found.setdefault(keys[i], []).append(i)
    return found


def fields_of(flow: Flow, names: Sequence[str]) -> Schema:
    return tuple(f for name in names for f in flow.schema if f.name == name)


def integer(name: str, *, nullable: bool = False) -> Field:
    return Field(name, "int", nullable)
