"""What Parquet files have in them, as far as declaring a source needs it: columns, and those that folders name.

Folders called `name=value` below what was given are columns, as Hive and Spark write them. Reads no rows.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rayelastic.errors import SchemaError
from rayelastic.graph.edges.locations import is_uri, readable, reading, shown_location
from rayelastic.graph.edges.paths import expanded
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import Lane

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ParquetSource", "check_columns", "decoded", "is_hidden", "parquet_source"]

_FOLDER = re.compile(r"([^=/]+)=([^/]*)")
_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # how Hive writes a null

Constants = tuple[tuple[str, str | None], ...]  # (column, value) that the folders of a file say


@dataclass(frozen=True, slots=True)
class ParquetSource:
    """Rows of Parquet files, through pyarrow's reader."""

    paths: tuple[str, ...]
    schema: Schema
    constants: tuple[Constants, ...] = ()  # of each path, if any has some
    lane: Lane = Lane.BUILT_IN
    reason: str = "pyarrow reader, native conversion"

    def check(self, operator: str) -> None:
        """Raise SourceError if a file is gone."""
        expanded(self.paths, operator, directories=False)

    def constants_of(self, number: int) -> dict[str, str | None]:
        """The columns of a file that its folders name."""
        return dict(self.constants[number]) if self.constants else {}


def parquet_source(found: Sequence[tuple[str, str]], declared: Schema | None, operator: str) -> ParquetSource:
    """Look into all files, and find the schema where none was declared.

    Args:
        found: (location, folder that was given) of each file.
        declared: the user's schema.
        operator: for messages.

    Raises:
        SourceError: a file can't be read as Parquet.
        SchemaError: columns differ between files, one that was declared isn't there, or a record can't hold one.
    """
    constants = tuple(_constants(path, root) for path, root in found)
    _check_folders(found, constants, operator)
    schemas = [decoded(_columns(path, operator)) for path, _ in found]
    named = _folder_columns(constants)
    first = _first(found[0][0], schemas[0], named)
    for (path, _), columns in zip(found[1:], schemas[1:], strict=True):
        if declared is None:
            first = _same(first, _first(path, columns, named), found[0][0], path, operator)
    paths = tuple(path for path, _ in found)
    if declared is None:
        schema = _held(first)
    else:
        schema = declared
        for path, columns in zip(paths, schemas, strict=True):
            check_columns(declared, [*columns.names, *named.names], path, operator)
    return ParquetSource(paths, schema, constants if named else ())


def decoded(columns: pa.Schema) -> pa.Schema:
    """Replace types that are other spellings of what a record holds: dictionaries (categories) and views.

    >>> import pyarrow as pa
    >>> decoded(pa.schema([("colour", pa.dictionary(pa.int8(), pa.string()))])).field("colour").type
    DataType(string)
    """
    import pyarrow as pa

    plain = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    fields = []
    for column in columns:
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        fields.append(column.with_type(plain.get(kind, kind)))
    return pa.schema(fields)


def check_columns(declared: Schema, names: Iterable[str], path: str, operator: str) -> None:
    """Raise SchemaError if a file lacks a column that was declared."""
    names = list(names)
    for name in declared.names:
        if name not in names:
            raise SchemaError(
                f"{declared.name} declares '{name}', which {shown_location(path)!r} doesn't have",
                operator=operator,
                way_out=f"Its columns are {', '.join(names)}",
            )


def _columns(path: str, operator: str) -> pa.Schema:
    from pyarrow.parquet import read_schema

    told = reading(path, lambda: "as Parquet", "Check that it is a Parquet file", operator)
    with told, readable(path) as file:
        return read_schema(file)


def _first(path: str, columns: pa.Schema, named: pa.Schema) -> pa.Schema:
    """The columns of a file and of its folders."""
    import pyarrow as pa

    every = pa.schema([column for column in columns if column.name not in named.names] + list(named))
    if not every.names:
        raise SchemaError(f"{shown_location(path)!r} has no columns", way_out="Leave the file out")
    return every


def _same(first: pa.Schema, other: pa.Schema, first_path: str, path: str, operator: str) -> pa.Schema:
    """The first schema, its columns nullable where those of the other are."""
    import pyarrow as pa

    here, there = shown_location(path), shown_location(first_path)
    for name in [*first.names, *other.names]:
        if name not in other.names or name not in first.names:
            has, lacks = (there, here) if name in first.names else (here, there)
            problem = f"{has!r} has a column '{name}', {lacks!r} has none"
        elif _plain(first.field(name).type) != _plain(other.field(name).type):
            problem = f"'{name}' is {first.field(name).type} in {there!r} and {other.field(name).type} in {here!r}"
        else:
            continue
        raise SchemaError(problem, operator=operator, way_out="Declare schema= with the columns that all files have")
    return pa.schema([f.with_nullable(f.nullable or other.field(f.name).nullable) for f in first])


def _plain(kind: pa.DataType) -> pa.DataType:
    """A type, the large ones of text as the others."""
    import pyarrow as pa

    return {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}.get(kind, kind)


def _held(columns: pa.Schema) -> Schema:
    try:
        return Schema.of(columns)
    except SchemaError as error:
        error.way_out = f"Declare schema= with the columns that you need. {error.way_out}"
        raise


def _constants(path: str, root: str) -> Constants:
    """What the folders between the one that was given and a file say."""
    if not root or not path.startswith(root):
        return ()
    pairs = (found.groups() for folder in _folders(path, root) if (found := _FOLDER.fullmatch(folder)))
    return tuple((urllib.parse.unquote(k), None if v == NO_VALUE else urllib.parse.unquote(v)) for k, v in pairs)


def _folders(path: str, root: str) -> list[str]:
    inner = path[len(root) :]
    return (urllib.parse.unquote(inner.partition("?")[0]) if is_uri(path) else inner).split("/")[:-1]


def is_hidden(path: str, root: str) -> bool:
    """Whether a file below a folder is none of its data, such as `_SUCCESS`, for Spark and Hive."""
    inner = path[len(root) :].lstrip("/") if root else ""
    return any(part[:1] in ("_", ".") and "=" not in part for part in inner.partition("?")[0].split("/"))


def _check_folders(found: Sequence[tuple[str, str]], constants: Sequence[Constants], operator: str) -> None:
    """All files stand in folders of the same names."""
    expected = [name for name, _ in constants[0]]
    for (path, _), own in zip(found, constants, strict=True):
        if [name for name, _ in own] != expected:
            raise SchemaError(
                f"the folders of {shown_location(path)!r} name the columns {[n for n, _ in own]}, "
                f"those of {shown_location(found[0][0])!r} {expected}",
                operator=operator,
                way_out="Give folders of one layout, or the files themselves, which makes no columns of folders",
            )


def _folder_columns(constants: Sequence[Constants]) -> Any:
    """Their types: numbers if all values are such, else text; leading zeros make a text."""
    import pyarrow as pa

    fields = []
    for number, (name, _) in enumerate(constants[0]):
        values = [own[number][1] for own in constants]
        numbers = all(value is None or _NUMBER.fullmatch(value) for value in values)
        fields.append(pa.field(name, pa.int64() if numbers else pa.string(), nullable=None in values))
    return pa.schema(fields)
