"""The output of a sink, as a snapshot or checkpoint records it, so that another run continues it exactly once.

Rows up to a checkpoint are in files of the checkpoint itself, or in shown or hidden files of the output. A ledger names
the latter with size and SHA-256. Further files of the same lineage are of a run that was lost or continued.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

from rayelastic.errors import ErrorCode, StateError

__all__ = ["Blob", "BlobStore", "Output", "SinkContext"]


class BlobStore(Protocol):
    """The files of checkpoints, as a sink sees them; `SnapshotFolder` is one."""

    @property
    def location(self) -> str:
        """Their location."""
        ...

    def write(self, name: str, data: bytes) -> str:
        """Write a file durably, and return its SHA-256 in hex."""
        ...

    def chunks(self, files: Sequence[tuple[str, str]]) -> Iterator[bytes]:
        """Read files, by name and SHA-256; raise StateError for one that has changed."""
        ...

    def delete(self, name: str) -> None:
        """Remove a file, if it exists."""
        ...


@dataclass(frozen=True, slots=True)
class Blob:
    """Rows in a file of a checkpoint.

    Args:
        name: The file's name.
        digest: Its SHA-256 in hex.
        rows: Its number of rows; of a ledger, its number of parts.
    """

    name: str
    digest: str
    rows: int


@dataclass(frozen=True, slots=True)
class Output:
    """The output of a sink when its job is stopped, or up to a checkpoint. Converted to JSON by `asdict`.

    Args:
        location: The file or folder, in a canonical form, without the secrets of a URI; empty if the rows stay in
            memory.
        rows: The rows in it, of this job and of those that it continues.
        epoch: The checkpoint's epoch; 0: the job was stopped.
        lineage: The id of the first run in the chain of restored ones; empty: nothing outlives the job.
        end: Of a table of PostgreSQL, the number after its last part.
        blobs: Rows that are in the checkpoint, in order; of files, the ledger of the parts.
        state: Of a topic of Kafka, what it has, as JSON.
    """

    location: str
    rows: int
    epoch: int = 0
    lineage: str = ""
    end: int = 0
    blobs: tuple[Blob, ...] = ()
    state: str = ""

    def __post_init__(self) -> None:
        blobs: Sequence[Any] = self.blobs  # possibly from JSON
        object.__setattr__(self, "blobs", tuple(Blob(**one) if isinstance(one, dict) else one for one in blobs))

    @classmethod
    def saved(cls, sink: str, held: Mapping[str, Any], has_ledger: bool) -> Output:
        """Return a manifest's output of a sink, also in an earlier format, which had its own fields.

        Raises:
            StateError: Rows are outside the checkpoint, and there is no ledger of their parts.
        """
        if held["location"] and not has_ledger:
            raise StateError(
                f"the snapshot is of an earlier version, which has no list of the parts that sink {sink!r} wrote",
                hint=f"Restore it with that version, or start its output anew: Snapshot(drop=({sink!r},))",
                code=ErrorCode.OLDER_VERSION,
            )
        return cls(**{one.name: held[one.name] for one in fields(cls) if one.name in held})

    @staticmethod
    def at(location: str, outputs: Mapping[str, Output]) -> Output | None:
        """Return the output at a location, of any sink."""
        return next((output for output in outputs.values() if output.location == location), None)


@dataclass(frozen=True, slots=True)
class SinkContext:
    """The writer of an output, and the run that it continues.

    Args:
        job: The name of the job.
        sink: The name of the sink.
        run: The id of the job's run, the same after each recovery.
        outputs: The outputs of the run to continue, by sink.
        store: The files of its checkpoint.
        keep: The number of complete checkpoints that can be restored.
        own: Whether the run to continue is this one.
        blobs: The prefix of the names of its files in checkpoints.
    """

    job: str = ""
    sink: str = ""
    run: str = ""
    outputs: Mapping[str, Output] = field(default_factory=dict)
    store: BlobStore | None = None
    keep: int = 1
    own: bool = False
    blobs: str = ""
