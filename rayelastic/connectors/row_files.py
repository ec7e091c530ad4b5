"""The common part of the sources of CSV and JSON lines: options, descriptions, and a side source of the bad rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypedDict

from rayelastic.connectors.description import Content, FileSource, Source
from rayelastic.connectors.files.columns import Columns, inferred_schema
from rayelastic.connectors.files.locations import size_of
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.dead_letters import ERRORS, OnError, on_error_of
from rayelastic.graph.spec.operator_spec import Lane

READ_RATE = 20e6  # the lowest bytes/s at which files are read, parsed and skipped, compressed ones too


class ReadFiles(TypedDict, total=False):
    """The options that all formats of files share, for overloads."""

    columns: Columns
    time_ordered: bool


class ReadRows(ReadFiles, total=False):
    """The options of CSV and JSON, for overloads."""

    types: Mapping[str, object] | None
    encoding: str | None
    on_bad_row: OnError | Literal["fail", "skip", "divert"]


@dataclass(frozen=True, slots=True)
class RowOptions:
    """The user's options for files of rows.

    Args:
        schema: The declared one; None: it is inferred.
        columns: The columns to read; see chosen_columns.
        types: Types of fields, instead of the inferred ones.
        on_bad_row: What happens to a row that isn't of the schema.
        time_ordered: Whether the event times of a file follow those of the file before.
    """

    schema: Schema | None = None
    columns: object = None
    types: Mapping[str, object] = field(default_factory=dict)
    on_bad_row: object = OnError.FAIL
    time_ordered: bool = False

    @property
    def policy(self) -> OnError:
        """What happens to a row that isn't of the schema; GraphError if the option is invalid."""
        return on_error_of(self.on_bad_row, "on_bad_row")

    def source(
        self, paths: tuple[str, ...], named: Mapping[str, str], type_of: Callable[[str, str], Any], operator: str
    ) -> dict[str, Any]:
        """Return the arguments of a RowFiles.

        Args:
            paths: The files.
            named: {column of the file: field}.
            type_of: Infers the type of a column from the names of the column and the field.
            operator: The name of the source.
        """
        common = {"paths": paths, "columns": tuple(named), "on_bad_row": self.policy, "name": operator}
        common["time_ordered"] = self.time_ordered
        if self.schema is not None:
            return {**common, "schema": self.schema}
        kinds = {f: self.types[f] if f in self.types else type_of(column, f) for column, f in named.items()}
        inferred = frozenset(field for field in kinds if field not in self.types)
        schema = inferred_schema(kinds, inferred)
        return {**common, "schema": schema, "inferred": inferred, "is_whole": self.columns is None}


@dataclass(frozen=True, slots=True)
class RowFiles(FileSource[Any]):
    """Rows of files, through pyarrow's reader.

    Args:
        paths: The files.
        schema: The schema of the tuples.
        columns: Columns of the file, one for each field.
        inferred: Fields with inferred types.
        is_whole: Whether a row may have no other columns, because the user chose none.
        on_bad_row: What happens to a row that isn't of the schema.
        name: The operator's name.
        time_ordered: Whether the event times of a file follow those of the file before.
    """

    paths: tuple[str, ...]
    schema: Schema
    columns: tuple[str, ...]
    inferred: frozenset[str] = frozenset()
    is_whole: bool = False
    on_bad_row: OnError = OnError.FAIL
    name: str = ""
    time_ordered: bool = False
    lane: Lane = Lane.BUILT_IN
    reason: str = "pyarrow reader, native conversion"

    @property
    def side_sources(self) -> dict[str, BadRows]:
        """Return the side sources that read the same files, by port."""
        return {ERRORS: BadRows(self, self.name)} if self.on_bad_row is OnError.DIVERT else {}

    @property
    def restart_seconds(self) -> float:
        """The time to read the largest file, in which it may have to begin."""
        return max(map(size_of, self.paths), default=0.0) / READ_RATE


@dataclass(frozen=True, slots=True)
class BadRows(Source[Any]):
    """The rows of files that a source drops because they aren't of its schema; reads the files again."""

    kind: ClassVar[str] = "bad rows of files"

    of: RowFiles
    name: str  # of that source
    schema: Schema = Schema.of({"file": str, "row": int, "text": str, "error": str, "operator": str}, name="BadRow")  # noqa: RUF009
    lane: Lane = Lane.BUILT_IN
    reason: str = "rows that don't fit the schema"

    def check(self, operator: str) -> None:
        """Raise SourceError if a file is gone."""
        self.of.check(operator)

    def contents(self) -> Sequence[Content]:
        """Return the files."""
        return self.of.contents()

    @property
    def paths(self) -> tuple[str, ...]:
        """The files."""
        return self.of.paths

    @property
    def restart_seconds(self) -> float:
        """The time to read all files."""
        return sum(map(size_of, self.paths)) / READ_RATE
