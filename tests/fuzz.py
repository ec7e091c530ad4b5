"""Mutants of what strangers can send to a port: handshakes, plain and before TLS, and frames of ingest.

    ./dev fuzz [FRAMES] [HANDSHAKES] [SEED]

which first has the native tests decode so many mutants of links' frames, under the address sanitizer. A mutant begins
as what a good peer sends, so that it gets far; lengths and checksums are mostly made right again. What has to hold:
nobody is heard who didn't prove the secret, no row counts that wasn't sent, nothing hangs, and the port still serves.
"""

from __future__ import annotations

import argparse
import queue
import random
import secrets
import socket
import struct
import sys
import time
import zlib
from collections.abc import Callable, Sequence

import pyarrow as pa

from rayelastic.connectors.pushed.frames import Epoch, FrameKind
from rayelastic.connectors.pushed.receiver import IngestServer
from rayelastic.errors import LinkError
from rayelastic.runtime.port.data_port import DataPort, PortLimits
from rayelastic.runtime.port.dialling import dial
from rayelastic.runtime.port.handshake import REPLY_BYTES, Dialler, Hello
from rayelastic.runtime.port.secure_socket import SecureSocket

SECRET = bytes(range(32))
NAMES = {"job_id": "job", "sender": "task", "receiver": "pe0", "channel": "link:a->b"}
ANSWER_TIMEOUT = 5.0  # seconds for the port to answer, or hang up
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("text", pa.string())])
HEADER = struct.Struct("<4sBxxxIQIII")  # of ingest's frames
LENGTH_AT = 6  # of a hello's length


def mutated(data: bytes, draw: random.Random) -> bytes:
    """One to three changes: a byte, a piece that is cut out, doubled or put in."""
    changed = bytearray(data)
    for _ in range(draw.randint(1, 3)):
        at, end = sorted(draw.randrange(len(changed) + 1) for _ in range(2))
        kind = draw.randrange(6)
        if kind <= 2 and at < len(changed):
            changed[at] = draw.choice([0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)])
        elif kind == 3:
            del changed[at:end]
        elif kind == 4:
            changed[at:at] = changed[at : min(end, at + 64)]
        else:
            changed[at:at] = draw.randbytes(draw.randint(1, 16))
    return bytes(changed)


# --- handshakes -------------------------------------------------------------------------------------------------------


def fuzz_handshakes(count: int, draw: random.Random, *, secure: bool) -> dict[str, int]:
    """Sends mutants of handshakes to a port; how they ended, by the port's counters.

    Raises:
        AssertionError: somebody was heard who didn't prove the secret, or the port doesn't serve any more.
    """
    heard: queue.SimpleQueue[Hello] = queue.SimpleQueue()

    def hear(connection: socket.socket, hello: Hello) -> None:
        connection.close()
        heard.put(hello)

    limits = PortLimits(pending=64, per_second=1e9, burst=10**9)
    port = DataPort("job", "pe0", SECRET, "127.0.0.1", hear, limits=limits, secure=secure)
    try:
        good = sum(_handshake(port, draw, secure=secure) for _ in range(count))
        dial(port.address, **NAMES, epoch=0, secret=SECRET, timeout=ANSWER_TIMEOUT).close()
        for _ in range(good + 1):
            assert heard.get(timeout=ANSWER_TIMEOUT).channel == NAMES["channel"]
        assert heard.empty(), "somebody was heard who had not proved the secret"
        return port.counters
    finally:
        port.close()


def _handshake(port: DataPort, draw: random.Random, *, secure: bool) -> bool:
    """One handshake with a mutant in one of its messages; whether it was none after all."""
    good = False
    dialler = Dialler("job", Hello("task", "pe0", NAMES["channel"], 0), SECRET)
    stage = draw.randrange(3 if secure else 2)
    opening = dialler.opening
    if stage == 0:
        opening = mutated(opening, draw)
        if draw.random() < 0.5 and len(opening) > LENGTH_AT + 2:
            opening = opening[:LENGTH_AT] + struct.pack("<H", len(opening) & 0xFFFF) + opening[LENGTH_AT + 2 :]
    with socket.create_connection((port.address.host, port.address.port), ANSWER_TIMEOUT) as connection:
        try:
            connection.sendall(opening)
            if stage == 0:
                connection.shutdown(socket.SHUT_WR)
                _read(connection, 1 << 16)
                return False
            proof = dialler.prove(_read(connection, REPLY_BYTES))
            sent = proof if stage == 2 else mutated(proof, draw)
            good = sent[: len(proof)] == proof and not secure
            connection.sendall(sent)
            if stage == 1:
                connection.shutdown(socket.SHUT_WR)
                _read(connection, 1 << 16)
                return good
            _read(connection, 1)
            connection.sendall(mutated(_client_hello(dialler.key), draw))
            connection.shutdown(socket.SHUT_WR)
            _read(connection, 1 << 16)
        except TimeoutError:
            raise
        except (OSError, LinkError):  # it was refused, or served, before everything was said
            return good
    return good


def _client_hello(key: bytes) -> bytes:
    """What a peer with the key says first in TLS."""
    near, far = socket.socketpair()
    with far, SecureSocket(near, key, server=False) as client:
        client.step()
        return far.recv(1 << 14)


def _read(connection: socket.socket, count: int) -> bytes:
    """So many bytes, or fewer if the other side ends the connection. A TimeoutError is a port that hangs."""
    data = b""
    while len(data) < count and (part := connection.recv(count - len(data))):
        data += part
    return data


# --- frames of ingest -------------------------------------------------------------------------------------------------


class Rows:
    """A feeder that keeps nothing but how many rows came; each batch has to be sound."""

    def __init__(self) -> None:
        self.count = 0

    def push(self, batch: pa.RecordBatch) -> bool:
        batch.validate(full=True)
        assert batch.schema.equals(SCHEMA)
        assert not batch.column(0).null_count
        self.count += batch.num_rows
        return True

    def finish(self) -> None:
        """Nothing is waiting for it."""


def fuzz_ingest(count: int, draw: random.Random) -> dict[str, int]:
    """Sends mutants of ingest's frames, a connection for each; how many were refused, and rows that counted."""
    rows = Rows()
    server = IngestServer("rows", SCHEMA, rows, max_frame=1 << 16)
    for number in range(count):
        near, far = socket.socketpair()
        near.settimeout(ANSWER_TIMEOUT)
        server.serve(far)
        with near:
            try:
                near.sendall(_conversation(number, draw))
                near.shutdown(socket.SHUT_WR)
                _read(near, 1 << 16)
            except TimeoutError:
                raise
            except OSError:  # it was refused before everything was said
                continue
    counters = server.counters()
    assert counters.rows == rows.count, "rows were counted that nobody got, or the other way round"
    server.close()
    return {"refused": counters.rejected, "rows": counters.rows}


def _conversation(partition: int, draw: random.Random) -> bytes:
    batch = pa.RecordBatch.from_pydict({"id": [1, 2, 3], "text": ["a", None, "ccc"]}, schema=SCHEMA)
    opening = Epoch("q", 0).mark(SCHEMA) if draw.random() < 0.3 else SCHEMA
    frames = [
        (FrameKind.OPEN, 0, 0, opening.serialize().to_pybytes()),
        (FrameKind.BATCH, 0, 3, batch.serialize().to_pybytes()),
        (FrameKind.BATCH, 3, 3, batch.serialize().to_pybytes()),
        (FrameKind.END, 6, 0, b""),
    ]
    broken = draw.randrange(len(frames))
    said = []
    for at, (kind, first, count, payload) in enumerate(frames):
        body = mutated(payload, draw) if at == broken and payload and draw.random() < 0.7 else payload
        header = HEADER.pack(b"REIN", kind, partition, first, count, len(body), zlib.crc32(body))
        said.append((mutated(header, draw) if at == broken and body is payload else header) + body)
    return b"".join(said)


def main(arguments: Sequence[str]) -> int:
    """Runs both for as long as asked."""
    parser = argparse.ArgumentParser(description="Mutants of handshakes and of frames of ingest.")
    parser.add_argument("--handshakes", type=int, default=100_000, help="half of them to a port that wants TLS")
    parser.add_argument("--ingest", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 32))
    given = parser.parse_args(arguments)
    work: dict[str, Callable[[random.Random], dict[str, int]]] = {
        "plain handshakes": lambda draw: fuzz_handshakes(given.handshakes // 2, draw, secure=False),
        "handshakes before TLS": lambda draw: fuzz_handshakes(
            given.handshakes - given.handshakes // 2, draw, secure=True
        ),
        "conversations of ingest": lambda draw: fuzz_ingest(given.ingest, draw),
    }
    for what, run in work.items():
        started = time.monotonic()
        found = {name: count for name, count in run(random.Random(given.seed)).items() if count}
        sys.stdout.write(f"{what}, seed {given.seed}: {found} in {time.monotonic() - started:.0f} s\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
