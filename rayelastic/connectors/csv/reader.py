"""Reads the rows of CSV files as Arrow batches of a source's schema, and finds the rows that aren't of it.

pyarrow parses and converts, a block at a time. If it rejects something, the file is read again from the row where it
stopped, now as bytes that are converted column by column. So each bad row is known by its number, and the others are
read. Rows are counted as pyarrow does: the header is row 1, blank lines and comments don't count.
"""

from __future__ import annotations

import bisect
import csv as plain_csv
import io
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rayelastic.connectors.csv.conversion import Columns, NotOfSchemaError
from rayelastic.connectors.csv.form import CsvSource
from rayelastic.connectors.csv.inference import LONGEST_ROW
from rayelastic.connectors.files.bad_rows import TELLS, BadRow, PutAside
from rayelastic.connectors.files.locations import shown_location
from rayelastic.errors import ErrorCode, SourceError
from rayelastic.graph.records.shown import shown

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK_BYTES = 1 << 20  # parsed at once
LONGER = 16  # the factor by which a block grows if a row is longer


def csv_batches(path: str, body: CsvSource, put_aside: PutAside) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file.

    Args:
        path: The file.
        body: The source.
        put_aside: Called with each row that isn't of the schema.

    Raises:
        SourceError: The file can't be read further, or has other columns.
    """
    return _File(path, body, put_aside).batches()


class _File:
    """One file, and how far it was read."""

    def __init__(self, path: str, body: CsvSource, put_aside: PutAside) -> None:
        self._path = path
        self._shown = shown_location(path)
        self._body = body
        self._put_aside = put_aside
        self._columns = Columns(body)
        self._block = BLOCK_BYTES
        self._careful = False
        self._done = 0  # rows of the right length that were emitted or put aside
        self._ragged: list[int] = []  # the number of the k-th row of another length, less k
        self._open: SourceError | None = None  # a quote that is never closed

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, repeatedly from where reading stopped."""
        from pyarrow import ArrowException

        while True:
            try:
                yield from self._attempt()
                return
            except NotOfSchemaError as error:
                if self._careful:  # each row was put aside, or can be converted
                    raise self._error("its rows can't be converted", TELLS) from error
                self._careful = True
            except (ArrowException, UnicodeDecodeError) as error:
                self._go_on(str(error))

    def _go_on(self, said: str) -> None:
        """Continue after an error in another mode, or raise it."""
        if self._open is not None:
            raise self._open
        if "straddling" in said:
            if self._block >= LONGEST_ROW:
                raise self._error(
                    f"row {self._number(self._done):,} is longer than {LONGEST_ROW >> 20} MiB",
                    "Check it for an unclosed quote, or pass quote=None",
                )
            self._block = min(self._block * LONGER, LONGEST_ROW)
        elif not self._careful:
            self._careful = True
        else:
            raise self._error(f"it can't be read after row {self._number(self._done) - 1:,}: {said}", TELLS)

    def _attempt(self) -> Iterator[pa.RecordBatch]:
        """Read the file from its beginning, and yield what is new."""
        from pyarrow import csv

        form = self._body.form
        read = form.reading(self._block, use_threads=not self._careful)
        parse = form.parsing(self._of_other_length if self._careful else None)
        seen, last = 0, None
        with form.text(self._path) as text:
            names = self._names() if self._careful else None
            convert = self._columns.careful(names) if names is not None else self._columns.typed()
            with csv.open_csv(text, read_options=read, parse_options=parse, convert_options=convert) as reader:
                if not self._careful and self._body.is_whole:
                    self._check_names(reader.schema.names)
                for batch in reader:
                    new = batch.slice(max(0, self._done - seen))
                    seen += batch.num_rows
                    if new.num_rows:
                        last = new.slice(new.num_rows - 1)
                        yield self._converted(new)
            if text.quotes % 2 or (last is not None and self._columns.spans_lines(last)):
                self._check_end(names)

    def _names(self) -> list[str]:
        """Return the columns of the file."""
        names = self._columns.of_file(self._path, self._body.form)
        self._check_names(names)
        return names

    def _check_names(self, names: list[str]) -> None:
        """Raise SourceError if the file lacks a column, or has one that the first file hasn't and none were chosen."""
        if (missing := next((name for name in self._body.columns if name not in names), None)) is not None:
            hint = f"Its columns are {', '.join(names)}"
            raise self._error(f"it has no column {missing!r}", hint, ErrorCode.UNKNOWN_COLUMN)
        if not self._body.is_whole:
            return
        for name in names:
            if name not in self._body.columns:
                hint = "Choose columns by columns=, or declare schema="
                raise self._error(
                    f"it has a column {name!r}, which the first file doesn't have", hint, ErrorCode.SCHEMA_MISMATCH
                )
            if names.count(name) > 1:
                problem = f"it has {names.count(name)} columns named {name!r}"
                raise self._error(problem, "Rename them in the file", ErrorCode.DUPLICATE_FIELD)

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
        """Return the number of a row of the right length, by its index among such."""
        number = index + self._body.form.first_row
        return number + bisect.bisect_right(self._ragged, number)

    def _of_other_length(self, row: Any) -> str:
        """Handle a row with too few or too many fields; pyarrow calls this."""
        number = row.number - len(self._ragged)
        if self._ragged and row.number <= self._ragged[-1] + len(self._ragged) - 1:
            return "skip"  # reported before
        if self._is_open(row.text):
            self._open = self._error(
                f"a quote that opens in row {row.number:,} is never closed", "Close it, or pass quote=None"
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
        """Return whether the text of a row ends within quotes."""
        quote, delimiter, escape = self._body.form.quote, self._body.form.delimiter, self._body.form.escape
        if escape is not None:
            text = re.sub(re.escape(escape) + "(?:.|\\Z)", "", text, flags=re.DOTALL)
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
        """Raise SourceError if the last field begins with a quote that is never closed: it is the rest of the file."""
        from pyarrow import csv

        form = self._body.form
        names = names or self._names()
        parse = form.parsing(lambda _: "skip")
        last, rows = None, 0
        with (
            form.text(self._path) as text,
            csv.open_csv(
                text,
                read_options=form.reading(self._block),
                parse_options=parse,
                convert_options=self._columns.careful(names),
            ) as reader,
        ):
            for batch in reader:
                rows += batch.num_rows
                last = batch.slice(batch.num_rows - 1) if batch.num_rows else last
        tail = b"" if last is None else (last.column(last.num_columns - 1)[0].as_py() or b"")
        quote = (form.quote or "").encode()
        if any(self._end(len(written)) == written for written in self._written(quote, tail)):
            raise self._error(
                f"the quote in front of the last field of row {self._number(rows - 1):,} is never closed: "
                "it is the rest of the file",
                "Close it, or pass quote=None",
            )

    def _written(self, quote: bytes, tail: bytes) -> Iterator[bytes]:
        """Yield possible texts of a field, without the quote after it."""
        yield quote + tail.replace(quote, quote + quote)
        if self._body.form.escape is not None:
            escape = self._body.form.escape.encode()
            yield quote + tail.replace(quote, escape + quote)
            yield quote + tail.replace(escape, escape + escape).replace(quote, escape + quote)

    def _end(self, count: int) -> bytes:
        """Return the last bytes of the text."""
        form = self._body.form
        end = b""
        with form.text(self._path) as text:
            while block := text.read(BLOCK_BYTES):
                end = (end + block)[-count:]
        return end

    def _error(self, problem: str, hint: str, code: ErrorCode = ErrorCode.MALFORMED_FILE) -> SourceError:
        return SourceError(f"{self._shown!r}: {problem}", hint=hint, code=code)


def _as_text(batch: pa.RecordBatch, at: int, delimiter: str) -> str:
    """Return a row as it may have been written."""
    values = [(column[at].as_py() or b"").decode(errors="replace") for column in batch.columns]
    into = io.StringIO()
    plain_csv.writer(into, delimiter=delimiter, lineterminator="").writerow(values)
    return into.getvalue()
