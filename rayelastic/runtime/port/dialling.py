"""Connects a PE, or a Spark task, to the data port of another one.

The dialling side of reliability rule D3 over a real socket: everything within one deadline, the Unix socket first if
both are on one node. Knows nothing of the later content of the connection.
"""

from __future__ import annotations

import contextlib
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rayelastic.errors import ErrorCode, LinkError
from rayelastic.runtime.port.handshake import REPLY_BYTES, VERDICT_BYTES, Dialler, HandshakeError, Hello, Refusal
from rayelastic.runtime.port.secure_socket import GET_OPENSSL, SecureSocket

if TYPE_CHECKING:
    from rayelastic.plan.settings.tls import TLS

_BUSY_PAUSE_S: Final = 0.02  # between two attempts at a busy port


@dataclass(frozen=True, slots=True)
class PortAddress:
    """The address of a port.

    Args:
        host: The node's address.
        port: The TCP port.
        unix_path: The Unix socket for peers on the same node; empty if there is none.
        secure: Whether TCP connections have to use TLS. It comes from the coordinator, over Ray, so that an attacker
            can't downgrade the connection.
        certificates: The certificates of both sides then; None: none.
    """

    host: str
    port: int
    unix_path: str = ""
    secure: bool = False
    certificates: TLS | None = None


def dial(
    address: PortAddress,
    *,
    job_id: str,
    sender: str,
    receiver: str,
    channel: str,
    epoch: int,
    secret: bytes,
    timeout: float = 2.0,
) -> socket.socket:
    """Connect to a port and prove that this side belongs to the job; the port proves it too.

    It uses the Unix socket on the same node, TCP otherwise. A busy port is tried again until the time is over.

    Args:
        address: The port's address.
        job_id: The job of both sides.
        sender: This PE or task.
        receiver: The PE that listens there.
        channel: `link:<edge>` or `ingest:<source>`.
        epoch: The link epoch of this side.
        secret: The job's secret for a link, `derive_secret(secret, channel)` for an ingest channel.
        timeout: Seconds for everything.

    Returns:
        A connected socket in blocking mode. The first byte that it reads is the peer's first after the handshake.

    Raises:
        HandshakeError: Rejected, not proved, or not in time; the message has the reason.
        LinkError: Nothing listens there, or the names are too long for a handshake.
        ValueError: The secret is too short.
    """
    hello = Hello(sender, receiver, channel, epoch)
    deadline = time.monotonic() + timeout
    while True:
        try:
            return _dial_once(address, Dialler(job_id, hello, secret), hello, deadline)
        except HandshakeError as error:
            # A busy port closes at once, and TCP may lose its answer with the connection.
            if error.refusal not in (Refusal.BUSY, Refusal.LOST) or time.monotonic() + _BUSY_PAUSE_S >= deadline:
                raise
        time.sleep(_BUSY_PAUSE_S)


def _dial_once(address: PortAddress, dialler: Dialler, hello: Hello, deadline: float) -> socket.socket:
    where = f"PE '{hello.receiver}' at {address.host}:{address.port}"
    try:
        connection = _connect(address, deadline)
    except TimeoutError as error:
        hint = "Check for a firewall between the nodes"
        raise HandshakeError(Refusal.TIMEOUT, f"{where} can't be reached in time", hint=hint) from error
    except OSError as error:
        raise LinkError(
            f"{where} doesn't listen: {error}", hint="Check that it still runs", code=ErrorCode.LINK_TIMEOUT
        ) from error
    with contextlib.ExitStack() as undo:
        undo.enter_context(connection)
        try:
            _send(connection, dialler.opening, deadline)
            first = _receive(connection, 1, deadline)
            proof = dialler.prove(first if first[0] else first + _receive(connection, REPLY_BYTES - 1, deadline))
            _send(connection, proof, deadline)
            dialler.conclude(_receive(connection, VERDICT_BYTES, deadline))
        except TimeoutError as error:
            raise HandshakeError(Refusal.TIMEOUT, f"{where} didn't answer the handshake in time") from error
        except OSError as error:
            problem = f"{where} closed the connection during the handshake: {error}"
            raise HandshakeError(Refusal.LOST, problem, hint="Check that it still runs") from error
        if address.secure and connection.family != socket.AF_UNIX:
            key = dialler.key
            connection = undo.enter_context(_encrypted(connection, key, address.certificates, where, deadline))
        connection.settimeout(None)
        undo.pop_all()
    return connection


def _encrypted(
    connection: socket.socket, key: bytes, certificates: TLS | None, where: str, deadline: float
) -> SecureSocket:
    try:
        secure = SecureSocket(connection, key, certificates, server=False)
    except RuntimeError as error:
        raise HandshakeError(
            Refusal.ENCRYPTION,
            f"{where} wants an encrypted connection, and here (on {socket.gethostname()}) {error}",
            hint=f"{GET_OPENSSL}, or leave rel.Network(secure=) out"
            if certificates is None
            else "Have the files of rel.TLS(links=True) at the same paths on every node",
        ) from error
    with contextlib.ExitStack() as undo:
        undo.enter_context(secure)
        try:
            secure.shake_hands(deadline)
        except TimeoutError as error:
            raise HandshakeError(Refusal.TIMEOUT, f"{where} didn't encrypt the connection in time") from error
        except OSError as error:
            hint = "Does something between the nodes change traffic?"
            if certificates is not None:
                hint = "Have certificates of rel.TLS(ca=) on both nodes, for servers and clients, that haven't expired"
            raise HandshakeError(Refusal.ENCRYPTION, f"{where}: {error}", hint=hint) from error
        undo.pop_all()
    return secure


def _connect(address: PortAddress, deadline: float) -> socket.socket:
    if address.unix_path and _is_here(address.host) and Path(address.unix_path).exists():
        unix = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            unix.settimeout(_left(deadline))
            unix.connect(address.unix_path)
            return unix
        except OSError:  # left behind, or not allowed: the port is reached like any other
            unix.close()
    connection = socket.create_connection((address.host, address.port), timeout=_left(deadline))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _is_here(host: str) -> bool:
    """Return whether `host` is an address of this node; a shared folder doesn't prove that."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return False
        return True


def _send(connection: socket.socket, data: bytes, deadline: float) -> None:
    connection.settimeout(_left(deadline))
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the reason of a rejection can still be read
        connection.sendall(data)


def _receive(connection: socket.socket, count: int, deadline: float) -> bytes:
    data = b""
    while len(data) < count:
        connection.settimeout(_left(deadline))
        part = connection.recv(count - len(data))
        if not part:
            raise ConnectionError("it sent nothing more")
        data += part
    return data


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
