"""CSV as a source: what the user said of it, what the first rows of the first file say, and the schema of both.

What is inferred never changes a value: digits with leading zeros are text, a number that a float can't hold is refused,
bytes that aren't UTF-8 are refused. Reads no rows but the first ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rayelastic.errors import SchemaError, SourceError
from rayelastic.graph.edges.csv_text import CsvText
from rayelastic.graph.edges.locations import shown_location
from rayelastic.graph.edges.parquet_files import check_columns
from rayelastic.graph.edges.paths import expanded
from rayelastic.graph.edges.sources import check_encoding
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.forms import plain_form
from rayelastic.graph.records.names import is_field_name
from rayelastic.graph.records.schema import Schema, laid_out
from rayelastic.graph.records.shown import shown
from rayelastic.graph.spec.dead_letters import ERRORS, OnError
from rayelastic.graph.spec.operator_spec import Lane

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BadRows", "CsvForm", "CsvSource", "check_form", "csv_source"]

SAMPLE_BYTES = 1 << 20  # of the first file, from which types are inferred
EXACT_DIGITS = 15  # of a whole number that every float holds
_PADDED = re.compile(rb"[+-]?0[0-9]")
_WHOLE = re.compile(rb"[+-]?[0-9]+")


@dataclass(frozen=True, slots=True)
class CsvForm:
    """How files are written.

    Args:
        delimiter: one character.
        quote: one character around fields that have delimiters or line ends in them; None: there is none.
        encoding: of the files; None: UTF-8.
        comment: lines that start with it are left out; None: there are none.
        nulls: what stands for None where it isn't quoted.
    """

    delimiter: str = ","
    quote: str | None = '"'
    encoding: str | None = None
    comment: str | None = None
    nulls: tuple[str, ...] = ("",)


@dataclass(frozen=True, slots=True)
class CsvSource:
    """Rows of CSV files that have a header line, through pyarrow's reader.

    Args:
        paths: of the files.
        schema: of the tuples.
        columns: of the file, one for each field.
        inferred: fields whose type was inferred.
        form: how the files are written.
        on_bad_row: what happens to a row that isn't of the schema.
        name: of the operator.
    """

    paths: tuple[str, ...]
    schema: Schema
    columns: tuple[str, ...]
    inferred: frozenset[str] = frozenset()
    form: CsvForm = CsvForm()
    on_bad_row: OnError = OnError.FAIL
    name: str = ""
    lane: Lane = Lane.BUILT_IN
    reason: str = "pyarrow reader, native conversion"

    def check(self, operator: str) -> None:
        """Raise SourceError if a file is gone."""
        expanded(self.paths, operator, directories=False)

    @property
    def side_sources(self) -> dict[str, BadRows]:
        """What else is read of the same files, by port."""
        return {ERRORS: BadRows(self, self.name)} if self.on_bad_row is OnError.DIVERT else {}


@dataclass(frozen=True, slots=True)
class BadRows:
    """The rows of CSV files that aren't of the schema of a source, which leaves them out; the files are read again."""

    of: CsvSource
    name: str  # of that source
    schema: Schema = Schema.of({"file": str, "row": int, "text": str, "error": str, "operator": str}, name="BadRow")  # noqa: RUF009
    lane: Lane = Lane.BUILT_IN
    reason: str = "pyarrow reader, rows that don't fit"

    def check(self, operator: str) -> None:
        """Raise SourceError if a file is gone."""
        self.of.check(operator)


def check_form(form: CsvForm, operator: str) -> None:
    """Raise SourceError for what can't be how files are written."""
    check_encoding(form.encoding, operator)
    for name, value in (("delimiter", form.delimiter), ("quote", form.quote)):
        one = isinstance(value, str) and len(value) == 1 and value.isascii() and value not in "\r\n"
        if not one and not (value is None and name == "quote"):
            raise SourceError(f"{name}={shown(value)}", operator=operator, way_out="Give one ASCII character")
    comment: object = form.comment
    if comment is not None and not (isinstance(comment, str) and comment):
        raise SourceError(f"comment={shown(comment)}", operator=operator, way_out="Give text, such as '#'")
    if not all(isinstance(one, str) for one in form.nulls):
        raise SourceError(f"nulls={shown(form.nulls)}", operator=operator, way_out="Give texts, such as ['', 'NA']")


def csv_source(
    paths: tuple[str, ...],
    declared: Schema | None,
    columns: object,
    types: Mapping[str, object],
    form: CsvForm,
    on_bad_row: OnError,
    operator: str,
) -> CsvSource:
    """Find the schema: what was declared, or what the first rows look like.

    Raises:
        SourceError: not readable as CSV, or a value that no inferred type holds.
        SchemaError: columns or types that aren't there, or names that a tuple can't have.
    """
    sample = _Sample(paths[0], form, operator)
    names = _chosen(columns, declared, sample.names, paths[0], operator)
    _check_types(types, names, declared, operator)
    if declared is not None:
        _check_held(declared)
        if columns is not None:
            check_columns(declared, names.values(), paths[0], operator)
        files = {field: column for column, field in names.items()}
        return CsvSource(
            paths, declared, tuple(files[f] for f in declared.names), frozenset(), form, on_bad_row, operator
        )
    given = {name: Schema.of({name: kind}).fields[0] for name, kind in types.items()}
    inferred = [field for field in names.values() if field not in given]
    own = {field: sample.type_of(column, field) for column, field in names.items() if field in inferred}
    fields = {f: types[f] if f in given else own[f] for f in names.values()}
    schema = _schema(fields, frozenset(inferred))
    return CsvSource(paths, schema, tuple(names), frozenset(inferred), form, on_bad_row, operator)


def _check_held(declared: Schema) -> None:
    """Raise SchemaError for a field that has parts, or is in CSV no text that pyarrow reads."""
    for field in declared.fields:
        if field.type is DataType.UUID or (field.type.is_made and field.type is not DataType.JSON):
            raise SchemaError(
                f"field '{field.name}' of {declared.name}: {plain_form(field.format).shown} can't be read from CSV",
                way_out="Declare it as a str, and make what it stands for in a map",
            )


def _schema(fields: Mapping[str, Any], inferred: frozenset[str]) -> Schema:
    columns = []
    for name, kind in fields.items():
        field = Schema.of({name: kind}).fields[0]
        columns.append((name, field.format, field.nullable or name in inferred))
    return laid_out("Record", columns)


def _chosen(columns: object, declared: Schema | None, has: list[str], path: str, operator: str) -> dict[str, str]:
    """{column of the file: field}, in the order of the fields."""
    if columns is None and declared is not None:
        check_columns(declared, has, path, operator)
        chosen = {name: name for name in declared.names}
    elif columns is None:
        chosen = {name: name for name in has}
    elif isinstance(columns, Mapping):
        chosen = dict(columns)
    elif isinstance(columns, Iterable) and not isinstance(columns, str | bytes):
        chosen = {name: name for name in columns}
    else:
        raise SchemaError(
            f"columns={shown(columns)}", operator=operator, way_out="Give a list of columns, or {column: field}"
        )
    for column, field in chosen.items():
        if column not in has:
            raise SchemaError(
                f"{shown_location(path)!r} has no column {column!r}",
                operator=operator,
                way_out=f"Its columns are {', '.join(has)}",
            )
        if has.count(column) > 1:
            raise SchemaError(
                f"{shown_location(path)!r} has {has.count(column)} columns called {column!r}",
                operator=operator,
                way_out="Rename them in the file, or leave them out with columns=",
            )
        if not is_field_name(field):
            example = re.sub(r"\W|^(?=\d)", "_", str(field)).strip("_") or "field"
            raise SchemaError(
                f"column {column!r} can't be an attribute of a tuple as {field!r}",
                operator=operator,
                way_out=f"Rename it: columns={{{column!r}: {example!r}, ...}}",
            )
    if len(set(chosen.values())) < len(chosen) or not chosen:
        problem = "columns= gives two columns one name" if chosen else "columns= takes no column"
        raise SchemaError(problem, operator=operator, way_out="Give each field one column")
    return chosen


def _check_types(types: object, names: Mapping[str, str], declared: Schema | None, operator: str) -> None:
    if not isinstance(types, Mapping):
        raise SchemaError(f"types={shown(types)}", operator=operator, way_out="Give {field: type}")
    if types and declared is not None:
        raise SchemaError("schema= and types= both say types", operator=operator, way_out="Give one of them")
    for name in types:
        if name not in names.values():
            raise SchemaError(
                f"types= names {name!r}, which is no field",
                operator=operator,
                way_out=f"The fields are {', '.join(names.values())}",
            )


class _Sample:
    """The first rows of a file."""

    def __init__(self, path: str, form: CsvForm, operator: str) -> None:
        self._path = shown_location(path)
        self._operator = operator
        self._inferred = self._first(path, form, {})[0]
        self.names: list[str] = self._inferred.names
        import pyarrow as pa

        unique = {name for name in self.names if self.names.count(name) == 1}
        self._texts = self._first(path, form, dict.fromkeys(unique, pa.binary()))[1]

    def _first(self, path: str, form: CsvForm, types: dict[str, Any]) -> tuple[pa.Schema, Any]:
        """The schema and the first batch."""
        from pyarrow import ArrowException, csv

        read = csv.ReadOptions(block_size=SAMPLE_BYTES, use_threads=False)
        convert = csv.ConvertOptions(
            column_types=types,
            null_values=form.nulls,
            strings_can_be_null=True,
            quoted_strings_can_be_null=not types,  # a quoted empty field doesn't make a text of a column of numbers
        )
        skip = csv.ParseOptions(
            delimiter=form.delimiter,
            quote_char=form.quote or False,
            double_quote=form.quote is not None,
            newlines_in_values=form.quote is not None,
            invalid_row_handler=lambda _: "skip",
        )
        while True:
            try:
                with (
                    CsvText(path, form.encoding, form.comment, form.quote) as text,
                    csv.open_csv(text, read_options=read, parse_options=skip, convert_options=convert) as reader,
                ):
                    _ = reader.schema.names  # raises if they aren't UTF-8
                    return reader.schema, next(iter(reader), None)
            except (ArrowException, ValueError) as error:
                if "straddling" in str(error) and read.block_size < LONGEST_ROW:
                    read.block_size *= 16
                    continue
                raise self._error(str(error)) from error

    def _error(self, said: str) -> SourceError:
        if "Empty CSV" in said:
            return self._refused(f"{self._path!r} can't be read as CSV: it is empty", "It needs a header line")
        if "utf-8" in said:
            return self._refused(f"the header of {self._path!r} isn't UTF-8", ENCODING_WAY_OUT)
        if "straddling" in said:
            problem = f"a row at the start of {self._path!r} is longer than {LONGEST_ROW >> 20} MiB"
            return self._refused(problem, "Look for a quote that is never closed, or give quote=None")
        way_out = "Check that it has a header line and the delimiter that was given"
        return self._refused(f"{self._path!r} can't be read as CSV: {said}", way_out)

    def _refused(self, problem: str, way_out: str) -> SourceError:
        return SourceError(problem, operator=self._operator, way_out=way_out)

    def type_of(self, column: str, field: str) -> Any:
        """The type of a column whose values it holds as they are."""
        import pyarrow as pa

        kind = self._inferred.field(column).type
        texts = [] if self._texts is None else self._texts.column(column).drop_null().to_pylist()
        if pa.types.is_binary(kind):
            row, bad = next((at, one) for at, one in enumerate(texts) if not _is_utf8(one))
            problem = f"{self._path!r}: column {column!r} isn't UTF-8: {shown(bad)} is value {row + 1} of it"
            raise self._refused(problem, ENCODING_WAY_OUT)
        if pa.types.is_null(kind):
            return pa.string()
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            return kind
        if any(_PADDED.match(text) for text in texts):
            return pa.string()
        if (
            pa.types.is_floating(kind)
            and (wide := next((text for text in texts if is_inexact(text)), None)) is not None
        ):
            raise self._refused(
                f"{self._path!r}: column {column!r} has {wide.decode()}, which neither 64-bit integers nor floats hold",
                f"Say what it is: types={{{field!r}: str}}, or float to have it rounded",
            )
        return kind


LONGEST_ROW = 1 << 28  # bytes
ENCODING_WAY_OUT = "Give its encoding=, such as 'latin-1', or types={field: bytes}"


def is_padded(text: bytes) -> bool:
    """Whether a number is written with leading zeros, which no number keeps."""
    return _PADDED.match(text) is not None


def is_inexact(text: bytes) -> bool:
    """Whether a whole number is one that a float doesn't hold.

    >>> is_inexact(b"99999999999999999999"), is_inexact(b"9007199254740992"), is_inexact(b"0.12345678901234567890")
    (True, False, False)
    """
    return len(text) > EXACT_DIGITS and _WHOLE.fullmatch(text) is not None and int(text) != int(float(text))


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
