"""CSV as a source: the user's options, and a schema that is declared or inferred from the first file's first rows.

Inference never changes a value: digits with leading zeros are text. A number that a float can't hold is rejected, and
so are bytes that aren't UTF-8. Reads only the first rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rayelastic.errors import ErrorCode, SchemaError, SourceError
from rayelastic.graph.edges.formats.byte_streams import LONGEST_LINE, check_encoding
from rayelastic.graph.edges.formats.columns import check_types, chosen_columns
from rayelastic.graph.edges.formats.csv_text import CsvText
from rayelastic.graph.edges.formats.row_files import RowFiles, RowOptions
from rayelastic.graph.edges.locations import shown_location
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.forms import plain_form
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.records.shown import shown

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.csv as pa_csv

__all__ = ["CsvForm", "CsvSource", "check_form", "csv_source"]

SAMPLE_BYTES = 1 << 20  # of the first file, to infer types from
EXACT_DIGITS = 15  # of a whole number that every float holds
_PADDED = re.compile(rb"[+-]?0[0-9xX]")
_WHOLE = re.compile(rb"[+-]?[0-9]+")
_NUMBER = re.compile(rb"[+-]?[0-9]*\.?[0-9]*[eE][+-]?[0-9]+")
LONGEST_WHOLE = 300  # digits of a whole number that may be a float


@dataclass(frozen=True, slots=True)
class CsvForm:
    """The syntax of CSV files.

    Args:
        delimiter: One character.
        quote: One character around fields with delimiters or line ends; None: there is none.
        encoding: The files' encoding; None: UTF-8.
        comment: Lines that start with it are left out; None: there are none.
        nulls: Unquoted texts that stand for None.
        escape: The character that escapes the next one; None: there is none.
        header: The names of the columns, if the first row is data; empty: 'f0', 'f1' and so on; None: the first row
            names them.
    """

    delimiter: str = ","
    quote: str | None = '"'
    encoding: str | None = None
    comment: str | None = None
    nulls: tuple[str, ...] = ("",)
    escape: str | None = None
    header: tuple[str, ...] | None = None

    @property
    def first_row(self) -> int:
        """The number of the first row of data."""
        return 2 if self.header is None else 1

    def text(self, path: str) -> CsvText:
        """Open the text of a file."""
        return CsvText(path, self.encoding, self.comment, self.quote, self.escape)

    def parsing(self, bad_row: Callable[[Any], str] | None) -> pa_csv.ParseOptions:
        """Make the options of pyarrow's parser; `bad_row` decides about rows with too few or too many fields."""
        from pyarrow import csv

        return csv.ParseOptions(
            delimiter=self.delimiter,
            quote_char=self.quote or False,
            double_quote=self.quote is not None,
            escape_char=self.escape or False,
            newlines_in_values=self.quote is not None or self.escape is not None,
            invalid_row_handler=bad_row,
        )

    def reading(self, block_size: int, *, use_threads: bool = False) -> pa_csv.ReadOptions:
        """Make the options of pyarrow's reader."""
        from pyarrow import csv

        numbered = self.header == ()
        return csv.ReadOptions(
            block_size=block_size,
            use_threads=use_threads,
            column_names=self.header or None,
            autogenerate_column_names=numbered,
        )


@dataclass(frozen=True, slots=True)
class CsvSource(RowFiles):
    """Rows of CSV files of one syntax."""

    form: CsvForm = CsvForm()


def check_form(form: CsvForm, operator: str) -> None:
    """Raise SourceError for invalid options of the syntax."""
    check_encoding(form.encoding, operator)
    for name, value in (("delimiter", form.delimiter), ("quote", form.quote), ("escape", form.escape)):
        is_character = isinstance(value, str) and len(value) == 1 and value.isascii() and value not in "\r\n"
        if not is_character and not (value is None and name != "delimiter"):
            raise SourceError(
                f"{name}={shown(value)} is invalid",
                operator=operator,
                hint="Pass one ASCII character",
                code=ErrorCode.WRONG_TYPE,
            )
    comment: object = form.comment
    if comment is not None and not (isinstance(comment, str) and comment):
        raise SourceError(
            f"comment={shown(comment)} is invalid",
            operator=operator,
            hint="Pass text, such as '#'",
            code=ErrorCode.WRONG_TYPE,
        )
    if not all(isinstance(is_character, str) for is_character in form.nulls):
        raise SourceError(
            f"nulls={shown(form.nulls)} is invalid",
            operator=operator,
            hint="Pass texts, such as ['', 'NA']",
            code=ErrorCode.WRONG_TYPE,
        )
    if form.escape is not None and form.escape in (form.quote, form.delimiter):
        raise SourceError(
            f"escape={form.escape!r} is the delimiter or the quote",
            operator=operator,
            hint="Quotes are doubled anyway",
            code=ErrorCode.CONFLICTING_ARGUMENTS,
        )
    if form.escape is not None and (null := next((n for n in form.nulls if form.escape in n), None)) is not None:
        raise SourceError(
            f"nulls= has {null!r}, which escape={form.escape!r} reads as {null.replace(form.escape, '', 1)!r}",
            operator=operator,
            hint="Pass the text without the escape, or none of the two",
            code=ErrorCode.CONFLICTING_ARGUMENTS,
        )
    if form.header is not None and not all(isinstance(is_character, str) for is_character in form.header):
        raise SourceError(
            f"header={shown(form.header)} is invalid",
            operator=operator,
            hint="Pass False, or names of columns",
            code=ErrorCode.WRONG_TYPE,
        )


def csv_source(paths: tuple[str, ...], options: RowOptions, form: CsvForm, operator: str) -> CsvSource:
    """Make a source with the declared schema, or one inferred from the first rows.

    Raises:
        SourceError: Not readable as CSV, or a value that no inferred type holds.
        SchemaError: Unknown columns or types, or invalid names.
    """
    declared = options.schema
    if form.header == () and declared is not None and options.columns is None:
        form = replace(form, header=declared.names)
    sample = _Sample(paths[0], form, operator)
    form = form if form.header is None else replace(form, header=tuple(sample.names))
    named = chosen_columns(options.columns, declared, sample.names, paths[0], operator)
    check_types(options.types, named.values(), declared, operator)
    source = CsvSource(**options.source(paths, named, sample.type_of, operator), form=form)
    _check_held(source.schema)
    return source


def _check_held(declared: Schema) -> None:
    """Raise SchemaError for a field that has parts, which CSV can't hold."""
    for field in declared.fields:
        if field.type.is_made and field.type is not DataType.JSON:
            raise SchemaError(
                f"field '{field.name}' of {declared.name}: {plain_form(field.format).shown} can't be read from CSV",
                hint="Declare it as a str, or as rel.Json where its text is JSON",
                code=ErrorCode.UNSUPPORTED_TYPE,
            )


class _Sample:
    """The first rows of a file."""

    def __init__(self, path: str, form: CsvForm, operator: str) -> None:
        self._path = shown_location(path)
        self._operator = operator
        self._nulls = {null for null in form.nulls if null}  # quoted ones are texts
        self._inferred = self._first(path, form, {})[0]
        self.names: list[str] = self._inferred.names
        import pyarrow as pa

        unique = {name for name in self.names if self.names.count(name) == 1}
        self._texts = self._first(path, form, dict.fromkeys(unique, pa.binary()))[1]

    def _first(self, path: str, form: CsvForm, types: dict[str, Any]) -> tuple[pa.Schema, Any]:
        """Return the schema and the first batch."""
        from pyarrow import ArrowException, csv

        read, skip = form.reading(SAMPLE_BYTES), form.parsing(lambda _: "skip")
        convert = csv.ConvertOptions(
            column_types=types,
            null_values=form.nulls,
            strings_can_be_null=True,
            quoted_strings_can_be_null=not types,  # a quoted empty field keeps a column of numbers numeric
        )
        while True:
            try:
                with (
                    form.text(path) as text,
                    csv.open_csv(text, read_options=read, parse_options=skip, convert_options=convert) as reader,
                ):
                    _ = reader.schema.names  # raises if they aren't UTF-8
                    return reader.schema, next(iter(reader), None)
            except (ArrowException, ValueError) as error:
                if "straddling" in str(error) and read.block_size < LONGEST_ROW:
                    read.block_size = min(16 * read.block_size, LONGEST_ROW)
                    continue
                raise self._error(str(error)) from error

    def _error(self, said: str) -> SourceError:
        if "Empty CSV" in said:
            return self._refused(
                f"{self._path!r} can't be read as CSV: it is empty", "Leave it out, or write a header line"
            )
        if "utf-8" in said:
            return self._refused(f"the header of {self._path!r} isn't UTF-8", ENCODING_WAY_OUT)
        if "straddling" in said:
            problem = f"a row at the start of {self._path!r} is longer than {LONGEST_ROW >> 20} MiB"
            return self._refused(problem, "Look for a quote that is never closed, or pass quote=None")
        hint = "Check the delimiter. If there is no header line, pass header=False"
        return self._refused(f"{self._path!r} can't be read as CSV: {said}", hint)

    def _refused(self, problem: str, hint: str) -> SourceError:
        return SourceError(problem, operator=self._operator, hint=hint, code=ErrorCode.MALFORMED_FILE)

    def type_of(self, column: str, field: str) -> Any:
        """Return a type for a column that holds its values unchanged."""
        import pyarrow as pa

        kind = self._inferred.field(column).type
        texts = [] if self._texts is None else self._texts.column(column).drop_null().to_pylist()
        if pa.types.is_binary(kind):
            row, bad = next((at, one) for at, one in enumerate(texts) if not _is_utf8(one))
            problem = f"{self._path!r}: column {column!r} isn't UTF-8: {shown(bad)} is value {row + 1} of it"
            raise self._refused(problem, ENCODING_WAY_OUT)
        if pa.types.is_null(kind) or any(text.decode() in self._nulls for text in texts):
            return pa.string()
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            return kind
        if any(_PADDED.match(text) for text in texts):
            return pa.string()
        wide = next((text for text in texts if is_inexact(text)), None) if pa.types.is_floating(kind) else None
        if wide is not None:
            problem = f"has {wide.decode().strip()}, which neither 64-bit integers nor floats hold"
            raise self._refused(
                f"{self._path!r}: column {column!r} {problem}",
                f"Say what it is: types={{{field!r}: str}}, or float to have it rounded",
            )
        return kind


LONGEST_ROW = LONGEST_LINE
ENCODING_WAY_OUT = "Pass its encoding=, such as 'latin-1', or types={field: bytes}"


def is_padded(text: bytes) -> bool:
    """Return whether a number has leading zeros, which no numeric type keeps."""
    return _PADDED.match(text) is not None


def is_inexact(text: bytes) -> bool:
    """Return whether a number is a whole one that a float can't hold exactly, or exceeds all floats.

    >>> is_inexact(b"99999999999999999999"), is_inexact(b"9007199254740992"), is_inexact(b"0.12345678901234567890")
    (True, False, False)
    >>> is_inexact(b"1e400"), is_inexact(b"inf")
    (True, False)
    """
    if b"e" in text or b"E" in text:
        return _NUMBER.fullmatch(text.strip()) is not None and math.isinf(float(text))
    if len(text) <= EXACT_DIGITS or _WHOLE.fullmatch(text.strip()) is None:
        return False
    return len(text) > LONGEST_WHOLE or int(text) != int(float(text))


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
