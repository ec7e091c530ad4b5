"""Opens connections to other PEs, and makes links of connections. Keeps none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayelastic import _native
from rayelastic.errors import LinkError
from rayelastic.graph.records.limits import MOST_TEXT
from rayelastic.runtime.port.data_port import dial
from rayelastic.runtime.port.secure_socket import tls_of

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

    from rayelastic.plan.exec_plan import PlanLink
    from rayelastic.runtime.port.data_port import PortAddress
    from rayelastic.runtime.values.specs import PESpec

DIAL_TIMEOUT = 6.0  # seconds for one handshake on a busy machine; a change is undone within 10 (R11)
FRAME_BYTES = 64 << 10  # of a link; the native core's default
WINDOW_BYTES = 4 << 20  # of a link: the most bytes in flight


class Dialler:
    """Opens authenticated connections for a PE.

    Args:
        spec: The PE.
    """

    def __init__(self, spec: PESpec) -> None:
        self._spec = spec

    def channel(self, channel: str, to_pe: str, address: PortAddress, epoch: int) -> socket.socket:
        """Open a channel to an element, at its address, in an epoch.

        Raises:
            LinkError: It doesn't listen, or rejects the connection.
        """
        return dial(
            address,
            job_id=self._spec.job_id,
            sender=self._spec.pe,
            receiver=to_pe,
            channel=channel,
            epoch=epoch,
            secret=self._spec.secret,
            timeout=DIAL_TIMEOUT,
        )

    def link(self, link: PlanLink, address: PortAddress, epoch: int) -> socket.socket:
        """Open a connection for a link."""
        return self.channel(f"link:{link.name}", link.to_pe, address, epoch)


def address_of(peers: Mapping[str, PortAddress | None], link: PlanLink) -> PortAddress:
    """Return the address of a link's end.

    Raises:
        LinkError: It has none.
    """
    address = peers[link.to_pe]
    if address is None:
        raise LinkError(f"{link.to_pe} has no data port", link=link.name)
    return address


def native_link(
    connection: socket.socket,
    name: str,
    peer: str,
    patience: float,
    frame_bytes: int = FRAME_BYTES,
    window_bytes: int = WINDOW_BYTES,
) -> _native.Link:
    """Make a link of a connection, and own that from now on.

    Args:
        connection: An authenticated connection.
        name: The link's name.
        peer: The element at the other end.
        patience: Seconds of silence that count as a loss.
        frame_bytes: The approximate size of a frame.
        window_bytes: The most bytes in flight.
    """
    tls, fd = tls_of(connection), connection.detach()
    return _native.Link(
        fd,
        name=name,
        peer=peer,
        frame_bytes=frame_bytes,
        window_bytes=window_bytes,
        most_text=MOST_TEXT,
        silence=patience,
        tls=tls,
    )
