"""What a sink has written, as a snapshot or checkpoint says it: so that another run goes on with it, each row once.

Rows up to a checkpoint are in files that a ledger names with size and SHA-256, shown or still hidden, or in files of
the checkpoint itself. What is there beyond them, of the same lineage, is of a run that was lost or went on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

from rayelastic.errors import StateError

__all__ = ["Blob", "BlobStore", "Output", "SinkContext"]


class BlobStore(Protocol):
    """The files of checkpoints, as a sink sees them; `SnapshotFolder` is one."""

    @property
    def location(self) -> str:
        """Where they are."""
        ...

    def write(self, name: str, data: bytes) -> str:
        """Write a file, for good, and return its SHA-256 in hex."""
        ...

    def chunks(self, files: Sequence[tuple[str, str]]) -> Iterator[bytes]:
        """Read files, given by name and SHA-256; raise StateError for one that isn't what was written."""
        ...

    def delete(self, name: str) -> None:
        """Remove a file, if it is there."""
        ...


@dataclass(frozen=True, slots=True)
class Blob:
    """Rows in a file of a checkpoint.

    Args:
        name: of the file.
        digest: its SHA-256 in hex.
        rows: in it; of a ledger the parts that it names.
    """

    name: str
    digest: str
    rows: int


@dataclass(frozen=True, slots=True)
class Output:
    """What a sink has written when its job is stopped, or up to a checkpoint. Goes through JSON by `asdict`.

    Args:
        location: the file or folder, one name for all of its paths, without what is secret in a URI; empty if the rows
            stay in memory.
        rows: in it, of this job and of those that it went on from.
        epoch: of the checkpoint; 0: the job was stopped.
        lineage: id of the first run of those that went on from each other; empty: nothing outlives the job.
        end: of a table of PostgreSQL, the number behind its last part.
        blobs: rows that are in the checkpoint, in their order; of files the ledger of the parts.
    """

    location: str
    rows: int
    epoch: int = 0
    lineage: str = ""
    end: int = 0
    blobs: tuple[Blob, ...] = ()

    def __post_init__(self) -> None:
        blobs: Sequence[Any] = self.blobs  # as JSON has them, perhaps
        object.__setattr__(self, "blobs", tuple(Blob(**one) if isinstance(one, dict) else one for one in blobs))

    @classmethod
    def saved(cls, sink: str, held: Mapping[str, Any], has_ledger: bool) -> Output:
        """Return what a manifest has of a sink, also one of an earlier format, which had fields of its own.

        Raises:
            StateError: rows are outside of the checkpoint, and there is no ledger of their parts.
        """
        if held["location"] and not has_ledger:
            raise StateError(
                f"the snapshot is of an earlier version, which has no list of the parts that sink {sink!r} wrote",
                hint=f"Restore it with that version, or begin the sink's output anew: Snapshot(drop=({sink!r},))",
            )
        return cls(**{one.name: held[one.name] for one in fields(cls) if one.name in held})

    @staticmethod
    def at(location: str, outputs: Mapping[str, Output]) -> Output | None:
        """Return what was written to a location, by whichever sink."""
        return next((output for output in outputs.values() if output.location == location), None)


@dataclass(frozen=True, slots=True)
class SinkContext:
    """Who a sink writes for, and what it goes on from.

    Args:
        job: the name of the job.
        sink: the name of the sink.
        run: id of the run of the job, the same whatever is lost of it.
        outputs: what the run to go on from has written, by sink.
        store: the files of the checkpoint to go on from.
        keep: how many complete checkpoints may be restored.
        own: whether the run to go on from is this one.
        blobs: prefix of the names of its files in checkpoints.
    """

    job: str = ""
    sink: str = ""
    run: str = ""
    outputs: Mapping[str, Output] = field(default_factory=dict)
    store: BlobStore | None = None
    keep: int = 1
    own: bool = False
    blobs: str = ""
