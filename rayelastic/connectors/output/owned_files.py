"""Files of an output that one run owns: written hidden, listed in a ledger, prepared for checkpoints."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from rayelastic.connectors.output.folder import OutputFolder, WrittenFile
from rayelastic.connectors.output.owner import OutputOwner
from rayelastic.connectors.output.parts import HiddenPart, lineage_tag, of_line, part_ledger, to_line
from rayelastic.connectors.output.record import BlobStore, Output, SinkContext

if TYPE_CHECKING:
    import pyarrow as pa

    from rayelastic.connectors.output.formats import FileFormat

__all__ = ["OwnedFiles"]


class OwnedFiles(ABC):
    """The hidden files of an output, one for each epoch that has rows.

    Its methods except `commit` are called by one thread at a time.

    Args:
        folder: The output.
        form: The format of a file.
        context: The writer, and the run that it continues.

    Raises:
        SinkTakenError: Another run writes there.
        SinkError: The output has files of others.
        StateError: The files aren't what the earlier run left.
    """

    def __init__(self, folder: OutputFolder, form: FileFormat, context: SinkContext) -> None:
        self._folder = folder
        self._form = form
        self._context = context
        before = Output.at(folder.shown, context.outputs)
        self._lineage = context.run if before is None else before.lineage
        self._tag = lineage_tag(self._lineage)
        self._part: HiddenPart | None = None
        self._is_counted_on = before is not None  # by a checkpoint or snapshot
        self._owner = OutputOwner(folder, context, self._lineage)
        try:
            self._ledger = part_ledger(context, before)
            self._files = [of_line(line) for line in self._ledger.items]
            self._rows = sum(file.rows for file in self._files)
            self._check()
        except BaseException:
            self._owner.release(changed=False)
            raise

    @abstractmethod
    def _check(self) -> None:
        """Raise StateError or SinkError unless the files are what the earlier run left."""

    @abstractmethod
    def _begun(self) -> HiddenPart:
        """Begin the next file."""

    def _add(self, file: WrittenFile) -> None:  # noqa: B027  (if files are shown one by one)
        """Add a complete hidden file."""

    def _assign(self, epoch: int) -> None:  # noqa: B027  (likewise)
        """Assign the hidden files to an epoch."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch.

        Raises:
            SinkError: It can't be written.
        """
        if self._part is None:
            self._part = self._begun()
        self._part.write(batch)
        self._rows += batch.num_rows

    def end_part(self) -> None:
        """End the current file, if there is one; it stays hidden."""
        if self._part is not None:
            ended = self._part.end()
            self._ledger.items.append(to_line(ended))
            self._files.append(ended)
            self._add(ended)
            self._part = None

    def prepare(self, epoch: int, store: BlobStore) -> Output:
        """End the current file, for the checkpoint of an epoch.

        Raises:
            SinkTakenError: Another run has taken over the output.
        """
        self._owner.check()
        self.end_part()
        self._assign(epoch)
        self._is_counted_on = True
        return Output(self._folder.shown, self._rows, epoch, self._lineage, blobs=self._ledger.prepare(epoch, store))

    def output(self, rows: int, store: BlobStore) -> Output:  # noqa: ARG002  (what was received is what was written)
        """End the current file for a stopped job, which shows the rest when it is closed."""
        self._owner.check()
        self.end_part()
        self._is_counted_on = True
        return Output(self._folder.shown, self._rows, 0, self._lineage, blobs=self._ledger.write_all(store))
