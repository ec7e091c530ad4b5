"""Converts columns of CSV to those of a schema: by pyarrow while it parses, or carefully.

Carefully means from bytes, column by column, and by bisection down to the row if something doesn't convert. Inference
never changes a value: inferred numbers arrive as text and are rejected if they have leading zeros.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rayelastic.connectors.csv.form import CsvForm, CsvSource
from rayelastic.connectors.csv.inference import LONGEST_ROW
from rayelastic.connectors.files.casts import EXACT_DIGITS, cast_column, has_digits, is_inexact, is_padded
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.forms import members_of, plain_form
from rayelastic.graph.records.shown import shown

if TYPE_CHECKING:
    import pyarrow as pa

    from rayelastic.graph.records.schema import Field

TRUE, FALSE = (b"1", b"true", b"TRUE", b"True"), (b"0", b"false", b"FALSE", b"False")  # as pyarrow's reader has them
_READ_FLOATS = (DataType.FLOAT32, DataType.FLOAT64)
_NOT_READ = (
    DataType.DURATION,
    DataType.UUID,
    DataType.FLOAT16,
)  # types that pyarrow's reader doesn't have, or has otherwise


class NotOfSchemaError(Exception):
    """A batch has a value that isn't of the schema."""


class Columns:
    """The columns of a source."""

    def __init__(self, body: CsvSource) -> None:
        self._body = body
        self._target = body.schema.to_arrow()
        self._fields = list(zip(body.columns, body.schema.fields, self._target, strict=True))

    def typed(self) -> Any:
        """Return how pyarrow converts them while it parses."""
        import pyarrow as pa

        types = {
            column: pa.binary() if self._is_checked(field) else arrow.type for column, field, arrow in self._fields
        }
        return self._options(types, [] if self._body.is_whole else list(types))

    def careful(self, names: list[str]) -> Any:
        """Return how pyarrow leaves all columns of a file unchanged."""
        import pyarrow as pa

        return self._options(dict.fromkeys(names, pa.binary()), [])

    def _options(self, types: dict[str, Any], include: list[str]) -> Any:
        from pyarrow import csv

        return csv.ConvertOptions(
            column_types=types,
            include_columns=include,
            null_values=self._body.form.nulls,
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )

    def of_file(self, path: str, form: CsvForm) -> list[str]:
        """Return the names of a file's columns."""
        from pyarrow import csv

        read, parse = form.reading(LONGEST_ROW), form.parsing(lambda _: "skip")
        with form.text(path) as text, csv.open_csv(text, read_options=read, parse_options=parse) as reader:
            names: list[str] = reader.schema.names
            return names

    def finished(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch that was read as `typed`, of the schema.

        Raises:
            NotOfSchemaError: it has a value that isn't of it.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        columns = []
        for name, field, arrow in self._fields:
            column = batch.column(name)
            if self._is_checked(field):
                column = self._converted(column, field, arrow.type)
            if column.null_count and not field.nullable:
                if not field.type.is_text:
                    raise NotOfSchemaError
                column = column.fill_null("" if field.type is DataType.STRING else b"")
            if field.type is DataType.ENUM:
                _check_members(column, field)
            if field.type is DataType.DECIMAL and not has_digits(column):
                raise NotOfSchemaError
            if field.type in _READ_FLOATS and pc.any(pc.is_inf(column)).as_py():
                raise NotOfSchemaError  # perhaps: a number that is beyond them
            columns.append(column)
        return pa.RecordBatch.from_arrays(columns, schema=self._target)

    def sorted_out(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, list[tuple[int, str]]]:
        """Convert a batch of bytes to the schema; return the good rows, and the bad ones: (index, what is wrong)."""
        import pyarrow as pa

        wrong: dict[int, str] = {}
        for name, field, arrow in self._fields:
            column = batch.column(name)
            for at in self._bad(column, field, arrow.type, 0):
                wrong.setdefault(at, self._problem(column[at].as_py(), name, field))
        kept = batch.filter(pa.array([at not in wrong for at in range(batch.num_rows)])) if wrong else batch
        columns = []
        for name, field, arrow in self._fields:
            column = self._converted(kept.column(name), field, arrow.type)
            if column.null_count and not field.nullable:
                column = column.fill_null("" if field.type is DataType.STRING else b"")
            columns.append(column)
        return pa.RecordBatch.from_arrays(columns, schema=self._target), sorted(wrong.items())

    def spans_lines(self, row: pa.RecordBatch) -> bool:
        """Return whether a text of it has a line end in it."""
        values = (column[0].as_py() for column in row.columns)
        return any("\n" in v if isinstance(v, str) else isinstance(v, bytes) and b"\n" in v for v in values)

    def _is_checked(self, field: Field) -> bool:
        return field.type in _NOT_READ or (field.name in self._body.inferred and field.type.is_numeric)

    def _bad(self, column: Any, field: Field, target: Any, start: int) -> list[int]:
        """Return the indexes of values that aren't of a field."""
        try:
            made = self._converted(column, field, target)
        except NotOfSchemaError:
            made = None
        if made is not None and (field.nullable or field.type.is_text or not made.null_count):
            return []
        if len(column) == 1:
            return [start]
        half = len(column) // 2
        return [
            *self._bad(column.slice(0, half), field, target, start),
            *self._bad(column.slice(half), field, target, start + half),
        ]

    def _converted(self, column: Any, field: Field, target: Any) -> Any:
        """Return a column of bytes as one of a type.

        Raises:
            NotOfSchemaError: a value isn't of it.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        if field.type is DataType.BINARY:
            return column.cast(target)
        try:
            text = column.cast(pa.string())
            if field.type is DataType.STRING:
                return text.cast(target)
            text = pc.utf8_trim(text, " \t")
            text = pc.if_else(pc.equal(text, ""), None, text)  # a quoted empty field isn't a number
            if field.type is DataType.BOOL:
                return _truths(text)
            if field.name in self._body.inferred and field.type.is_numeric:
                self._check_inferred(text, field)
            made = cast_column(text.cast(pa.float32()) if field.type is DataType.FLOAT16 else text, target)
            if field.type.is_float:
                _check_finite(made, text)
            if field.type is DataType.ENUM:
                _check_members(made, field)
            return made
        except (pa.ArrowException, ValueError, NotImplementedError) as error:
            raise NotOfSchemaError from error

    def _check_inferred(self, text: Any, field: Field) -> None:
        """Raise NotOfSchemaError for a value that would change."""
        import pyarrow.compute as pc

        suspect = pc.match_substring_regex(text, "^[+-]?0[0-9xX]")
        if field.type.is_float:
            is_long = pc.greater(pc.binary_length(text), EXACT_DIGITS)
            suspect = pc.or_kleene(suspect, pc.and_kleene(is_long, pc.invert(pc.match_substring(text, "."))))
        if not pc.any(suspect).as_py():
            return
        for one in text.filter(suspect).to_pylist():
            if is_padded(one.encode()) or (field.type.is_float and is_inexact(one.encode())):
                raise NotOfSchemaError

    def _problem(self, value: bytes | None, column: str, field: Field) -> str:
        kind = f"{field.type.value} of column '{column}'"
        if value is None or (not value and not field.type.is_text):
            return f"it is empty, but {kind} is declared without None"
        try:
            text = value.decode()
        except UnicodeDecodeError:
            return f"{shown(value)} of column '{column}' isn't UTF-8"
        if field.name in self._body.inferred:
            return f"{shown(text)} doesn't fit the {kind}, which was inferred from the first rows: declare it by types="
        return f"{shown(text)} doesn't fit the {kind}"


def _check_members(values: Any, field: Field) -> None:
    """Raise NotOfSchemaError for a value that isn't a member of an enum."""
    import pyarrow as pa
    import pyarrow.compute as pc

    members = pa.array([*members_of(plain_form(field.format)), None], values.type)
    if pc.all(pc.is_in(values, members)).as_py() is False:
        raise NotOfSchemaError


def _check_finite(made: Any, text: Any) -> None:
    """Raise NotOfSchemaError for finite numbers that are beyond all floats of a type."""
    import pyarrow as pa
    import pyarrow.compute as pc

    beyond = pc.is_inf(made.cast(pa.float64()))
    if pc.any(beyond).as_py() and any("n" not in one.lower() for one in text.filter(beyond).to_pylist()):
        raise NotOfSchemaError


def _truths(text: Any) -> Any:
    """Convert texts to booleans."""
    import pyarrow as pa
    import pyarrow.compute as pc

    true = pc.is_in(text, pa.array([one.decode() for one in TRUE]))
    known = pc.or_(true, pc.is_in(text, pa.array([one.decode() for one in FALSE])))
    if pc.all(pc.or_(known, pc.is_null(text))).as_py() is False:
        raise NotOfSchemaError
    return pc.if_else(pc.is_null(text), None, true)
