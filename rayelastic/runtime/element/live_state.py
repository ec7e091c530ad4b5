"""The state of a processing element's operators: read while they are held, written before they start.

Knows the native operators and a snapshot's folder, neither threads nor other processing elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rayelastic import _native
from rayelastic.errors import StateError
from rayelastic.graph.spec.operator_spec import OperatorKind, OperatorSpec, StateKind
from rayelastic.runtime.files.inputs import Input, check_input
from rayelastic.runtime.saved.widening import Widening
from rayelastic.runtime.snapshot import CHUNK_BYTES, Manifest, SnapshotFolder, rows_folder, state_form

if TYPE_CHECKING:
    from rayelastic._native import KeyedState
    from rayelastic.runtime.files.outputs import Output
    from rayelastic.runtime.values.specs import PESpec

USERS_CODE = (OperatorKind.MAP, OperatorKind.FILTER, OperatorKind.FLAT_MAP, OperatorKind.OPERATOR)
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


def check_exportable(operators: Iterable[OperatorSpec]) -> None:
    """Raises StateError, naming the operator, if there is one whose state or position can't be had."""
    for spec in operators:
        problem, way_out = _why_not_exportable(spec)
        if problem:
            raise StateError(problem, operator=spec.name, location=spec.location, way_out=way_out)


def _why_not_exportable(spec: OperatorSpec) -> tuple[str, str]:
    if spec.kind in (OperatorKind.SOURCE, OperatorKind.SINK) or spec.kind.is_passage:
        return "", ""
    if spec.state_kind is StateKind.STATELESS:
        return "", ""
    if spec.kind is OperatorKind.DELAY:
        return (
            "the tuples that it delays can't be saved",
            "Stop the job with job.cancel(), which lets them out, or leave the delay out",
        )
    body: Any = spec.body
    of_users = spec.kind in USERS_CODE and getattr(body, "state_schema", None) is None and body.state is None
    if of_users or any(port.demand is not None for port in spec.inputs):
        return (
            "what it keeps can't be saved: only the state of keys, aggregates, windows and joins can",
            "Keep it in state by key, declare the operator stateless, or stop the job with job.cancel()",
        )
    return "", ""


def save(
    pe: str,
    folder: SnapshotFolder,
    key: bytes | None,
    operators: Sequence[OperatorSpec],
    natives: Mapping[str, _native.Operator],
    final: frozenset[str],
) -> dict[str, list[tuple[str, str]]]:
    """Writes the state of all operators, which are held.

    Args:
        pe: the processing element, for the names of files.
        folder: where to.
        key: that the snapshot is signed with.
        operators: what it hosts.
        natives: the same, by name.
        final: those whose streams have ended: what they had to give they have given.

    Returns:
        The files of each.
    """
    files: dict[str, list[tuple[str, str]]] = {}
    for number, spec in enumerate(operators):
        if spec.name not in final:
            saved = save_operator(f"{pe}-{number:04}", folder, key, spec, natives[spec.name])
            if saved is not None:
                files[spec.name] = saved
    return files


def save_operator(
    prefix: str, folder: SnapshotFolder, key: bytes | None, spec: OperatorSpec, native: _native.Operator
) -> list[tuple[str, str]] | None:
    """Writes the state of an operator, which is held.

    Args:
        prefix: of the names of its files.
        folder: where to.
        key: that the snapshot is signed with.
        spec: what it is.
        native: the operator.

    Returns:
        Its files; None: it keeps nothing.

    Raises:
        StateError: it can't be saved; names it.
    """
    state, form = native.state, state_form(spec)
    if state is None or form is None:
        return None
    if form.endswith("python values") and key is None:
        raise StateError(
            "it keeps Python values, which are saved in signed snapshots only",
            operator=spec.name,
            location=spec.location,
            way_out="Give Snapshot(..., key=...), or keep a NamedTuple of numbers and texts",
        )
    try:
        return [
            (name := f"{prefix}-{chunk:06}.state", folder.write(name, data))
            for chunk, data in enumerate(export_chunks(state))
        ]
    except _native.StateError as error:
        raise StateError(
            str(error), operator=spec.name, location=spec.location, way_out="Keep values that can be pickled"
        ) from None


class SavedState:
    """What a processing element goes on from, if it does.

    Args:
        spec: of the processing element.
    """

    def __init__(self, spec: PESpec) -> None:
        self._spec = spec
        self._manifest: Manifest | None = None

    def read(self) -> dict[str, Output]:
        """Reads the manifest, and checks that the sources read what they did.

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
        """Reads the state of operators that haven't started yet.

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
                state, chunks = natives[spec.name].state, SnapshotFolder(snapshot).chunks(files)
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
            way_out="Declare its keys and its state as they were when the snapshot was made",
        ) from None
