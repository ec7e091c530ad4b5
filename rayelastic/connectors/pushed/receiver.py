"""The receiving end of a fed source: tasks push rows, and this end accepts each once.

Each connection carries one partition and is read by its own thread, which blocks in the feeder while the source has no
room. Then the socket fills, and the pushing task waits (back-pressure). Accepted rows are counted per partition. So a
task that is retried, or run twice by speculation, never doubles a row. A repeat must have the same rows: batches carry
checksums, and a task with other rows under the same numbers is rejected. The count alone would lose some rows and
double others silently.

Of a streaming query each micro-batch (epoch) has its own partitions, so a replay after a crash between push and commit
finds its rows counted. Spark replays only its last epoch: earlier ones are dropped, and rejected. The counts are part
of a checkpoint (accepted.py), so all of this holds across the loss of a PE.

Must not know Ray, Spark or the native scheduler; nothing that arrives is unpickled (reliability rule D5).
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from rayelastic.connectors.pushed.accepted import Accepted, Partition
from rayelastic.connectors.pushed.frames import (
    MAX_FRAME,
    MAX_REASON,
    Epoch,
    Frame,
    FrameError,
    FrameKind,
    receive_frame,
    send_frame,
)
from rayelastic.connectors.pushed.partition_splits import PartitionSplits
from rayelastic.errors import ErrorCode, SourceError

REPEATABLE = (
    "Make the DataFrame repeatable: sort within partitions (df.sortWithinPartitions(...)) or checkpoint it "
    "(df.localCheckpoint())"
)
DRAIN_TIMEOUT = 2.0  # seconds to wait for a rejected task to close the connection


class Feeder(Protocol):
    """The receiver of accepted batches: the native `ArrowFeeder`."""

    def push(self, batch: pa.RecordBatch) -> bool:
        """Push the rows of a batch; block while the source has no room; False if it was stopped."""
        ...

    def finish(self) -> None:
        """End the rows."""
        ...


@dataclass(frozen=True, slots=True)
class IngestCounters:
    """The counters of a fed source.

    Args:
        rows: Rows accepted, each once.
        bytes: Payload bytes of the accepted batches.
        batches: Batches accepted, whole or in part.
        repeated_rows: Repeated rows that were dropped.
        rejected: Connections that were rejected after the handshake.
        connections: Connections open now.
        partitions_ended: Complete partitions.
    """

    rows: int
    bytes: int
    batches: int
    repeated_rows: int
    rejected: int
    connections: int
    partitions_ended: int


class IngestServer:
    """Serves the connections of one source.

    Args:
        source: The name of the source operator.
        schema: The exact schema of each batch; a field that isn't nullable accepts no null.
        feeder: The receiver of accepted batches.
        max_frame: The most bytes of one frame.
        splits: Receives each partition, if partitions have watermarks of their own.

    Rows of one partition keep their order; partitions interleave. A data port calls `serve` with each connection whose
    handshake requested this source.
    """

    def __init__(
        self,
        source: str,
        schema: pa.Schema,
        feeder: Feeder,
        *,
        max_frame: int = MAX_FRAME,
        splits: PartitionSplits | None = None,
    ) -> None:
        self._source = source
        self._schema = schema
        self._feeder = feeder
        self._max_frame = max_frame
        self._splits = splits
        self._lock = threading.Lock()  # guards the fields below; never held while pushing
        self._accepted = Accepted(source)
        self._order = threading.Lock()  # held while pushing, so that the log has the feeder's order
        self._connections: set[socket.socket] = set()
        self._closed = False
        self._rows = self._bytes = self._batches = self._repeated = self._rejected = 0

    def serve(self, connection: socket.socket) -> None:
        """Take over a connection: read it in a thread of its own, and close it."""
        with self._lock:
            if self._closed:
                connection.close()
                return
            self._connections.add(connection)
        name = f"ingest-{self._source}"
        threading.Thread(target=self._serve, args=(connection,), name=name, daemon=True).start()

    def finish(self, rows: Mapping[int, int]) -> None:
        """End the source when every partition is complete.

        Args:
            rows: the row count of each partition, as its last successful task reported it.

        Raises:
            SourceError: a partition is missing or has another count; the source isn't ended.
        """
        self._accepted.end(Epoch(), rows)
        if self._splits is not None:
            with self._order:
                self._splits.finish()
        self._feeder.finish()

    def end_epoch(self, epoch: Epoch, rows: Mapping[int, int], given: int) -> int:
        """Record that a micro-batch is complete; safe to repeat.

        Args:
            epoch: The micro-batch.
            rows: The row count of each of its partitions.
            given: Rows that the source has emitted in this run.

        Returns:
            Rows that the source has yet to emit.

        Raises:
            SourceError: A partition is missing or has another count.
        """
        self._accepted.end(epoch, rows)
        return self._accepted.waiting(given)

    @property
    def has_open_epoch(self) -> bool:
        """Whether a micro-batch has begun and isn't complete."""
        return self._accepted.has_open_epoch

    @property
    def finished(self) -> bool:
        """Whether all rows have arrived."""
        return self._accepted.finished

    def position(self, given: int) -> dict[str, Any]:
        """Return the position of each partition when the source has emitted so many rows in this run, for JSON."""
        return self._accepted.position(given)

    def restore(self, position: Any) -> None:
        """Restore a position, before any row has arrived.

        Raises:
            StateError: It isn't a position.
        """
        self._accepted.restore(position)
        if self._accepted.finished:
            self._feeder.finish()

    def counters(self) -> IngestCounters:
        """Return the counters so far."""
        with self._lock:
            return IngestCounters(
                rows=self._rows,
                bytes=self._bytes,
                batches=self._batches,
                repeated_rows=self._repeated,
                rejected=self._rejected,
                connections=len(self._connections),
                partitions_ended=self._accepted.partitions_ended,
            )

    def close(self) -> None:
        """End every connection; tasks that still push see it broken. Safe to repeat."""
        with self._lock:
            self._closed = True
            connections = list(self._connections)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)  # its thread wakes up and closes it

    def _serve(self, connection: socket.socket) -> None:
        partition = 0
        try:
            connection.settimeout(None)
            state, partition = self._open(receive_frame(connection, max_frame=self._max_frame))
            while (frame := receive_frame(connection, max_frame=self._max_frame)) is not None:
                if frame.partition != partition:
                    raise self._error(f"a frame of partition {frame.partition} on a connection of {partition}")
                if frame.kind is FrameKind.END:
                    self._end(state, frame)
                    send_frame(connection, FrameKind.ACCEPTED, partition, first_row=frame.first_row)
                    return
                if frame.kind is not FrameKind.BATCH:
                    raise self._error(f"a frame {frame.kind.name} where a batch was expected")
                self._accept(state, frame)
        except FrameError as error:
            self._reject(connection, partition, f"{error}")
        except OSError:
            pass  # the task died, or the source was closed: Spark retries or knows why
        except Exception as error:  # wrong rows, or a stopped source: the task gets the reason, nothing hangs
            self._reject(connection, partition, f"{error}")
        finally:
            with self._lock:
                self._connections.discard(connection)
            connection.close()

    def _open(self, frame: Frame | None) -> tuple[Partition, int]:
        if frame is None or frame.kind is not FrameKind.OPEN:
            raise self._error("a connection that doesn't begin with a schema")
        try:
            schema = pa.ipc.read_schema(frame.payload)
        except (pa.ArrowException, OSError) as error:
            raise self._error(f"a schema that Arrow can't read: {error}") from error
        if not schema.equals(self._schema):
            raise self._error(f"it takes rows of ({_describe(self._schema)}), not of ({_describe(schema)})")
        state = self._accepted.partition(Epoch.of(schema), frame.partition)
        if self._splits is not None:
            with state.lock, self._order:
                self._splits.begin(frame.partition, has_ended=state.ended is not None)
        return state, frame.partition

    def _accept(self, state: Partition, frame: Frame) -> None:
        with state.lock:
            end = frame.first_row + frame.rows
            if frame.first_row > state.rows:
                raise self._error(f"partition {frame.partition}: rows {state.rows} to {frame.first_row} are missing")
            self._check_repeat(state, frame)
            if end <= state.rows:
                with self._lock:
                    self._repeated += frame.rows
                return
            batch = self._decode_batch(frame)
            known = state.rows - frame.first_row
            with self._order:
                self._accepted.log(state, batch.num_rows - known)
                if self._splits is not None:
                    self._splits.continue_with(frame.partition)
                if not self._feeder.push(batch.slice(known) if known else batch):
                    raise self._error("its job has ended")
            state.rows = end
            state.checksums[frame.first_row] = (frame.rows, frame.checksum)
        with self._lock:
            self._rows += frame.rows - known
            self._repeated += known
            self._bytes += frame.payload.size
            self._batches += 1

    def _check_repeat(self, state: Partition, frame: Frame) -> None:
        rows, checksum = state.checksums.get(frame.first_row, (frame.rows, frame.checksum))
        if rows == frame.rows and checksum != frame.checksum:
            raise self._error(
                f"partition {frame.partition} was computed again with other rows, or in another order, than before, so "
                "they can't be counted once",
                hint=REPEATABLE,
            )

    def _decode_batch(self, frame: Frame) -> pa.RecordBatch:
        try:
            batch = pa.ipc.read_record_batch(frame.payload, self._schema)
            batch.validate(full=True)
        except (pa.ArrowException, OSError) as error:
            raise self._error(f"a batch that Arrow can't read: {error}") from error
        if batch.num_rows != frame.rows:
            raise self._error(f"a batch of {batch.num_rows} rows that says it has {frame.rows}")
        for column, expected in zip(batch.columns, self._schema, strict=True):
            if not expected.nullable and column.null_count:
                raise self._error(
                    f"column {expected.name!r} has nulls, but its field takes none",
                    hint=f"Declare it as `{expected.name}: ... | None`, or remove them (df.na.drop, df.na.fill)",
                )
        return batch

    def _end(self, state: Partition, frame: Frame) -> None:
        with state.lock:
            if state.rows != frame.first_row or state.ended not in (None, frame.first_row):
                raise self._error(
                    f"partition {frame.partition} ended after {frame.first_row} rows, but {state.rows} were accepted",
                    hint=REPEATABLE,
                )
            state.ended = frame.first_row
            if self._splits is not None:
                with self._order:
                    self._splits.end(frame.partition)

    def _error(self, problem: str, *, hint: str = "") -> SourceError:
        return SourceError(problem, operator=self._source, hint=hint, code=ErrorCode.REJECTED_PUSH)

    def _reject(self, connection: socket.socket, partition: int, reason: str) -> None:
        with self._lock:
            self._rejected += 1
        with contextlib.suppress(OSError):
            payload = reason.encode()[:MAX_REASON]
            send_frame(connection, FrameKind.REFUSED, partition, payload=payload)
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(DRAIN_TIMEOUT)
            left = 2 * self._max_frame  # a task checks for an answer before each frame, so no more can be in flight
            while left > 0 and (read := len(connection.recv(1 << 16))):  # otherwise a reset would lose the reason
                left -= read


def _describe(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)
