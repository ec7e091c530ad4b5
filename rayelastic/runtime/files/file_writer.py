"""Where the batches of a sink go: a folder of part files, or a single file; epoch by epoch, if there are checkpoints.

A file is hidden until what it has is final: at the end of the stream, or when a checkpoint is complete that counts on
it. So a job that goes on from a snapshot or checkpoint leaves what one run would have left, whenever that ended.
"""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Any

from rayelastic.errors import SinkError, StateError
from rayelastic.graph.edges.locations import shown_location
from rayelastic.runtime.files.output_folder import OutputFolder
from rayelastic.runtime.files.outputs import MOVED, BlobStore, HiddenFile, Output, check_left, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from rayelastic.runtime.files.file_formats import FileFormat

__all__ = ["PartFolder", "SingleFile"]


class _HiddenPart:
    """A file that is being written, and its rows so far."""

    def __init__(self, folder: OutputFolder, name: str, form: FileFormat) -> None:
        self._folder = folder
        self._name = name
        self._file = folder.open(name)
        self.writer = form.begin(self._file)
        self.rows = 0
        self._form = form

    def write(self, batch: pa.RecordBatch) -> None:
        self.writer.write_batch(batch)
        self.rows += batch.num_rows

    def copy(self, name: str, rows: int) -> None:
        """Puts in the first rows of a file that is there."""
        with self._folder.read(name) as before:
            self._form.copy(before, rows, self.writer, self._file)
        self.rows += rows

    def end(self, shown: str) -> HiddenFile:
        self.writer.close()
        self._folder.close(self._file, self._name)
        return HiddenFile(self._folder.hidden_name(self._name), shown, self.rows)


class PartFolder:
    """Part files in a folder, numbered: one for a run, or one for each epoch in which there were rows.

    Its methods but `commit` are called by one thread at a time.

    Args:
        location: a path or URI of the folder.
        form: how rows become a file.
        before: what an earlier run wrote there, if this one goes on from it.
        digits: of the numbers, at least.
        behind: parts of other jobs stay, and numbers go on behind them; tells whether a file is of this very run, which
            begins anew after a loss: the last ones that are go. None: one first part is replaced.

    Raises:
        SinkError: the folder has parts of other runs, whose rows would be mixed with these.
        StateError: what is there isn't what the earlier run left.
    """

    def __init__(
        self,
        location: str,
        form: FileFormat,
        before: Output | None = None,
        *,
        digits: int = 1,
        behind: Callable[[Any], bool] | None = None,
    ) -> None:
        self._location = location
        self._folder = OutputFolder(location)
        self._form = form
        self._pattern = re.compile(rf"part-(\d{{{digits},}}){re.escape(form.suffix)}")
        self._digits = digits
        self._lock = threading.Lock()  # guards _hidden
        self._hidden: list[tuple[int, HiddenFile]] = []  # by the epoch that they were prepared for; 0: for none yet
        self._part: _HiddenPart | None = None
        parts = self._parts()
        if before is None:
            self._next = 0 if behind is None else self._behind(parts, behind)
            if behind is None and max(parts, default=-1) > 0:
                raise SinkError(
                    f"{shown_location(location)!r} has part files up to {max(parts)} of an earlier job, which went on "
                    "from a snapshot or took checkpoints; its rows would be mixed with those of this one",
                    way_out="Remove them, or name another folder",
                )
            self._first, self._rows_before = self._next, 0
        else:
            self._first, self._rows_before = before.first, before.rows
            self._next = self._taken_up(before, parts) if before.epoch else self._checked(before, parts)
        self._rows = self._rows_before
        self._folder.discard_hidden(self._pattern)

    def write(self, batch: pa.RecordBatch) -> None:
        """Takes a batch.

        Raises:
            SinkError: it can't be written.
        """
        if self._part is None:
            self._part = self._begun()
        self._part.write(batch)
        self._rows += batch.num_rows

    def end_part(self) -> None:
        """Ends the file that is being written, if there is one; it stays hidden."""
        if self._part is not None:
            ended = self._part.end(self._name())
            with self._lock:
                self._hidden.append((0, ended))
            self._part = None
            self._next += 1

    def prepare(self, epoch: int, store: BlobStore) -> Output:  # noqa: ARG002  (the rows are in files of their own)
        """Ends the file that is being written, to be shown when the checkpoint of an epoch is complete."""
        self.end_part()
        with self._lock:
            self._hidden = [(prepared or epoch, file) for prepared, file in self._hidden]
            waiting = tuple(file for _, file in self._hidden)
        return Output(shown_location(self._location), self._rows, self._first, epoch, self._next, hidden=waiting)

    def commit(self, epoch: int) -> None:
        """Shows what was prepared for an epoch and those before; safe to repeat, from any thread."""
        with self._lock:
            for prepared, file in list(self._hidden):
                if 0 < prepared <= epoch:
                    self._folder.show(file.hidden, file.name)
                    self._hidden.remove((prepared, file))

    def show(self) -> None:
        """Ends the file that is being written, and shows all there are."""
        self.end_part()
        with self._lock:
            while self._hidden:
                _, file = self._hidden[0]
                self._folder.show(file.hidden, file.name)
                del self._hidden[0]

    def close(self) -> str:
        """Shows what there is; gives the folder. If that is no file at all, an empty one, which has the columns."""
        if self._part is None and self._next == 0:
            self._part = self._begun()
        self.show()
        return self._location

    def output(self, rows: int) -> Output:
        """What is written when this run has taken so many rows and is closed."""
        return Output(shown_location(self._location), rows + self._rows_before, self._first)

    def _begun(self) -> _HiddenPart:
        return _HiddenPart(self._folder, self._name(), self._form)

    def _name(self) -> str:
        return f"part-{self._next:0{self._digits}}{self._form.suffix}"

    def _parts(self) -> dict[int, str]:
        return {int(found[1]): name for name in self._folder.names() if (found := self._pattern.fullmatch(name))}

    def _behind(self, parts: dict[int, str], is_ours: Callable[[Any], bool]) -> int:
        """Removes what this run wrote before it was lost; gives the number behind what others did."""
        for number in sorted(parts, reverse=True):
            with self._folder.read(parts[number]) as file:
                if not is_ours(file):
                    return number + 1
            self._folder.delete(parts[number])
        return 0

    def _checked(self, before: Output, parts: dict[int, str]) -> int:
        """The next number behind what a job left that was stopped."""
        ours = [name for number, name in parts.items() if number >= before.first]
        check_left(before, rows_of(self._folder, ours, self._form.rows))
        return max(parts, default=-1) + 1

    def _taken_up(self, before: Output, parts: dict[int, str]) -> int:
        """Brings the folder to where it was at a checkpoint; gives the next number."""
        there = set(self._folder.names())
        for file in before.hidden:
            if file.hidden in there:
                self._folder.show(file.hidden, file.name)
        left = sorted(number for number in self._parts() if before.first <= number < before.end)
        if left != list(range(before.first, before.end)):
            raise StateError(
                f"up to the checkpoint {before.end - before.first} part files were written to {before.location!r}, "
                f"of which {len(left)} are there",
                way_out=MOVED,
            )
        for number, name in parts.items():
            if number >= before.end:  # by the run that was lost, behind this checkpoint
                self._folder.delete(name)
        return before.end


class SingleFile:
    """One file, which appears at the end. Until then each epoch has a hidden file of its own.

    Its methods but `commit` are called by one thread at a time.

    Args:
        location: a path or URI of the file.
        form: how rows become a file.
        before: what an earlier run wrote there, if this one goes on from it.

    Raises:
        StateError: what is there isn't what the earlier run left.
    """

    def __init__(self, location: str, form: FileFormat, before: Output | None = None) -> None:
        self._location = location
        self._folder = OutputFolder(location, is_file=True)
        self._form = form
        self._part: _HiddenPart | None = None
        self._base = 0  # rows of the visible file, which come first
        self._hidden: list[HiddenFile] = []  # what comes then
        self._rows = self._rows_before = 0 if before is None else before.rows
        if before is not None:
            self._take_up(before)
        ours = re.compile(rf"{re.escape(self._folder.file)}(\.part-\d+)?")
        self._folder.discard_hidden(ours, {file.hidden for file in self._hidden})

    def write(self, batch: pa.RecordBatch) -> None:
        """Takes a batch.

        Raises:
            SinkError: it can't be written.
        """
        if self._part is None:
            self._part = self._begun()
        self._part.write(batch)
        self._rows += batch.num_rows

    def prepare(self, epoch: int, store: BlobStore) -> Output:  # noqa: ARG002  (the rows are in files of their own)
        """Ends the hidden file that is being written, for a checkpoint."""
        self._end_part()
        where, waiting = shown_location(self._location), tuple(self._hidden)
        return Output(where, self._rows, epoch=epoch, base=self._base, hidden=waiting)

    def commit(self, epoch: int) -> None:
        """Does nothing: the file appears at the end."""

    def close(self) -> str:
        """Shows the file; gives its location."""
        self._end_part()
        if not self._hidden:  # an empty stream leaves a file with columns and no rows
            self._hidden = [self._begun().end(self._folder.file)]
        if self._base or len(self._hidden) > 1:
            whole = _HiddenPart(self._folder, self._folder.file, self._form)
            if self._base:
                whole.copy(self._folder.file, self._base)
            for file in self._hidden:
                whole.copy(file.hidden, file.rows)
            joined = whole.end(self._folder.file)
        else:
            joined = self._hidden[0]
        self._folder.show(joined.hidden, joined.name)
        for file in self._hidden:
            self._folder.delete(file.hidden)
        return self._location

    def output(self, rows: int) -> Output:
        """What is written when this run has taken so many rows and is closed."""
        return Output(shown_location(self._location), rows + self._rows_before)

    def _begun(self) -> _HiddenPart:
        return _HiddenPart(self._folder, f"{self._folder.file}.part-{len(self._hidden)}", self._form)

    def _end_part(self) -> None:
        if self._part is not None:
            self._hidden.append(self._part.end(self._folder.file))
            self._part = None

    def _take_up(self, before: Output) -> None:
        name, there = [self._folder.file], set(self._folder.names())
        if before.epoch == 0:
            check_left(before, rows_of(self._folder, name, self._form.rows))
            self._base = before.rows
        elif all(file.hidden in there for file in before.hidden) and (not before.base or name[0] in there):
            self._base, self._hidden = before.base, list(before.hidden)
        elif sum(rows_of(self._folder, name, self._form.rows)) >= before.rows:
            self._base = before.rows  # the lost run came to its end, and what it left begins with these
        else:
            raise StateError(
                f"up to the checkpoint {before.rows} rows were written to hidden files beside {before.location!r}, "
                "which aren't all there",
                way_out=MOVED,
            )
