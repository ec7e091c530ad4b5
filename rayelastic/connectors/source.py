"""Makes native source operators of source descriptions, with a thread for those that pyarrow reads.

Knows neither Ray nor Spark: a source that is fed from outside is an ingest server behind the data port.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rayelastic import _native
from rayelastic.compile import Flags
from rayelastic.connectors.arrow.declaration import ArrowSource
from rayelastic.connectors.csv.form import CsvSource
from rayelastic.connectors.files.bad_rows import Files, LeftOut
from rayelastic.connectors.files.byte_streams import content_of
from rayelastic.connectors.files.locations import FileIdentity, identities, is_uri
from rayelastic.connectors.files.row_files import BadRows
from rayelastic.connectors.files.splits import FileSplits
from rayelastic.connectors.generate.declaration import CallableSource, GenerateSource, SequenceSource
from rayelastic.connectors.inputs import Input, Place
from rayelastic.connectors.json.inference import JsonSource
from rayelastic.connectors.memory.declaration import RowsSource
from rayelastic.connectors.parquet.inference import ParquetSource
from rayelastic.connectors.parquet.reader import parquet_batches, parquet_rows
from rayelastic.connectors.polled.declaration import PolledSource
from rayelastic.connectors.polled.reader import Poller
from rayelastic.connectors.problem import Problem, noted
from rayelastic.connectors.pushed.declaration import IngestSource
from rayelastic.connectors.pushed.partition_splits import PartitionSplits
from rayelastic.connectors.pushed.receiver import IngestServer
from rayelastic.connectors.row_reader import bad_row_batches, good_row_batches
from rayelastic.connectors.text.declaration import TextSource
from rayelastic.errors import ErrorCode, SourceError

if TYPE_CHECKING:
    import pyarrow as pa

    from rayelastic.graph.spec.operator_spec import OperatorSpec

FEEDER_BYTES = 64 << 20  # Arrow batches that are buffered for a source
JOIN_TIMEOUT = 5.0  # seconds for a reader to return from its file
READ_RATE = 20e6  # the lowest bytes/s at which files are read, parsed and skipped, compressed ones too
BATCH_ROWS = 65_536  # rows of one Arrow batch read from a table or file


@dataclass(slots=True)
class SourceOperator:
    """A source, ready to be added to a scheduler.

    Args:
        native: The operator.
        feed: Reads batches and pushes them to the operator, in a thread of its own once the scheduler runs.
        ingest: Serves the connections of clients, for a source that is fed from outside.
        left_out: Counts rows that aren't of the schema, for a source that drops them.
        seek: Begins near a position (emitted rows, and the saved input), before it starts; returns the number of rows
            that it emits again. By default it emits all again.
        place: Returns a place before its held position; None if the number of rows suffices.
        position: Of a source that reports its position, returns it after so many rows in this run; see Input.
        watch: Receives, before the start, a function that returns the rows emitted in this run.
        stop: Ends its reader.
        problem: The error that it failed with, if Python reads.
        files: The local files that it reads, with their identity when it was made.
    """

    native: _native.Operator
    feed: Callable[[], None] | None = None
    ingest: IngestServer | None = None
    left_out: LeftOut = field(default_factory=LeftOut)
    seek: Callable[[int, Input | None], int] = lambda position, _: position
    place: Callable[[], Place | None] = lambda: None
    position: Callable[[int], object] = lambda _: None
    watch: Callable[[Callable[[], int]], None] = lambda _: None
    stop: Callable[[], None] = lambda: None
    problem: Problem = field(default_factory=Problem)
    files: Mapping[str, FileIdentity] = field(default_factory=dict)
    _feeding: threading.Thread | None = None

    def start(self, name: str) -> None:
        """Start its reader, if it has one."""
        if self.feed is not None:
            self._feeding = threading.Thread(target=self.feed, name=f"feed-{name}", daemon=True)
            self._feeding.start()

    def close(self) -> None:
        """End connections of clients, and wait for the reading thread of an operator that has ended."""
        self.stop()
        if self.ingest is not None:
            self.ingest.close()
        if self._feeding is not None:
            self._feeding.join(JOIN_TIMEOUT)


def source_operator(spec: OperatorSpec, schema: _native.Schema) -> SourceOperator:
    """Make a source, ready to be added to a scheduler.

    Args:
        spec: The source.
        schema: The schema of its tuples.

    Raises:
        SourceError: The description has no reader.
    """
    return replace(_source_operator(spec, schema), files=_files_of(spec))


def _files_of(spec: OperatorSpec) -> dict[str, FileIdentity]:
    match spec.body:
        case TextSource(paths=paths) | CsvSource(paths=paths) | JsonSource(paths=paths) | ParquetSource(paths=paths):
            return identities(paths)
        case BadRows(of=files):
            return identities(files.paths)
    return {}


def _source_operator(spec: OperatorSpec, schema: _native.Schema) -> SourceOperator:
    """Make the native operator of a source.

    Raises:
        SourceError: The description has no reader.
    """
    name, body = spec.name, spec.body
    match body:
        case TextSource():
            problem, recoded = Problem(), body.encoding is not None
            opened = noted(content_of(body.encoding), problem)
            return _text_source(_native.Operator.text_source(name, schema, list(body.paths), opened, recoded), problem)
        case SequenceSource():
            return _sequence_source(
                _native.Operator.sequence_source(name, schema, body.count, body.payload_bytes), body
            )
        case RowsSource():
            return _rows_source(spec, schema, body)
        case GenerateSource():
            return _generate_source(spec, schema, body)
        case CallableSource():
            return _python_source(spec, schema, body.function)
        case ArrowSource(table=table):
            return _batch_source(
                spec,
                schema,
                lambda start: iter(table.slice(start).to_batches(max_chunksize=BATCH_ROWS)),
                lambda position: min(position, table.num_rows),
            )
        case ParquetSource():
            return _batch_source(
                spec,
                schema,
                lambda start: parquet_batches(body, BATCH_ROWS, start),
                lambda position: min(position, parquet_rows(body, position)),
            )
        case JsonSource() | CsvSource():
            return _row_files_source(spec, schema, body)
        case BadRows():
            return _batch_source(spec, schema, lambda _: bad_row_batches(body))
        case PolledSource():
            return _polled_source(spec, schema, body)
        case IngestSource():
            return _pushed_source(spec, schema, body)
    raise SourceError(
        f"{type(body).__name__} can't be read here",
        operator=name,
        hint="Use one of the sources of rayelastic",
        code=ErrorCode.NOT_A_SOURCE,
    )


def seconds_to_go_on(spec: OperatorSpec) -> float:
    """Return the longest time that a restarted source needs until it emits new rows.

    Args:
        spec: The source.

    Returns:
        Seconds: 0 for a source that can seek. For local files that are read from their start, a pessimistic time for
        the largest of CSV or JSON. Infinity for a source that has to emit everything again.
    """
    match spec.body:
        case TextSource() | SequenceSource() | RowsSource() | GenerateSource() | ArrowSource() | ParquetSource():
            return 0.0
        case CsvSource(paths=paths) | JsonSource(paths=paths):
            return max(map(_bytes_of, paths), default=0.0) / READ_RATE
        case BadRows(of=source):
            return sum(map(_bytes_of, source.paths)) / READ_RATE
    return math.inf


def _bytes_of(path: str) -> float:
    try:
        return math.inf if is_uri(path) else Path(path).stat().st_size
    except OSError:  # it is on another machine, or deleted
        return math.inf


def _python_source(
    spec: OperatorSpec,
    schema: _native.Schema,
    make_iterator: Callable[[], Iterator[Any]],
    flags: Flags = Flags.SOURCE,
) -> SourceOperator:
    return SourceOperator(_native.Operator.python(spec.name, make_iterator, None, schema, flags=flags))


def _polled_source(spec: OperatorSpec, schema: _native.Schema, body: PolledSource[Any]) -> SourceOperator:
    feeder = _native.ArrowFeeder(schema, FEEDER_BYTES)
    problem = Problem()
    poller = Poller(spec.name, body, feeder, problem.text)
    return SourceOperator(
        _native.Operator.arrow_source(spec.name, schema, feeder),
        feed=poller.feed,
        seek=poller.seek,
        position=poller.position,
        watch=poller.watch,
        stop=poller.stop,
        problem=problem,
    )


def _pushed_source(spec: OperatorSpec, schema: _native.Schema, body: IngestSource) -> SourceOperator:
    feeder = _native.ArrowFeeder(schema, FEEDER_BYTES)
    splits = PartitionSplits(feeder, time_ordered=body.time_ordered) if body.has_splits else None
    ingest = IngestServer(spec.name, body.schema.to_arrow(), feeder, splits=splits)

    def seek(_: int, saved: Input | None) -> int:
        if saved is not None and saved.position is not None:
            ingest.restore(saved.position)
        return 0  # the client pushes all again, and repeated rows are dropped

    native = _native.Operator.arrow_source(spec.name, schema, feeder)
    return SourceOperator(native, ingest=ingest, seek=seek, position=ingest.position)


def _text_source(native: _native.Operator, problem: Problem) -> SourceOperator:
    def seek(position: int, saved: Input | None) -> int:
        place = saved.place if saved is not None else None
        if place is None or not 0 <= place.rows <= position:
            return position
        native.seek_text(place.file, place.byte, place.rows)
        return position - place.rows

    def place() -> Place | None:
        found = native.text_place
        return None if found is None else Place(*found)

    return SourceOperator(native, seek=seek, place=place, problem=problem)


def _sequence_source(native: _native.Operator, body: SequenceSource) -> SourceOperator:
    def seek(position: int, _: Input | None) -> int:
        native.seek_sequence(min(position, body.count))
        return max(0, position - body.count)

    return SourceOperator(native, seek=seek)


def _rows_source(spec: OperatorSpec, schema: _native.Schema, body: RowsSource[Any]) -> SourceOperator:
    start = 0

    def seek(position: int, _: Input | None) -> int:
        nonlocal start
        start = min(position, len(body.rows))
        return position - start

    def rows() -> Iterator[Any]:
        return map(body.rows.__getitem__, range(start, len(body.rows))) if start else iter(body.rows)

    source = _python_source(spec, schema, rows, Flags.SOURCE | Flags.NEEDS_TOKEN)  # never waits
    return replace(source, seek=seek)


def _generate_source(spec: OperatorSpec, schema: _native.Schema, body: GenerateSource[Any]) -> SourceOperator:
    start = 0

    def seek(position: int, _: Input | None) -> int:
        nonlocal start
        start = position
        return 0

    def rows() -> Iterator[Any]:
        return map(body.function, itertools.count(start) if body.count is None else range(start, body.count))

    return replace(_python_source(spec, schema, rows), seek=seek)


def _batch_source(
    spec: OperatorSpec,
    schema: _native.Schema,
    batches: Callable[[int], Iterator[pa.RecordBatch | int]],
    reachable: Callable[[int], int] = lambda _: 0,
    left_out: LeftOut | None = None,
) -> SourceOperator:
    """Return a source that is fed with batches.

    Args:
        spec: The operator.
        schema: The schema of its tuples.
        batches: Reads them, from the row of a number on; the number of each file precedes its batches.
        reachable: Returns the row at which it can begin for a position: at most the number of rows.
        left_out: Counts rows that aren't of the schema.
    """
    feeder, problem = _native.ArrowFeeder(schema, FEEDER_BYTES), Problem()
    files, start = _files_of(spec), 0

    def seek(position: int, _: Input | None) -> int:
        nonlocal start
        start = reachable(position)
        return position - start

    def feed() -> None:
        try:
            splits = FileSplits(feeder, getattr(spec.body, "paths", ()))
            for item in batches(start):
                if isinstance(item, int):
                    splits.begin(item)
                elif not feeder.push(item):
                    return  # the source was stopped
            for path, identity in files.items():  # a file may have shrunk before it was opened
                identity.check(path)
            feeder.finish()
        except Exception as error:  # a broken file, a failing cast: the source fails with it
            feeder.fail(problem.text(error))

    native = _native.Operator.arrow_source(spec.name, schema, feeder)
    return SourceOperator(native, feed=feed, left_out=left_out or LeftOut(), seek=seek, problem=problem)


def _row_files_source(spec: OperatorSpec, schema: _native.Schema, body: CsvSource | JsonSource) -> SourceOperator:
    left_out, files, before = LeftOut(), Files(len(body.paths)), 0

    def seek(position: int, saved: Input | None) -> int:
        nonlocal before
        before = position
        return files.seek(position, saved.position if saved is not None else None)

    source = _batch_source(spec, schema, lambda _: good_row_batches(body, left_out, files), left_out=left_out)
    return replace(source, seek=seek, position=lambda given: files.position(before + given))
