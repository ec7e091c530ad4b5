"""One file for the batches of a sink. It appears at the end; until then each epoch has a hidden file.

When it is shown, its owner's record gets its digest, and those of the hidden files in it. So a run that restores an
earlier moment knows whether the file begins with its own rows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rayelastic.connectors.output.folder import OutputFolder, WrittenFile, hidden_name
from rayelastic.connectors.output.owned_files import OwnedFiles
from rayelastic.connectors.output.parts import HiddenPart, check_whole
from rayelastic.errors import DamagedError

if TYPE_CHECKING:
    from rayelastic.connectors.output.formats import FileFormat
    from rayelastic.connectors.output.record import SinkContext

__all__ = ["SingleFile"]


class SingleFile(OwnedFiles):
    """A file; it replaces an existing one at the end.

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
        self._is_shown = False
        super().__init__(OutputFolder(location, is_file=True), form, context)

    def begin(self) -> str:
        """Remove unreferenced hidden files of this lineage; return an empty text, because readers see no change.

        Raises:
            SinkError: A file can't be removed.
        """
        self._owner.check()
        kept = frozenset(file.name for file in self._files)
        self._folder.discard_hidden(lambda name: self._tag_of(name) == self._tag, kept)
        return ""

    def commit(self, epoch: int) -> None:
        """Allow the next checkpoint to refer to the ledger of this one; the file appears at the end."""
        self._ledger.commit(epoch)

    def close(self) -> str:
        """Show the file; return its location.

        Raises:
            SinkTakenError: Another run has taken over the file.
        """
        self._owner.check()
        self.end_part()
        if not self._files:  # an empty stream leaves a file with columns and no rows
            self._part = self._begun()
            self.end_part()
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

    # -- implementation -------------------------------------------------------------------------------------------

    def _begun(self, what: str = "") -> HiddenPart:
        what = what or f"part-{len(self._files)}"
        name = f"{self._folder.file}.{what}-{self._tag}-{self._owner.record.number}"
        return HiddenPart(self._folder, name, self._form)

    def _tag_of(self, name: str) -> str:
        """Return the lineage of a hidden file of this output; empty: it is another's."""
        found = re.fullmatch(rf"{re.escape(self._folder.file)}(?:\.part-\d+|\.whole)-([0-9a-f]{{8}})-\d+", name)
        return found[1] if found is not None else ""

    def _is_complete(self) -> bool:
        """Return whether the visible file equals the result of this run, because a lost run has reached its end."""
        digests = tuple(file.digest for file in self._files)
        return self._in_whole == len(self._files) and self._owner.record.parts == digests

    def _put_together(self) -> WrittenFile:
        rest = self._files[self._in_whole :]
        if self._in_whole == 0 and len(rest) == 1:
            return rest[0]
        whole = self._begun("whole")
        if self._in_whole:
            whole.copy(self._folder.file, sum(file.rows for file in self._files[: self._in_whole]))
        for file in rest:
            whole.copy(hidden_name(file.name), file.rows)
        return whole.end()

    def _check(self) -> None:
        """Count the files that are in the visible one, because some are missing; check the others."""
        self._in_whole = 0
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
            self._in_whole = same
