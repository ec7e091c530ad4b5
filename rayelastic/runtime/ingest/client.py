"""The sending end of a fed source: one partition, pushed by one task.

Runs inside Spark's Python workers and Ray tasks: needs only the standard library and pyarrow. Must not know Spark, Ray
or the native scheduler.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from rayelastic.connectors.pushed.frames import (
    CUT_FRAME,
    MAX_FRAME,
    Epoch,
    FrameError,
    FrameKind,
    receive_frame,
    send_frame,
)
from rayelastic.errors import LinkError
from rayelastic.graph.records.conversion import with_nullable_parts
from rayelastic.graph.records.limits import MOST_TEXT
from rayelastic.runtime.port.dialling import dial

if TYPE_CHECKING:
    from rayelastic.runtime.values.specs import IngestAddress

DIAL_TIMEOUT = 10.0  # seconds; a loaded machine accepts late, and a failed task starts from its first row again


class PushError(RuntimeError):
    """The PE didn't accept the rows; the text has the reason."""


def push_partition(
    target: IngestAddress,
    schema: pa.Schema,
    partition: int,
    batches: Iterable[pa.RecordBatch],
    *,
    sender: str,
    epoch: Epoch | None = None,
) -> int:
    """Push the rows of one partition and wait until all of them were accepted.

    Args:
        target: The address of the source.
        schema: The source's schema; batches are cast to it, field by field, by position.
        partition: The number of the partition.
        batches: Its rows, in an order that is the same when it is computed again.
        sender: The client, for the port's log.
        epoch: The micro-batch and the streaming query that it belongs to.

    Returns:
        The number of rows.

    Raises:
        PushError: The other end rejected the rows, or is gone.
    """
    try:
        connection = dial(
            target.address,
            job_id=target.job_id,
            sender=sender,
            receiver=target.pe,
            channel=target.channel,
            epoch=target.epoch,
            secret=target.secret,
            timeout=DIAL_TIMEOUT,
        )
    except (LinkError, OSError) as error:
        raise PushError(f"the source can't be reached, its job has probably ended: {error}") from error
    with connection:
        connection.settimeout(None)  # a slow source makes this end wait, for as long as it takes
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        try:
            return _push(connection, schema, partition, batches, epoch or Epoch())
        except (BrokenPipeError, ConnectionResetError, FrameError) as error:
            raise PushError(f"the source went away, its job has probably ended: {error}") from error


def _push(
    connection: socket.socket, schema: pa.Schema, partition: int, batches: Iterable[pa.RecordBatch], epoch: Epoch
) -> int:
    send_frame(connection, FrameKind.OPEN, partition, payload=epoch.mark(schema).serialize())
    row = 0
    for batch in batches:
        for piece in _pieces(_as_schema(batch, schema)):
            if (size := pa.ipc.get_record_batch_size(piece)) > MAX_FRAME:
                raise PushError(
                    f"row {row} of partition {partition} has {size} bytes, and {MOST_TEXT} are the most of a tuple; "
                    "cut it into several rows"
                )
            if select.select([connection], [], [], 0)[0]:
                _read_answer(connection)  # before END, only a rejection arrives
            send_frame(
                connection,
                FrameKind.BATCH,
                partition,
                first_row=row,
                rows=piece.num_rows,
                payload=piece.serialize(),
            )
            row += piece.num_rows
    send_frame(connection, FrameKind.END, partition, first_row=row)
    _read_answer(connection)
    return row


def _as_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Cast a batch to the types, except the nullability of parts, which the receiver takes from its own schema."""
    pairs = zip(batch.columns, map(with_nullable_parts, schema.types), strict=True)
    columns = [column if column.type == kind else column.cast(kind) for column, kind in pairs]
    return pa.RecordBatch.from_arrays(columns, names=schema.names)


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut a batch into small pieces, or single rows."""
    if batch.num_rows > 1 and pa.ipc.get_record_batch_size(batch) > CUT_FRAME:
        half = batch.num_rows // 2
        yield from _pieces(batch.slice(0, half))
        yield from _pieces(batch.slice(half))
    elif batch.num_rows:
        yield batch


def _read_answer(connection: socket.socket) -> None:
    answer = receive_frame(connection)
    if answer is None:
        raise FrameError("the connection ended without an answer")
    if answer.kind is FrameKind.REFUSED:
        raise PushError(bytes(answer.payload).decode(errors="replace"))
    if answer.kind is not FrameKind.ACCEPTED:
        raise FrameError(f"{answer.kind.name} is no answer")
