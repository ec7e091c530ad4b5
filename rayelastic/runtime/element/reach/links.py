"""The links of a PE that stay from its start to its end; those of replicas change (routing).

Owns them, and knows which incoming ones are missing.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from rayelastic.errors import ErrorCode, LinkError
from rayelastic.runtime.element.reach.dialling import address_of, native_link

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping

    from rayelastic import _native
    from rayelastic.plan.exec_plan import PlanLink
    from rayelastic.runtime.port.data_port import Hello, PortAddress
    from rayelastic.runtime.values.specs import PESpec

ARRIVAL_TIMEOUT = 60.0  # seconds for the producers of the links to connect; they may still be compiling


class StandingLinks:
    """The standing links that enter and leave one PE.

    Args:
        spec: The PE.
        dial: Opens an authenticated connection to another one, for a link.
    """

    def __init__(self, spec: PESpec, dial: Callable[[PlanLink, PortAddress, int], socket.socket]) -> None:
        self._spec = spec
        self._dial = dial
        self._links: dict[str, _native.Link] = {}
        self._awaited = {link.name: link for link in spec.links_in}
        self._changed = threading.Condition()

    @property
    def by_name(self) -> dict[str, _native.Link]:
        """The existing links."""
        with self._changed:
            return dict(self._links)

    def connect(self, peers: Mapping[str, PortAddress | None]) -> None:
        """Open the outgoing links.

        Args:
            peers: The address of each PE.

        Raises:
            LinkError: A peer doesn't listen, or rejects the connection.
        """
        for link in self._spec.links_out:
            self._keep(link.name, self._dial(link, address_of(peers, link), self._spec.epoch), link.to_pe)

    def arrives(self, connection: socket.socket, hello: Hello) -> bool:
        """Accept a link that another PE has opened; return whether it is an expected one."""
        kind, _, name = hello.channel.partition(":")
        with self._changed:
            link = self._awaited.get(name) if kind == "link" else None
            if link is None or link.from_pe != hello.sender:
                return False
            self._keep(name, connection, hello.sender)
            del self._awaited[name]
            self._changed.notify_all()
            return True

    def wait_arrived(self) -> None:
        """Wait until all incoming links have arrived.

        Raises:
            LinkError: One didn't arrive.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: not self._awaited, ARRIVAL_TIMEOUT):
                missing = ", ".join(f"{link.name} from {link.from_pe}" for link in self._awaited.values())
                raise LinkError(
                    f"{self._spec.pe} still waits for {missing}",
                    hint="Check for a firewall between the nodes",
                    code=ErrorCode.LINK_TIMEOUT,
                )

    def close(self) -> None:
        """Unblock the threads that wait in a link."""
        for link in self.by_name.values():
            link.interrupt()

    def _keep(self, name: str, connection: socket.socket, peer: str) -> None:
        link = native_link(connection, name, peer, self._spec.config.network.patience)
        with self._changed:
            self._links[name] = link
