"""CSV files, as a source and a sink."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, TypeVar, Unpack, overload

from rayelastic.connectors.csv.form import CsvForm
from rayelastic.connectors.csv.inference import csv_source
from rayelastic.connectors.description import OBJECTS, TREES, Files, FileSink
from rayelastic.connectors.files.columns import Columns
from rayelastic.connectors.files.paths import Paths
from rayelastic.connectors.row_files import ReadRows, RowOptions
from rayelastic.connectors.typed import Declared
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.dead_letters import OnError

T = TypeVar("T")


class _Csv(ReadRows, total=False):
    delimiter: str
    quote: str | None
    escape: str | None
    header: bool | Iterable[str]
    nulls: Iterable[str]
    comment: str | None


@dataclass(frozen=True, slots=True)
class CsvSink(FileSink):
    """Writes CSV with a header: one file, or part files into a directory if the path has no suffix."""

    unsupported: ClassVar[frozenset[DataType]] = OBJECTS | TREES

    reason: str = "Arrow batches to CSV"


@overload
def csv(paths: Paths, schema: type[Mapping[str, Any]], **options: Unpack[_Csv]) -> Files[Any]: ...


@overload
def csv(paths: Paths, schema: type[T], **options: Unpack[_Csv]) -> Files[T]: ...


@overload
def csv(paths: Paths, schema: Declared | None = None, **options: Unpack[_Csv]) -> Files[Any]: ...


def csv(
    paths: Paths,
    schema: object = None,
    *,
    delimiter: str = ",",
    quote: str | None = '"',
    escape: str | None = None,
    header: bool | Iterable[str] = True,
    columns: Columns = None,
    types: Mapping[str, object] | None = None,
    nulls: Iterable[str] = ("",),
    encoding: str | None = None,
    comment: str | None = None,
    on_bad_row: OnError | Literal["fail", "skip", "divert"] = "fail",
    time_ordered: bool = False,
) -> Files[Any]:
    r"""Read or write CSV.

    An unquoted empty field is None, or an empty text if `str` is declared without None. Inference never changes a
    value: digits with leading zeros are text, a whole number that neither 64 bits nor a float hold is rejected. Without
    `schema=` and `columns=`, a column that the first file lacks fails the job.

    Args:
        paths: As a source a file, a glob, a URI or several, compressed or not; as a sink one path or URI.
        schema: The schema of a source; by default inferred from the first rows of the first file, all fields nullable.
        delimiter: One character.
        quote: One character around fields with delimiters, quotes or line ends; None: there is none.
        escape: One character that escapes a quote, delimiter or line end, as Spark and MySQL write it; None: there is
            none. Doubled quotes are read in both cases.
        header: Whether the first row names the columns; or their names, if the first row is data. With False they have
            the names of the fields of `schema=`, or `f0`, `f1` and so on.
        columns: The columns to read, or {column: field} to rename them; by default all.
        types: {field: type} instead of the inferred one.
        nulls: Unquoted texts that stand for None.
        encoding: The files' encoding, such as 'latin-1'; by default UTF-8, or UTF-16 or UTF-32 with a byte order mark.
        comment: Lines that start with this are left out.
        on_bad_row: What happens to a row with too few or too many fields, or a value of another type. `'fail'` ends the
            job with the row's number. `'skip'` drops the row. `'divert'` sends it to the stream `.errors` of the
            source, with the fields file, row, text, error and operator. This reads the files a second time.
        time_ordered: Whether the event times of a file follow those of the file before; see ``text``.

    Raises:
        SourceError: At the declaration: no such file, not readable as CSV, or not of the encoding.
        SchemaError: The schema or columns= name a column that the file lacks, or an invalid name.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import rayelastic as rel
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "trades.csv").write_text("symbol,price\nA,1.5\n")
    ...     topology = rel.Topology("trades")
    ...     trades = topology.source(rel.csv(f"{folder}/trades.csv"))
    ...     _ = trades.sink(rel.list(), name="out"), trades.sink(rel.csv(f"{folder}/copy.csv"), name="copy")
    ...     [tuple(t) for t in rel.run(topology)["out"]], Path(folder, "copy.csv").read_text()
    ([('A', 1.5)], '"symbol","price"\n"A",1.5\n')
    """
    names = None if header is True else () if header is False else tuple(header)
    form = CsvForm(delimiter, quote, encoding, comment, tuple(nulls), escape, names)
    declared = None if schema is None else Schema.of(schema)
    options = RowOptions(declared, columns, types or {}, on_bad_row, time_ordered)
    return Files(paths, "csv", partial(csv_source, paths, options, form), CsvSink)


read_csv = csv  # as pandas and Polars call it
