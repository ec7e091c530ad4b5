"""What copies of an operator's state give, as files of checkpoints: a segment that hasn't changed isn't written again.

A checkpoint has the files of all segments: those that are older are the same files under another name, where the file
system can do that. So each checkpoint stands for itself, and a file goes when the last one that has it does. Such a
file is shared with the one before the last: two checkpoints in a row have none in common, and if the newest is damaged
the one before is sound. Knows neither marks nor threads.
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

LINES = 2  # of checkpoints that have files in common


@dataclass(slots=True)
class Written:
    """A segment as a copy gave it.

    Args:
        number: of the copy.
        files: names, and SHA-256 in hex.
    """

    number: int
    files: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Checkpointed:
    """What a checkpoint has of the operator.

    Args:
        folder: of the checkpoint.
        segments: by number.
    """

    folder: SnapshotFolder
    segments: dict[int, Written]


class OperatorCopies:
    """The copies of one operator's state.

    Args:
        spec: what the operator is.
        prefix: of the names of its files.
        keep: how many complete checkpoints are kept; with one there is none to fall back on.
    """

    def __init__(self, spec: OperatorSpec, prefix: str, keep: int) -> None:
        self._spec = spec
        self._prefix = prefix
        self._lines = min(keep, LINES)
        self._begun: dict[int, Checkpointed] = {}  # by epoch, not known to be complete
        self._complete: list[Checkpointed] = []  # the last ones, in order

    def complete(self, epoch: int) -> None:
        """Of an epoch the checkpoint is complete: later ones may have files of it. Safe to repeat."""
        if epoch in self._begun:
            self._complete = [*self._complete, self._begun[epoch]][-self._lines :]
            self._begun = {number: one for number, one in self._begun.items() if number > epoch}

    def write(
        self, copy: _native.StateCopy, folder: SnapshotFolder, epoch: int, check: Callable[[], None]
    ) -> tuple[list[tuple[str, str]], int]:
        """Write a copy; it is given up then, whatever happens.

        Args:
            copy: of the state, by the scheduler.
            folder: of the checkpoint.
            epoch: of it.
            check: called before each chunk; raises what ends it.

        Returns:
            Its files, and how many bytes were written.

        Raises:
            StateError: it can't be written, or isn't wanted any more; names the operator.
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
            check()  # or it was given up under our hands
            raise unsavable(self._spec, str(error)) from None
        finally:
            copy.abandon()
        self._begun[epoch] = Checkpointed(folder, segments)
        return [file for segment in sorted(segments) for file in segments[segment].files], size

    def _unchanged(self, copy: _native.StateCopy, folder: SnapshotFolder) -> dict[int, Written]:
        """Has the segments be skipped of which the last checkpoint of this line has what there is still."""
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
