"""What the sources of CSV and JSON lines have in common: options, what a source is, and a source of its bad rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rayelastic.graph.edges.formats.columns import inferred_schema
from rayelastic.graph.edges.paths import expanded, has_splits
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.dead_letters import ERRORS, OnError, on_error_of
from rayelastic.graph.spec.operator_spec import Lane

__all__ = ["BadRows", "RowFiles", "RowOptions"]


@dataclass(frozen=True, slots=True)
class RowOptions:
    """What users say of files of rows.

    Args:
        schema: that was declared; None: it is inferred.
        columns: those to read; see chosen_columns.
        types: of fields, instead of what would be inferred.
        on_bad_row: What happens to a row that isn't of the schema.
        time_ordered: Whether each file goes on in event time where the one before ends.
    """

    schema: Schema | None = None
    columns: object = None
    types: Mapping[str, object] = field(default_factory=dict)
    on_bad_row: object = OnError.FAIL
    time_ordered: bool = False

    @property
    def policy(self) -> OnError:
        """What happens to a row that isn't of the schema; GraphError if it is none."""
        return on_error_of(self.on_bad_row, "on_bad_row")

    def source(
        self, paths: tuple[str, ...], named: Mapping[str, str], type_of: Callable[[str, str], Any], operator: str
    ) -> dict[str, Any]:
        """Return the arguments of a RowFiles.

        Args:
            paths: of the files.
            named: {column of the file: field}.
            type_of: Infers the type of a column, given the names of the column and the field.
            operator: the name of the source.
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
class RowFiles:
    """Rows of files, through pyarrow's reader.

    Args:
        paths: of the files.
        schema: of the tuples.
        columns: of the file, one for each field.
        inferred: fields whose type was inferred.
        is_whole: whether a row may have no other columns: nobody has chosen some of them.
        on_bad_row: What happens to a row that isn't of the schema.
        name: of the operator.
        time_ordered: Whether each file goes on in event time where the one before ends.
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

    def check(self, operator: str) -> None:
        """Raise SourceError if a file is gone."""
        expanded(self.paths, operator, directories=False)

    @property
    def has_splits(self) -> bool:
        """Whether each file has a watermark of its own."""
        return has_splits(self.paths, self.time_ordered)

    @property
    def side_sources(self) -> dict[str, BadRows]:
        """What else is read of the same files, by port."""
        return {ERRORS: BadRows(self, self.name)} if self.on_bad_row is OnError.DIVERT else {}


@dataclass(frozen=True, slots=True)
class BadRows:
    """The rows of files that aren't of the schema of a source, which leaves them out; the files are read again."""

    of: RowFiles
    name: str  # of that source
    schema: Schema = Schema.of({"file": str, "row": int, "text": str, "error": str, "operator": str}, name="BadRow")  # noqa: RUF009
    lane: Lane = Lane.BUILT_IN
    reason: str = "rows that don't fit the schema"

    def check(self, operator: str) -> None:
        """Raise SourceError if a file is gone."""
        self.of.check(operator)
