"""The class of a source's tuples, for type checkers. Nothing here runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import UnionType
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from rayelastic.graph.records.schema import Schema

T = TypeVar("T")


class _Named(Protocol):
    def _asdict(self) -> dict[str, Any]: ...


# The first of the overloads: where Stream[Any] is expected, mypy takes the first overload that returns a stream of a
# type variable, and that must not be Stream[Value[Any]].
N = TypeVar("N", bound=_Named)
Plain = TypeVar(
    "Plain", bound=int | float | str | bytes | Decimal | datetime | date | time | timedelta | list[Any] | None
)


class _Columns(Protocol):
    @property
    def names(self) -> Any: ...


Declared = Mapping[str, Any] | Schema | UnionType | _Columns
"""Schemas that are no class, as `Schema.of` takes them: fields by name, `int | None`, a schema of Arrow, a dtype."""


class SourceOf(Generic[T]):
    """A source of tuples of a class, which `topology.source` passes on to its stream."""

    __slots__ = ()


class Value(NamedTuple, Generic[Plain]):
    """A record of one plain value: the result of a function that returns one, and of `schema=int`."""

    value: Plain
