"""Announces in band which file of a source the next rows belong to: each file is a split with its own watermark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rayelastic import _native


class FileSplits:
    """Announces a source's files, each of which is a split, to downstream operators.

    Args:
        feeder: The source's feeder.
        paths: The paths of all files.
    """

    def __init__(self, feeder: _native.ArrowFeeder, paths: Sequence[str]) -> None:
        self._feeder, self._count = feeder, len(paths)
        self._last: int | None = None

    def begin(self, number: int) -> None:
        """Announce that a file begins; earlier ones have ended, and later ones wait."""
        if self._count < 2:
            return
        for later in range(number + 1, self._count) if self._last is None else ():
            self._feeder.mark_split(later, "waits")
        self._feeder.mark_split(number, "now")
        for ended in range(self._last or 0, number):
            self._feeder.mark_split(ended, "end")
        self._last = number
