"""Counters of many operators as one table of numbers, which yields `OperatorSample` values on access.

So a job of thousands of operators is read, and sent between processes, in a millisecond. Must not know who counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import numpy as np

from rayelastic.runtime.values.status import OperatorSample

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["COUNTERS", "MODELS", "OperatorTable"]

# Its columns, by the fields of OperatorSample; `model` is a place in MODELS, NaN a watermark that there isn't.
COUNTERS = (
    "tuples_in", "tuples_out", "queued", "queue_capacity", "cpu_seconds", "inside_seconds", "waited_seconds",
    "blocked_seconds", "state_keys", "state_bytes", "answered_by_python", "model", "watermark",
)  # fmt: skip
MODELS = ("manual", "dynamic", "dedicated")
_NUMBERS: Mapping[str, Callable[[Any], float]] = {  # of fields that aren't numbers
    "model": MODELS.index,
    "watermark": lambda seconds: math.nan if seconds is None else seconds,
}


class OperatorTable(Sequence[OperatorSample]):
    """The samples of the operators of one PE; equal to any sequence of the same samples.

    Args:
        names: The operators, in topological order.
        lanes: Their execution modes; empty if unknown.
        numbers: A row per operator with COUNTERS, float64.
        more: {row: other fields of its sample}, of those that have any: errors, latency, channels, dropped,
            lines_repaired.

    >>> table = OperatorTable(("a", "b"), ("", "python"), np.arange(26.0).reshape(2, 13) % 13 % 3, {1: {"errors": 1}})
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
        numbers: NDArray[np.float64],
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
        rows = [
            [_NUMBERS[name](getattr(one, name)) if name in _NUMBERS else getattr(one, name) for name in COUNTERS]
            for one in samples
        ]
        numbers = np.array(rows, dtype=np.float64).reshape(-1, len(COUNTERS))
        more = {
            row: {
                "errors": sample.errors,
                "latency": sample.latency,
                "channels": sample.channels,
                "dropped": sample.dropped,
            }
            | {"lines_repaired": sample.lines_repaired}
            for row, sample in enumerate(samples)
            if sample.errors or sample.latency or sample.channels or sample.dropped or sample.lines_repaired
        }
        return cls(tuple(sample.name for sample in samples), tuple(sample.lane for sample in samples), numbers, more)

    def column(self, name: str) -> NDArray[np.float64]:
        """Return one counter of all operators."""
        return self.numbers[:, COUNTERS.index(name)]

    def ordered(self, names: tuple[str, ...]) -> NDArray[np.float64]:
        """Return the numbers of other operators, a row each in their order; 0 for missing ones."""
        if self.names == names:
            return self.numbers
        row_of = {name: row for row, name in enumerate(self.names)}
        rows = np.array([row_of.get(name, -1) for name in names], dtype=np.intp)
        rows_found = np.vstack([self.numbers, np.zeros((1, len(COUNTERS)))])[rows]
        return np.asarray(rows_found, dtype=np.float64)

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, at: SupportsIndex) -> OperatorSample: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[OperatorSample, ...]: ...
    def __getitem__(self, at: SupportsIndex | slice) -> OperatorSample | tuple[OperatorSample, ...]:
        rows = range(len(self.names))[at]
        if isinstance(rows, range):
            return tuple(self._sample(row, self.numbers[row].tolist()) for row in rows)
        return self._sample(rows, self.numbers[rows].tolist())

    def __iter__(self) -> Iterator[OperatorSample]:
        return (self._sample(row, numbers) for row, numbers in enumerate(self.numbers.tolist()))

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

    def _sample(self, row: int, numbers: list[float]) -> OperatorSample:
        taken, given, queued, capacity, cpu, inside, waited, blocked, keys, size, answered, model, watermark = numbers
        return OperatorSample(
            name=self.names[row],
            model=MODELS[int(model)],
            tuples_in=int(taken),
            tuples_out=int(given),
            queued=int(queued),
            queue_capacity=int(capacity),
            cpu_seconds=cpu,
            inside_seconds=inside,
            waited_seconds=waited,
            blocked_seconds=blocked,
            lane=self.lanes[row],
            state_keys=int(keys),
            state_bytes=int(size),
            answered_by_python=int(answered),
            watermark=None if math.isnan(watermark) else watermark,
            **self.more.get(row, {}),
        )


def _table(
    names: tuple[str, ...], lanes: tuple[str, ...], numbers: bytes, more: Mapping[int, Mapping[str, Any]]
) -> OperatorTable:
    return OperatorTable(names, lanes, np.frombuffer(numbers, np.float64).reshape(-1, len(COUNTERS)), more)
