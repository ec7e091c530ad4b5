"""A fingerprint of a source's input, so that a restored job detects that its input has changed.

A position is a number of rows. It is valid only in the same input: files of the same lengths, with the same first and
last bytes, in the same order. The last file may have grown, and more may follow it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from rayelastic.connectors.arrow.declaration import ArrowSource
from rayelastic.connectors.csv.form import CsvSource
from rayelastic.connectors.files.locations import LocationError, file_system, local_path, may_return
from rayelastic.connectors.files.row_files import BadRows
from rayelastic.connectors.generate.declaration import CallableSource, GenerateSource, SequenceSource
from rayelastic.connectors.inputs import Input, Piece, Place
from rayelastic.connectors.json.inference import JsonSource
from rayelastic.connectors.memory.declaration import RowsSource
from rayelastic.connectors.parquet.inference import ParquetSource
from rayelastic.connectors.polled.declaration import PolledSource
from rayelastic.connectors.pushed.declaration import IngestSource
from rayelastic.connectors.text.declaration import TextSource
from rayelastic.errors import ErrorCode, SourceLostError, StateError
from rayelastic.graph.records.shown import counted
from rayelastic.graph.spec.operator_spec import OperatorSpec

EDGE_BYTES = 64 << 10  # hashed at the start and at the end of a file
EDGE_ROWS = 100  # the same of rows in memory
KINDS = {
    TextSource: "text files",
    CsvSource: "CSV files",
    BadRows: "bad rows of files",
    JsonSource: "JSON files",
    ParquetSource: "Parquet files",
    ArrowSource: "an Arrow table",
    SequenceSource: "a sequence",
    RowsSource: "Python tuples",
    GenerateSource: "Python tuples",  # of rows or a function: tests replace one by the other
    CallableSource: "Python tuples",
    IngestSource: "rows that are pushed",
    PolledSource: "what an object is asked for",
}


def input_of(spec: OperatorSpec, place: Place | None = None, position: object = None) -> Input:
    """Inspect the input of a source.

    Args:
        spec: The source.
        place: Its place.
        position: Its position, if the source reports it.

    Raises:
        OSError: A file doesn't exist any more.
    """
    body = spec.body
    return Input(
        KINDS.get(type(body), type(body).__name__),
        tuple(_piece(content, content.size) for content in _contents(body)),
        place,
        position,
    )


def check_input(spec: OperatorSpec, before: Input, position: int) -> None:
    """Raise StateError if a source's input has changed since the job was stopped.

    Args:
        spec: The source.
        before: Its input then.
        position: The rows that it had emitted.

    Raises:
        SourceLostError: Its store doesn't answer.
    """
    try:
        problem = _difference(spec.body, before, position)
    except (OSError, LocationError) as error:
        if is_away(spec.body, error):
            raise SourceLostError(
                f"its input can't be compared: {error}", operator=spec.name, location=spec.location
            ) from error
        problem = f"can't be read: {error}"
    if problem is not None:
        raise StateError(
            f"the snapshot has its position in the input, {problem}",
            operator=spec.name,
            location=spec.location,
            hint="Restore its input, to which rows may have been appended, "
            f"or restore Snapshot(..., drop=({spec.name!r},)), which reads from the start",
            code=ErrorCode.CHANGED_INPUT,
        )


def is_away(body: object, error: OSError | LocationError) -> bool:
    """Return whether the store of a source's input may answer again later."""
    if isinstance(error, LocationError):
        return error.is_outage
    read = body.of if isinstance(body, BadRows) else body
    return any(may_return(error, path) for path in getattr(read, "paths", ()))


def _difference(body: object, before: Input, position: int) -> str | None:
    kind = KINDS.get(type(body), type(body).__name__)
    if kind != before.kind:
        return f"which was {before.kind} and is {kind} now"
    if isinstance(body, RowsSource) and len(body.rows) < position:
        return f"which had {counted(position, 'row')} and more, and has {len(body.rows)} now"
    if not before.pieces:
        return None
    contents = _contents(body)
    unit = "rows" if isinstance(body, ArrowSource | RowsSource) else "bytes"
    if contents and len(contents) < len(before.pieces):
        return f"which was {counted(len(before.pieces), 'file')} and is {len(contents)} now"
    for number, (old, content) in enumerate(zip(before.pieces, contents, strict=False)):
        which = f"the file of number {number + 1} of which" if len(before.pieces) > 1 else "which"
        last = number + 1 == len(before.pieces)
        if content.size < old.size or (content.size > old.size and not last):
            return f"{which} had {old.size} {unit} and has {content.size} now"
        now = _piece(content, old.size)
        if (old.start and now.start != old.start) or (old.end and now.end != old.end):
            return f"{which} begins or goes on with other {unit} now"
    return None


class _Content(NamedTuple):
    """The current content of a piece: its size, the hashed size of its edges, and a function that reads a range."""

    size: int
    edge: int
    between: Callable[[int, int], bytes]


def _contents(body: object) -> Sequence[_Content]:
    match body:
        case TextSource() | CsvSource() | JsonSource() | ParquetSource():
            return [_file(path) for path in body.paths]
        case BadRows():
            return [_file(path) for path in body.of.paths]
        case ArrowSource(table=table):
            return [_Content(table.num_rows, EDGE_ROWS, lambda a, b: repr(table.slice(a, b - a).to_pylist()).encode())]
        case RowsSource(rows=rows):
            return [_Content(len(rows), EDGE_ROWS, lambda a, b: repr([tuple(row) for row in rows[a:b]]).encode())]
    return []


def _piece(content: _Content, size: int) -> Piece:
    edge = min(content.edge, size)
    return Piece(size, _hash(content.between(0, edge)), _hash(content.between(size - edge, size)))


def _file(path: str) -> _Content:
    local = local_path(path)
    if local is None:
        files, inner = file_system(path)
        size = int(files.get_file_info(inner).size or 0)
        return _Content(size, 0, lambda a, b: b"")  # noqa: ARG005  (its size says much, and more takes two requests a file)

    def between(start: int, end: int) -> bytes:
        with Path(local).open("rb") as file:
            file.seek(start)
            return file.read(end - start)

    return _Content(Path(local).stat().st_size, EDGE_BYTES, between)


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32] if data else ""
