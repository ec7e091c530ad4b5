"""The state of a processing element's operators: read while they are held, written before they start.

Knows the native operators and a snapshot's folder, neither threads nor other processing elements.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rayelastic import _native
from rayelastic.errors import StateError
from rayelastic.graph.spec.operator_spec import OperatorKind, OperatorSpec
from rayelastic.runtime.files.inputs import Input, check_input
from rayelastic.runtime.saved.forms import PICKLED, state_form
from rayelastic.runtime.saved.widening import Widening
from rayelastic.runtime.snapshot import CHUNK_BYTES, Manifest, SnapshotFolder, rows_folder

if TYPE_CHECKING:
    from rayelastic._native import KeyedState
    from rayelastic.runtime.files.outputs import Output
    from rayelastic.runtime.values.specs import PESpec

EVERYTHING = ((0, (1 << 64) - 1),)  # all hashes


def export_chunks(state: KeyedState, max_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
    """Gives the state of all keys, chunk by chunk, as the taker asks for them.

    Each chunk is an export of its own. The operator has to be held from the first to the last.

    Args:
        state: of an operator.
        max_bytes: about as large is a chunk; memory for one is all that is needed.
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
        pe: the processing element, for the names of files.
        folder: where to.
        key: that the snapshot is signed with.
        operators: what it hosts.
        natives: the same, by name.
        final: those whose streams have ended: what they had to give they have given.

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
    """Has an operator take in what other threads did for it; at a mark of the stream it has done so."""
    try:
        native.settle()
    except _native.StateError as error:
        raise StateError(str(error), operator=spec.name, location=spec.location) from None


def save_operator(
    prefix: str, folder: SnapshotFolder, key: bytes | None, spec: OperatorSpec, native: _native.Operator
) -> tuple[list[tuple[str, str]], int] | None:
    """Write the state of an operator, which is held.

    Args:
        prefix: of the names of its files.
        folder: where to.
        key: that the snapshot is signed with.
        spec: what it is.
        native: the operator.

    Returns:
        Its files, and how many bytes are in them; None: it keeps nothing.

    Raises:
        StateError: it can't be saved; names it.
    """
    state, form = native.state, state_form(spec)
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
        raise unsavable(spec, str(error)) from None
    return files, size


def check_signed(spec: OperatorSpec, key: bytes | None) -> None:
    """Raise StateError if an operator keeps Python values and what is written isn't signed with a key; names it."""
    if key is None and (state_form(spec) or "").endswith(PICKLED):
        raise StateError(
            "it keeps Python values, which are saved in signed snapshots only",
            operator=spec.name,
            location=spec.location,
            hint="Give Snapshot(..., key=...), or keep a NamedTuple of numbers and texts",
        )


def unsavable(spec: OperatorSpec, why: str) -> StateError:
    """What is told of an operator whose state can't be saved."""
    return StateError(
        why,
        operator=spec.name,
        location=spec.location,
        hint="Keep values that can be pickled, or write snapshot() and restore() where it is a class",
    )


class SavedState:
    """What a processing element goes on from, if it does.

    Args:
        spec: of the processing element.
    """

    def __init__(self, spec: PESpec) -> None:
        self._spec = spec
        self._manifest: Manifest | None = None

    def read(self) -> dict[str, Output]:
        """Read the manifest, and check that the sources read what they did.

        Returns:
            {sink: what was written}, to be gone on with.

        Raises:
            StateError: the snapshot is damaged, or a source isn't what it was; names it.
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
        """Where the rows are that sinks had in memory, once it has been read."""
        if self._spec.restore is None or self._manifest is None:
            return None
        return rows_folder(self._spec.restore, alone=self._manifest.alone)

    @property
    def inputs(self) -> Mapping[str, Input]:
        """What the sources read then, and where they were."""
        return {} if self._manifest is None else self._manifest.inputs

    def restore(self, natives: Mapping[str, _native.Operator]) -> dict[str, int]:
        """Read the state of operators that haven't started yet.

        Returns:
            {source: rows that it needn't give again}.

        Raises:
            StateError: names the operator; the snapshot is damaged, or is of another layout.
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
                state, chunks = natives[spec.name].state, SnapshotFolder(snapshot).states(files)
                if state is not None and (widened := Widening.of(saved.shapes.get(spec.name), spec)) is not None:
                    chunks = _widened(chunks, widened, state.layout)
                _restore(spec, chunks, state)
        sources = {spec.name for spec in operators if spec.kind is OperatorKind.SOURCE}.difference(snapshot.drop)
        return {name: at for name, at in saved.positions.items() if name in sources}


def _widened(chunks: Iterator[bytes], widened: Widening, layout: int) -> Iterator[bytes]:
    return (widened(chunk, layout) for chunk in chunks)


def _restore(spec: OperatorSpec, chunks: Iterator[bytes], state: KeyedState | None) -> None:
    try:
        for chunk in chunks:
            if state is not None:
                state.import_(chunk)
    except StateError as error:
        raise error.at(spec.name, spec.location) from None
    except _native.StateError as error:
        raise StateError(
            str(error),
            operator=spec.name,
            location=spec.location,
            hint="Declare its keys and its state as they were when the snapshot was made",
        ) from None
