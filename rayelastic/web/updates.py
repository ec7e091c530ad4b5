"""The updates for viewers of a job: its whole state, or the changes since the previous number.

Each is written once for all viewers. A viewer that misses a number gets the whole state. Must not know the viewers.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rayelastic.web.frames import COLUMNS

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_ROWS = 0.7  # share of a table's rows up to which those that changed are sent with their numbers


def written(report: Mapping[str, Any], table: NDArray[np.float32] | None) -> str:
    """Write a state as JSON.

    Args:
        report: JSON values by name.
        table: a row an operator, with COLUMNS; goes in as 'operators', base64 of little-endian float32, row by row.
    """
    if table is None:
        return json.dumps(report)
    # put together as text: base64 needs no escapes, and a large table is most of it
    return f'{json.dumps(report)[:-1]}, "columns": {len(COLUMNS)}, "operators": "{_base64(table)}"}}'


class Updates:
    """The states of one job, each with a number, one higher than that of the state before.

    Args:
        report: the first one: JSON values by name.
        table: its table of operators; None: there is none yet.

    >>> updates = Updates({"state": "created", "epoch": 0})
    >>> updates.take({"state": "running", "epoch": 0}, None)
    >>> updates.since(0), updates.since(None)
    (b'{"after": 0, "number": 1, "state": "running"}', b'{"state": "running", "epoch": 0, "number": 1}')
    """

    def __init__(self, report: Mapping[str, Any], table: NDArray[np.float32] | None = None) -> None:
        self.number = 0
        self._report = dict(report)
        self._table = table
        self._change = b""
        self._whole: bytes | None = None  # written when somebody needs it

    def take(self, report: Mapping[str, Any], table: NDArray[np.float32] | None, **news: Any) -> None:
        """Take the next state.

        Args:
            report: all of it, under the names of the first one.
            table: of operators, with as many rows as the one before.
            news: what goes out with this change alone, such as events.
        """
        changed = {
            name: value for name, value in report.items() if name not in self._report or self._report[name] != value
        }
        head = {"after": self.number, "number": self.number + 1, **changed, **news}
        self._change = _changed(head, self._table, table).encode()
        self._report, self._table, self._whole = dict(report), table, None
        self.number += 1

    @property
    def whole(self) -> bytes:
        """Return the whole state of now."""
        if self._whole is None:
            self._whole = written({**self._report, "number": self.number}, self._table).encode()
        return self._whole

    def since(self, number: int | None) -> bytes:
        """Return what leads to the state of now.

        Args:
            number: of the state that somebody has; None: of none.
        """
        return self._change if number is not None and number == self.number - 1 else self.whole


def _changed(head: Mapping[str, Any], before: NDArray[np.float32] | None, now: NDArray[np.float32] | None) -> str:
    """Write a change as JSON: rows that differ with their numbers, or the whole table if that is shorter."""
    if now is None or before is now:
        return json.dumps(head)
    if before is None:
        return written(head, now)
    rows = np.flatnonzero((now != before).any(axis=1))
    if len(rows) > MOST_ROWS * len(now):
        return written(head, now)
    if len(rows) == 0:
        return json.dumps(head)
    return f'{json.dumps(head)[:-1]}, "rows": "{_base64(rows.astype("<u4"))}", "values": "{_base64(now[rows])}"}}'


def _base64(numbers: NDArray[Any]) -> str:
    little = numbers.astype(numbers.dtype.newbyteorder("<"), copy=False)
    return base64.b64encode(little.tobytes()).decode("ascii")
