"""Sources that are ready to run, and the one thread that pushes what a reader yields. Knows no connector."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rayelastic import _native
from rayelastic.compile import Flags
from rayelastic.connectors.files.bad_rows import Dropped, LeftOut
from rayelastic.connectors.files.locations import FileIdentity, identities
from rayelastic.connectors.files.splits import FileSplits
from rayelastic.connectors.inputs import Input, Place
from rayelastic.connectors.problem import Problem
from rayelastic.errors import ErrorCode, SourceError

if TYPE_CHECKING:
    import pyarrow as pa

    from rayelastic.graph.spec.operator_spec import OperatorSpec

__all__ = [
    "BATCH_ROWS",
    "BatchReader",
    "SourceOperator",
    "batch_of",
    "batch_source",
    "fed_by_tuples",
    "native_feeder",
    "python_source",
]

FEEDER_BYTES = 64 << 20  # Arrow batches that are buffered for a source
JOIN_TIMEOUT = 5.0  # seconds for a reader to return from its file
BATCH_ROWS = 65_536  # rows of one Arrow batch read from a table or file
QUICK = 0.001  # seconds; an iterator whose batch took longer waited for something


@dataclass(slots=True)
class SourceOperator:
    """A source, ready to be added to a scheduler.

    Args:
        native: The operator.
        feed: Reads batches and pushes them to the operator, in a thread of its own once the scheduler runs.
        left_out: Counts rows that aren't of the schema, for a source that drops them.
        seek: Begins near a position (emitted rows, and the saved input), before it starts; returns the number of rows
            that it emits again. By default it emits all again.
        place: Returns a place before its held position; None if the number of rows suffices.
        position: Of a source that reports its position, returns it after so many rows in this run; see Input.
        watch: Receives, before the start, a function that returns the rows emitted in this run, and a name that no
            other source has.
        complete: Receives the position of each complete checkpoint of the job, and None before the first one. A job
            that takes none doesn't call it.
        lag: Returns the number of unread rows and the seconds behind; None if it can't know.
        reserve: Determines where it begins, if that depends on when, because it begins later.
        stop: Ends its reader.
        problem: The error that it failed with, if Python reads.
        files: The local files that it reads, with their identity when it was made.
        tuples: Makes the iterator of its tuples, if the operator calls Python for each.
    """

    native: _native.Operator
    feed: Callable[[], None] | None = None
    left_out: Dropped = field(default_factory=LeftOut)
    seek: Callable[[int, Input | None], int] = lambda position, _: position
    place: Callable[[], Place | None] = lambda: None
    position: Callable[[int], object] = lambda _: None
    watch: Callable[[Callable[[], int], str], None] = lambda *_: None
    complete: Callable[[object], None] = lambda _: None
    lag: Callable[[], tuple[int, float] | None] = lambda: None
    reserve: Callable[[], None] = lambda: None
    stop: Callable[[], None] = lambda: None
    problem: Problem = field(default_factory=Problem)
    files: Mapping[str, FileIdentity] = field(default_factory=dict)
    tuples: Callable[[], Iterator[Any]] | None = None
    _feeding: threading.Thread | None = None

    def start(self, name: str) -> None:
        """Start its reader, if it has one."""
        if self.feed is not None:
            self._feeding = threading.Thread(target=self.feed, name=f"feed-{name}", daemon=True)
            self._feeding.start()

    def close(self) -> None:
        """End its reader, and wait for its thread."""
        self.stop()
        if self._feeding is not None:
            self._feeding.join(JOIN_TIMEOUT)


class BatchReader(ABC):
    """Reads a source as Arrow batches. A connector overrides `batches`, and `reachable` if it can seek.

    Args:
        body: The description of the source.

    Attributes:
        start: The number of the first row to read; `seek` sets it before the reading begins.
        left_out: Counts rows that aren't of the schema.
        unread: Fields that nobody reads, whose columns its batches needn't have.
    """

    def __init__(self, body: Any) -> None:
        self.body = body
        self.start = 0
        self.unread: frozenset[str] = frozenset()
        self.left_out = LeftOut()

    @abstractmethod
    def batches(self) -> Iterator[pa.RecordBatch | int]:
        """Yield the rows from `start` on, in batches of the schema; the number of each file precedes its batches."""

    def reachable(self, position: int) -> int:  # noqa: ARG002  (one that can't seek reads from its first row)
        """Return the row at which it can begin for a position: at most the number of rows."""
        return 0

    def seek(self, position: int, saved: Input | None) -> int:  # noqa: ARG002  (for those that report a position)
        """Begin near a position; return the number of rows that are emitted again.

        Args:
            position: Rows that were emitted.
            saved: The input and the position that the source reported.
        """
        self.start = self.reachable(position)
        return position - self.start

    def position(self, emitted: int) -> object:  # noqa: ARG002  (of most, the number of rows is the position)
        """Return its position after so many rows in this run, for JSON; None if the number of rows suffices."""
        return None


def batch_source(spec: OperatorSpec, schema: _native.Schema, reader: BatchReader) -> SourceOperator:
    """Make a source that is fed with the batches of a reader."""
    native, feeder = native_feeder(spec, schema)
    reader.unread = frozenset(spec.unread)
    problem = Problem()

    def feed() -> None:
        try:
            paths = tuple(getattr(reader.body, "paths", ()))
            files = identities(paths)
            splits = FileSplits(feeder, paths)
            for item in reader.batches():
                if isinstance(item, int):
                    splits.begin(item)
                elif not feeder.push(item):
                    return  # the source was stopped
            for path, identity in files.items():  # a file may have shrunk before it was opened
                identity.check(path)
            feeder.finish()
        except Exception as error:  # a broken file, a failing cast: the source fails with it
            feeder.fail(problem.text(error))

    return SourceOperator(
        native, feed=feed, left_out=reader.left_out, seek=reader.seek, position=reader.position, problem=problem
    )


def native_feeder(spec: OperatorSpec, schema: _native.Schema) -> tuple[_native.Operator, _native.ArrowFeeder]:
    """Make an operator that emits Arrow batches, and the queue that feeds it; nobody reads the fields in `unread`."""
    feeder = _native.ArrowFeeder(schema, FEEDER_BYTES, list(spec.unread))
    return _native.Operator.arrow_source(spec.name, schema, feeder), feeder


def python_source(
    spec: OperatorSpec,
    schema: _native.Schema,
    make_iterator: Callable[[], Iterator[Any]],
    flags: Flags = Flags.SOURCE,
) -> SourceOperator:
    """Make a source of the tuples of a Python iterator."""
    native = _native.Operator.python(spec.name, make_iterator, None, schema, flags=flags)
    return SourceOperator(native, tuples=make_iterator)


def fed_by_tuples(source: SourceOperator, spec: OperatorSpec, schema: _native.Schema) -> SourceOperator:
    """Return a source of Python tuples whose iterator runs in a thread of its own, and which is native otherwise."""
    native, feeder = native_feeder(spec, schema)
    problem, arrow, stopped = Problem(), spec.outputs[0].schema.to_arrow(), threading.Event()
    assert source.tuples is not None
    make_iterator = source.tuples

    def feed() -> None:
        try:
            for rows in _batches_of(make_iterator()):
                if stopped.is_set() or not feeder.push(batch_of(rows, arrow, "its iterator yielded")):
                    return
            feeder.finish()
        except Exception as error:  # the user's code, or a value that doesn't fit: the source fails with it
            feeder.fail(problem.text(error))

    return replace(source, native=native, feed=feed, stop=stopped.set, problem=problem, tuples=None)


def _batches_of(tuples: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield tuples in batches, soon after they arrive: large ones of a quick iterator, single ones of a slow one."""
    rows: list[Any] = []
    most, until = 1, time.monotonic() + QUICK
    for row in tuples:
        rows.append(row)
        is_slow = time.monotonic() >= until
        if is_slow or len(rows) == most:
            yield rows
            most, rows = 1 if is_slow else min(2 * most, BATCH_ROWS), []
            until = time.monotonic() + QUICK
    if rows:
        yield rows


def batch_of(rows: Iterable[Any], schema: pa.Schema, what: str) -> pa.RecordBatch:
    """Make an Arrow batch of tuples, or of plain values if there is one field.

    Args:
        rows: The tuples.
        schema: Their fields.
        what: Who made them, for messages: 'poll() returned'.

    Raises:
        SourceError: A tuple doesn't fit the schema.
    """
    import pyarrow as pa

    tuples = [row if isinstance(row, tuple) else (row,) for row in rows]
    for row in tuples:
        if len(row) != len(schema):
            raise SourceError(
                f"{what} {row!r}",
                hint=f"Pass tuples of the {len(schema)} fields of its schema",
                code=ErrorCode.BAD_RETURN,
            )
    columns = [pa.array([row[number] for row in tuples], one.type) for number, one in enumerate(schema)]
    for column, one in zip(columns, schema, strict=True):
        if column.null_count and not one.nullable:
            raise SourceError(
                f"{what} None for {one.name!r}",
                hint=f"Declare it as `{one.name}: ... | None`",
                code=ErrorCode.BAD_RETURN,
            )
    return pa.RecordBatch.from_arrays(columns, schema=schema)
