"""A sink's file, or its part file in a folder: shown when it is complete, gone on with where an earlier run stopped.

A job that goes on from a snapshot must leave what one run would have left. In a folder its part is the next one; a
single file is begun anew with the rows that the first run left in it, and takes its place at the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from rayelastic.errors import SinkError, StateError
from rayelastic.graph.edges.locations import shown_location
from rayelastic.runtime.files.output_folder import OutputFolder

if TYPE_CHECKING:
    import pyarrow as pa

    from rayelastic.graph.records.schema import Schema

COPY_BYTES = 4 << 20  # of a file that is gone on with, copied at once
MOVED = "Put back what the first run left, or give the sink another path"


@dataclass(frozen=True, slots=True)
class Output:
    """What a sink has written when its job is stopped.

    Args:
        location: the file or folder, without what is secret in a URI.
        rows: in it, of this job and of those that it went on from.
        first: the number of the first part file that is theirs; 0 of a single file.
    """

    location: str
    rows: int
    first: int = 0

    @staticmethod
    def at(location: str, outputs: Mapping[str, Output]) -> Output | None:
        """Returns what was written to a location, by whichever sink."""
        shown = shown_location(location)
        return next((output for output in outputs.values() if output.location == shown), None)


class FileFormat(Protocol):
    """How rows become a file."""

    suffix: str

    def begin(self, file: Any) -> Any:
        """Returns pyarrow's writer, with `write_batch` and `close`, on a file that was just opened."""
        ...

    def rows(self, file: Any) -> int:
        """Counts the rows of a file that is there."""
        ...

    def go_on(self, before: Any, file: Any) -> Any:
        """The same as `begin` with the rows of a file that is there in front."""
        ...


class ParquetFormat:
    """Parquet, a row group for each batch.

    Args:
        schema: of the rows.
    """

    suffix = ".parquet"

    def __init__(self, schema: Schema) -> None:
        self._schema = schema.to_arrow()

    def begin(self, file: Any) -> Any:
        """Returns a writer."""
        from pyarrow.parquet import ParquetWriter

        return ParquetWriter(file, self._schema)

    def rows(self, file: Any) -> int:
        """Reads the number of rows in the footer."""
        from pyarrow.parquet import ParquetFile

        metadata = ParquetFile(file).metadata
        count: int = metadata.num_rows
        return count

    def go_on(self, before: Any, file: Any) -> Any:
        """Returns a writer that has the row groups of another file already."""
        from pyarrow.parquet import ParquetFile

        writer, old = self.begin(file), ParquetFile(before)
        for number in range(old.num_row_groups):
            writer.write_table(old.read_row_group(number).cast(self._schema))
        return writer


class CsvFormat:
    """CSV with a header.

    Args:
        schema: of the rows.
    """

    suffix = ".csv"

    def __init__(self, schema: Schema) -> None:
        self._schema = schema.to_arrow()

    def begin(self, file: Any) -> Any:
        """Returns a writer."""
        from pyarrow.csv import CSVWriter

        return CSVWriter(file, self._schema)

    def rows(self, file: Any) -> int:
        """Reads them all: only a reader of CSV knows which line ends are inside a text."""
        import pyarrow as pa
        from pyarrow import csv

        quoted = csv.ParseOptions(newlines_in_values=True)
        as_text = csv.ConvertOptions(column_types={name: pa.string() for name in self._schema.names})
        return sum(batch.num_rows for batch in csv.open_csv(file, parse_options=quoted, convert_options=as_text))

    def go_on(self, before: Any, file: Any) -> Any:
        """Returns a writer behind the bytes of another file."""
        from pyarrow.csv import CSVWriter, WriteOptions

        while piece := before.read(COPY_BYTES):
            file.write(piece)
        return CSVWriter(file, self._schema, write_options=WriteOptions(include_header=False))


class FileWriter:
    """Writes to a file, or to a part file in a folder, and shows it only when it is complete.

    Args:
        location: a path or URI of a file, or of a folder if it has no suffix.
        form: how rows become a file.
        before: what an earlier run wrote there, if this one goes on from it.

    Raises:
        SinkError: the folder has parts of other runs, whose rows would be mixed with these.
        StateError: what is there isn't what the earlier run left.
    """

    def __init__(self, location: str, form: FileFormat, before: Output | None = None) -> None:
        self._location = location
        self._folder = OutputFolder(location, is_file=True)
        self._form = form
        self._before = before
        self._file: Any = None
        self._writer: Any = None
        self._name = self._folder.file
        if before is not None:
            check_left(before, self._left(before))
        if not self._name:
            last = max(self._parts(), default=-1)
            if before is None and last > 0:
                raise SinkError(
                    f"{shown_location(location)!r} has {last + 1} part files of a job that was stopped and went on, "
                    "whose rows would be mixed with those of this one",
                    way_out="Remove them, or name another folder",
                )
            self._name = f"part-{0 if before is None else last + 1}{form.suffix}"

    def write(self, batch: pa.RecordBatch) -> None:
        """Takes a batch."""
        self._opened().write_batch(batch)

    def close(self) -> str:
        """Ends; gives the location."""
        self._opened().close()  # an empty stream leaves a file with a schema and no rows
        self._folder.close(self._file, self._name)
        return self._location

    def output(self, rows: int) -> Output:
        """What is written when this writer has taken so many rows and is closed."""
        return Output(shown_location(self._location), rows + (self._before.rows if self._before is not None else 0))

    def _opened(self) -> Any:
        if self._writer is None:
            self._file = self._folder.open(self._name)
            if self._before is None or not self._folder.file:
                self._writer = self._form.begin(self._file)
            else:
                with self._folder.read(self._name) as before:
                    self._writer = self._form.go_on(before, self._file)
        return self._writer

    def _parts(self) -> dict[int, str]:
        part = re.compile(rf"part-(0|[1-9]\d*){re.escape(self._form.suffix)}")
        return {int(found[1]): name for name in self._folder.names() if (found := part.fullmatch(name))}

    def _left(self, before: Output) -> Iterator[int]:
        """The rows of each file that belongs to an output."""
        names = (
            [self._name] if self._name else [name for number, name in self._parts().items() if number >= before.first]
        )
        return rows_of(self._folder, names, self._form.rows)


def rows_of(folder: OutputFolder, names: list[str], count: Callable[[Any], int]) -> Iterator[int]:
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
