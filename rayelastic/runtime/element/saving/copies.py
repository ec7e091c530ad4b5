"""What copies of an operator's state give, as files of checkpoints: a segment that hasn't changed isn't written again.

A checkpoint has the files of all segments: those that are older are the same files under another name, where the file
system can do that. So each checkpoint stands for itself, and a file goes when the last one that has it does. Knows
neither marks nor threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rayelastic import _native
from rayelastic.errors import StateError
from rayelastic.runtime.snapshot import CHUNK_BYTES

if TYPE_CHECKING:
    from rayelastic.runtime.snapshot import SnapshotFolder

__all__ = ["OperatorCopies"]


@dataclass(slots=True)
class Written:
    """A segment as a copy gave it.

    Args:
        number: of the copy.
        files: names, and SHA-256 in hex.
    """

    number: int
    files: list[tuple[str, str]] = field(default_factory=list)


class OperatorCopies:
    """The copies of one operator's state.

    Args:
        prefix: of the names of its files.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._folder: SnapshotFolder | None = None  # of the last checkpoint
        self._segments: dict[int, Written] = {}  # in it

    def write(
        self, copy: _native.StateCopy, folder: SnapshotFolder, check: Callable[[], None]
    ) -> tuple[list[tuple[str, str]], int]:
        """Writes a copy; it is given up then, whatever happens.

        Args:
            copy: of the state, by the scheduler.
            folder: of the checkpoint.
            check: called before each chunk; raises what ends it.

        Returns:
            Its files, and how many bytes were written.

        Raises:
            StateError: it can't be written, or isn't wanted any more.
        """
        try:
            check()
            segments, size = self._unchanged(copy, folder), 0
            while (chunk := copy.next_chunk(CHUNK_BYTES)) is not None:
                check()
                segment, data = chunk
                files = segments.setdefault(segment, Written(copy.number)).files
                name = f"{self._prefix}-{segment:06}-{len(files):03}.state"
                files.append((name, folder.write(name, data)))
                size += len(data)
        except _native.StateError as error:
            raise StateError(str(error)) from None
        finally:
            copy.abandon()
        self._folder, self._segments = folder, segments
        return [file for segment in sorted(segments) for file in segments[segment].files], size

    def _unchanged(self, copy: _native.StateCopy, folder: SnapshotFolder) -> dict[int, Written]:
        """Has the segments be skipped of which the last checkpoint has what there is still."""
        kept: dict[int, Written] = {}
        if (last := self._folder) is None:
            return kept
        for segment, changed in enumerate(copy.changed_after):
            written = self._segments.get(segment)
            if written is None or changed >= written.number:
                continue
            if all(folder.take(name, last) for name, _ in written.files):
                copy.skip(segment)
                kept[segment] = written
        return kept
