"""The keyed state of a PE, as it is sent to and received from others while keys migrate (J16).

Owns the stores of its operators. `state_transfer` has the protocol; the coordinator decides which keys migrate.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from rayelastic.errors import RayelasticError
from rayelastic.runtime.element.state_transfer import Ranges, StateStores, receive_state, send_state
from rayelastic.runtime.port.data_port import Hello, PortAddress, derive_secret

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from rayelastic.runtime.values.specs import PESpec

_log = logging.getLogger(__name__)

STATE_CHANNEL = "state"


class StateExchange:
    """Sends keyed state of one PE, whose operators have been built, and receives that of others.

    Args:
        spec: The PE.
        dial: Opens a connection: for a channel, to an element, at its address, in an epoch.
        stores: The stores of the operators.
    """

    def __init__(
        self, spec: PESpec, dial: Callable[[str, str, PortAddress, int], socket.socket], stores: StateStores
    ) -> None:
        self._spec = spec
        self._dial = dial
        self.stores = stores

    def send(
        self, operators: Sequence[str], ranges: Ranges, to_pe: str, address: PortAddress, epoch: int
    ) -> tuple[int, int]:
        """Copy the state of some keys to another PE; it stays here too.

        Args:
            operators: The operators with the state.
            ranges: Ranges of the keys' hashes, both ends included.
            to_pe: The receiving element.
            address: Its address.
            epoch: The change's epoch.

        Returns:
            The number of keys that it received, and the bytes of their state.

        Raises:
            LinkError: It is lost, or rejects the state.
        """
        known = [operator for operator in operators if operator in self.stores]
        connection = self._dial(STATE_CHANNEL, to_pe, address, epoch)
        return send_state(connection, self._key(self._spec.pe, to_pe, epoch), self.stores, known, ranges)

    def arrives(self, connection: socket.socket, hello: Hello) -> bool:
        """Accept a connection that brings keys, in a thread of its own; return whether it is one."""
        if hello.channel.partition(":")[0] != STATE_CHANNEL:
            return False
        threading.Thread(target=self.receive, args=(connection, hello), daemon=True).start()
        return True

    def receive(self, connection: socket.socket, hello: Hello) -> None:
        """Receive the state of keys; the end of the connection reports any failure to the sender."""
        key = self._key(hello.sender, self._spec.pe, hello.epoch)
        try:
            receive_state(connection, key, self.stores)
        except (RayelasticError, ValueError, TimeoutError, KeyError) as error:
            _log.warning("'%s' couldn't take state from '%s': %s", self._spec.pe, hello.sender, error)

    def _key(self, sender: str, receiver: str, epoch: int) -> bytes:
        return derive_secret(self._spec.secret, f"{STATE_CHANNEL}:{sender}>{receiver}@{epoch}")
