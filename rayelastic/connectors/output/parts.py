"""The parts of an output: written hidden, identified by size and SHA-256, and listed in a ledger in checkpoints."""

from __future__ import annotations

import hashlib
import json
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from rayelastic.connectors.output.blob_log import BlobLog, ItemCodec
from rayelastic.connectors.output.folder import OutputFolder, WrittenFile, hidden_name
from rayelastic.errors import DamagedError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from rayelastic.connectors.output.formats import FileFormat
    from rayelastic.connectors.output.record import Output, SinkContext

__all__ = ["HiddenPart", "check_whole", "lineage_tag", "part_ledger"]

PIECE = 1 << 20  # the bytes of one write
MOST_READ = 16 << 30  # bytes of the newest shown parts that a restore reads; of others, it compares sizes


def lineage_tag(lineage: str) -> str:
    """Return the common part of the names of a lineage's parts."""
    return hashlib.sha256(lineage.encode()).hexdigest()[:8]


def part_ledger(context: SinkContext, before: Output | None) -> BlobLog[str]:
    """Return the ledger of an output's parts, with those of the run that it continues; one JSON array per part.

    Raises:
        StateError: It is damaged, or missing.
    """
    codec = ItemCodec(lambda lines: "\n".join(lines).encode(), lambda data: data.decode().split("\n"), lambda _: 1)
    return BlobLog(codec, context.blobs, before, context.store, context.keep, own=context.own)


def to_line(file: WrittenFile) -> str:
    """Return a file's line in the ledger."""
    return json.dumps(astuple(file))


def of_line(line: str) -> WrittenFile:
    """Return a file of the ledger."""
    return WrittenFile(*json.loads(line))


def check_whole(folder: OutputFolder, shown: Sequence[WrittenFile], hidden: Sequence[WrittenFile]) -> None:
    """Raise DamagedError unless files are as they were written.

    Args:
        folder: Their folder.
        shown: Visible files, in order.
        hidden: Files that aren't visible yet.
    """
    sizes = folder.sizes()
    files = {file.name: file for file in shown} | {hidden_name(file.name): file for file in hidden}
    for name, file in files.items():
        if name not in sizes:
            raise _damaged(folder, name, "isn't there")
        if sizes[name] != file.size:
            raise _damaged(folder, name, f"has {sizes[name]} bytes, not {file.size}")
    read, names = 0, [hidden_name(file.name) for file in hidden]
    for file in reversed(shown):
        if (read := read + file.size) > MOST_READ:
            break
        names.append(file.name)
    digests = folder.digests(names)
    for name in names:
        if digests.get(name) != files[name].digest:
            raise _damaged(folder, name, "isn't what was written")


def _damaged(folder: OutputFolder, name: str, what: str) -> DamagedError:
    return DamagedError(
        f"{name!r} in {folder.shown!r} {what}, and the restored state needs its rows",
        hint="Put it back, or restore an earlier checkpoint. If a later run has taken these rows back, restore a "
        "checkpoint of that run",
        code=ErrorCode.MISSING_OUTPUT,
    )


class HiddenPart:
    """The current file, and its rows so far.

    Args:
        folder: The folder.
        name: Its name once it is shown.
        form: The format of the file.
    """

    def __init__(self, folder: OutputFolder, name: str, form: FileFormat) -> None:
        import pyarrow as pa

        self._folder = folder
        self._name = name
        self._form = form
        self._digested = _Digested(folder.open(name))
        self._file = pa.BufferedOutputStream(pa.PythonFile(self._digested, "w"), PIECE)
        self._writer = form.begin(self._file)
        self._rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Write rows."""
        with self._folder.raising():
            self._writer.write_batch(batch)
        self._rows += batch.num_rows

    def copy(self, name: str, rows: int) -> None:
        """Copy the first rows of an existing file."""
        with self._folder.raising(), self._folder.read(name) as before:
            self._form.copy(before, rows, self._writer, self._file)
        self._rows += rows

    def end(self) -> WrittenFile:
        """End the file; it stays hidden."""
        with self._folder.raising():
            self._writer.close()
        self._folder.close(self._file, self._name)
        return WrittenFile(self._name, self._rows, self._digested.size, self._digested.sha.hexdigest())


class _Digested:
    """A file that computes the SHA-256 of what is written."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.sha = hashlib.sha256()
        self.size = 0

    @property
    def closed(self) -> bool:
        """Whether it has been closed."""
        return bool(self._file.closed)

    def write(self, data: Any) -> int:
        """Write bytes."""
        view = memoryview(data)
        self._file.write(data)
        self.sha.update(view)
        self.size += view.nbytes
        return view.nbytes

    def flush(self) -> None:
        """Flush the file."""
        self._file.flush()

    def close(self) -> None:
        """Close it."""
        self._file.close()
