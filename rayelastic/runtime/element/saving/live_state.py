"""The state of a PE's operators: saved while they are held, restored before they start.

Knows the native operators and a snapshot's folder, neither threads nor other PEs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rayelastic import _native
from rayelastic.connectors.fingerprints import check_input
from rayelastic.connectors.inputs import Input
from rayelastic.errors import ErrorCode, StateError
from rayelastic.graph.spec.operator_spec import PICKLED, OperatorSpec
from rayelastic.runtime.snapshot import CHUNK_BYTES, Manifest, SnapshotFolder, rows_folder
from rayelastic.runtime.state.tables import state_of
from rayelastic.runtime.state.widening import older_records

if TYPE_CHECKING:
    from rayelastic._native import KeyedState
    from rayelastic.connectors.output.record import Output
    from rayelastic.runtime.state.descriptor import StateDescriptor
    from rayelastic.runtime.values.specs import PESpec

EVERYTHING = ((0, (1 << 64) - 1),)  # all hashes


def export_chunks(state: KeyedState, max_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
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


def save(
    pe: str,
    folder: SnapshotFolder,
    key: bytes | None,
    operators: Sequence[OperatorSpec],
    natives: Mapping[str, _native.Operator],
    final: frozenset[str],
) -> tuple[dict[str, list[tuple[str, str]]], dict[str, tuple[int, float]]]:
    """Write the state of all operators, which are held.

    Args:
        pe: The PE, for the names of files.
        folder: The destination.
        key: The key that signs the snapshot.
        operators: The element's operators.
        natives: Their native operators, by name.
        final: Operators whose streams have ended, and that have emitted everything.

    Returns:
        The files of each, and its bytes with the seconds until they were written (Part.costs).
    """
    files: dict[str, list[tuple[str, str]]] = {}
    costs: dict[str, tuple[int, float]] = {}
    began = time.monotonic()
    for number, spec in enumerate(operators):
        if spec.name not in final:
            _settle(spec, natives[spec.name])
            saved = save_operator(f"{pe}-{number:04}", folder, key, spec, natives[spec.name])
            if saved is not None:
                files[spec.name], size = saved
                costs[spec.name] = (size, time.monotonic() - began)
    return files, costs


def _settle(spec: OperatorSpec, native: _native.Operator) -> None:
    """Make an operator merge what other threads did for it; at a barrier it already has."""
    try:
        native.settle()
    except _native.StateError as error:
        raise StateError(f"{error}", operator=spec.name, location=spec.location) from None


def save_operator(
    prefix: str, folder: SnapshotFolder, key: bytes | None, spec: OperatorSpec, native: _native.Operator
) -> tuple[list[tuple[str, str]], int] | None:
    """Write the state of a held operator.

    Args:
        prefix: The prefix of its files' names.
        folder: The destination.
        key: The key that signs the snapshot.
        spec: The operator.
        native: The native operator.

    Returns:
        Its files, and their bytes; None: it has no state.

    Raises:
        StateError: It can't be saved; the message names it.
    """
    state, form = native.state, spec.state_form
    if state is None or form is None:
        return None
    check_signed(spec, key)
    files, size = [], 0
    try:
        for chunk, data in enumerate(export_chunks(state)):
            name = f"{prefix}-{chunk:06}.state"
            digest, stored = folder.write_state(name, data)
            files.append((name, digest))
            size += stored
    except _native.StateError as error:
        raise unsavable(spec, f"{error}") from None
    return files, size


def check_signed(spec: OperatorSpec, key: bytes | None) -> None:
    """Raise StateError if an operator keeps Python values and the snapshot isn't signed; the message names it."""
    if key is None and (spec.state_form or "").endswith(PICKLED):
        raise StateError(
            "it keeps Python values, which are saved in signed snapshots only",
            operator=spec.name,
            location=spec.location,
            hint="Pass Snapshot(..., key=...), or keep a NamedTuple of numbers and texts",
            code=ErrorCode.UNSIGNED_VALUES,
        )


def unsavable(spec: OperatorSpec, why: str) -> StateError:
    """Return the error about an operator whose state can't be saved."""
    return StateError(
        why,
        operator=spec.name,
        location=spec.location,
        hint="Keep values that can be pickled, or write snapshot() and restore() where it is a class",
        code=ErrorCode.NOT_SAVEABLE,
    )


class SavedState:
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
        saved = self._manifest = self._spec.manifest or SnapshotFolder(snapshot).manifest()
        for operator in self._spec.operators:
            if operator.name in saved.inputs and operator.name not in snapshot.drop:
                check_input(operator, saved.inputs[operator.name], saved.positions[operator.name])
        return {name: output for name, output in saved.outputs.items() if name not in snapshot.drop}

    @property
    def rows(self) -> SnapshotFolder | None:
        """The folder of the rows that sinks had in memory, once the manifest has been read."""
        if self._spec.restore is None or self._manifest is None:
            return None
        return rows_folder(self._spec.restore, alone=self._manifest.alone)

    @property
    def inputs(self) -> Mapping[str, Input]:
        """Return what the sources read then, and their positions."""
        return {} if self._manifest is None else self._manifest.inputs

    def restore(self, natives: Mapping[str, _native.Operator]) -> dict[str, int]:
        """Restore the state of operators that haven't started yet.

        Returns:
            {source: rows that it needn't emit again}.

        Raises:
            StateError: The snapshot is damaged, or is of another layout; the message names the operator.
        """
        snapshot, saved, operators = self._spec.restore, self._manifest, self._spec.operators
        if snapshot is None or saved is None:
            return {}
        for spec in operators:
            if spec.name not in snapshot.drop:
                files = saved.files.get(spec.name, ())
                if self._spec.manifest is not None:  # a local disk may have no others
                    owner = self._spec.predecessors.get(spec.name, self._spec.pe)
                    files = [(name, digest) for name, digest in files if name.startswith(f"{owner}-")]
                older = older_records(saved.shapes.get(spec.name), spec)
                _restore(spec, SnapshotFolder(snapshot).states(files), natives[spec.name].state, older)
        sources = {spec.name for spec in operators if spec.is_source}.difference(snapshot.drop)
        return {name: at for name, at in saved.positions.items() if name in sources}


def _restore(
    spec: OperatorSpec, chunks: Iterator[bytes], state: KeyedState | None, older: StateDescriptor | None
) -> None:
    """Import exports into the state of an operator.

    Args:
        spec: The operator.
        chunks: The exports.
        state: Its state, if it has one.
        older: The descriptor of the exports, if their records have to be widened.
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
        raise StateError(
            f"{error}",
            operator=spec.name,
            location=spec.location,
            hint="Declare its keys and its state as they were when the snapshot was made",
        ) from None
