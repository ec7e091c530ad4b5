"""The content of a snapshot, as values: the part of each PE, and the manifest of all of it.

Knows no files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from rayelastic.connectors.inputs import Input
from rayelastic.connectors.output.record import Output
from rayelastic.errors import ErrorCode, StateError

__all__ = ["Manifest", "Part"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Part:
    """The part of one PE: positions of its sources, and files by operator.

    Args:
        positions: {source: records that it has submitted since the job's first start}.
        files: {operator: [(file, SHA-256 in hex)]}.
        inputs: {source: what it reads}.
        outputs: {sink: what it has written once it has ended}, of those that write files.
        costs: {operator: (bytes of its state, seconds since the start until they were written)}; not saved.
        held: {operator: seconds for which it was held while its state was written}; not saved.
    """

    positions: Mapping[str, int]
    files: Mapping[str, Sequence[tuple[str, str]]]
    inputs: Mapping[str, Input]
    outputs: Mapping[str, Output]
    costs: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    held: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of a snapshot.

    Args:
        job: The name of the job.
        forms: {operator: the form of its state, as text}.
        positions: {source: records submitted}.
        files: {operator: [(file, SHA-256 in hex)]}.
        inputs: {source: what it read}.
        outputs: {sink: what it wrote}.
        signed: Whether a key signs all of it.
        plan: The plan in force, an ExecPlan.to_dict; empty: of a snapshot without it.
        alone: Whether it has the rows that sinks keep in memory; otherwise they are beside the checkpoints.
        shapes: {operator: the layout of its state}, of saved/shapes.py; empty: of a snapshot without it.
        automatic: {operator with an automatic name: what it follows}, of saved/automatic.py.
    """

    job: str
    forms: Mapping[str, str]
    positions: Mapping[str, int]
    files: Mapping[str, Sequence[tuple[str, str]]]
    inputs: Mapping[str, Input]
    outputs: Mapping[str, Output]
    signed: bool
    plan: Mapping[str, Any] = field(default_factory=dict)
    alone: bool = False
    shapes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    automatic: Mapping[str, str] = field(default_factory=dict)

    @property
    def epoch(self) -> int:
        """The epoch of its checkpoint, as its sinks know it; 0: the job was stopped, or has no sinks."""
        return max((output.epoch for output in self.outputs.values()), default=0)

    def renamed(self, names: Mapping[str, str]) -> Manifest:
        """Return the manifest with other names for some operators.

        Raises:
            StateError: It has no such operator, or two would have one name.
        """
        if not names:
            return self
        known = {name for part in (self.forms, self.positions, self.outputs) for name in part}
        for old, new in names.items():
            if old not in known:
                raise StateError(
                    "the snapshot has no state of it",
                    operator=old,
                    hint="Check Snapshot(rename=...)",
                    code=ErrorCode.UNKNOWN_STATE,
                )
            if new in known and new not in names:
                raise StateError(
                    f"it is renamed to {new!r}, and the snapshot has another operator of that name",
                    operator=old,
                    hint="Check Snapshot(rename=...)",
                    code=ErrorCode.DUPLICATE_NAME,
                )

        def called(part: Mapping[str, T]) -> dict[str, T]:
            return {names.get(name, name): content for name, content in part.items()}

        return replace(
            self,
            forms=called(self.forms),
            positions=called(self.positions),
            files=called(self.files),
            inputs=called(self.inputs),
            outputs=called(self.outputs),
            shapes=called(self.shapes),
            automatic={name: followed for name, followed in self.automatic.items() if name not in names},
        )
