"""Transfers keyed state from one PE to another, directly and in chunks (J16, J33).

It uses a separate connection, whose handshake has proved the job's secret. Every frame is signed with a key that is
derived for this transfer alone. The state of Python operators is pickled. It is unpickled only after its signature was
checked, and only in an element of the same job (reliability rule D5). Other state is read by its layout and trusted no
more than tuples on a link (D6). A signed checksum suffices, which is a hundred times as fast. An operator is held only
while a chunk of its state is searched, read, written or dropped. State that doesn't change while no tuple arrives is
read without that.

    frame    length of the body (4), sequence (4), operator (2), kind (1), HMAC-SHA256 of these and the body, or of
             these and its CRC-32C for a chunk without pickled data (32), body
    begin    number of hash ranges (4), these (16 each), the total number of keys to send (8), names of operators;
             the receiver drops keys of these ranges from an earlier attempt
    chunk    an export of the operator's state
    end      the receiver answers with an end frame whose sequence is the number of keys that it received
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import logging
import socket
import struct
import threading
import time
from enum import Enum
from typing import TYPE_CHECKING

from rayelastic import _native
from rayelastic.errors import LinkError, RayelasticError, StateError
from rayelastic.errors.invariants import invariant
from rayelastic.runtime.port.handshake import derive_secret

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rayelastic.runtime.port.data_port import Hello, PortAddress
    from rayelastic.runtime.values.specs import PESpec

_log = logging.getLogger(__name__)

STATE_CHANNEL = "state"
CHUNK_BYTES = 1 << 20  # of state that is read or written while its operator is held
MOST_BYTES = 64 << 20  # of a frame: the state of one key may be larger than a chunk
LOOKED_AT_BYTES = 256  # the approximate size of a key when a few are read
CHUNK_KEYS = 1 << 12  # that are dropped while their operator is held
CHUNK_PLACES = 1 << 16  # that are searched for keys while their operator is held
PAUSE_TIMEOUT = 10.0  # seconds for an operator to reach its safe point
REST = 0.5  # of the length of a pause: the least time that the operator runs until the next one
SILENCE = 30.0  # seconds without a byte after which the other side is lost

Ranges = tuple[tuple[int, int], ...]

_HEADER = struct.Struct("<IIHB")
_COUNT = struct.Struct("<I")
_KEYS = struct.Struct("<Q")
_RANGE = struct.Struct("<QQ")
_CHECKSUM = struct.Struct("<I")
_MAC_BYTES = 32


class Kind(Enum):
    """The kind of a frame."""

    BEGIN = 1
    CHUNK = 2
    END = 3


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


class StateStores:
    """The keyed state of one PE's operators, to be accessed while it runs.

    Args:
        stores: {operator: (its state, a function that pauses it; None: it doesn't run)}.
    """

    def __init__(self, stores: Mapping[str, tuple[_native.KeyedState, _native.OperatorPause | None]]) -> None:
        self._stores = stores
        self._lock = threading.Lock()  # the end of one operator's pause would end another's
        self._given: dict[str, tuple[Ranges, _native.KeySelection]] = {}  # the last keys that were read, by operator
        self._came: dict[str, set[tuple[int, int]]] = {name: set() for name in stores}  # ranges whose keys came here

    def __contains__(self, operator: object) -> bool:
        return operator in self._stores

    def is_pickled(self, operator: str) -> bool:
        """Return whether the state of an operator holds Python values."""
        return self._stores[operator][0].pickled

    def chunks(self, operator: str, ranges: Ranges) -> Iterator[bytes]:
        """Yield the state of the keys in some hash ranges, for which no tuple arrives meanwhile, chunk by chunk."""
        keys = self._selected(operator, ranges)
        self._given[operator] = ranges, keys
        state, pause = self._stores[operator]
        if state.exports_aside:
            pause = None
        at = 0
        while True:
            with self._lock:
                chunk, at = state.export_chunk(keys, at, CHUNK_BYTES, pause)
            yield chunk
            if at == 0:
                return

    def look(self, operator: str, ranges: Ranges, most: int) -> list[bytes]:
        """Export about `most` keys in some hash ranges, each read at a safe point; they stay here.

        Raises:
            StateError: The counted keys don't fit into its state.
        """
        if operator not in self._stores:
            return []
        state, pause = self._stores[operator]
        if pause is not None:
            try:
                with self._pace(), self._lock:
                    pause.take_in_parts()
            except _native.StateError as error:
                raise StateError(
                    f"{error}", operator=operator, hint="The job fails by it, too: see its failure"
                ) from None
        chunks: list[bytes] = []
        found_keys = place = 0
        while True:
            keys, at = _native.KeySelection(ranges), 0
            with self._pace(), self._lock:
                place = state.select_chunk(keys, place, CHUNK_PLACES, pause)
            while found_keys < most:
                with self._pace(), self._lock:
                    chunk, at = state.export_chunk(keys, at, min(CHUNK_BYTES, most * LOOKED_AT_BYTES), pause)
                if count := _native.keys_in(chunk):
                    chunks.append(chunk)
                    found_keys += count
                if at == 0:
                    break
            if place == 0 or found_keys >= most:
                return chunks

    def expect(self, operator: str, ranges: Ranges, keys: int) -> None:
        """Prepare to receive the keys in some hash ranges: drop those of an earlier attempt.

        Args:
            operator: The operator.
            ranges: Ranges of hashes, both ends included.
            keys: The approximate final number of keys, if there are none now.
        """
        self._given.pop(operator, None)  # it doesn't cover new keys
        if _overlap(self._came[operator], ranges):
            self.drop(operator, ranges)
        state, pause = self._stores[operator]
        if state.size == 0:
            with self._lock:
                state.reserve_more(keys, pause)

    def take(self, operator: str, ranges: Ranges, chunk: bytes) -> int:
        """Add keys of some hash ranges to the state of an operator; return how many."""
        state, pause = self._stores[operator]
        with self._lock:
            self._came[operator].update(ranges)
            count = state.import_(chunk, pause)
        invariant(count == _native.keys_in(chunk), "an import adds the keys of its chunk", operator, count)
        return count

    def drop(self, operator: str, ranges: Ranges) -> int:
        """Drop the keys in some hash ranges; return how many there were."""
        if operator not in self._stores:
            return 0
        given, keys = self._given.pop(operator, (None, None))
        if keys is None or given != ranges:
            keys = self._selected(operator, ranges)
        state, pause = self._stores[operator]
        with self._lock:
            self._came[operator].difference_update(ranges)  # what comes from now on stays to be dropped
        dropped = at = 0
        while True:
            with self._pace(), self._lock:
                count, at = state.remove_chunk(keys, at, CHUNK_KEYS, pause)
            dropped += count
            if at == 0:
                return dropped

    def _selected(self, operator: str, ranges: Ranges) -> _native.KeySelection:
        state, pause = self._stores[operator]
        keys, at = _native.KeySelection(ranges), 0
        while True:
            with self._pace(), self._lock:
                at = state.select_chunk(keys, at, CHUNK_PLACES, pause)
            if at == 0:
                return keys

    @staticmethod
    @contextlib.contextmanager
    def _pace() -> Iterator[None]:
        """Let an operator run after a pause, so that its tuples don't wait for all pauses in a row."""
        began = time.monotonic()
        yield
        time.sleep(REST * (time.monotonic() - began))

    def size(self, operators: Sequence[str]) -> tuple[int, int]:
        """Return the keys and the bytes of some operators; of those without state here 0."""
        states = [self._stores[operator][0] for operator in operators if operator in self._stores]
        return sum(state.size for state in states), sum(state.used_bytes for state in states)


def send_state(
    connection: socket.socket, key: bytes, stores: StateStores, operators: Sequence[str], ranges: Ranges
) -> tuple[int, int]:
    """Send the state of some keys and wait until it has been received.

    Args:
        connection: To the receiving element; closed afterwards.
        key: Signs the frames.
        stores: The state; it stays there.
        operators: The operators with the state.
        ranges: Ranges of hashes, both ends included.

    Returns:
        The number of keys that the receiver got, and the bytes of their state.

    Raises:
        LinkError: The receiver is lost, or rejects the state.
    """
    with contextlib.closing(connection), _lost_as_link_error():
        connection.settimeout(SILENCE)
        _send(connection, key, 0, 0, Kind.BEGIN, _beginning(operators, ranges, stores.size(operators)[0]))
        sequence = size = keys = 0
        for number, operator in enumerate(operators):
            for chunk in stores.chunks(operator, ranges):
                sequence += 1
                size += len(chunk)
                keys += _native.keys_in(chunk)
                _send(connection, key, sequence, number, Kind.CHUNK, chunk, by_checksum=not stores.is_pickled(operator))
        _send(connection, key, sequence + 1, 0, Kind.END, b"")
        taken, _, kind, _ = _receive(connection, key, ())
        if kind is not Kind.END:
            raise LinkError("the receiver of state sent an unexpected answer")
        if taken != keys:
            raise LinkError(f"the receiver of state has {taken} of {keys} keys")
        return taken, size


def receive_state(connection: socket.socket, key: bytes, stores: StateStores) -> int:
    """Receive what `send_state` sends.

    Raises:
        LinkError: The sender is lost, or a frame's signature is wrong.
    """
    with contextlib.closing(connection), _lost_as_link_error():
        connection.settimeout(SILENCE)
        _, _, kind, body = _receive(connection, key, ())
        if kind is not Kind.BEGIN:
            raise LinkError("a transfer of state doesn't start with its keys")
        operators, ranges, keys = _begun(body)
        by_checksum = [not stores.is_pickled(operator) for operator in operators]
        for operator in operators:
            stores.expect(operator, ranges, keys)
        taken = expected = 0
        while True:
            sequence, number, kind, body = _receive(connection, key, by_checksum)
            expected += 1
            if sequence != expected or kind is Kind.BEGIN or number >= max(1, len(operators)):
                raise LinkError("a frame of state is out of order")
            if kind is Kind.END:
                _send(connection, key, taken, 0, Kind.END, b"")
                return taken
            taken += stores.take(operators[number], ranges, body)


def _beginning(operators: Sequence[str], ranges: Ranges, keys: int) -> bytes:
    invariant(all(low <= high for low, high in ranges), "ranges of hashes aren't empty", ranges)
    limits = (_RANGE.pack(*one) for one in ranges)
    return b"".join((_COUNT.pack(len(ranges)), *limits, _KEYS.pack(keys), "\0".join(operators).encode()))


def _begun(body: bytes) -> tuple[list[str], Ranges, int]:
    (count,) = _COUNT.unpack_from(body)
    at = _COUNT.size + count * _RANGE.size
    limits = tuple(_RANGE.iter_unpack(body[_COUNT.size : at]))
    (keys,) = _KEYS.unpack_from(body, at)
    names = body[at + _KEYS.size :].decode()
    return names.split("\0") if names else [], tuple((low, high) for low, high in limits), keys


def _overlap(some: Iterable[tuple[int, int]], others: Ranges) -> bool:
    return any(low <= to and start <= high for low, high in some for start, to in others)


def _send(
    connection: socket.socket,
    key: bytes,
    sequence: int,
    operator: int,
    kind: Kind,
    body: bytes,
    *,
    by_checksum: bool = False,
) -> None:
    header = _HEADER.pack(len(body), sequence, operator, kind.value)
    connection.sendall(header + _signature(key, header, body, by_checksum=by_checksum))
    if body:  # the other side may close after the end, so that even an empty send fails
        connection.sendall(body)


def _receive(connection: socket.socket, key: bytes, by_checksum: Sequence[bool]) -> tuple[int, int, Kind, bytes]:
    """Receive a frame; `by_checksum` says for each operator whether its chunks are signed by their checksum."""
    header = _exactly(connection, _HEADER.size)
    length, sequence, operator, kind = _HEADER.unpack(header)
    signature = _exactly(connection, _MAC_BYTES)
    if length > MOST_BYTES:
        raise LinkError(f"a frame of state has {length} bytes", hint=f"At most {MOST_BYTES} are allowed")
    body = _exactly(connection, length)
    short = kind == Kind.CHUNK.value and operator < len(by_checksum) and by_checksum[operator]
    if not hmac.compare_digest(signature, _signature(key, header, body, by_checksum=short)):
        raise LinkError("a frame of state has a wrong signature")
    return sequence, operator, Kind(kind), body


def _signature(key: bytes, header: bytes, body: bytes, *, by_checksum: bool) -> bytes:
    signed = hmac.new(key, header, hashlib.sha256)
    signed.update(_CHECKSUM.pack(_native.crc32c(body)) if by_checksum else body)
    return signed.digest()


def _exactly(connection: socket.socket, length: int) -> bytes:
    body = bytearray(length)
    view = memoryview(body)
    while view:
        got = connection.recv_into(view)
        if got == 0:
            raise LinkError("the peer of a state transfer closed the connection")
        view = view[got:]
    return bytes(body)


@contextlib.contextmanager
def _lost_as_link_error() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LinkError(f"a state transfer broke: {error}") from error
