"""The snapshot that a PE restores before its operators start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayelastic.connectors.fingerprints import check_input
from rayelastic.runtime.checkpoint.files import SnapshotFolder, rows_of
from rayelastic.runtime.checkpoint.operator_files import import_chunks
from rayelastic.runtime.state.descriptor import older_records

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rayelastic import _native
    from rayelastic.connectors.inputs import Input
    from rayelastic.connectors.output.record import Output
    from rayelastic.runtime.values.snapshot import Manifest
    from rayelastic.runtime.values.specs import PESpec

__all__ = ["RestorePoint"]


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
                    owner = self._spec.predecessors.get(spec.name, self._spec.pe)
                    files = [(name, digest) for name, digest in files if name.startswith(f"{owner}-")]
                older = older_records(manifest.shapes.get(spec.name), spec)
                import_chunks(spec, SnapshotFolder(snapshot).states(files), natives[spec.name].state, older)
        sources = {spec.name for spec in operators if spec.is_source}.difference(snapshot.drop)
        return {name: at for name, at in manifest.positions.items() if name in sources}
