"""The data port of a PE, and the parts of it that accept connections. Owns the port."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rayelastic.errors import LinkError
from rayelastic.runtime.port.data_port import DataPort, Hello, PortAddress

if TYPE_CHECKING:
    import socket

    from rayelastic.runtime.values.specs import PESpec

Arrives = Callable[["socket.socket", Hello], bool]  # accepts a connection, or returns False


class Entrance:
    """The data port of a PE; it can't be reached before the port is opened.

    Args:
        spec: The PE.
        host: The address of this node that the port binds to.
        takers: Called in turn for each connection whose handshake succeeded.
    """

    def __init__(self, spec: PESpec, host: str, takers: tuple[Arrives, ...]) -> None:
        self._spec, self._host, self._takers = spec, host, takers
        self._port: DataPort | None = None

    def open(self) -> None:
        """Listen from now on."""
        spec = self._spec
        self._port = DataPort(
            spec.job_id,
            spec.pe,
            spec.secret,
            self._host,
            self._arrives,
            spec.epoch,
            secure=spec.config.network.secure,
            certificates=spec.config.network.link_certificates,
        )

    @property
    def address(self) -> PortAddress | None:
        """Return the port's address; None if it isn't open."""
        return self._port.address if self._port is not None else None

    @property
    def counters(self) -> dict[str, int]:
        """Return the numbers of accepted connections, and of rejected ones by reason."""
        return self._port.counters if self._port is not None else {}

    def advance(self, epoch: int) -> None:
        """Reject connections of older epochs from now on."""
        if self._port is not None:
            self._port.advance(epoch)

    def close(self) -> None:
        """Accept no more connections; safe to repeat."""
        if self._port is not None:
            self._port.close()

    def _arrives(self, connection: socket.socket, hello: Hello) -> None:
        """Raise if no part accepts a connection; the port closes it then."""
        if not any(takes(connection, hello) for takes in self._takers):
            raise LinkError(f"an unexpected connection: {hello.channel!r} from {hello.sender!r}")
