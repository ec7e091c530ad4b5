"""How a processing element opens connections to others, and makes links of connections. Keeps none of them."""

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
FRAME_BYTES = 64 << 10  # of a link, as the native core has them by default
WINDOW_BYTES = 4 << 20  # of a link: what may be under way


class Dialler:
    """Opens authenticated connections in the name of a processing element.

    Args:
        spec: of the processing element.
    """

    def __init__(self, spec: PESpec) -> None:
        self._spec = spec

    def channel(self, channel: str, to_pe: str, address: PortAddress, epoch: int) -> socket.socket:
        """Open one to an element, which listens at an address, in an epoch.

        Raises:
            LinkError: it doesn't listen, or refuses.
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
        """Open one for a link."""
        return self.channel(f"link:{link.name}", link.to_pe, address, epoch)


def address_of(peers: Mapping[str, PortAddress | None], link: PlanLink) -> PortAddress:
    """Return where the end of a link listens.

    Raises:
        LinkError: it doesn't.
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
        connection: authenticated.
        name: of the link.
        peer: the element at the other end.
        patience: seconds of silence that count as a loss.
        frame_bytes: of a frame, about.
        window_bytes: that may be under way.
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
