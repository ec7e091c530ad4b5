"""What a sink has written, as a snapshot or checkpoint says it: so that another run goes on with it, each row once.

Two moments differ. A job that is *stopped* has completed its files: what is there has to be what it left. A
*checkpoint* (of an epoch, 1 and up) is written while the job runs on: rows up to it are in files that nobody sees yet,
or in blobs of the checkpoint itself, and whatever is there beyond them is of a run that was lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from rayelastic.errors import StateError
from rayelastic.graph.edges.locations import shown_location

if TYPE_CHECKING:
    from rayelastic.runtime.files.output_folder import OutputFolder

MOVED = "Put back what the first run left, or give the sink another path"


class BlobStore(Protocol):
    """The files of checkpoints, as a sink sees them; `SnapshotFolder` is one."""

    @property
    def location(self) -> str:
        """Where they are."""
        ...

    def write(self, name: str, data: bytes) -> str:
        """Writes a file, for good, and gives its SHA-256 in hex."""
        ...

    def chunks(self, files: Sequence[tuple[str, str]]) -> Iterator[bytes]:
        """Reads files, given by name and SHA-256; raises StateError for one that isn't what was written."""
        ...

    def delete(self, name: str) -> None:
        """Removes a file, if it is there."""
        ...


@dataclass(frozen=True, slots=True)
class HiddenFile:
    """A complete file that readers don't see yet.

    Args:
        hidden: its name, with a dot in front.
        name: what it is called once it is shown.
        rows: in it.
    """

    hidden: str
    name: str
    rows: int


@dataclass(frozen=True, slots=True)
class Blob:
    """Rows in a file of a checkpoint, one Arrow IPC stream.

    Args:
        name: of the file.
        digest: its SHA-256 in hex.
        rows: in it.
    """

    name: str
    digest: str
    rows: int


@dataclass(frozen=True, slots=True)
class Output:
    """What a sink has written when its job is stopped, or up to a checkpoint. Goes through JSON by `asdict`.

    Args:
        location: the file or folder, without what is secret in a URI; empty if the rows stay in memory.
        rows: in it, of this job and of those that it went on from.
        first: the number of the first part file that is theirs; 0 of a single file.
        epoch: of the checkpoint; 0: the job was stopped.
        end: with an epoch, the number behind the last part file that is theirs.
        base: with an epoch, rows in front that the visible single file has.
        hidden: with an epoch, files that may still have to be shown, or of a single file put together.
        blobs: rows that are in the checkpoint, in their order.
    """

    location: str
    rows: int
    first: int = 0
    epoch: int = 0
    end: int = 0
    base: int = 0
    hidden: tuple[HiddenFile, ...] = ()
    blobs: tuple[Blob, ...] = ()

    def __post_init__(self) -> None:
        hidden: Sequence[Any] = self.hidden  # as JSON has them, perhaps
        blobs: Sequence[Any] = self.blobs
        object.__setattr__(self, "hidden", tuple(HiddenFile(**one) if isinstance(one, dict) else one for one in hidden))
        object.__setattr__(self, "blobs", tuple(Blob(**one) if isinstance(one, dict) else one for one in blobs))

    @staticmethod
    def at(location: str, outputs: Mapping[str, Output]) -> Output | None:
        """Returns what was written to a location, by whichever sink."""
        shown = shown_location(location)
        return next((output for output in outputs.values() if output.location == shown), None)


def rows_of(folder: OutputFolder, names: Sequence[str], count: Callable[[Any], int]) -> Iterator[int]:
    """Counts the rows of files; none of one that isn't there."""
    there = set(folder.names())
    for name in names:
        if name in there:
            with folder.read(name) as file:
                yield count(file)


def check_left(before: Output, left: Iterator[int]) -> None:
    """Raises StateError unless what is there is what an earlier run left."""
    try:
        files = list(left)
    except (OSError, ValueError) as error:  # pyarrow's own are of these
        raise StateError(
            f"what the first run wrote to {before.location!r} can't be read: {error}", way_out=MOVED
        ) from None
    if not files:
        raise StateError(
            f"the first run wrote {before.rows} rows to {before.location!r}, which isn't there", way_out=MOVED
        )
    if sum(files) != before.rows:
        raise StateError(
            f"the first run left {before.rows} rows in {before.location!r}, where {sum(files)} are now",
            way_out=f"{MOVED}; a later run's files have to go before the same snapshot is restored again",
        )
