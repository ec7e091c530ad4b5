"""State in files: written for checkpoints and savepoints, operator by operator, and read at a restore.

Checkpoints at barriers are incremental: a segment of the state that hasn't changed isn't written again. A checkpoint
has the files of all segments; unchanged ones are the same files under another name, if the file system supports that.
So each checkpoint is complete by itself, and a file is deleted with the last checkpoint that has it. A file is shared
with the checkpoint before the previous one. Two consecutive checkpoints have no file in common: if the newest is
damaged, the one before is sound. Knows neither barriers nor threads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rayelastic import _native
from rayelastic.connectors.fingerprints import check_input
from rayelastic.errors import ErrorCode, StateError
from rayelastic.graph.spec.operator_spec import PICKLED
from rayelastic.runtime.checkpoint.files import CHUNK_BYTES, SnapshotFolder, rows_of
from rayelastic.runtime.state.descriptor import older_records
from rayelastic.runtime.state.tables import state_of
from rayelastic.runtime.values.snapshot import STATE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rayelastic.connectors.inputs import Input
    from rayelastic.connectors.output.record import Output
    from rayelastic.graph.spec.operator_spec import OperatorSpec
    from rayelastic.runtime.state.descriptor import StateDescriptor
    from rayelastic.runtime.values.snapshot import Manifest
    from rayelastic.runtime.values.specs import PESpec

LINES = 2  # independent series of checkpoints that share files
EVERYTHING = ((0, (1 << 64) - 1),)  # all hashes

Written = tuple[list[tuple[str, str]], int]  # the files, and the number of bytes written


@dataclass(slots=True)
class Segment:
    """A written segment.

    Args:
        number: The number of its copy.
        files: Names, and SHA-256 in hex.
    """

    number: int
    files: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Copy:
    """A checkpoint's part of the operator: its folder, and its segments by number."""

    folder: SnapshotFolder
    segments: dict[int, Segment]


class OperatorFiles:
    """Writes the state of one operator.

    Args:
        spec: The operator.
        prefix: The prefix of its files' names.
        keep: The number of complete checkpoints that are kept; with one there is no fallback.
    """

    def __init__(self, spec: OperatorSpec, prefix: str, keep: int) -> None:
        self._spec = spec
        self._prefix = prefix
        self._lines = min(keep, LINES)
        self._begun: dict[int, Copy] = {}  # by checkpoint, possibly incomplete
        self._complete: list[Copy] = []  # the last ones, in order

    def complete(self, checkpoint: int) -> None:
        """Record a complete checkpoint, whose files later ones may share. Safe to repeat."""
        if checkpoint in self._begun:
            self._complete = [*self._complete, self._begun[checkpoint]][-self._lines :]
            self._begun = {number: copy for number, copy in self._begun.items() if number > checkpoint}

    def write(self, state: _native.KeyedState, folder: SnapshotFolder, key: bytes | None) -> Written:
        """Write the state while the operator is held.

        Args:
            state: The state.
            folder: The destination.
            key: The key that signs the snapshot.

        Raises:
            StateError: It can't be saved; the message names the operator.
        """
        if key is None and (self._spec.state_form or "").endswith(PICKLED):
            problem = "it keeps Python values, which are saved in signed snapshots only"
            hint = "Pass Snapshot(..., key=...), or keep a NamedTuple of numbers and texts"
            raise self._spec.state_error(problem, hint, ErrorCode.UNSIGNED_VALUES)
        files, size = [], 0
        try:
            for chunk, data in enumerate(export_chunks(state)):
                name = f"{self._prefix}-{chunk:06}.state"
                digest, stored = folder.write_state(name, data)
                files.append((name, digest))
                size += stored
        except _native.StateError as error:
            raise self._unsavable(error) from None
        return files, size

    def write_copy(
        self, copy: _native.StateCopy, folder: SnapshotFolder, checkpoint: int, check: Callable[[], None]
    ) -> Written:
        """Write a copy of the state, and release it in any case. All checkpoints are signed.

        Args:
            copy: The scheduler's copy.
            folder: The checkpoint's folder.
            checkpoint: Its id.
            check: Called before each chunk; raises to abort.

        Raises:
            StateError: It can't be saved, or was aborted; the message names the operator.
        """
        try:
            check()
            segments, size = self._unchanged(copy, folder), 0
            while (chunk := copy.next_chunk(CHUNK_BYTES)) is not None:
                check()
                number, data = chunk
                files = segments.setdefault(number, Segment(copy.number)).files
                name = f"{self._prefix}-{number:06}-{len(files):03}.state"
                digest, stored = folder.write_state(name, data)
                files.append((name, digest))
                size += stored
        except _native.StateError as error:
            check()  # it may have been aborted meanwhile
            raise self._unsavable(error) from None
        finally:
            copy.abandon()
        self._begun[checkpoint] = Copy(folder, segments)
        return [file for number in sorted(segments) for file in segments[number].files], size

    def _unchanged(self, copy: _native.StateCopy, folder: SnapshotFolder) -> dict[int, Segment]:
        """Skip the segments that are unchanged since the last checkpoint of this line; return them."""
        unchanged: dict[int, Segment] = {}
        if len(self._complete) < self._lines:
            return unchanged
        last = self._complete[0]
        for number, changed in enumerate(copy.changed_after):
            segment = last.segments.get(number)
            if segment is None or changed >= segment.number:
                continue
            if all(folder.take(name, last.folder) for name, _ in segment.files):
                copy.skip(number)
                unchanged[number] = segment
        return unchanged

    def _unsavable(self, error: _native.StateError) -> StateError:
        hint = "Keep values that can be pickled, or write snapshot() and restore() where it is a class"
        return self._spec.state_error(f"{error}", hint, ErrorCode.NOT_SAVEABLE)


def export_chunks(state: _native.KeyedState, max_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
    """Yield the state of all keys, chunk by chunk, on demand.

    Each chunk is an export of its own. The operator has to be held from the first to the last.

    Args:
        state: An operator's state.
        max_bytes: The approximate size of a chunk; no more memory than for one is needed.
    """
    keys, at = state.select(EVERYTHING), 0
    while True:
        chunk, at = state.export_chunk(keys, at, max_bytes)
        yield chunk
        if at == 0:
            return


class RestorePoint:
    """The snapshot that a PE restores, if any.

    Args:
        spec: The PE.
    """

    def __init__(self, spec: PESpec) -> None:
        self._spec = spec
        self._manifest: Manifest | None = None

    def read(self) -> dict[str, Output]:
        """Read the manifest, and check that the sources read the same files.

        Returns:
            {sink: what it had written}, where the sinks continue.

        Raises:
            StateError: The snapshot is damaged, or a source has changed; the message names it.
        """
        snapshot = self._spec.restore
        if snapshot is None:
            return {}
        manifest = self._manifest = self._spec.manifest or SnapshotFolder(snapshot).manifest()
        for operator in self._spec.operators:
            if operator.name in manifest.inputs and operator.name not in snapshot.drop:
                check_input(operator, manifest.inputs[operator.name], manifest.positions[operator.name])
        return {name: output for name, output in manifest.outputs.items() if name not in snapshot.drop}

    @property
    def rows(self) -> SnapshotFolder | None:
        """The folder of the rows that sinks had in memory, once the manifest has been read."""
        if self._spec.restore is None or self._manifest is None:
            return None
        return SnapshotFolder(rows_of(self._spec.restore, alone=self._manifest.alone))

    @property
    def inputs(self) -> Mapping[str, Input]:
        """What the sources read then, and their positions."""
        return {} if self._manifest is None else self._manifest.inputs

    def restore(self, natives: Mapping[str, _native.Operator]) -> dict[str, int]:
        """Restore the state of operators that haven't started yet.

        Returns:
            {source: rows that it needn't emit again}.

        Raises:
            StateError: The snapshot is damaged, or is of another layout; the message names the operator.
        """
        snapshot, manifest, operators = self._spec.restore, self._manifest, self._spec.operators
        if snapshot is None or manifest is None:
            return {}
        for spec in operators:
            if spec.name not in snapshot.drop:
                files = manifest.files.get(spec.name, ())
                if self._spec.manifest is not None:  # a local disk may have no others
                    owned = manifest.files_of(spec.name, self._spec.predecessor(spec.name))
                    files = [(file.name, file.digest) for file in owned if file.place == STATE]
                older = older_records(manifest.shapes.get(spec.name), spec)
                state = natives[spec.name].state
                _import(spec, SnapshotFolder(snapshot).states(files), state, older)
                if state is not None and spec.name in self._spec.foreign:
                    _remove(state, self._spec.foreign[spec.name])
        sources = {spec.name for spec in operators if spec.is_source}.difference(snapshot.drop)
        return {name: at for name, at in manifest.positions.items() if name in sources}


def _remove(state: _native.KeyedState, ranges: Sequence[tuple[int, int]]) -> None:
    """Remove the keys whose hash is in one of some ranges, from the state of an operator that hasn't started yet."""
    keys, at = state.select(ranges), 0
    while True:
        _, at = state.remove_chunk(keys, at)
        if at == 0:
            return


def _import(
    spec: OperatorSpec, chunks: Iterator[bytes], state: _native.KeyedState | None, older: StateDescriptor | None
) -> None:
    """Import exports into the state of an operator that hasn't started yet.

    Args:
        spec: The operator.
        chunks: The exports.
        state: Its state, if it has one.
        older: The descriptor of the exports, if their records have to be widened.

    Raises:
        StateError: They are damaged, or of another layout; the message names the operator.
    """
    try:
        for chunk in chunks:
            if state is None:
                continue
            if older is None:
                state.import_(chunk)
            else:
                records = state_of(older)
                records.import_(chunk)
                state.import_older(records)
    except StateError as error:
        raise error.at(spec.name, spec.location) from None
    except _native.StateError as error:
        hint = "Declare its keys and its state as they were when the snapshot was made"
        raise spec.state_error(f"{error}", hint) from None
