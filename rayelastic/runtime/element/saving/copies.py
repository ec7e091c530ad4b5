"""Incremental checkpoints of an operator's state: a segment that hasn't changed isn't written again.

A checkpoint has the files of all segments; unchanged ones are the same files under another name, if the file system
supports that. So each checkpoint is complete by itself, and a file is deleted with the last checkpoint that has it. A
file is shared with the checkpoint before the previous one. Two consecutive checkpoints have no file in common: if the
newest is damaged, the one before is sound. Knows neither barriers nor threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rayelastic import _native
from rayelastic.runtime.element.saving.live_state import unsavable
from rayelastic.runtime.snapshot import CHUNK_BYTES

if TYPE_CHECKING:
    from rayelastic.graph.spec.operator_spec import OperatorSpec
    from rayelastic.runtime.snapshot import SnapshotFolder

__all__ = ["OperatorCopies"]

LINES = 2  # independent series of checkpoints that share files


@dataclass(slots=True)
class Written:
    """A written segment.

    Args:
        number: The number of its copy.
        files: Names, and SHA-256 in hex.
    """

    number: int
    files: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Checkpointed:
    """A checkpoint's part of the operator.

    Args:
        folder: The checkpoint's folder.
        segments: By number.
    """

    folder: SnapshotFolder
    segments: dict[int, Written]


class OperatorCopies:
    """The copies of one operator's state.

    Args:
        spec: The operator.
        prefix: The prefix of its files' names.
        keep: The number of complete checkpoints that are kept; with one there is no fallback.
    """

    def __init__(self, spec: OperatorSpec, prefix: str, keep: int) -> None:
        self._spec = spec
        self._prefix = prefix
        self._lines = min(keep, LINES)
        self._begun: dict[int, Checkpointed] = {}  # by epoch, possibly incomplete
        self._complete: list[Checkpointed] = []  # the last ones, in order

    def complete(self, epoch: int) -> None:
        """Record a complete checkpoint, whose files later ones may share. Safe to repeat."""
        if epoch in self._begun:
            self._complete = [*self._complete, self._begun[epoch]][-self._lines :]
            self._begun = {number: one for number, one in self._begun.items() if number > epoch}

    def write(
        self, copy: _native.StateCopy, folder: SnapshotFolder, epoch: int, check: Callable[[], None]
    ) -> tuple[list[tuple[str, str]], int]:
        """Write a copy, and release it in any case.

        Args:
            copy: The scheduler's copy of the state.
            folder: The checkpoint's folder.
            epoch: Its epoch.
            check: Called before each chunk; raises to abort.

        Returns:
            Its files, and the number of bytes written.

        Raises:
            StateError: It can't be written, or was aborted; the message names the operator.
        """
        try:
            check()
            segments, size = self._unchanged(copy, folder), 0
            while (chunk := copy.next_chunk(CHUNK_BYTES)) is not None:
                check()
                segment, data = chunk
                files = segments.setdefault(segment, Written(copy.number)).files
                name = f"{self._prefix}-{segment:06}-{len(files):03}.state"
                digest, stored = folder.write_state(name, data)
                files.append((name, digest))
                size += stored
        except _native.StateError as error:
            check()  # it may have been aborted meanwhile
            raise unsavable(self._spec, f"{error}") from None
        finally:
            copy.abandon()
        self._begun[epoch] = Checkpointed(folder, segments)
        return [file for segment in sorted(segments) for file in segments[segment].files], size

    def _unchanged(self, copy: _native.StateCopy, folder: SnapshotFolder) -> dict[int, Written]:
        """Skip the segments that are unchanged since the last checkpoint of this line; return them."""
        kept: dict[int, Written] = {}
        if len(self._complete) < self._lines:
            return kept
        last = self._complete[0]
        for segment, changed in enumerate(copy.changed_after):
            written = last.segments.get(segment)
            if written is None or changed >= written.number:
                continue
            if all(folder.take(name, last.folder) for name, _ in written.files):
                copy.skip(segment)
                kept[segment] = written
        return kept
