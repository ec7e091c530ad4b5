"""The rows of files that aren't of the schema of a source: counted, diverted, or the end of the source.

Every format has a reader of a file that yields batches, and calls back with each bad row.
"""

from __future__ import annotations

import bisect
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rayelastic.errors import ErrorCode, SourceError

SHOWN_ROWS = 10  # of the dropped ones
TELLS = "Mend the file, declare other types, or pass on_bad_row='skip' or 'divert'"
ENCODING_WAY_OUT = "Pass its encoding=, such as 'latin-1'"


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that isn't of the schema."""

    file: str
    row: int
    text: str
    error: str


class Dropped(Protocol):
    """How many rows a source dropped because they aren't of its schema."""

    @property
    def count(self) -> int:
        """Their number."""
        ...

    @property
    def first(self) -> Sequence[str]:
        """The first of them, and why."""
        ...


@dataclass(slots=True)
class LeftOut:
    """The number of rows that a source dropped because they aren't of its schema, and the first of them."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, bad: BadRow) -> None:
        """Add a row."""
        self.count += 1
        if len(self.first) < SHOWN_ROWS:
            self.first.append(f"{bad.file}, row {bad.row}: {bad.error}")


class Files:
    """The starts of a source's files, as far as they were read, so that a restored source can skip earlier files.

    Args:
        count: The number of files.

    >>> files = Files(3)
    >>> files.begin(0), files.begin(70)
    (None, None)
    >>> files.position(69), files.position(70), files.position(100)
    ([0, 0], [1, 70], [1, 70])
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._starts: list[int] = []  # the number of rows before each file
        self._first, self._before = 0, 0
        self._lock = threading.Lock()

    def seek(self, position: int, saved: object) -> int:
        """Begin with a file; return the emitted rows of it, and of later ones, which will be emitted again.

        Args:
            position: Rows that were emitted.
            saved: A result of `position`.
        """
        match saved:
            case [int(first), int(before)] if 0 <= first < self._count and 0 <= before <= position:
                self._first, self._before = first, before
        return position - self._before

    def begin(self, rows: int) -> None:
        """Record that the next file begins, when so many rows were read in this run."""
        with self._lock:
            self._starts.append(self._before + rows)

    def position(self, given: int) -> list[int]:
        """Return the file of the next row to emit, and the number of rows before that file.

        Args:
            given: Rows emitted since the job's first start.
        """
        with self._lock:
            number = bisect.bisect_right(self._starts, given) - 1
            if number < 0:
                return [self._first, self._before]
            return [self._first + number, self._starts[number]]

    @property
    def first(self) -> int:
        """The number of the file to begin with."""
        return self._first


def rejected(bad: BadRow) -> None:
    """Fail the source."""
    hint = ENCODING_WAY_OUT if "UTF-8" in bad.error else TELLS
    raise SourceError(f"{bad.file!r}, row {bad.row:,}: {bad.error}", hint=hint, code=ErrorCode.MALFORMED_FILE)


PutAside = Callable[[BadRow], None]
