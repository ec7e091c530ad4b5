"""A sink that is ready to run: its native operator, its writer, and how both take part in checkpoints."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from rayelastic import _native
from rayelastic.compile import Flags
from rayelastic.compile.lanes.python_lane import error_text
from rayelastic.connectors.files.bad_rows import Dropped, LeftOut
from rayelastic.connectors.output.folder import OutputFolder
from rayelastic.connectors.output.part_folder import PartFolder
from rayelastic.connectors.output.record import BlobStore, Output, SinkContext
from rayelastic.connectors.output.single_file import SingleFile
from rayelastic.connectors.problem import Problem
from rayelastic.errors import SinkError, SinkLostError, SinkTakenError, StateError, is_outage

if TYPE_CHECKING:
    import pyarrow as pa

    from rayelastic.connectors.description import FileSink
    from rayelastic.connectors.output.epochs import EpochSink
    from rayelastic.connectors.output.formats import FileFormat
    from rayelastic.graph.records.schema import Schema
    from rayelastic.graph.spec.operator_spec import OperatorSpec

BATCH_ROWS = 65_536  # rows of one Arrow batch for a sink

T = TypeVar("T")
CHECK = "Check rights, space and connection"  # the hint for a sink that can't write


@dataclass(frozen=True, slots=True)
class Past:
    """The run that sinks continue.

    Args:
        outputs: The outputs of the run to continue, by sink; a sink with the same destination continues there.
        store: The blobs of the checkpoint to restore.
        takes_checkpoints: Whether the job takes checkpoints: sinks hide their output until one is complete.
        keep: The number of complete checkpoints that can be restored.
        own: Whether that run was of this very job, which was lost.
        run: The id of this run of the job, the same after each recovery.
        job: The name of the job.
    """

    outputs: Mapping[str, Output] = field(default_factory=dict)
    store: BlobStore | None = None
    takes_checkpoints: bool = False
    keep: int = 1
    own: bool = False
    run: str = ""
    job: str = ""


class Writer(Protocol):
    """Writes a sink's rows, epoch by epoch. One thread at a time calls it, except `commit`."""

    def prepare(self, epoch: int, store: BlobStore) -> Output:
        """Make all rows so far durable; a checkpoint refers to them."""
        ...

    def commit(self, epoch: int) -> None:
        """Show a complete checkpoint's rows. May be called late, twice or not at all, from any thread."""
        ...

    def close(self) -> Any:
        """Show what is hidden, and return the sink's result.

        A job with checkpoints prepares and commits all rows before. `prepare` may follow, and repeats the output.
        """
        ...

    def output(self, rows: int, store: BlobStore) -> Output | None:
        """Return the output after so many rows in this run and `close`; None: nothing that a later run finds."""
        ...


class OwnedWriter(Writer, Protocol):
    """A writer to a location that one run owns. It checks the location when it is made, and changes it in `begin`."""

    def write(self, batch: Any) -> None:
        """Write a batch."""
        ...

    def begin(self) -> str:
        """Roll the output back to the checkpoint; return a description of what it removed."""
        ...

    def abandon(self) -> None:
        """Release the location for others; hidden output stays hidden. Safe to repeat."""
        ...


@dataclass(frozen=True, slots=True)
class NewSink:
    """What a writer and its native operator are made of.

    Args:
        spec: The sink.
        native: The native schema of its tuples.
        past: The run that it continues.
        blobs: The prefix of the names of its blobs in a checkpoint: safe as a file's, and unique among sinks.
    """

    spec: OperatorSpec
    native: _native.Schema
    past: Past
    blobs: str

    @property
    def schema(self) -> Schema:
        """The schema of its tuples."""
        assert self.spec.input_schema is not None
        return self.spec.input_schema

    @property
    def before(self) -> int:
        """The number of rows that it had received up to the checkpoint."""
        output = self.past.outputs.get(self.spec.name)
        return output.rows if output is not None and output.epoch else 0

    @property
    def output(self) -> Output | None:
        """Its output up to the checkpoint that stores its rows."""
        output = self.past.outputs.get(self.spec.name)
        return output if output is not None and output.epoch and not output.location else None

    @property
    def context(self) -> SinkContext:
        """The context of a writer to a location that one run owns."""
        past, name = self.past, self.spec.name
        return SinkContext(past.job, name, past.run, past.outputs, past.store, past.keep, past.own, self.blobs)

    def batches(self, write: Callable[[pa.RecordBatch], Any]) -> _native.Operator:
        """Make an operator that calls `write` with batches; under the GIL lock, run by run, if the writer is Python."""
        name = self.spec.name
        if not self.spec.lane.needs_python:
            return _native.Operator.arrow_sink(name, self.native, write, BATCH_ROWS)
        flags = Flags.SINK | Flags.NEEDS_TOKEN
        return _native.Operator.python(name, write, self.native, None, view="arrow", flags=flags)

    def owned(self, writer: OwnedWriter) -> SinkOperator:
        """Make a sink of a writer to a location that one run owns."""
        problem = Problem()
        native = self.batches(problem.of(writer.write))
        return SinkOperator(native, writer, self.before, writer.abandon, begin=writer.begin, problem=problem)

    def by_epoch(self, writer: EpochSink) -> SinkOperator:
        """Make a sink that writes each epoch in one commit."""
        problem = Problem()
        return SinkOperator(
            self.batches(problem.of(writer.write)),
            writer,
            self.before,
            writer.abandon,
            stops=writer.save,
            begin=writer.begin,
            problem=problem,
            left_out=writer.left_out,
        )


def file_sink(format_of: Callable[[Schema], FileFormat], new: NewSink, body: FileSink) -> SinkOperator:
    """Make a sink that writes one file if the path has a suffix, otherwise part files into a folder."""
    form, is_file = format_of(new.schema), bool(OutputFolder(body.path, is_file=True).file)
    return new.owned((SingleFile if is_file else PartFolder)(body.path, form, new.context))


class SinkOperator:
    """A sink, ready to be added to a scheduler.

    Args:
        native: The operator.
        writer: Writes its rows.
        before: Rows that it had received up to the restored checkpoint.
        abandon: Ends what the writer does by itself.
        stops: Prepares under the number at which a job is stopped; None: `output` returns the result.
        begin: Makes the writer's first changes, after every sink of the job has checked its location.
        problem: The error of the functions that the native operator calls.
        left_out: Counts rows that can't be written, for a sink that drops them.
    """

    def __init__(
        self,
        native: _native.Operator,
        writer: Writer,
        before: int,
        abandon: Callable[[], None] = lambda: None,
        stops: Callable[[int, BlobStore], Output] | None = None,
        begin: Callable[[], str] = str,
        problem: Problem | None = None,
        left_out: Dropped | None = None,
    ) -> None:
        self._problem = problem or Problem()
        self.left_out = left_out or LeftOut()
        self.native = native
        self.before = before
        self.abandon = abandon
        self._stops = stops
        self.begin = begin
        self._writer = writer
        self._lock = threading.Lock()
        self._closed = False
        self._value: Any = None
        self._failure: Exception | None = None

    def prepare(self, epoch: int, store: BlobStore) -> Output:
        """Make all rows that it has received durable, while it is held, or at its end.

        Args:
            epoch: The checkpoint's epoch; each is larger than the one before.
            store: Stores data that isn't written anywhere else.

        Raises:
            SinkError: It can't be written. The sink may have lost rows: neither another checkpoint nor the job's end
                can succeed.
            StateError: The checkpoint can't be written.
        """
        return self._written(lambda: self._writer.prepare(epoch, store))

    def stop(self, epoch: int, rows: int, store: BlobStore) -> Output | None:
        """Return what it will have written once it is closed, after so many rows in this run.

        Args:
            epoch: A number that no checkpoint has.
            rows: Rows that it has received.
            store: Stores data that isn't written anywhere else.

        Raises:
            SinkError: As for `prepare`.
        """
        stops = self._stops
        return self._written(lambda: self._writer.output(rows, store) if stops is None else stops(epoch, store))

    def commit(self, epoch: int) -> None:
        """Show what was prepared for an epoch, whose checkpoint is complete, and those before; safe to repeat.

        Raises:
            SinkError: it can't be shown now; the next commit shows it, too.
        """
        try:
            self._writer.commit(epoch)
        except SinkError:
            raise
        except Exception as error:
            raise SinkError(f"it can't publish its output: {error_text(error)}", hint=CHECK) from error

    def close(self) -> Any:
        """End the sink, once, and return its result.

        Raises:
            SinkError: It can't be written or shown.
        """
        with self._lock:
            if self._failure is not None:
                raise self._failure
            if not self._closed:
                try:
                    self._value = self._writer.close()
                except SinkError:
                    raise
                except Exception as error:
                    raise SinkError(f"it can't be completed: {error_text(error)}", hint=CHECK) from error
                self._closed = True
            return self._value

    def _written(self, write: Callable[[], T]) -> T:
        with self._lock:
            if self._failure is not None:
                raise self._failure
            try:
                self.native.flush()
                return write()
            except StateError:
                raise
            except (SinkLostError, SinkTakenError) as error:
                self._failure = error
                raise
            except Exception as error:
                lost = self._problem.error
                self._failure = (
                    lost
                    if lost is not None and is_outage(lost)
                    else SinkError(f"it can't be written: {error_text(error)}", hint=CHECK)
                )
                raise self._failure from error
