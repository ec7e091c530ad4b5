"""A schema for CSV files that is declared, or inferred from the first file's first rows.

Inference never changes a value: digits with leading zeros are text. A number that a float can't hold is rejected, and
so are bytes that aren't UTF-8. Reads only the first rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rayelastic.connectors.csv.form import CsvForm, CsvSource, check_form
from rayelastic.connectors.files.byte_streams import LONGEST_LINE
from rayelastic.connectors.files.casts import is_inexact, is_padded
from rayelastic.connectors.files.columns import check_types, chosen_columns
from rayelastic.connectors.files.locations import shown_location
from rayelastic.connectors.files.paths import Paths, expanded
from rayelastic.connectors.row_files import RowOptions
from rayelastic.errors import ErrorCode, SchemaError, SourceError
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.forms import plain_form
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.records.shown import shown

if TYPE_CHECKING:
    import pyarrow as pa

SAMPLE_BYTES = 1 << 20  # of the first file, to infer types from
LONGEST_ROW = LONGEST_LINE
ENCODING_WAY_OUT = "Pass its encoding=, such as 'latin-1', or types={field: bytes}"


def csv_source(given: Paths, options: RowOptions, form: CsvForm, operator: str) -> CsvSource:
    """Make a source with the declared schema, or one inferred from the first rows.

    Raises:
        SourceError: Not readable as CSV, or a value that no inferred type holds.
        SchemaError: Unknown columns or types, or invalid names.
    """
    check_form(form, operator)
    paths, declared = expanded(given, operator, directories=False), options.schema
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
        if any(is_padded(text) for text in texts):
            return pa.string()
        wide = next((text for text in texts if is_inexact(text)), None) if pa.types.is_floating(kind) else None
        if wide is not None:
            problem = f"has {wide.decode().strip()}, which neither 64-bit integers nor floats hold"
            raise self._refused(
                f"{self._path!r}: column {column!r} {problem}",
                f"Say what it is: types={{{field!r}: str}}, or float to have it rounded",
            )
        return kind


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
