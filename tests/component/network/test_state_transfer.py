"""Keyed state over a socket: all of it arrives, and a byte that was changed is noticed, pickled or not (D5, D6)."""

from __future__ import annotations

import pickle
import socket
import struct
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from rayelastic import _native
from rayelastic.errors import LinkError
from rayelastic.graph import Schema
from rayelastic.runtime.element.state_transfer import StateStores, receive_state, send_state
from rayelastic.runtime.operators.native_schema import native_schema

SCHEMA = native_schema(Schema.of({"key": int}))
COUNT = native_schema(Schema.of({"rows": int}))
KEY = bytes(range(32))
ALL = ((0, (1 << 64) - 1),)
HEADER_BYTES = 11 + 32


def stores(state: _native.KeyedState) -> StateStores:
    return StateStores({"count": (state, None)})


def empty(pickled: bool) -> _native.KeyedState:
    if pickled:
        return _native.KeyedState.objects(SCHEMA, ["key"], list)
    return _native.KeyedState(SCHEMA, ["key"], COUNT, bytes(8))


def filled(pickled: bool, keys: int = 3000) -> _native.KeyedState:
    state = empty(pickled)
    body = b""
    for key in range(keys):
        value = pickle.dumps([key])
        kept = struct.pack("<I", len(value)) + value if pickled else struct.pack("<q", key)
        body += struct.pack("<IBq", 8, 0, key) + kept
    magic = b"RELPICK1" if pickled else b"RELKEYS1"
    assert state.import_(magic + struct.pack("<QQQ", state.layout, keys, len(body)) + body) == keys
    return state


def relayed(source: socket.socket, target: socket.socket, changed: int) -> None:
    """Hands on what comes, with one byte changed; -1: none."""
    at = 0
    while data := source.recv(1 << 16):
        passed = bytearray(data)
        if at <= changed < at + len(data):
            passed[changed - at] ^= 1
        at += len(data)
        target.sendall(passed)


def transfer(state: _native.KeyedState, into: _native.KeyedState, changed: int) -> tuple[Any, Any]:
    """What both sides come to: a result, or a LinkError."""
    near, middle = socket.socketpair()
    beyond, far = socket.socketpair()

    def outcome(work: Any, *arguments: Any) -> Any:
        try:
            return work(*arguments)
        except LinkError as error:
            return error

    with ThreadPoolExecutor(4) as pool, near, middle, beyond, far:
        sending = pool.submit(outcome, send_state, near, KEY, stores(state), ["count"], ALL)
        receiving = pool.submit(outcome, receive_state, far, KEY, stores(into))
        there = pool.submit(relayed, middle, beyond, changed)
        back = pool.submit(relayed, beyond, middle, -1)
        received = receiving.result(30)
        if isinstance(received, LinkError):
            middle.shutdown(socket.SHUT_RDWR)
        sent = sending.result(30)
        for end in (middle, beyond):
            end.shutdown(socket.SHUT_RDWR)
        for one in (there, back):
            one.exception(30)
    return sent, received


@pytest.mark.parametrize("pickled", [False, True])
def test_all_of_it_arrives(pickled: bool) -> None:
    state, into = filled(pickled), empty(pickled)
    (taken, size), received = transfer(state, into, -1)
    assert taken == received == into.size == state.size == 3000
    assert size > 3000 * 20
    assert into.export() == state.export()


@pytest.mark.parametrize("pickled", [False, True])
@pytest.mark.parametrize("changed", [HEADER_BYTES + 300, HEADER_BYTES + 20_000, 5, 20])
def test_a_changed_byte_is_noticed(pickled: bool, changed: int) -> None:
    into = empty(pickled)
    sent, received = transfer(filled(pickled), into, changed)
    assert isinstance(sent, LinkError)
    assert "wrong signature" in str(received)
    assert into.size == 0


def test_what_came_of_an_earlier_attempt_is_dropped() -> None:
    half = (1 << 63) - 1
    low, high = ((0, half),), ((half + 1, (1 << 64) - 1),)
    state = filled(False)
    lower, upper = state.export(0, half), state.export(half + 1)
    into = stores(empty(False))
    for ranges, chunk in ((low, lower), (high, upper), (low, lower)):
        into.expect("count", ranges, 3000)
        assert into.take("count", ranges, chunk) > 1000
    assert into.size(["count"])[0] == 3000
    assert into.drop("count", low) > 1000
    assert into.take("count", low, lower) > 1000, "of a transfer that was given up, and still ran"
    into.expect("count", low, 3000)
    assert into.take("count", low, lower) > 1000
    assert into.drop("count", low) + into.drop("count", high) == 3000
