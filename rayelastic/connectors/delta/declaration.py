"""A table of Delta Lake, as a source and a sink."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, TypedDict, TypeVar, Unpack, overload

from rayelastic.connectors.delta.tables import (
    check_columns,
    check_installed,
    columns_of,
    delta_schema,
    files_of,
    opened,
    raising,
)
from rayelastic.connectors.description import OBJECTS, Content, Sink
from rayelastic.connectors.files.casts import decoded
from rayelastic.connectors.files.columns import Columns, chosen_columns, renamed
from rayelastic.connectors.files.locations import shown_location
from rayelastic.connectors.files.paths import check_writable, written_to
from rayelastic.connectors.parquet.inference import ParquetSource, held
from rayelastic.connectors.typed import Declared, SourceOf
from rayelastic.errors import ErrorCode, SinkError, SinkLostError, SourceError, SourceLostError
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.records.shown import shown
from rayelastic.graph.spec.operator_spec import Lane, SinkDescription, SourceDescription

T = TypeVar("T")

TIMES = frozenset({DataType.TIME32, DataType.TIME64, DataType.DURATION})
UNPARTITIONED = frozenset({DataType.LIST, DataType.STRUCT, DataType.MAP, DataType.BINARY})


@dataclass(frozen=True, slots=True)
class DeltaSink(Sink):
    """Appends rows to a Delta table, a commit for each epoch."""

    unsupported: ClassVar[frozenset[DataType]] = OBJECTS | TIMES
    table: str
    partition_by: tuple[str, ...] = ()
    lane: Lane = field(default=Lane.BUILT_IN, repr=False)
    reason: str = field(default="Arrow batches to Delta Lake", repr=False)

    def check(self, operator: str) -> None:
        """Raise SinkError if deltalake isn't installed, or nothing can be written there."""
        check_installed(operator, SinkError)
        check_writable(self.table, operator)

    def check_schema(self, schema: Schema) -> None:
        """Raise SinkError for a field that can't be written, or that an existing table doesn't hold."""
        Sink.check_schema(self, schema)
        for name in self.partition_by:
            column = schema.find(name)
            if column is None or column.type in UNPARTITIONED:
                raise SinkError(
                    f"partition_by= names {name!r}, which "
                    + ("isn't a field" if column is None else f"can't be one of folders: {column}"),
                    hint=f"Name other fields; the stream has {', '.join(schema.names)}",
                    code=ErrorCode.UNKNOWN_FIELD if column is None else ErrorCode.WRONG_FIELD_TYPE,
                )
        if self.partition_by and len(self.partition_by) == len(schema.names):
            raise SinkError(
                "partition_by= names all fields", hint="Leave one out, for the files", code=ErrorCode.OUT_OF_RANGE
            )
        try:
            with raising(self.table, "opened"):
                table = opened(self.table)
        except SinkLostError:
            return  # it may answer when the job starts
        if table is not None:
            check_columns(table, delta_schema(schema.to_arrow()), self.partition_by, self.table)


@dataclass(frozen=True, slots=True)
class DeltaSource(ParquetSource):
    """Rows of one version of a Delta table."""

    kind: ClassVar[str] = "a Delta table"
    fills_missing: ClassVar[bool] = True
    table: str = ""
    version: int = 0
    is_chosen: bool = False  # the user named the version

    def check(self, operator: str) -> None:
        """Raise SourceError if deltalake isn't installed."""
        check_installed(operator, SourceError)

    def contents(self) -> Sequence[Content]:
        """Return nothing: the version is in the position."""
        return ()

    @property
    def has_splits(self) -> bool:
        """Whether each file has a watermark of its own; another version may have more of them."""
        return True

    def at(self, version: int) -> DeltaSource:
        """Return the description of another version."""
        table = _version(self.table, version, None)
        return _source(self.table, table, self.schema, self.columns)


@dataclass(frozen=True, slots=True)
class Table(SourceOf[T]):
    """A Delta table: a source or a sink, depending on where it is used."""

    table: str | os.PathLike[str]
    schema: Schema | None
    columns: Columns
    version: int | None
    partition_by: object
    mode: object

    def as_source(self, operator: str) -> SourceDescription:
        """Look its version and files up."""
        check_installed(operator, SourceError)
        if (self.mode, self.partition_by) != ("append", ()):
            raise SourceError(
                "mode= and partition_by= are for writing",
                operator=operator,
                hint="Leave them out",
                code=ErrorCode.CONFLICTING_ARGUMENTS,
            )
        version: Any = self.version
        if version is not None and (isinstance(version, bool) or not isinstance(version, int) or version < 0):
            raise SourceError(
                f"version={shown(version)} is invalid",
                operator=operator,
                hint="Pass the number of a version, or leave it out for the newest one",
                code=ErrorCode.OUT_OF_RANGE,
            )
        try:
            location = written_to(self.table, operator)
        except SinkError as error:
            raise SourceError(error.problem, operator=operator, hint=error.hint, code=error.code) from error
        table = _version(location, version, operator)
        names = columns_of(table).names
        chosen = chosen_columns(self.columns, self.schema, names, location, operator)
        schema = self.schema or held(renamed(decoded(columns_of(table)), chosen))
        source = _source(location, table, schema, tuple(chosen), operator)
        return replace(source, is_chosen=version is not None)

    def as_sink(self, operator: str) -> SinkDescription:
        """Make the sink that appends to it."""
        if self.mode != "append":
            raise SinkError(
                f"mode={shown(self.mode)} is unsupported",
                operator=operator,
                hint="Leave it out: rows are appended. Delete others by deltalake before the job",
                code=ErrorCode.UNKNOWN_CHOICE,
            )
        if (self.schema, self.columns, self.version) != (None, None, None):
            raise SinkError(
                "schema=, columns= and version= are for reading",
                operator=operator,
                hint="Leave them out",
                code=ErrorCode.CONFLICTING_ARGUMENTS,
            )
        given: Any = self.partition_by
        by = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else (given,)
        if not all(isinstance(name, str) for name in by):
            raise SinkError(
                f"partition_by={shown(self.partition_by)} is invalid",
                operator=operator,
                hint="Pass names of fields",
                code=ErrorCode.WRONG_TYPE,
            )
        return DeltaSink(written_to(self.table, operator), by)


class DeltaOptions(TypedDict, total=False):
    """The options of `delta`, for overloads."""

    columns: Columns
    version: int | None
    mode: Literal["append"]
    partition_by: str | Iterable[str]


@overload
def delta(
    table: str | os.PathLike[str], schema: type[Mapping[str, Any]], **options: Unpack[DeltaOptions]
) -> Table[Any]: ...


@overload
def delta(table: str | os.PathLike[str], schema: type[T], **options: Unpack[DeltaOptions]) -> Table[T]: ...


@overload
def delta(
    table: str | os.PathLike[str], schema: Declared | None = None, **options: Unpack[DeltaOptions]
) -> Table[Any]: ...


def delta(
    table: str | os.PathLike[str],
    schema: object = None,
    *,
    columns: Columns = None,
    version: int | None = None,
    mode: Literal["append"] = "append",
    partition_by: str | Iterable[str] = (),
) -> Table[Any]:
    """Read a version of a Delta table, or append the stream to a table, exactly once.

    As a sink, a checkpoint stores the rows since the last one, and one commit of the table writes them once it is
    complete. The commit also has the checkpoint's number, so no row is missing or doubled after a failure. Without
    checkpoints there is one commit, at the end. A missing table is created. An existing one needs the columns of the
    stream; its other columns become null.

    As a source, it reads one version of the table. A restored job reads the version that it began with.

    Args:
        table: The folder or URI of the table, such as `s3://bucket/table`.
        schema: The schema of a source; by default that of the table.
        columns: The columns to read, or {column: field} to rename them; by default all, or those of the schema.
        version: The version to read; by default the newest one at the start.
        mode: How to write: 'append' keeps the rows of others.
        partition_by: Fields of a sink that folders name. An existing table keeps its own.

    Raises:
        SourceError: At the declaration: no such table or version, or it has what isn't supported.
        SinkError: At the declaration: nothing can be written there, or the table has other columns or partitions.
        SchemaError: The schema or columns= name a column that the table lacks, or records can't hold a column.

    >>> import tempfile
    >>> import rayelastic as rel
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written, read = rel.Topology("written"), rel.Topology("read")
    ...     _ = written.source(rel.sequence(2)).sink(rel.delta(folder), name="out")
    ...     _ = rel.run(written)
    ...     _ = read.source(rel.delta(folder)).sink(rel.list(), name="out")
    ...     [tuple(t) for t in rel.run(read)["out"]]
    [(0,), (1,)]
    """
    declared = None if schema is None else Schema.of(schema)
    return Table(table, declared, columns, version, partition_by, mode)


def _version(location: str, version: int | None, operator: str | None) -> Any:
    """Open a version of a table that can be read.

    Raises:
        SourceError: There is none.
        SourceLostError: The store doesn't answer.
    """
    where = f"table {shown_location(location)!r}"
    with raising(location, "read", SourceError, SourceLostError, operator):
        newest = opened(location)
        if newest is None:
            raise SourceError(
                f"there is no Delta table {shown_location(location)!r}",
                operator=operator,
                hint="Check its location, or create it",
                code=ErrorCode.MISSING_FILE,
            )
        if version is not None and version > newest.version():
            raise SourceError(
                f"{where} has no version {version}",
                operator=operator,
                hint=f"Its newest version is {newest.version()}",
                code=ErrorCode.MISSING_FILE,
            )
        table = newest if version in (None, newest.version()) else opened(location, version)
        assert table is not None
        features = table.protocol().reader_features or ()
        unread = ""
        if table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
            unread = "a column mapping"
        elif "deletionVectors" in features and any(batch.num_rows for batch in table.deletion_vectors()):
            unread = "deletion vectors"
        if unread:
            raise SourceError(
                f"{where} has {unread}, which isn't supported",
                operator=operator,
                hint="Rewrite it: REORG TABLE ... APPLY (PURGE) removes deletion vectors; a copy has no column mapping",
                code=ErrorCode.UNSUPPORTED_FORMAT,
            )
    return table


def _source(
    location: str, table: Any, schema: Schema, columns: tuple[str, ...], operator: str | None = None
) -> DeltaSource:
    with raising(location, "read", SourceError, SourceLostError, operator):
        files = files_of(table, location)
        constants = tuple(tuple(own.items()) for _, own in files)
        paths = tuple(path for path, _ in files)
        return DeltaSource(paths, schema, columns, constants, table=location, version=table.version())
