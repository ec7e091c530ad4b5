"""The rows of CSV files as Arrow batches of a source's schema, and the rows that aren't of it.

pyarrow parses and converts, a block at a time. Where it refuses something, the file is read again from the row where it
stopped, now as bytes that are converted column by column: so each bad row is known by its number, and the others are
read.
Rows are counted as pyarrow does: the header is row 1, blank lines and comments don't count.
"""

from __future__ import annotations

import bisect
import csv as plain_csv
import io
import itertools
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from rayelastic.errors import SourceError
from rayelastic.graph.edges.csv_files import ENCODING_WAY_OUT, LONGEST_ROW, BadRows, CsvSource
from rayelastic.graph.edges.csv_text import CsvText
from rayelastic.graph.edges.locations import shown_location
from rayelastic.graph.records.shown import shown
from rayelastic.graph.spec.dead_letters import OnError
from rayelastic.runtime.files.csv_columns import Columns, NotOfSchemaError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Files", "LeftOut", "bad_row_batches", "good_row_batches"]

BLOCK_BYTES = 1 << 20  # that are parsed at once
LONGER = 16  # how many times a block grows if a row is longer
SHOWN_ROWS = 10  # of those that were left out
TELLS = "Mend the file, declare other types, or give on_bad_row='skip' or 'divert'"


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that isn't of the schema."""

    file: str
    row: int
    text: str
    error: str


@dataclass(slots=True)
class LeftOut:
    """How many rows a source left out because they aren't of its schema, and the first of them."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, bad: BadRow) -> None:
        """One more."""
        self.count += 1
        if len(self.first) < SHOWN_ROWS:
            self.first.append(f"{bad.file}, row {bad.row}: {bad.error}")


class Files:
    """Where each file of a source begins, as far as it was read: so that one that goes on needn't read those before.

    Args:
        count: how many files there are.

    >>> files = Files(3)
    >>> files.begin(0), files.begin(70)
    (None, None)
    >>> files.position(69), files.position(70), files.position(100)
    ([0, 0], [1, 70], [1, 70])
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._starts: list[int] = []  # rows in front of the first of each file
        self._first, self._before = 0, 0
        self._lock = threading.Lock()

    def seek(self, position: int, saved: object) -> int:
        """Begins with a file; the rows of it, and of those behind, that will be given again.

        Args:
            position: rows that were given.
            saved: what `position` gave.
        """
        match saved:
            case [int(first), int(before)] if 0 <= first < self._count and 0 <= before <= position:
                self._first, self._before = first, before
        return position - self._before

    def begin(self, rows: int) -> None:
        """Notes that the next file begins, when so many rows were read in this run."""
        with self._lock:
            self._starts.append(self._before + rows)

    def position(self, given: int) -> list[int]:
        """The file that the row behind those that were given is in, and how many rows are in front of that file.

        Args:
            given: rows since the very first start.
        """
        with self._lock:
            number = bisect.bisect_right(self._starts, given) - 1
            if number < 0:
                return [self._first, self._before]
            return [self._first + number, self._starts[number]]

    @property
    def first(self) -> int:
        """The number of the file to begin with."""
        return self._first


def good_row_batches(body: CsvSource, left_out: LeftOut, files: Files | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of all files, one after the other, without those that aren't of the schema.

    Args:
        body: the source.
        left_out: counts those.
        files: says with which file to begin, and hears where they begin.

    Raises:
        SourceError: a file can't be read on, or has a row that isn't of the schema, with on_bad_row='fail'.
    """
    kept = {OnError.FAIL: _refuse, OnError.SKIP: left_out.add, OnError.DIVERT: lambda _: None}  # read by BadRows
    put_aside, files, rows = kept[body.on_bad_row], files or Files(len(body.paths)), 0
    for path in body.paths[files.first :]:
        files.begin(rows)
        for batch in _File(path, body, put_aside).batches():
            rows += batch.num_rows
            yield batch


def bad_row_batches(body: BadRows) -> Iterator[pa.RecordBatch]:
    """The rows of all files that aren't of the schema.

    Raises:
        SourceError: a file can't be read on.
    """
    import pyarrow as pa

    for path in body.of.paths:
        waiting: list[BadRow] = []
        for _ in itertools.chain(_File(path, body.of, waiting.append).batches(), [None]):
            if waiting:
                rows = [{**asdict(bad), "operator": body.name} for bad in waiting]
                yield pa.RecordBatch.from_pylist(rows, schema=body.schema.to_arrow())
                waiting.clear()


def _refuse(bad: BadRow) -> None:
    """Fails the source."""
    way_out = ENCODING_WAY_OUT if "UTF-8" in bad.error else TELLS
    raise SourceError(f"{bad.file!r}, row {bad.row:,}: {bad.error}", way_out=way_out)


class _File:
    """One file, and how far it was read."""

    def __init__(self, path: str, body: CsvSource, put_aside: Callable[[BadRow], None]) -> None:
        self._path = path
        self._shown = shown_location(path)
        self._body = body
        self._put_aside = put_aside
        self._columns = Columns(body)
        self._block = BLOCK_BYTES
        self._careful = False
        self._done = 0  # rows of the right length that were given or put aside
        self._ragged: list[int] = []  # of the k-th row of another length its number, less k
        self._open: SourceError | None = None  # a quote that is never closed

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, again and again from where reading stopped."""
        from pyarrow import ArrowException

        while True:
            try:
                yield from self._attempt()
                return
            except NotOfSchemaError:
                self._careful = True
            except (ArrowException, UnicodeDecodeError) as error:
                self._go_on(str(error))

    def _go_on(self, said: str) -> None:
        """Finds another way after an error, or raises it."""
        if self._open is not None:
            raise self._open
        if "straddling" in said:
            if self._block >= LONGEST_ROW:
                raise self._error(
                    f"row {self._number(self._done):,} is longer than {LONGEST_ROW >> 20} MiB",
                    "Look for a quote in it that is never closed, or give quote=None",
                )
            self._block *= LONGER
        elif not self._careful:
            self._careful = True
        else:
            raise self._error(f"it can't be read on behind row {self._number(self._done) - 1:,}: {said}", TELLS)

    def _attempt(self) -> Iterator[pa.RecordBatch]:
        """Reads the file from its beginning, and gives what is new."""
        from pyarrow import csv

        form = self._body.form
        read = csv.ReadOptions(block_size=self._block, use_threads=not self._careful)
        parse = csv.ParseOptions(
            delimiter=form.delimiter,
            quote_char=form.quote or False,
            double_quote=form.quote is not None,
            newlines_in_values=form.quote is not None,
            invalid_row_handler=self._of_other_length if self._careful else None,
        )
        seen, last = 0, None
        with CsvText(self._path, form.encoding, form.comment, form.quote) as text:
            names = self._names() if self._careful else None
            convert = self._columns.careful(names) if names is not None else self._columns.typed()
            with csv.open_csv(text, read_options=read, parse_options=parse, convert_options=convert) as reader:
                for batch in reader:
                    new = batch.slice(max(0, self._done - seen))
                    seen += batch.num_rows
                    if new.num_rows:
                        last = new.slice(new.num_rows - 1)
                        yield self._converted(new)
            if text.quotes % 2 or (last is not None and self._columns.spans_lines(last)):
                self._check_end(names)

    def _names(self) -> list[str]:
        """The columns of the file."""
        names = self._columns.of_file(self._path, self._body.form)
        if (missing := next((name for name in self._body.columns if name not in names), None)) is not None:
            raise self._error(f"it has no column {missing!r}", f"Its columns are {', '.join(names)}")
        return names

    def _converted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if not self._careful:
            made = self._columns.finished(batch)
            self._done += batch.num_rows
            return made
        made, bad = self._columns.sorted_out(batch)
        for at, error in bad:
            text = _as_text(batch, at, self._body.form.delimiter)
            self._put_aside(BadRow(self._shown, self._number(self._done + at), text, error))
        self._done += batch.num_rows
        return made

    def _number(self, index: int) -> int:
        """The number of a row of the right length, by its index among such."""
        return index + 2 + bisect.bisect_right(self._ragged, index + 2)

    def _of_other_length(self, row: Any) -> str:
        """Called by pyarrow for a row with too few or too many fields."""
        number = row.number - len(self._ragged)
        if self._ragged and row.number <= self._ragged[-1] + len(self._ragged) - 1:
            return "skip"  # told before
        if self._is_open(row.text):
            self._open = self._error(
                f"a quote that opens in row {row.number:,} is never closed", "Close it, or give quote=None"
            )
            return "error"
        self._ragged.append(number)
        problem = f"it has {row.actual_columns} fields, not {row.expected_columns}: {shown(row.text)}"
        try:
            self._put_aside(BadRow(self._shown, row.number, row.text, problem))
        except SourceError as error:
            self._open = error
            return "error"
        return "skip"

    def _is_open(self, text: str) -> bool:
        """Whether the text of a row ends within quotes."""
        quote, delimiter = self._body.form.quote, self._body.form.delimiter
        at = 0
        while quote and at < len(text):
            if text[at] != quote:
                at = text.find(delimiter, at) + 1 or len(text)
                continue
            end = text.find(quote, at + 1)
            while end >= 0 and text[end + 1 : end + 2] == quote:
                end = text.find(quote, end + 2)
            if end < 0:
                return True
            at = text.find(delimiter, end) + 1 or len(text)
        return False

    def _check_end(self, names: list[str] | None) -> None:
        """Raises SourceError if the last field begins with a quote that is never closed: it is the rest of the file."""
        from pyarrow import csv

        form = self._body.form
        names = names or self._names()
        parse = csv.ParseOptions(
            delimiter=form.delimiter,
            quote_char=form.quote or False,
            newlines_in_values=True,
            invalid_row_handler=lambda _: "skip",
        )
        last, rows = None, 0
        with (
            CsvText(self._path, form.encoding, form.comment, form.quote) as text,
            csv.open_csv(
                text,
                read_options=csv.ReadOptions(block_size=self._block),
                parse_options=parse,
                convert_options=self._columns.careful(names),
            ) as reader,
        ):
            for batch in reader:
                rows += batch.num_rows
                last = batch.slice(batch.num_rows - 1) if batch.num_rows else last
        tail = b"" if last is None else (last.column(last.num_columns - 1)[0].as_py() or b"")
        quote = (form.quote or "").encode()
        written = quote + tail.replace(quote, quote + quote)
        if self._end(len(written)) == written:
            raise self._error(
                f"the quote in front of the last field of row {self._number(rows - 1):,} is never closed: "
                "it is the rest of the file",
                "Close it, or give quote=None",
            )

    def _end(self, count: int) -> bytes:
        """The last bytes of the text."""
        form = self._body.form
        end = b""
        with CsvText(self._path, form.encoding, form.comment, form.quote) as text:
            while block := text.read(BLOCK_BYTES):
                end = (end + block)[-count:]
        return end

    def _error(self, problem: str, way_out: str) -> SourceError:
        return SourceError(f"{self._shown!r}: {problem}", way_out=way_out)


def _as_text(batch: pa.RecordBatch, at: int, delimiter: str) -> str:
    """A row as it may have been written."""
    values = [(column[at].as_py() or b"").decode(errors="replace") for column in batch.columns]
    into = io.StringIO()
    plain_csv.writer(into, delimiter=delimiter, lineterminator="").writerow(values)
    return into.getvalue()
