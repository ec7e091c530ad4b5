"""The columns of Parquet files, and those that folders name, for the declaration of a source.

Folders named `name=value` below the user's directory are columns, as Hive and Spark write them. Reads no rows.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rayelastic.connectors.description import FileSource
from rayelastic.connectors.files.casts import decoded
from rayelastic.connectors.files.columns import check_columns, chosen_columns, renamed
from rayelastic.connectors.files.locations import is_uri, readable, reading, shown_location
from rayelastic.connectors.files.paths import Paths, found_files
from rayelastic.errors import ErrorCode, SchemaError
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import Lane

if TYPE_CHECKING:
    import pyarrow as pa

_FOLDER = re.compile(r"([^=/]+)=([^/]*)")
_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # how Hive writes a null

Constants = tuple[tuple[str, str | None], ...]  # (column, value) from the folders of a file


@dataclass(frozen=True, slots=True)
class ParquetSource(FileSource[Any]):
    """Rows of Parquet files, through pyarrow's reader."""

    kind: ClassVar[str] = "Parquet files"
    seeks: ClassVar[bool] = True
    omits_unread: ClassVar[bool] = True
    fills_missing: ClassVar[bool] = False  # columns that a file lacks are null

    paths: tuple[str, ...]
    schema: Schema
    columns: tuple[str, ...]  # of the files, one for each field
    constants: tuple[Constants, ...] = ()  # of each path, if any has some
    time_ordered: bool = False
    lane: Lane = Lane.BUILT_IN
    reason: str = "pyarrow reader, native conversion"

    def constants_of(self, number: int) -> dict[str, str | None]:
        """Return the columns of a file that its folders name."""
        return dict(self.constants[number]) if self.constants else {}


def parquet_source(
    given: Paths, declared: Schema | None, columns: object, time_ordered: bool, operator: str
) -> ParquetSource:
    """Read the columns of all files, and infer the schema if none was declared.

    Args:
        given: The user's paths.
        declared: The user's schema.
        columns: The user's choice; see chosen_columns.
        time_ordered: Whether the event times of a file follow those of the file before.
        operator: The operator, for messages.

    Raises:
        SourceError: A file can't be read as Parquet.
        SchemaError: Columns differ between files, a declared one is missing, or a record can't hold one.
    """
    files = found_files(given, operator, directories=True)
    found = [(path, root) for path, root in files if not _is_hidden(path, root)] or files
    constants = tuple(_constants(path, root) for path, root in found)
    _check_folders(found, constants, operator)
    named = _folder_columns(constants)
    schemas = [_first(path, _columns(path, operator), named) for path, _ in found]
    paths = tuple(path for path, _ in found)
    chosen = chosen_columns(columns, declared, schemas[0].names, paths[0], operator)
    if declared is not None:
        schema = declared
        for path, own in zip(paths, schemas, strict=True):
            own_names = [chosen.get(name, name) for name in own.names]
            check_columns(declared, own_names, path, operator)
    else:
        first = schemas[0]
        for path, other in zip(paths[1:], schemas[1:], strict=True):
            first = _same(first, other, chosen if columns is not None else None, paths[0], path, operator)
        schema = held(renamed(decoded(first), chosen))
    return ParquetSource(paths, schema, tuple(chosen), constants if named else (), time_ordered)


def _columns(path: str, operator: str) -> pa.Schema:
    from pyarrow.parquet import read_schema

    reading_columns = reading(path, lambda: "as Parquet", "Check that it is a Parquet file", operator)
    with reading_columns, readable(path) as file:
        return read_schema(file)


def _first(path: str, columns: pa.Schema, named: pa.Schema) -> pa.Schema:
    """Return the columns of a file and of its folders."""
    import pyarrow as pa

    every = pa.schema([column for column in columns if column.name not in named.names] + list(named))
    if not every.names:
        raise SchemaError(
            f"{shown_location(path)!r} has no columns", hint="Leave the file out", code=ErrorCode.NO_FIELDS
        )
    return every


def _same(
    first: pa.Schema, other: pa.Schema, chosen: Container[str] | None, first_path: str, path: str, operator: str
) -> pa.Schema:
    """Return the first schema; columns are nullable if the other's are, and have its type if they are all null."""
    import pyarrow as pa

    here, there = shown_location(path), shown_location(first_path)
    for name in [*first.names, *other.names]:
        if chosen is not None and name not in chosen:
            continue
        if name not in other.names or name not in first.names:
            has, lacks = (there, here) if name in first.names else (here, there)
            problem = f"{has!r} has a column '{name}', {lacks!r} has none"
        elif not _alike(first.field(name).type, other.field(name).type):
            problem = f"'{name}' is {first.field(name).type} in {there!r} and {other.field(name).type} in {here!r}"
        else:
            continue
        raise SchemaError(
            problem,
            operator=operator,
            hint="Declare schema= with the columns that all files have",
            code=ErrorCode.SCHEMA_MISMATCH,
        )
    common = [(f, other.field(f.name)) for f in first if f.name in other.names]
    typed = [f.with_type(o.type if pa.types.is_null(f.type) else f.type) for f, o in common]
    return pa.schema([f.with_nullable(f.nullable or o.nullable) for f, (_, o) in zip(typed, common, strict=True)])


def _alike(one: pa.DataType, other: pa.DataType) -> bool:
    """Return whether two types mean the same; a column of nulls matches any."""
    import pyarrow as pa

    if pa.types.is_null(one) or pa.types.is_null(other):
        return True
    large = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
    one, other = (decoded(pa.schema([("it", kind)])).field("it").type for kind in (one, other))
    return bool(large.get(one, one) == large.get(other, other))


def held(columns: pa.Schema) -> Schema:
    """Return the schema of records with these columns; raise SchemaError if they can't hold one."""
    try:
        return Schema.of(columns)
    except SchemaError as error:
        error.hint = f"Choose others by columns=[...], or declare schema=. {error.hint}"
        raise


def _constants(path: str, root: str) -> Constants:
    """Return the values of the folders between the root and a file."""
    if not root or not path.startswith(root):
        return ()
    pairs = (match.groups() for folder in _folders(path, root) if (match := _FOLDER.fullmatch(folder)))
    return tuple((urllib.parse.unquote(k), None if v == NO_VALUE else urllib.parse.unquote(v)) for k, v in pairs)


def _folders(path: str, root: str) -> list[str]:
    inner = path[len(root) :]
    return (urllib.parse.unquote(inner.partition("?")[0]) if is_uri(path) else inner).split("/")[:-1]


def _is_hidden(path: str, root: str) -> bool:
    """Return whether Spark and Hive ignore a file below a folder, such as `_SUCCESS`."""
    inner = path[len(root) :].lstrip("/") if root else ""
    return any(part[:1] in ("_", ".") and "=" not in part for part in inner.partition("?")[0].split("/"))


def _check_folders(found: Sequence[tuple[str, str]], constants: Sequence[Constants], operator: str) -> None:
    """Check that all files are in folders of the same names."""
    expected = [name for name, _ in constants[0]]
    for (path, _), own in zip(found, constants, strict=True):
        if [name for name, _ in own] != expected:
            raise SchemaError(
                f"the folders of {shown_location(path)!r} name the columns {[n for n, _ in own]}, "
                f"those of {shown_location(found[0][0])!r} {expected}",
                operator=operator,
                hint="Pass folders of one layout, or the files themselves, which have no columns from folders",
                code=ErrorCode.SCHEMA_MISMATCH,
            )


def _folder_columns(constants: Sequence[Constants]) -> Any:
    """Infer the types of folder columns: numbers if all values are, otherwise text; leading zeros are text."""
    import pyarrow as pa

    fields = []
    for number, (name, _) in enumerate(constants[0]):
        values = [own[number][1] for own in constants]
        numbers = all(value is None or _NUMBER.fullmatch(value) for value in values)
        fields.append(pa.field(name, pa.int64() if numbers else pa.string(), nullable=None in values))
    return pa.schema(fields)
