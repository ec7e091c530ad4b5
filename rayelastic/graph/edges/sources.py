"""Sources as descriptions: values that say where tuples come from, and that can be shipped and restarted.

The runtime reads them. `csv` and `parquet` (files.py) and `arrow` serve as sinks too.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, overload

from rayelastic.errors import ErrorCode, SchemaError, SourceError
from rayelastic.graph.edges.formats.byte_streams import check_encoding
from rayelastic.graph.edges.formats.casts import cast_table, decoded
from rayelastic.graph.edges.formats.columns import Columns, chosen_columns, renamed
from rayelastic.graph.edges.paths import Paths, expanded, has_splits, single
from rayelastic.graph.edges.sinks import TextSink
from rayelastic.graph.edges.typed import Declared, N, Plain, SourceOf, Value
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.records.shown import counted, shown
from rayelastic.graph.spec.operator_spec import Lane, SinkDescription, SourceDescription
from rayelastic.graph.spec.user_objects import LIFE, check_object

__all__ = [
    "ArrowSource",
    "CallableSource",
    "GenerateSource",
    "SequenceSource",
    "Text",
    "TextSource",
    "callable",
    "generate",
    "read_text",
    "sequence",
    "text",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TextSource:
    """Lines of UTF-8 text files, without their line ends, in the order of the paths."""

    paths: tuple[str, ...]
    schema: Schema
    encoding: str | None = None
    time_ordered: bool = False
    lane: Lane = Lane.BUILT_IN

    @property
    def has_splits(self) -> bool:
        """Whether each file has a watermark of its own."""
        return has_splits(self.paths, self.time_ordered)

    @property
    def reason(self) -> str:
        """Describe the operator for `explain()`."""
        return f"native reader of {counted(len(self.paths), 'file')}"

    def check(self, operator: str) -> None:
        """Raise SourceError if a file is gone."""
        expanded(self.paths, operator, directories=False)


@dataclass(frozen=True, slots=True)
class Text:
    """The result of `text`: paths that are looked up when the source is declared."""

    paths: Paths
    schema: Schema
    encoding: str | None = None
    time_ordered: bool = False

    def as_source(self, operator: str) -> SourceDescription:
        """Look the files up; raise SourceError if there are none."""
        check_encoding(self.encoding, operator)
        paths = expanded(self.paths, operator, directories=True)
        return TextSource(paths, self.schema, self.encoding, self.time_ordered)

    def as_sink(self, operator: str) -> SinkDescription:
        """Take the path as that of a sink."""
        return TextSink(single(self.paths, operator, "text"))


def text(paths: Paths, *, encoding: str | None = None, time_ordered: bool = False) -> Text:
    r"""Read the lines of text files: tuples of one field, `line: str`, without the line end. Or write such lines.

    Lines end at a newline, a carriage return, or both in this order: a lone carriage return ends a line, too. Files
    compressed with gzip, bzip2, xz, zstd or lz4 are recognised by their first bytes and decompressed. A byte order mark
    of UTF-8 is dropped.

    Args:
        paths: A file, a glob, a directory (all files below it), a URI such as `s3://bucket/logs/*.gz`, or several.
            As a sink one path or URI, of tuples of one `str` without line ends; None is an empty line.
        encoding: The files' encoding; bytes of another one fail the job. By default UTF-8, in which invalid bytes
            become U+FFFD and their lines are counted (`lines_repaired` of the metrics). Files with a byte order mark of
            UTF-16 or UTF-32 are decoded.
        time_ordered: Whether the event times of a file follow those of the file before, in the order of their names, as
            in rotated logs. Then they share one watermark, and windows close as the files are read. By default each
            file may begin at any time and has its own watermark: windows close while the last file is read.

    Raises:
        SourceError: At the declaration: no such file, or an unknown encoding.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import rayelastic as rel
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "log.txt").write_text("started\nstopped\n")
    ...     topology = rel.Topology("log")
    ...     _ = topology.source(rel.text(f"{folder}/*.txt")).sink(rel.list(), name="out")
    ...     [t.line for t in rel.run(topology)["out"]]
    ['started', 'stopped']
    """
    return Text(paths, Schema.of({"line": str}, name="Line"), encoding, time_ordered)


read_text = text  # as pandas and Polars name what reads


@dataclass(frozen=True, slots=True)
class ArrowSource(SourceOf[T]):
    """The rows of a pyarrow.Table."""

    table: Any = field(repr=False)
    schema: Schema
    lane: Lane = Lane.BUILT_IN

    @property
    def reason(self) -> str:
        """Describe the operator for `explain()`."""
        return f"native conversion of {self.table.num_rows} Arrow rows"

    def check(self, operator: str) -> None:
        """Do nothing: the table is in memory."""


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


@dataclass(frozen=True, slots=True)
class GenerateSource(SourceOf[T]):
    """What a function returns for the numbers 0, 1, 2, ..."""

    function: Callable[[int], Any]
    count: int | None
    schema: Schema
    lane: Lane = Lane.PYTHON

    @property
    def reason(self) -> str:
        """Describe the operator for `explain()`."""
        return "a Python function called once per tuple"

    @property
    def is_endless(self) -> bool:
        """Whether it is unbounded."""
        return self.count is None

    def at_most(self, count: int) -> GenerateSource[T]:
        """Return a source of the first tuples only."""
        return replace(self, count=count if self.count is None else min(count, self.count))

    def check(self, operator: str) -> None:
        """Raise SourceError if it isn't a function or the count is invalid."""
        _check_function(self.function, "rel.generate", operator)
        _check_count(self.count, "count", operator)


@overload
def generate(function: Callable[[int], Any], count: int | None, schema: type[N]) -> GenerateSource[N]: ...


@overload
def generate(
    function: Callable[[int], Any], count: int | None, schema: type[Plain]
) -> GenerateSource[Value[Plain]]: ...


@overload
def generate(
    function: Callable[[int], Any], count: int | None, schema: type[Mapping[str, Any]]
) -> GenerateSource[Any]: ...


@overload
def generate(function: Callable[[int], Any], count: int | None, schema: type[T]) -> GenerateSource[T]: ...


@overload
def generate(function: Callable[[int], Any], count: int | None, schema: Declared) -> GenerateSource[Any]: ...


def generate(function: Callable[[int], Any], count: int | None, schema: object) -> GenerateSource[Any]:
    """Emit `function(0)`, `function(1)`, ...

    Args:
        function: A function of the tuple's number, which returns a tuple, or a plain value if the schema has one field.
        count: The number of tuples; None: unbounded.
        schema: The schema of its results.

    >>> source = generate(lambda i: (i, i * i), 10, {"n": int, "square": int})
    """
    return GenerateSource(function, count, Schema.of(schema))


@dataclass(frozen=True, slots=True)
class CallableSource(SourceOf[T]):
    """The tuples of an iterator that a function makes when the source starts."""

    function: Callable[[], Iterator[Any]]
    schema: Schema
    lane: Lane = Lane.PYTHON

    @property
    def reason(self) -> str:
        """Describe the operator for `explain()`."""
        return "a Python iterator"

    @property
    def is_endless(self) -> bool:
        """Whether it may never end, which isn't known before it does."""
        return True

    def check(self, operator: str) -> None:
        """Raise SourceError if it isn't a function."""
        _check_function(self.function, "rel.callable", operator)


@overload
def callable(function: Callable[[], Iterator[Any]], schema: type[N]) -> CallableSource[N]: ...  # noqa: A001  (rel.callable)


@overload
def callable(function: Callable[[], Iterator[Any]], schema: type[Plain]) -> CallableSource[Value[Plain]]: ...  # noqa: A001  (rel.callable)


@overload
def callable(function: Callable[[], Iterator[Any]], schema: type[Mapping[str, Any]]) -> CallableSource[Any]: ...  # noqa: A001  (rel.callable)


@overload
def callable(function: Callable[[], Iterator[Any]], schema: type[T]) -> CallableSource[T]: ...  # noqa: A001  (rel.callable)


@overload
def callable(function: Callable[[], Iterator[Any]], schema: Declared) -> CallableSource[Any]: ...  # noqa: A001  (rel.callable)


def callable(function: Callable[[], Iterator[Any]], schema: object) -> CallableSource[Any]:  # noqa: A001  (rel.callable)
    """Emit the tuples of an iterator.

    Args:
        function: A function without arguments that returns an iterator of tuples, such as a generator function. It is
            called in the process that runs the source.
        schema: The schema of the tuples.

    >>> import rayelastic as rel
    >>> def squares():
    ...     yield from ((n, n * n) for n in range(3))
    >>> topology = rel.Topology("squares")
    >>> topology.source(rel.callable(squares, {"n": int, "square": int})).sink(rel.list(), name="out")
    <sink out>
    >>> [tuple(t) for t in rel.run(topology)["out"]]
    [(0, 0), (1, 1), (2, 4)]
    """
    return CallableSource(function, Schema.of(schema))


@dataclass(frozen=True, slots=True)
class SequenceSource:
    """The numbers from 0, with a payload, generated natively."""

    count: int
    payload_bytes: int
    schema: Schema
    lane: Lane = Lane.BUILT_IN
    reason: str = "native counter"

    def at_most(self, count: int) -> SequenceSource:
        """Return a source of the first tuples only."""
        return replace(self, count=min(count, self.count))

    def check(self, operator: str) -> None:
        """Raise SourceError if a number is out of range."""
        _check_count(self.count, "count", operator)
        _check_count(self.payload_bytes, "payload_bytes", operator)


def sequence(count: int, payload_bytes: int = 0) -> SequenceSource:
    """Emit the numbers 0 ... count-1 as `value: int`, natively; for benchmarks.

    Args:
        count: The number of tuples.
        payload_bytes: The size of a second field `payload: bytes`; 0: no such field.

    >>> print(sequence(10, payload_bytes=1024).schema)
    Sequence(value: int64, payload: binary)
    """
    fields: dict[str, type] = {"value": int} | ({"payload": bytes} if payload_bytes else {})
    return SequenceSource(count, payload_bytes, Schema.of(fields, name="Sequence"))


def _check_function(function: object, whose: str, operator: str) -> None:
    check_object(function, LIFE, error=SourceError)
    if not builtins.callable(function):
        raise SourceError(
            f"{whose} needs a function, not {shown(function)}",
            operator=operator,
            hint="Pass the function itself, not what it returns",
            code=ErrorCode.NOT_A_FUNCTION,
        )


def _check_count(count: object, name: str, operator: str) -> None:
    if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 0):
        raise SourceError(
            f"{name}={shown(count)} is invalid",
            operator=operator,
            hint="Pass a whole number, 0 or more",
            code=ErrorCode.OUT_OF_RANGE,
        )
