"""Counters of many operators as one table of numbers, which yields `OperatorSample` values on access.

So a job of thousands of operators is read, and sent between processes, in a millisecond. Must not know who counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import numpy as np

from rayelastic.runtime.values.status import OperatorSample

if TYPE_CHECKING:
    from numpy.typing import NDArray

MODELS = ("manual", "dynamic", "dedicated")
_OTHERS = ("name", "lane", "latency", "dropped")  # fields that aren't numbers
_INTEGERS = frozenset(one.name for one in fields(OperatorSample) if one.type == "int")
NUMBERS = np.dtype([(one.name, np.float64) for one in fields(OperatorSample) if one.name not in _OTHERS])


class OperatorTable(Sequence[OperatorSample]):
    """The samples of the operators of one PE; equal to any sequence of the same samples.

    Args:
        names: The operators, in topological order.
        lanes: Their execution modes; empty if unknown.
        numbers: A row per operator with the fields NUMBERS. `model` is an index of MODELS, a missing watermark NaN.
        more: {row: other fields of its sample}, of those that have any: latency, dropped.

    >>> numbers = np.zeros(2, NUMBERS)
    >>> numbers["model"], numbers["errors"] = [0, 2], [0, 1]
    >>> table = OperatorTable(("a", "b"), ("", "python"), numbers, {})
    >>> len(table), table[1].name, table[1].lane, table[1].model, table[1].errors
    (2, 'b', 'python', 'dedicated', 1)
    >>> table == tuple(table)
    True
    """

    __slots__ = ("lanes", "more", "names", "numbers")

    def __init__(
        self,
        names: tuple[str, ...],
        lanes: tuple[str, ...],
        numbers: NDArray[np.void],
        more: Mapping[int, Mapping[str, Any]],
    ) -> None:
        self.names = names
        self.lanes = lanes
        self.numbers = numbers
        self.more = more

    @classmethod
    def of(cls, samples: Sequence[OperatorSample]) -> OperatorTable:
        """Make a table of samples; a table is returned unchanged."""
        if isinstance(samples, OperatorTable):
            return samples
        numbers = np.zeros(len(samples), NUMBERS)
        for name in NUMBERS.names or ():
            numbers[name] = [_number(name, getattr(sample, name)) for sample in samples]
        more = {
            row: {"latency": sample.latency, "dropped": sample.dropped}
            for row, sample in enumerate(samples)
            if sample.latency or sample.dropped
        }
        return cls(tuple(sample.name for sample in samples), tuple(sample.lane for sample in samples), numbers, more)

    def column(self, name: str) -> NDArray[np.float64]:
        """Return one counter of all operators."""
        return self.numbers[name]

    def ordered(self, names: tuple[str, ...]) -> NDArray[np.void]:
        """Return the numbers of other operators, a row each in their order; 0 for missing ones."""
        if self.names == names:
            return self.numbers
        row_of = {name: row for row, name in enumerate(self.names)}
        rows = np.array([row_of.get(name, -1) for name in names], dtype=np.intp)
        return np.append(self.numbers, np.zeros(1, NUMBERS))[rows]

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, at: SupportsIndex) -> OperatorSample: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[OperatorSample, ...]: ...
    def __getitem__(self, at: SupportsIndex | slice) -> OperatorSample | tuple[OperatorSample, ...]:
        rows = range(len(self.names))[at]
        if isinstance(rows, range):
            return tuple(self._samples(rows))
        return next(self._samples([rows]))

    def __iter__(self) -> Iterator[OperatorSample]:
        return self._samples(range(len(self.names)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        # In one piece: Ray pads arrays that it sends with what its memory had before, keys of tuples for example.
        return _table, (self.names, self.lanes, self.numbers.tobytes(), self.more)

    def __repr__(self) -> str:
        return repr(tuple(self))

    def _samples(self, rows: Sequence[int]) -> Iterator[OperatorSample]:
        chosen = self.numbers[np.array(rows, dtype=np.intp)]
        names = NUMBERS.names or ()
        columns = [_values(name, chosen[name]) for name in names]
        for row, values in zip(rows, zip(*columns, strict=True), strict=True):
            numbers = dict(zip(names, values, strict=True))
            yield OperatorSample(name=self.names[row], lane=self.lanes[row], **numbers, **self.more.get(row, {}))


def _number(name: str, value: Any) -> float:
    """Return a field of a sample as a number."""
    if name == "model":
        return MODELS.index(value)
    return math.nan if value is None else float(value)


def _values(name: str, column: NDArray[np.float64]) -> list[Any]:
    """Return a column of numbers as the values of a field."""
    values: list[Any] = column.astype(np.int64).tolist() if name in _INTEGERS else column.tolist()
    if name == "model":
        return [MODELS[int(number)] for number in values]
    if name == "watermark":
        return [None if math.isnan(value) else value for value in values]
    return values


def _table(
    names: tuple[str, ...], lanes: tuple[str, ...], numbers: bytes, more: Mapping[int, Mapping[str, Any]]
) -> OperatorTable:
    return OperatorTable(names, lanes, np.frombuffer(numbers, NUMBERS), more)
