"""A folder of part files for the batches of a sink; with checkpoints, a part per epoch.

A part is hidden until its rows are final: at the end of the stream, or when the checkpoint that refers to it is
complete. So a job that restores a snapshot or checkpoint leaves the same rows as one uninterrupted run.

The name of a part has its number, its lineage (the chain of runs that restored each other) and the writer's claim.
So no two writers use the same name. At a restore, the parts in the ledger have to be undamaged. Other
parts of the lineage are removed, and parts of other lineages are never touched.
"""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING

from rayelastic.connectors.output.folder import OutputFolder, WrittenFile, hidden_name
from rayelastic.connectors.output.owned_files import OwnedFiles
from rayelastic.connectors.output.parts import HiddenPart, check_whole, lineage_tag
from rayelastic.errors import DamagedError, ErrorCode, SinkError
from rayelastic.graph.records.shown import counted

if TYPE_CHECKING:
    from rayelastic.connectors.output.formats import FileFormat
    from rayelastic.connectors.output.record import SinkContext

__all__ = ["PartFolder"]


class PartFolder(OwnedFiles):
    """Part files in a folder, numbered: one per run, or one per epoch that has rows.

    Args:
        location: A path or URI of the folder.
        form: The format of a file.
        context: The writer, and the run that it continues.
        digits: The least number of digits of a number.
        appends: Whether parts of other lineages stay, and the numbers continue after theirs. Otherwise one part of an
            earlier run of the same job is replaced, and any other one is an error.

    Raises:
        SinkTakenError: Another run writes there.
        SinkError: The folder has parts of others, whose rows would be mixed with these.
        StateError: The folder isn't what the earlier run left.
    """

    def __init__(
        self, location: str, form: FileFormat, context: SinkContext, *, digits: int = 1, appends: bool = False
    ) -> None:
        self._location = location
        self._digits = digits
        self._appends = appends
        self._pattern = re.compile(rf"part-(\d+)-([0-9a-f]{{8}})-\d+{re.escape(form.suffix)}")
        self._lock = threading.Lock()  # guards _waiting, and what is shown
        self._waiting: list[tuple[int, WrittenFile]] = []  # hidden, by the epoch they are prepared for; 0: none yet
        super().__init__(OutputFolder(location), form, context)

    def begin(self) -> str:
        """Roll the folder back to the checkpoint: all of its parts shown, and no later ones of its lineage.

        Returns:
            A description of what it removed; empty: nothing.

        Raises:
            SinkError: A file can't be shown or removed.
        """
        self._owner.check()
        for file in self._to_show:
            self._show_file(file)
        for name in self._to_take_back:
            self._is_counted_on = True
            self._folder.delete(name)
        self._folder.discard_hidden(lambda name: self._tag_of(name) == self._tag)
        return f"{counted(len(self._to_take_back), 'part')} of {self._folder.shown!r}" if self._to_take_back else ""

    def commit(self, epoch: int) -> None:
        """Show what was prepared for an epoch and those before; safe to repeat, from any thread.

        Raises:
            SinkTakenError: Another run has taken over the folder.
        """
        with self._lock:
            due = [(prepared, file) for prepared, file in self._waiting if 0 < prepared <= epoch]
            self._show(due)
        self._ledger.commit(epoch)

    def show(self) -> None:
        """End the current file, and show all files."""
        self.end_part()
        with self._lock:
            self._show(list(self._waiting))

    def close(self) -> str:
        """Show all files and return the folder. If there is no file, write an empty one, which has the columns."""
        if self._part is None and self._next == 0:
            self._part = self._begun()
        self.show()
        return self._location

    def abandon(self) -> None:
        """Release the folder for others; hidden files stay hidden."""
        self._owner.release(changed=self._is_counted_on)

    # -- implementation -------------------------------------------------------------------------------------------

    def _add(self, file: WrittenFile) -> None:
        with self._lock:
            self._waiting.append((0, file))
        self._next += 1

    def _assign(self, epoch: int) -> None:
        with self._lock:
            self._waiting = [(prepared or epoch, file) for prepared, file in self._waiting]

    def _show(self, files: list[tuple[int, WrittenFile]]) -> None:
        for number, (prepared, file) in enumerate(files):
            if number == 0:
                self._owner.check()
            self._show_file(file)
            self._waiting.remove((prepared, file))
        if files:
            self._discard_of_earlier_runs()

    def _show_file(self, file: WrittenFile) -> None:
        """Show a file; the first one replaces what an earlier run of the job has left."""
        if self._owner.record.replaces:
            for name in self._owner.record.replaces:
                self._folder.delete(name)
            self._owner.note(replaces=())
        self._folder.show(file.name, file.name)
        self._is_counted_on = True

    def _discard_of_earlier_runs(self) -> None:
        """Remove what failed runs of the same job hid here, because their rows have been replaced."""
        before, context = self._owner.before, self._context
        if before is None or (before.job, before.sink) != (context.job, context.sink):
            return
        tags = {lineage_tag(before.lineage)} - {self._tag}
        self._folder.discard_hidden(lambda name: self._tag_of(name) in tags)

    def _begun(self) -> HiddenPart:
        return HiddenPart(self._folder, self._name(), self._form)

    def _name(self) -> str:
        return f"part-{self._next:0{self._digits}}-{self._tag}-{self._owner.record.number}{self._form.suffix}"

    def _tag_of(self, name: str) -> str:
        found = self._pattern.fullmatch(name)
        return found[2] if found is not None else ""

    def _check(self) -> None:
        try:
            self._to_show, self._to_take_back = self._checked(self._files)
        except DamagedError:  # an abandoned writer may have shown its last part meanwhile
            self._to_show, self._to_take_back = self._checked(self._files)

    def _checked(self, files: list[WrittenFile]) -> tuple[list[WrittenFile], list[str]]:
        """Check the existing files; return those to be shown, and the names of those to be removed."""
        sizes = self._folder.sizes()
        hidden = [file for file in files if file.name not in sizes and hidden_name(file.name) in sizes]
        check_whole(self._folder, [file for file in files if file not in hidden], hidden)
        ours = {file.name for file in files}
        parts = [name for name in sizes if name.startswith("part-") and name.endswith(self._form.suffix)]
        others = [name for name in parts if self._tag_of(name) != self._tag]
        if not self._appends:
            self._check_others(others)
            others = []
        numbers = [int(found[1]) for name in (*ours, *others) if (found := self._pattern.fullmatch(name))]
        self._next = max(numbers, default=-1) + 1
        return hidden, [name for name in parts if self._tag_of(name) == self._tag and name not in ours]

    def _check_others(self, others: list[str]) -> None:
        """Raise SinkError unless there is one part at most, of an earlier run of this job, which is replaced."""
        before, context, record = self._owner.before, self._context, self._owner.record
        unknown = [name for name in others if name not in record.replaces]
        if not unknown:
            return
        same_job = before is not None and (before.job, before.sink) == (context.job, context.sink)
        if before is not None and same_job and not record.replaces and not self._ledger.items and len(unknown) == 1:
            tag = lineage_tag(before.lineage)
            if unknown[0] in before.replaces or self._tag_of(unknown[0]) == tag:
                self._owner.note(replaces=(unknown[0],))
                return
        whose = "an earlier run of this job" if same_job else "another job or program"
        raise SinkError(
            f"{self._folder.shown!r} has {counted(len(unknown), 'part file')} of {whose}, such as {unknown[0]!r}: "
            "its rows would mix with those of this run",
            hint="Restore the checkpoint or snapshot of that run, remove the files, or name another folder",
            code=ErrorCode.FOREIGN_OUTPUT,
        )
