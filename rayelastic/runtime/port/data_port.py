"""The port of a PE for links and ingest connections; dialling.py has the dialling side.

Reliability rules D1-D3: it listens on one address, never on all interfaces, and on a Unix socket for peers on the same
node. No data is read before the handshake (handshake.py) has succeeded. Knows neither frames nor batches: an accepted
socket goes to the server of its channel.

One thread accepts and runs all pending handshakes, at most 16, each with a deadline; it never waits for a peer.
"""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rayelastic.errors import ConfigError, ErrorCode
from rayelastic.runtime.port.dialling import PortAddress, dial
from rayelastic.runtime.port.handshake import (
    HandshakeError,
    Hello,
    Listener,
    Nonces,
    Refusal,
    check_secret,
    derive_secret,
    verdict,
)
from rayelastic.runtime.port.secure_socket import SecureSocket, check_encryption

if TYPE_CHECKING:
    from rayelastic.plan.settings.tls import TLS

__all__ = ["DataPort", "HandshakeError", "Hello", "PortAddress", "PortLimits", "Refusal", "derive_secret", "dial"]

_log = logging.getLogger(__name__)

MAX_UNIX_PATH_BYTES: Final = 106  # sun_path has 108 bytes; findings 5 asks for less than 107
_NO_DESCRIPTOR_PAUSE_S: Final = 0.1  # before accepting again when this process has no file descriptor left


@dataclass(frozen=True, slots=True)
class PortLimits:
    """Limits on what strangers can use of a port (D3).

    Args:
        pending: The most concurrent handshakes.
        deadline: Seconds from the connection to the proof.
        per_second: Connections a second in the long run, including rejected ones.
        burst: Connections at once, after a pause.
    """

    pending: int = 16
    deadline: float = 2.0
    per_second: float = 500.0
    burst: int = 500


@dataclass(slots=True)
class _Pending:
    connection: socket.socket
    handshake: Listener
    deadline: float
    secure: SecureSocket | None = None  # replaces the connection once its peer has proved itself


class DataPort:
    """The listening side of a PE: a TCP socket on one address and a Unix socket for the same node.

    Args:
        job_id: The job; a connection to another one is rejected.
        pe_id: The PE; a connection to another one is rejected.
        secret: The job's secret, at least 32 bytes from `secrets`. It is never shown or logged.
        host: The address to listen on, for example the node's Ray address or 127.0.0.1.
        on_connection: Called in the port's thread with each accepted socket (blocking mode) and its peer's hello. It
            owns the socket from then on and returns soon. If it raises, the connection is closed and counted under
            `channel`.
        epoch: Connections of older link epochs are rejected, which fences replaced PEs. Clients that
            push rows aren't replaced, so they are only rejected below this epoch, whatever `advance` sets.
        unix_directory: Where to put the Unix socket's private directory; by default the system's temporary folder.
        limits: Limits on strangers.
        secure: Whether TCP connections have to use TLS, with a key of their own. Those of the Unix socket never leave
            this machine, and aren't encrypted.
        certificates: The certificates of both sides of such a connection; None: none.

    Raises:
        ConfigError: An address that means all interfaces; this machine can't encrypt; a file is missing or invalid.
        ValueError: The secret is too short.
        OSError: The address isn't one of this node.

    Example:
        >>> import queue, secrets
        >>> secret, accepted = secrets.token_bytes(32), queue.Queue()
        >>> port = DataPort("job", "pe-1", secret, "127.0.0.1", lambda s, hello: accepted.put((s, hello)))
        >>> names = {"job_id": "job", "sender": "pe-0", "receiver": "pe-1", "channel": "link:a->b"}
        >>> near = dial(port.address, **names, epoch=0, secret=secret)
        >>> far, hello = accepted.get(timeout=5)
        >>> hello.sender
        'pe-0'
        >>> near.close(); far.close(); port.close()
    """

    def __init__(
        self,
        job_id: str,
        pe_id: str,
        secret: bytes,
        host: str,
        on_connection: Callable[[socket.socket, Hello], None],
        epoch: int = 0,
        unix_directory: str | None = None,
        limits: PortLimits | None = None,
        *,
        secure: bool = False,
        certificates: TLS | None = None,
    ) -> None:
        if host in ("", "0.0.0.0", "::", "*"):
            raise ConfigError(
                f"PE '{pe_id}' can't listen on '{host}', which means all interfaces",
                hint="Pass the node's own address, or 127.0.0.1 if everything runs on one node.",
                code=ErrorCode.OPEN_ADDRESS,
            )
        if secure:
            check_encryption(certificates)
        self._job_id, self._pe_id, self._secret = job_id, pe_id, check_secret(secret)
        self._on_connection = on_connection
        self._epoch = self._since = epoch
        self._limits = limits or PortLimits()
        self._secure, self._certificates = secure, certificates
        self._nonces = Nonces()
        self._pending: dict[socket.socket, _Pending] = {}
        self._allowance = float(self._limits.burst)
        self._allowance_at = time.monotonic()
        self._counters = {"accepted": 0, **{refusal.value: 0 for refusal in Refusal}}
        self._closing = False
        self._directory = ""
        with contextlib.ExitStack() as undo:
            tcp = undo.enter_context(_listen_tcp(host))
            unix, path = self._listen_unix(unix_directory)
            if unix is not None:
                undo.callback(self._remove_unix)
                undo.enter_context(unix)
            self._waker, self._wakeable = socket.socketpair()
            self._wakeable.setblocking(False)
            self._listeners = [listener for listener in (tcp, unix) if listener is not None]
            bound = tcp.getsockname()
            self.address = PortAddress(bound[0], bound[1], path, secure, certificates)
            self._thread = threading.Thread(target=self._serve, name=f"rayelastic-port-{pe_id}", daemon=True)
            self._thread.start()
            undo.pop_all()

    def __repr__(self) -> str:
        return f"DataPort(job_id={self._job_id!r}, pe_id={self._pe_id!r}, address={self.address!r})"

    @property
    def counters(self) -> dict[str, int]:
        """Return the numbers of connections so far: `accepted`, and rejected ones by reason (the values of Refusal)."""
        return dict(self._counters)

    @property
    def epoch(self) -> int:
        """The oldest link epoch that is accepted."""
        return self._epoch

    def advance(self, epoch: int) -> None:
        """Reject link epochs older than `epoch` from now on, but no client that pushes rows; it never decreases."""
        self._epoch = max(self._epoch, epoch)

    def close(self) -> None:
        """Stop listening, drop pending handshakes and wait for the port's thread; accepted sockets stay as they are."""
        if self._closing:
            return
        self._closing = True
        self._waker.close()  # wakes the thread, which may have ended already, through the other end
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _listen_unix(self, directory: str | None) -> tuple[socket.socket | None, str]:
        self._directory = tempfile.mkdtemp(prefix="rel-", dir=directory)  # mode 0700
        path = Path(self._directory) / "port"
        if len(os.fsencode(path)) > MAX_UNIX_PATH_BYTES:
            self._remove_unix()
            return None, ""
        unix = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            unix.bind(str(path))
            path.chmod(0o600)
            unix.listen(self._limits.pending)
            unix.setblocking(False)
        except OSError:
            unix.close()
            self._remove_unix()
            raise
        return unix, str(path)

    def _remove_unix(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)

    def _serve(self) -> None:
        with selectors.DefaultSelector() as selector, contextlib.ExitStack() as resources:
            resources.callback(self._remove_unix)
            for owned in (self._wakeable, *self._listeners):
                resources.enter_context(owned)
            selector.register(self._wakeable, selectors.EVENT_READ)
            for listener in self._listeners:
                selector.register(listener, selectors.EVENT_READ)
            try:
                while not self._closing:
                    for key, _ in selector.select(self._until_deadline()):
                        if key.fileobj is self._wakeable:
                            break
                        assert isinstance(key.fileobj, socket.socket)
                        if key.fileobj in self._pending:
                            self._continue(selector, self._pending[key.fileobj])
                        else:
                            self._accept(selector, key.fileobj)
                    self._expire(selector)
            finally:
                for pending in list(self._pending.values()):
                    self._drop(selector, pending, Refusal.LOST)

    def _until_deadline(self) -> float | None:
        if not self._pending:
            return None
        return max(0.0, min(pending.deadline for pending in self._pending.values()) - time.monotonic())

    def _expire(self, selector: selectors.BaseSelector) -> None:
        now = time.monotonic()
        for pending in [pending for pending in self._pending.values() if pending.deadline <= now]:
            self._drop(selector, pending, Refusal.TIMEOUT)

    def _accept(self, selector: selectors.BaseSelector, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except BlockingIOError:
            return
        except OSError as error:
            _log.warning("PE '%s' can't accept a connection: %s", self._pe_id, error)
            time.sleep(_NO_DESCRIPTOR_PAUSE_S)
            return
        connection.setblocking(False)
        if len(self._pending) >= self._limits.pending or not self._allowed():
            self._counters[Refusal.BUSY.value] += 1
            with connection, contextlib.suppress(OSError):
                connection.send(verdict(Refusal.BUSY))
            return
        if connection.family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        handshake = Listener(
            self._job_id, self._pe_id, self._secret, self._nonces, epoch=self._epoch, since=self._since
        )
        pending = _Pending(connection, handshake, time.monotonic() + self._limits.deadline)
        self._pending[connection] = pending
        selector.register(connection, selectors.EVENT_READ)

    def _allowed(self) -> bool:
        now = time.monotonic()
        earned = (now - self._allowance_at) * self._limits.per_second
        self._allowance = min(float(self._limits.burst), self._allowance + earned)
        self._allowance_at = now
        if self._allowance < 1.0:
            return False
        self._allowance -= 1.0
        return True

    def _continue(self, selector: selectors.BaseSelector, pending: _Pending) -> None:
        if pending.secure is not None:
            self._encrypt(selector, pending, pending.secure)
            return
        try:
            data = pending.connection.recv(pending.handshake.wanted)  # never a byte after the handshake
            if not data:
                self._drop(selector, pending, Refusal.LOST)
                return
            answer = pending.handshake.receive(data)
            # At most 66 bytes on a fresh connection: if they don't fit the socket's buffer, drop the peer.
            if answer and pending.connection.send(answer) != len(answer):
                self._drop(selector, pending, Refusal.LOST)
                return
        except HandshakeError as error:
            self._drop(selector, pending, error.refusal)
            return
        except BlockingIOError:
            return
        except OSError:
            self._drop(selector, pending, Refusal.LOST)
            return
        if pending.handshake.hello is None:
            return
        if self._secure and pending.connection.family != socket.AF_UNIX:
            self._begin_encryption(selector, pending)
        else:
            self._hand_over(selector, pending, pending.handshake.hello)

    def _begin_encryption(self, selector: selectors.BaseSelector, pending: _Pending) -> None:
        self._forget(selector, pending)
        try:
            secure = SecureSocket(pending.connection, pending.handshake.key, self._certificates, server=True)
        except RuntimeError as error:  # files were replaced since the port was opened
            _log.warning("PE '%s' can't encrypt a connection: %s", self._pe_id, error)
            self._counters[Refusal.ENCRYPTION.value] += 1
            pending.connection.close()
            return
        pending.connection = pending.secure = secure
        self._pending[secure] = pending
        selector.register(secure, selectors.EVENT_READ)

    def _encrypt(self, selector: selectors.BaseSelector, pending: _Pending, secure: SecureSocket) -> None:
        assert pending.handshake.hello is not None
        try:
            done = secure.step() == "done"  # a few hundred bytes, which fit the socket's buffer
        except OSError:
            self._drop(selector, pending, Refusal.ENCRYPTION)
            return
        if done:
            self._hand_over(selector, pending, pending.handshake.hello)

    def _hand_over(self, selector: selectors.BaseSelector, pending: _Pending, hello: Hello) -> None:
        self._forget(selector, pending)
        pending.connection.setblocking(True)
        try:
            self._on_connection(pending.connection, hello)
        except Exception as error:
            self._counters[Refusal.CHANNEL.value] += 1
            _log.warning(
                "'%s' has no use for channel '%s' of '%s': %s", self._pe_id, hello.channel, hello.sender, error
            )
            pending.connection.close()
        else:
            self._counters["accepted"] += 1

    def _drop(self, selector: selectors.BaseSelector, pending: _Pending, refusal: Refusal) -> None:
        self._forget(selector, pending)
        self._counters[refusal.value] += 1
        with pending.connection, contextlib.suppress(OSError):
            if pending.secure is None:  # otherwise it has the verdict, and now waits for TLS
                pending.connection.send(verdict(refusal))

    def _forget(self, selector: selectors.BaseSelector, pending: _Pending) -> None:
        selector.unregister(pending.connection)
        del self._pending[pending.connection]


def _listen_tcp(host: str) -> socket.socket:
    listener = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=64)
    listener.setblocking(False)
    return listener
