"""A proxy between clients of Kafka and a broker that holds back single requests or answers, or cuts connections.

It parses the frames of both directions, and knows no more of them than which request ends a transaction.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from dataclasses import dataclass, field
from enum import Enum

from tools import kafka

END_TXN = 26  # the key of the request that ends a transaction
PATIENCE = 60.0


class Fate(Enum):
    """What happens to a request that ends a transaction."""

    PASS = "pass"
    HOLD_REQUEST = "request held"
    HOLD_ANSWER = "answer held"
    CUT = "cut after the request"


@dataclass
class Held:
    """A request or an answer that is held back."""

    frame: bytes
    into: socket.socket
    is_request: bool
    error: int = 0  # of the answer to a late request
    answered: threading.Event = field(default_factory=threading.Event)


Waiting = dict[int, tuple[Fate, Held | None]]  # {correlation id: what happens to the answer}


class Proxy:
    """Forwards connections to a broker, until `close`.

    Args:
        broker: The broker; clients that ask its address `proxied` come here.
    """

    def __init__(self, broker: kafka.Broker) -> None:
        self._broker = broker
        self._listener = socket.create_server(("127.0.0.1", broker.proxy_port))
        self._lock = threading.Lock()
        self._fates: list[Fate] = []
        self._held: list[Held] = []
        self._sockets: list[socket.socket] = [self._listener]
        self.ended = 0  # transactions whose end was asked for
        self.fated = threading.Semaphore(0)  # released for each fate that has come
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()

    def next(self, *fates: Fate) -> None:
        """Set what happens to the next requests that end a transaction."""
        with self._lock:
            self._fates += fates

    def release(self) -> list[int]:
        """Deliver what is held; return the broker's errors of late requests."""
        with self._lock:
            held, self._held = self._held, []
        errors = []
        for one in held:
            with contextlib.suppress(OSError):  # of an answer, whose client has gone
                one.into.sendall(one.frame)
            if one.is_request:
                assert one.answered.wait(PATIENCE), "the broker doesn't answer a late request"
                errors.append(one.error)
        return errors

    def close(self) -> None:
        """End all connections."""
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    # -- implementation -------------------------------------------------------------------------------------------

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                broker = socket.create_connection(("127.0.0.1", self._broker.behind_port))
                self._sockets += [client, broker]
                waiting: Waiting = {}
                for run in (self._requests, self._answers):
                    threading.Thread(target=run, args=(client, broker, waiting), daemon=True).start()

    def _requests(self, client: socket.socket, broker: socket.socket, waiting: Waiting) -> None:
        holds = False
        with contextlib.suppress(OSError):
            while (frame := _frame(client)) is not None:
                key, _, correlation = struct.unpack_from(">hhi", frame, 4)
                if key == END_TXN:
                    fate = self._fate()
                    if fate is Fate.HOLD_REQUEST:
                        held = Held(frame, broker, is_request=True)
                        waiting[correlation] = fate, held
                        holds = True
                        with self._lock:
                            self._held.append(held)
                        self.fated.release()
                        continue
                    waiting[correlation] = fate, None
                broker.sendall(frame)
        if not holds:
            with contextlib.suppress(OSError):
                broker.shutdown(socket.SHUT_WR)

    def _answers(self, client: socket.socket, broker: socket.socket, waiting: Waiting) -> None:
        with contextlib.suppress(OSError):
            while (frame := _frame(broker)) is not None:
                (correlation,) = struct.unpack_from(">i", frame, 4)
                fate, held = waiting.pop(correlation, (Fate.PASS, None))
                if held is not None:
                    (held.error,) = struct.unpack_from(">h", frame, 12)
                    held.answered.set()
                elif fate is Fate.HOLD_ANSWER:
                    with self._lock:
                        self._held.append(Held(frame, client, is_request=False))
                    self.fated.release()
                elif fate is Fate.CUT:
                    self.fated.release()
                    break
                else:
                    client.sendall(frame)
        for one in (client, broker):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _fate(self) -> Fate:
        with self._lock:
            self.ended += 1
            return self._fates.pop(0) if self._fates else Fate.PASS


def _frame(source: socket.socket) -> bytes | None:
    """Return the next frame with its length; None: there is none."""
    head = _exactly(source, 4)
    if head is None:
        return None
    body = _exactly(source, int.from_bytes(head))
    return None if body is None else head + body


def _exactly(source: socket.socket, count: int) -> bytes | None:
    read = bytearray()
    while len(read) < count:
        piece = source.recv(count - len(read))
        if not piece:
            return None
        read += piece
    return bytes(read)
