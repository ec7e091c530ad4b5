"""Where others come in: the data port of a processing element, and who of it takes a connection. Owns the port."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rayelastic.errors import LinkError
from rayelastic.runtime.port.data_port import DataPort, Hello, PortAddress

if TYPE_CHECKING:
    import socket

    from rayelastic.runtime.values.specs import PESpec

__all__ = ["Arrives", "Entrance"]

Arrives = Callable[["socket.socket", Hello], bool]  # takes a connection, and tells whether it is one for it


class Entrance:
    """The data port of a processing element; nobody is reached before it is opened, or if it never is.

    Args:
        spec: of the processing element.
        host: the address of this node that it binds to.
        takers: asked in turn for each connection whose handshake succeeded.
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
        """Where it listens; None if it doesn't."""
        return self._port.address if self._port is not None else None

    @property
    def counters(self) -> dict[str, int]:
        """How many connections were taken, and refused by reason."""
        return self._port.counters if self._port is not None else {}

    def advance(self, epoch: int) -> None:
        """Reject connections of older epochs from now on."""
        if self._port is not None:
            self._port.advance(epoch)

    def close(self) -> None:
        """Lets nobody in any more; safe to repeat."""
        if self._port is not None:
            self._port.close()

    def _arrives(self, connection: socket.socket, hello: Hello) -> None:
        """Raise if a connection has no place here; the port closes it then."""
        if not any(takes(connection, hello) for takes in self._takers):
            raise LinkError(f"nobody waits for {hello.channel!r} from {hello.sender!r}")
