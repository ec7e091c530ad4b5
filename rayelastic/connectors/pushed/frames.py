"""The frames that feed a source from outside (Spark's Python workers): the protocol of an ingest connection.

After the data port's handshake a connection carries one partition:

    OPEN(schema) BATCH* END   from the worker,   then ACCEPTED or REFUSED(reason) from the PE.

A batch is an Arrow IPC message, numbered by its partition and by the row that it starts at. Lengths are checked before
memory is allocated, contents before they are used, and nothing is ever unpickled (reliability rules D4, D5, D6).
Of a streaming query, a connection carries one partition of one epoch (micro-batch): its schema's metadata say which.
Must not know Spark, Ray or the native scheduler.
"""

from __future__ import annotations

import enum
import socket
import struct
import zlib
from dataclasses import dataclass

import pyarrow as pa

from rayelastic.graph.records.limits import MOST_TEXT

MAGIC = b"REIN"
CUT_FRAME = 16 << 20  # bytes of payload up to which a worker cuts batches
MAX_FRAME = MOST_TEXT + CUT_FRAME  # a batch of one row may have so many; a larger frame is rejected
MAX_REASON = 4096  # bytes of a rejection's text
MAX_QUERY = 64  # bytes of a query's id; Spark's have 36
MAX_EPOCH_DIGITS = 18
QUERY, EPOCH = b"rayelastic.query", b"rayelastic.epoch"  # in the metadata of the schema that opens a connection
_HEADER = struct.Struct("<4sBxxxIQIII")  # magic, kind, partition, first row, rows, payload bytes, CRC-32 of the payload


@dataclass(frozen=True, slots=True, order=True)
class Epoch:
    """The micro-batch and streaming query of a connection.

    Args:
        query: The id of the query, which its checkpoint keeps; empty for a source that is pushed once.
        number: The micro-batch; a replay has the same.

    >>> Epoch.of(Epoch("q", 7).mark(pa.schema([("n", pa.int64())])))
    Epoch(query='q', number=7)
    """

    query: str = ""
    number: int = 0

    def mark(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema with the epoch in its metadata."""
        return schema.with_metadata({QUERY: self.query, EPOCH: str(self.number)}) if self.query else schema

    @classmethod
    def of(cls, schema: pa.Schema) -> Epoch:
        """Return the epoch in a schema's metadata.

        Raises:
            FrameError: It has no number, or one out of range.
        """
        said = schema.metadata or {}
        text = said.get(EPOCH, b"0")
        if not text.isdigit() or len(text) > MAX_EPOCH_DIGITS or len(said.get(QUERY, b"")) > MAX_QUERY:
            raise FrameError("the metadata of a schema name no epoch")
        return cls(said.get(QUERY, b"").decode(errors="replace"), int(text))


class FrameKind(enum.IntEnum):
    """The kind of a frame."""

    OPEN = 1
    BATCH = 2
    END = 3
    ACCEPTED = 4
    REFUSED = 5


class FrameError(ConnectionError):
    """Bytes that aren't a frame of this protocol, or a connection that ended within one."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame as it arrived.

    Args:
        kind: Its kind.
        partition: The partition of the connection.
        first_row: BATCH: the number of its first row within the partition; END, ACCEPTED: the partition's row count.
        rows: BATCH: its number of rows.
        payload: OPEN: an Arrow schema message; BATCH: an Arrow batch message; REFUSED: the reason, UTF-8.
        checksum: CRC-32 of the payload, verified.
    """

    kind: FrameKind
    partition: int
    first_row: int
    rows: int
    payload: pa.Buffer
    checksum: int


def send_frame(
    connection: socket.socket,
    kind: FrameKind,
    partition: int,
    *,
    first_row: int = 0,
    rows: int = 0,
    payload: pa.Buffer | bytes = b"",
) -> None:
    """Send one frame; block while the other end doesn't read.

    Raises:
        OSError: the connection is broken.
    """
    body = memoryview(payload)
    header = _HEADER.pack(MAGIC, kind, partition, first_row, rows, len(body), zlib.crc32(body))
    sent = connection.sendmsg([header, body])
    for part in (header, body):
        if sent < len(part):  # never an empty send: the other end may have closed after its frame
            connection.sendall(part[sent:])
        sent = max(0, sent - len(part))


def receive_frame(connection: socket.socket, *, max_frame: int = MAX_FRAME) -> Frame | None:
    """Read one frame.

    Args:
        connection: after the handshake.
        max_frame: the most payload bytes that memory is allocated for.

    Returns:
        The frame, or `None` when the other end closed the connection between two frames.

    Raises:
        FrameError: not a frame, too long, damaged, or cut off.
        OSError: the connection is broken.
    """
    header = _receive(connection, _HEADER.size, may_end=True)
    if header is None:
        return None
    magic, kind, partition, first_row, rows, length, checksum = _HEADER.unpack(header)
    if magic != MAGIC:
        raise FrameError("bytes that are not an ingest frame")
    if not FrameKind.OPEN <= kind <= FrameKind.REFUSED:
        raise FrameError(f"unknown kind of frame {kind}")
    if length > max_frame:
        raise FrameError(f"a frame of {length} bytes; at most {max_frame} are accepted")
    payload = _receive(connection, length)
    if payload is None or zlib.crc32(payload) != checksum:
        raise FrameError("a frame was damaged on the way")
    return Frame(FrameKind(kind), partition, first_row, rows, payload, checksum)


def _receive(connection: socket.socket, length: int, *, may_end: bool = False) -> pa.Buffer | None:
    buffer = pa.allocate_buffer(length)
    view = memoryview(buffer).cast("B")
    filled = 0
    while filled < length:
        count = connection.recv_into(view[filled:], length - filled, socket.MSG_WAITALL)
        if count == 0:
            if may_end and filled == 0:
                return None
            raise FrameError("the connection ended within a frame")
        filled += count
    return buffer
