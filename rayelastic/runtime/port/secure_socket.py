"""A socket between two hosts with encryption: TLS 1.3 with the key that both sides have from the handshake.

Without certificates: each connection has its own key, derived from the job's secret and both nonces (handshake.py). Or
with certificates of both sides (`rel.TLS(links=True)`), followed, encrypted, by the proof that each also has that key.
Its methods are those of a plain socket, so that callers needn't distinguish them. Reasons:
docs/decisions/encryption.md.
"""

from __future__ import annotations

import hashlib
import hmac
import select
import socket
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from rayelastic import _native
from rayelastic.errors import ConfigError, ErrorCode
from rayelastic.runtime.port.certificates import server_context

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from rayelastic.plan.settings.tls import TLS

_DONE: Final = "done"
_EVENTS: Final = {"reads": select.POLLIN, "writes": select.POLLOUT}
GET_OPENSSL: Final = "Install OpenSSL 3 on every node (Debian, Ubuntu: apt install libssl3)"


def check_encryption(certificates: TLS | None = None) -> None:
    """Check that this machine can encrypt a job's links.

    Args:
        certificates: The certificates of its links; None: none.

    Raises:
        ConfigError: It can't, or a certificate is missing or invalid.
    """
    if missing := _native.Tls.missing():
        raise ConfigError(
            f"rel.Network(secure=True): {missing} on {socket.gethostname()}",
            hint=f"{GET_OPENSSL}, or leave secure out",
            code=ErrorCode.MISSING_PACKAGE,
        )
    if certificates is not None:
        server_context(certificates)


def encryption_of(links: Sequence[str], *, secure: bool) -> str:
    """Describe the encryption of some links.

    Args:
        links: The protocol and suite of each; empty if it has none.
        secure: JobConfig's setting.

    Example:
        >>> encryption_of(["TLSv1.3 TLS_AES_128_GCM_SHA256", ""], secure=True)
        'TLSv1.3 TLS_AES_128_GCM_SHA256 on 1 of 2 links, the others stay on this host'
        >>> encryption_of([""], secure=True)
        'TLS 1.3 for what comes from other hosts; the links of now stay on this one'
        >>> encryption_of([""], secure=False)
        'off; rel.Network(secure=True) has it'
    """
    if not secure:
        return "off; rel.Network(secure=True) has it"
    encrypted = [link for link in links if link]
    if not encrypted:
        return "TLS 1.3 for what comes from other hosts; the links of now stay on this one"
    others = ", the others stay on this host" if len(encrypted) < len(links) else ""
    return f"{encrypted[0]} on {len(encrypted)} of {len(links)} links{others}"


def tls_of(connection: socket.socket) -> _native.Tls | None:
    """Return what encrypts a connection, for the new owner of its descriptor; None: nothing does."""
    return connection.tls if isinstance(connection, SecureSocket) else None


class SecureSocket(socket.socket):
    """A connected socket with TLS over it.

    Args:
        plain: A connected socket; this one owns its descriptor from now on, and has its timeout.
        key: 32 bytes that both sides have.
        certificates: The certificates of both sides; None: none.
        server: Whether this is the side that was dialled.

    Raises:
        RuntimeError: There is no OpenSSL, or a certificate can't be used.

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

    def __init__(self, plain: socket.socket, key: bytes, certificates: TLS | None = None, *, server: bool) -> None:
        self._proof: _Proof | None = None
        if certificates is None:
            tls = _native.Tls(plain.fileno(), key, server)
        else:
            shown = certificates.cert, certificates.key, certificates.ca or ""
            tls = _native.Tls.certified(plain.fileno(), *shown, server)
            self._proof = _Proof(tls, key, server=server)
        timeout = plain.gettimeout()
        super().__init__(plain.family, plain.type, plain.proto, fileno=plain.detach())
        self.tls = tls
        self.settimeout(timeout)

    @property
    def in_force(self) -> str:
        """The protocol and its suite; empty until the handshake has succeeded."""
        return self.tls.in_force

    def step(self) -> str:
        """Continue the handshake as far as the socket allows.

        Returns:
            `done`, or what it waits for: `reads` or `writes`.

        Raises:
            ConnectionAbortedError: The other side lacks the key, has an invalid certificate, or doesn't use TLS.
        """
        step = self.tls.handshake()
        if step == "failed":
            raise ConnectionAbortedError(f"no encrypted connection: {self.tls.error}")
        return step if step != _DONE or self._proof is None else self._proof.step()

    def shake_hands(self, deadline: float) -> None:
        """Complete the handshake.

        Args:
            deadline: A time of the monotonic clock.

        Raises:
            ConnectionAbortedError: As for `step`.
            TimeoutError: It was too late.
        """
        while (step := self.step()) != _DONE:
            self._await(_EVENTS[step], deadline)

    def sendall(self, data: Buffer, _flags: int = 0, /) -> None:
        """Send all bytes, or raise OSError."""
        deadline = self._deadline()
        with memoryview(data).cast("B") as view:
            sent = 0
            while sent < len(view) or self.tls.unsent:
                if (count := self.tls.send(view[sent:])) < 0:
                    self._await(select.POLLOUT, deadline)
                else:
                    sent += count

    def send(self, data: Buffer, _flags: int = 0, /) -> int:
        """Send all bytes, or raise OSError; return how many."""
        self.sendall(data)
        return memoryview(data).nbytes

    def sendmsg(self, buffers: Iterable[Buffer], *_: Any) -> int:
        """Send all bytes of all buffers, or raise OSError; return how many."""
        return sum(self.send(part) for part in buffers)

    def recv_into(self, buffer: Buffer, nbytes: int = 0, flags: int = 0) -> int:  # noqa: ARG002 - as a plain socket has it
        """Read available bytes into a buffer, at least one; 0: the other side has ended the connection."""
        deadline = self._deadline()
        with memoryview(buffer).cast("B") as view:
            part = view[:nbytes] if nbytes else view
            while (got := self.tls.receive_into(part)) < 0:
                self._await(select.POLLIN, deadline)
            return got

    def recv(self, bufsize: int, _flags: int = 0, /) -> bytes:
        """Return available bytes, at least one; none: the other side has ended the connection."""
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


class _Proof:
    """Both ends of a connection with certificates prove that they have its key, each by 32 bytes.

    Otherwise a holder of a certificate of the same authority could intercept the connections of another job.
    """

    def __init__(self, tls: _native.Tls, key: bytes, *, server: bool) -> None:
        self._tls, self._key, self._server = tls, key, server
        self._unsent: bytes | None = None  # None: not begun
        self._received = b""

    def step(self) -> str:
        """Continue, as SecureSocket.step does, once the connection is encrypted."""
        if self._unsent is None:
            self._unsent = self._of(server=self._server)
        while self._unsent or self._tls.unsent:
            if (sent := self._tls.send(self._unsent)) < 0:
                return "writes"
            self._unsent = self._unsent[sent:]
        expected = self._of(server=not self._server)
        while len(self._received) < len(expected):
            part = bytearray(len(expected) - len(self._received))
            if (got := self._tls.receive_into(part)) < 0:
                return "reads"
            if got == 0:
                raise ConnectionAbortedError("no encrypted connection: the other side ended it")
            self._received += part[:got]
        if not hmac.compare_digest(self._received, expected):
            raise ConnectionAbortedError("no encrypted connection: the other side doesn't have the key")
        return _DONE

    def _of(self, *, server: bool) -> bytes:
        side = b"listener\0" if server else b"dialler\0"
        return hmac.digest(self._key, b"rayelastic certificates\0" + side + self._tls.exported, hashlib.sha256)
