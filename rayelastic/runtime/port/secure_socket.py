"""A socket between two hosts whose bytes are encrypted: TLS 1.3 with the key that a handshake has left on both sides.

No certificates: each connection has a key of its own, derived from the job's secret and both nonces (handshake.py).
Same calls as a plain socket, so that whoever has one needn't know which it is. Why so: docs/decisions/encryption.md.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from rayelastic import _native
from rayelastic.errors import ConfigError

if TYPE_CHECKING:
    from typing_extensions import Buffer

_DONE: Final = "done"
_EVENTS: Final = {"reads": select.POLLIN, "writes": select.POLLOUT}
GET_OPENSSL: Final = "Install OpenSSL 3 on every node (Debian, Ubuntu: apt install libssl3)"


def check_encryption() -> None:
    """Checks that this machine can encrypt what a job sends.

    Raises:
        ConfigError: it can't.
    """
    if missing := _native.Tls.missing():
        raise ConfigError(
            f"JobConfig(secure=True): {missing} on {socket.gethostname()}",
            way_out=f"{GET_OPENSSL}, or leave secure out",
        )


def encryption_of(links: Sequence[str], *, secure: bool) -> str:
    """Tells what is in force on some links, in words.

    Args:
        links: of each, the protocol and suite; empty if it has none.
        secure: of JobConfig.

    Example:
        >>> encryption_of(["TLSv1.3 TLS_AES_128_GCM_SHA256", ""], secure=True)
        'TLSv1.3 TLS_AES_128_GCM_SHA256 on 1 of 2 links, the others stay on this host'
        >>> encryption_of([""], secure=True)
        'TLS 1.3 for what comes from other hosts; the links of now stay on this one'
        >>> encryption_of([""], secure=False)
        'off; JobConfig(secure=True) has it'
    """
    if not secure:
        return "off; JobConfig(secure=True) has it"
    encrypted = [link for link in links if link]
    if not encrypted:
        return "TLS 1.3 for what comes from other hosts; the links of now stay on this one"
    others = ", the others stay on this host" if len(encrypted) < len(links) else ""
    return f"{encrypted[0]} on {len(encrypted)} of {len(links)} links{others}"


def tls_of(connection: socket.socket) -> _native.Tls | None:
    """Gives what encrypts a connection, to whoever takes its descriptor; None: nothing does."""
    return connection.tls if isinstance(connection, SecureSocket) else None


class SecureSocket(socket.socket):
    """A connected socket with TLS over it.

    Args:
        plain: connected; this one owns its descriptor from now on, and has its timeout.
        key: 32 bytes that both sides have.
        server: whether this is the side that was dialled.

    Example:
        >>> near, far = socket.socketpair()
        >>> key = bytes(range(32))
        >>> near, far = SecureSocket(near, key, server=False), SecureSocket(far, key, server=True)
        >>> [near.step(), far.step(), near.step(), far.step()]
        ['reads', 'reads', 'done', 'done']
        >>> near.sendall(b"hello"); far.recv(16), near.in_force
        (b'hello', 'TLSv1.3 TLS_AES_128_GCM_SHA256')
        >>> near.close(); far.close()
    """

    def __init__(self, plain: socket.socket, key: bytes, *, server: bool) -> None:
        timeout = plain.gettimeout()
        super().__init__(plain.family, plain.type, plain.proto, fileno=plain.detach())
        try:
            self.tls = _native.Tls(self.fileno(), key, server)
        except Exception:
            self.close()
            raise
        self.settimeout(timeout)

    @property
    def in_force(self) -> str:
        """The protocol and its suite; empty until the handshake has ended."""
        return self.tls.in_force

    def step(self) -> str:
        """Goes on with the handshake as far as the socket lets it.

        Returns:
            `done`, or what it waits for: `reads` or `writes`.

        Raises:
            ConnectionAbortedError: the other side doesn't have the key, or isn't one that speaks TLS.
        """
        step = self.tls.handshake()
        if step == "failed":
            raise ConnectionAbortedError(f"no encrypted connection: {self.tls.error}")
        return step

    def shake_hands(self, deadline: float) -> None:
        """Ends the handshake.

        Args:
            deadline: by the monotonic clock.

        Raises:
            ConnectionAbortedError: as `step`.
            TimeoutError: it was too late.
        """
        while (step := self.step()) != _DONE:
            self._await(_EVENTS[step], deadline)

    def sendall(self, data: Buffer, _flags: int = 0, /) -> None:
        """Sends all bytes, or raises OSError."""
        deadline = self._deadline()
        with memoryview(data).cast("B") as view:
            sent = 0
            while sent < len(view) or self.tls.unsent:
                if (count := self.tls.send(view[sent:])) < 0:
                    self._await(select.POLLOUT, deadline)
                else:
                    sent += count

    def send(self, data: Buffer, _flags: int = 0, /) -> int:
        """Sends all bytes, or raises OSError; returns how many."""
        self.sendall(data)
        return memoryview(data).nbytes

    def sendmsg(self, buffers: Iterable[Buffer], *_: Any) -> int:
        """Sends all bytes of all buffers, or raises OSError; returns how many."""
        return sum(self.send(part) for part in buffers)

    def recv_into(self, buffer: Buffer, nbytes: int = 0, flags: int = 0) -> int:  # noqa: ARG002 - as a plain socket has it
        """Fills a buffer with what is there, at least a byte; 0: the other side has ended the connection."""
        deadline = self._deadline()
        with memoryview(buffer).cast("B") as view:
            part = view[:nbytes] if nbytes else view
            while (got := self.tls.receive_into(part)) < 0:
                self._await(select.POLLIN, deadline)
            return got

    def recv(self, bufsize: int, _flags: int = 0, /) -> bytes:
        """Gives what is there, at least a byte; nothing: the other side has ended the connection."""
        buffer = bytearray(bufsize)
        return bytes(buffer[: self.recv_into(buffer)])

    def _deadline(self) -> float | None:
        timeout = self.gettimeout()
        return None if timeout is None else time.monotonic() + timeout

    def _await(self, event: int, deadline: float | None) -> None:
        ready = select.poll()
        ready.register(self, event)
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        if not ready.poll(None if left is None else left * 1000.0):
            raise TimeoutError("timed out")
