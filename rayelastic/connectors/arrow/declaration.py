"""Arrow tables and DataFrames, as a source and a sink."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypedDict, TypeVar, Unpack, overload

from rayelastic.connectors.description import EDGE_ROWS, OBJECTS, Content, Sink, Source
from rayelastic.connectors.files.casts import cast_table, decoded
from rayelastic.connectors.files.columns import Columns, chosen_columns, renamed
from rayelastic.connectors.typed import Declared
from rayelastic.errors import ErrorCode, SchemaError, SinkError
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import Lane

T = TypeVar("T")


class _Columns(TypedDict, total=False):
    columns: Columns


@dataclass(frozen=True, slots=True)
class ArrowSource(Source[T]):
    """The rows of a pyarrow.Table."""

    kind: ClassVar[str] = "an Arrow table"
    unit: ClassVar[str] = "rows"
    seeks: ClassVar[bool] = True
    omits_unread: ClassVar[bool] = True

    table: Any = field(repr=False)
    schema: Schema
    lane: Lane = Lane.BUILT_IN

    @property
    def reason(self) -> str:
        """Describe the operator for `explain()`."""
        return f"native conversion of {self.table.num_rows} Arrow rows"

    def contents(self) -> Sequence[Content]:
        """Return the table."""
        table = self.table
        return [Content(table.num_rows, EDGE_ROWS, lambda a, b: repr(table.slice(a, b - a).to_pylist()).encode())]


@dataclass(frozen=True, slots=True)
class ArrowSink(Sink):
    """Collects tuples into a pyarrow.Table."""

    unsupported: ClassVar[frozenset[DataType]] = OBJECTS
    shows_rows: ClassVar[bool] = False

    lane: Lane = Lane.BUILT_IN
    reason: str = "native conversion to Arrow batches"


@dataclass(frozen=True, slots=True)
class PandasSink(Sink):
    """Collects tuples into a DataFrame: a table of Arrow, which the driver converts."""

    unsupported: ClassVar[frozenset[DataType]] = OBJECTS

    lane: Lane = Lane.BUILT_IN
    reason: str = "native conversion to Arrow batches, a DataFrame at the end"

    def check(self, operator: str) -> None:
        """Raise SinkError if pandas isn't installed."""
        if importlib.util.find_spec("pandas") is None:
            raise SinkError(
                "rel.pandas needs pandas, which isn't installed",
                operator=operator,
                hint="pip install pandas; or use rel.arrow(), which needs no package",
                code=ErrorCode.MISSING_PACKAGE,
            )

    def for_pe(self) -> ArrowSink:
        """Return the sink of a PE."""
        return ArrowSink()

    def finish(self, rows: int, value: Any) -> Any:  # noqa: ARG002 -- as each sink of a driver has it
        """Return the DataFrame of a table."""
        return value.to_pandas(integer_object_nulls=True)  # NaN would make floats of integers


@overload
def arrow() -> ArrowSink: ...


@overload
def arrow(table: Any, schema: type[Mapping[str, Any]], **options: Unpack[_Columns]) -> ArrowSource[Any]: ...


@overload
def arrow(table: Any, schema: type[T], **options: Unpack[_Columns]) -> ArrowSource[T]: ...


@overload
def arrow(
    table: Any = None, schema: Declared | None = None, **options: Unpack[_Columns]
) -> ArrowSource[Any] | ArrowSink: ...


def arrow(table: Any = None, schema: object = None, *, columns: Columns = None) -> ArrowSource[Any] | ArrowSink:
    """With a table: a source of its rows. Without: a sink that collects the stream into a pyarrow.Table.

    Args:
        table: A pyarrow.Table, pyarrow.RecordBatch, DataFrame of pandas or Polars, or any object with Arrow's C stream.
        schema: The schema to cast the columns to; by default the table's own.
        columns: The columns to read, or {column: field} to rename them; by default all, or those of the schema.

    Raises:
        SchemaError: The schema doesn't match the table, or records can't hold a column.

    >>> import pyarrow as pa
    >>> import rayelastic as rel
    >>> topology = rel.Topology("table")
    >>> topology.source(rel.arrow(pa.table({"n": [1, 2]}))).sink(rel.arrow(), name="out")
    <sink out>
    >>> rel.run(topology)["out"].to_pydict()
    {'n': [1, 2]}
    """
    return ArrowSink() if table is None else arrow_source(table, schema, columns)


def arrow_source(table: Any, schema: object = None, columns: Columns = None) -> ArrowSource[Any]:
    """Describe a pyarrow.Table, RecordBatch, or DataFrame as a source; see ``arrow``."""
    import pyarrow as pa

    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    elif type(table).__module__.partition(".")[0] == "pandas":
        table = _of_frame(table)
    elif hasattr(table, "__arrow_c_stream__") and not isinstance(table, pa.Table):  # a Polars frame, a DuckDB relation
        table = pa.table(table)
    elif not isinstance(table, pa.Table):
        raise SchemaError(
            f"rel.arrow doesn't accept a {type(table).__name__}",
            hint="Pass a pyarrow.Table or RecordBatch, or a DataFrame of pandas or Polars",
            code=ErrorCode.WRONG_TYPE,
        )
    table, declared = matched(table, schema, columns)
    return ArrowSource(table, declared)


def _of_frame(frame: Any) -> Any:
    import pyarrow as pa

    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (ValueError, TypeError, OverflowError) as error:
        raise SchemaError(
            f"the DataFrame has a column that Arrow can't hold: {error}",
            hint="Convert the column to one type, or leave it out: frame.drop(columns=...)",
            code=ErrorCode.UNSUPPORTED_TYPE,
        ) from error


def matched(table: Any, schema: object, columns: Columns = None) -> tuple[Any, Schema]:
    """Return an Arrow table and its schema, cast to the declared one if there is any.

    Args:
        table: A pyarrow.Table.
        schema: The user's; None: that of the table.
        columns: The columns to read, as a list or {column: field}; None: all of them, or those of the schema.

    Raises:
        SchemaError: The declared schema doesn't match the table; the message names the first field that differs.
    """
    declared = None if schema is None else Schema.of(schema)
    table = renamed(table, chosen_columns(columns, declared, table.schema.names, "", None))
    plain = decoded(table.schema)
    if declared is None:
        return cast_table(table, plain), Schema.of(plain)
    for f in declared.fields:
        if not f.nullable and table.column(f.name).null_count:
            raise SchemaError(
                f"column '{f.name}' has nulls, but {declared.name} declares it without",
                hint=f"Declare it '{f.name}: {f.type.python_type.__name__} | None', or drop the rows",
                code=ErrorCode.NULL_VALUES,
            )
    try:
        return cast_table(table, declared.to_arrow()), declared
    except (ValueError, TypeError, NotImplementedError) as error:  # the classes of pyarrow's errors
        raise SchemaError(
            f"the table doesn't match {declared}: {error}",
            hint="Declare the columns' types",
            code=ErrorCode.SCHEMA_MISMATCH,
        ) from error


def pandas() -> PandasSink:
    """Collect the tuples into a pandas DataFrame, which is the job's result under the sink's name.

    An integer column with None holds Python integers and None. A DataFrame is also a source: `topology.source(frame)`.

    Raises:
        SinkError: At the declaration, if pandas isn't installed.

    >>> import pandas as pd
    >>> import rayelastic as rel
    >>> topology = rel.Topology("frames")
    >>> frame = topology.source(pd.DataFrame({"k": ["a", "b"], "n": [1, 2]}))
    >>> frame.filter(lambda t: t.n > 1).sink(rel.pandas(), name="out")
    <sink out>
    >>> rel.run(topology)["out"].to_dict("records")
    [{'k': 'b', 'n': 2}]
    """
    return PandasSink()
