"""One file for the batches of a sink. It appears at the end; until then each epoch has a hidden file.

When it is shown, its owner's record gets its digest, and those of the hidden files in it. So a run that restores an
earlier moment knows whether the file begins with its own rows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rayelastic.connectors.output.folder import OutputFolder, WrittenFile, hidden_name
from rayelastic.connectors.output.owner import OutputOwner
from rayelastic.connectors.output.parts import HiddenPart, check_whole, lineage_tag, of_line, part_ledger, to_line
from rayelastic.connectors.output.record import BlobStore, Output, SinkContext
from rayelastic.errors import DamagedError

if TYPE_CHECKING:
    import pyarrow as pa

    from rayelastic.connectors.output.formats import FileFormat

__all__ = ["SingleFile"]


class SingleFile:
    """A file; it replaces an existing one at the end.

    Its methods except `commit` are called by one thread at a time.

    Args:
        location: A path or URI of the file.
        form: The format of the file.
        context: The writer, and the run that it continues.

    Raises:
        SinkTakenError: Another run writes there.
        StateError: The files aren't what the earlier run left.
    """

    def __init__(self, location: str, form: FileFormat, context: SinkContext) -> None:
        self._location = location
        self._folder = OutputFolder(location, is_file=True)
        self._form = form
        before = Output.at(self._folder.shown, context.outputs)
        self._lineage = context.run if before is None else before.lineage
        self._part: HiddenPart | None = None
        self._is_counted_on = before is not None  # by a checkpoint or snapshot
        self._is_shown = False
        self._owner = OutputOwner(self._folder, context, self._lineage)
        try:
            self._ledger = part_ledger(context, before)
            self._files = [of_line(line) for line in self._ledger.items]
            self._rows = sum(file.rows for file in self._files)
            self._in_whole = self._checked()  # the number of files in the visible one
        except BaseException:
            self._owner.release(changed=False)
            raise

    def begin(self) -> str:
        """Remove unreferenced hidden files of this lineage; return an empty text, because readers see no change.

        Raises:
            SinkError: A file can't be removed.
        """
        self._owner.check()
        tag, kept = lineage_tag(self._lineage), frozenset(file.name for file in self._files)
        self._folder.discard_hidden(lambda name: self._tag_of(name) == tag, kept)
        return ""

    def write(self, batch: pa.RecordBatch) -> None:
        """Write a batch.

        Raises:
            SinkError: It can't be written.
        """
        if self._part is None:
            self._part = self._begun(f".part-{len(self._files)}")
        self._part.write(batch)
        self._rows += batch.num_rows

    def prepare(self, epoch: int, store: BlobStore) -> Output:
        """End the current hidden file, for a checkpoint.

        Raises:
            SinkTakenError: Another run has taken over the file.
        """
        self._owner.check()
        self._end_part()
        self._is_counted_on = True
        return Output(self._folder.shown, self._rows, epoch, self._lineage, blobs=self._ledger.prepare(epoch, store))

    def commit(self, epoch: int) -> None:
        """Allow the next checkpoint to refer to the ledger of this one; the file appears at the end."""
        self._ledger.commit(epoch)

    def close(self) -> str:
        """Show the file; return its location.

        Raises:
            SinkTakenError: Another run has taken over the file.
        """
        self._owner.check()
        self._end_part()
        if not self._files:  # an empty stream leaves a file with columns and no rows
            self._part = self._begun(".part-0")
            self._end_part()
        if not self._is_complete():
            whole = self._put_together()
            self._owner.note(
                whole=WrittenFile(self._folder.file, whole.rows, whole.size, whole.digest),
                parts=tuple(file.digest for file in self._files),
            )
            self._folder.show(whole.name, self._folder.file)
        self._is_shown = True
        self._folder.discard_hidden(lambda name: bool(self._tag_of(name)))
        return self._location

    def abandon(self) -> None:
        """Release the file for others; hidden files stay hidden."""
        changed = self._is_shown or self._is_counted_on
        self._owner.release(changed=changed, forget=self._is_shown and not self._is_counted_on)

    def output(self, rows: int, store: BlobStore) -> Output:  # noqa: ARG002  (what was taken is what was written)
        """End the current hidden file for a stopped job, which shows the whole when it is closed."""
        self._owner.check()
        self._end_part()
        self._is_counted_on = True
        return Output(self._folder.shown, self._rows, 0, self._lineage, blobs=self._ledger.write_all(store))

    # -- implementation -------------------------------------------------------------------------------------------

    def _begun(self, what: str) -> HiddenPart:
        name = f"{self._folder.file}{what}-{lineage_tag(self._lineage)}-{self._owner.record.number}"
        return HiddenPart(self._folder, name, self._form)

    def _tag_of(self, name: str) -> str:
        """Return the lineage of a hidden file of this output; empty: it is another's."""
        found = re.fullmatch(rf"{re.escape(self._folder.file)}(?:\.part-\d+|\.whole)-([0-9a-f]{{8}})-\d+", name)
        return found[1] if found is not None else ""

    def _end_part(self) -> None:
        if self._part is not None:
            ended = self._part.end()
            self._files.append(ended)
            self._ledger.items.append(to_line(ended))
            self._part = None

    def _is_complete(self) -> bool:
        """Return whether the visible file equals the result of this run, because a lost run has reached its end."""
        digests = tuple(file.digest for file in self._files)
        return self._in_whole == len(self._files) and self._owner.record.parts == digests

    def _put_together(self) -> WrittenFile:
        rest = self._files[self._in_whole :]
        if self._in_whole == 0 and len(rest) == 1:
            return rest[0]
        whole = self._begun(".whole")
        if self._in_whole:
            whole.copy(self._folder.file, sum(file.rows for file in self._files[: self._in_whole]))
        for file in rest:
            whole.copy(hidden_name(file.name), file.rows)
        return whole.end()

    def _checked(self) -> int:
        """Return how many of the files are in the visible one, because some are missing; check the others."""
        try:
            check_whole(self._folder, [], self._files)
        except DamagedError:
            shown, parts = self._owner.record.whole, self._owner.record.parts
            same = 0
            for file, digest in zip(self._files, parts, strict=False):
                if file.digest != digest:
                    break
                same += 1
            if shown is None or same == 0:
                raise
            check_whole(self._folder, [shown], self._files[same:])
            return same
        return 0
