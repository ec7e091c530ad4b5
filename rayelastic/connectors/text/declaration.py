"""Lines of text files, as a source and a sink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from rayelastic.connectors.description import Files, FileSink, FileSource
from rayelastic.connectors.files.byte_streams import check_encoding
from rayelastic.connectors.files.paths import Paths, expanded
from rayelastic.errors import SinkError
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.records.shown import counted
from rayelastic.graph.spec.operator_spec import Lane

LINE = Schema.of({"line": str}, name="Line")


@dataclass(frozen=True, slots=True)
class TextSource(FileSource[Any]):
    """Lines of UTF-8 text files, without their line ends, in the order of the paths."""

    kind: ClassVar[str] = "text files"
    seeks: ClassVar[bool] = True

    paths: tuple[str, ...]
    schema: Schema
    encoding: str | None = None
    time_ordered: bool = False
    lane: Lane = Lane.BUILT_IN

    @property
    def reason(self) -> str:
        """Describe the operator for `explain()`."""
        return f"native reader of {counted(len(self.paths), 'file')}"


@dataclass(frozen=True, slots=True)
class TextSink(FileSink):
    """Writes the one text of each tuple as a line: one file, or part files where the path has no suffix."""

    unsupported: ClassVar[frozenset[DataType]] = frozenset(DataType) - {DataType.STRING}

    lane: Lane = Lane.VECTORISED
    reason: str = "Arrow batches to lines of text, in Python"

    def check_schema(self, schema: Schema) -> None:
        """Raise SinkError unless there is one field, and it is a text."""
        if len(schema.fields) != 1:
            raise SinkError(
                f"rel.text writes one field a line, and {schema.name} has {', '.join(schema.names)}",
                hint="Map it to one str, or write rel.csv or rel.json",
            )
        FileSink.check_schema(self, schema)


def text(paths: Paths, *, encoding: str | None = None, time_ordered: bool = False) -> Files[Any]:
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

    def source(operator: str) -> TextSource:
        check_encoding(encoding, operator)
        return TextSource(expanded(paths, operator, directories=True), LINE, encoding, time_ordered)

    return Files(paths, "text", source, TextSink)


read_text = text  # as pandas and Polars name what reads
