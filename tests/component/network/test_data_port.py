"""The data port over real sockets: who gets in, who doesn't, and that nobody can make it hang (D1-D3, R6)."""

import contextlib
import errno
import logging
import os
import queue
import random
import secrets
import socket
import stat
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from rayelastic.errors import ConfigError, LinkError
from rayelastic.runtime.port.data_port import (
    DataPort,
    HandshakeError,
    Hello,
    PortAddress,
    PortLimits,
    Refusal,
    derive_secret,
    dial,
)
from rayelastic.runtime.port.handshake import PREFIX_BYTES, REPLY_BYTES, Dialler
from tests.raising import raises

SECRET = secrets.token_bytes(32)


class Accepted:
    """What a port under test handed over."""

    def __init__(self) -> None:
        self.queue: queue.Queue[tuple[socket.socket, Hello]] = queue.Queue()
        self.open: list[socket.socket] = []

    def __call__(self, connection: socket.socket, hello: Hello) -> None:
        if hello.channel == "link:unknown":
            raise KeyError(hello.channel)
        self.queue.put((connection, hello))

    def get(self) -> tuple[socket.socket, Hello]:
        connection, hello = self.queue.get(timeout=5)
        self.open.append(connection)
        return connection, hello


@pytest.fixture
def accepted() -> Any:
    accepted = Accepted()
    yield accepted
    while not accepted.queue.empty():
        accepted.get()
    for connection in accepted.open:
        connection.close()


@pytest.fixture
def make_port(accepted: Any) -> Any:
    ports: list[DataPort] = []

    def make(**options: Any) -> DataPort:
        ports.append(DataPort("job", "pe-1", SECRET, "127.0.0.1", accepted, **options))
        return ports[-1]

    yield make
    for port in ports:
        port.close()


def tcp_only(port: DataPort) -> PortAddress:
    return PortAddress(port.address.host, port.address.port)


def dialled(address: PortAddress, **changes: Any) -> socket.socket:
    names = {"job_id": "job", "sender": "pe-0", "receiver": "pe-1", "channel": "link:a->b"}
    return dial(address, **{**names, "epoch": 0, "secret": SECRET, "timeout": 5.0, **changes})


def stranger(port: DataPort, unix: bool = False) -> socket.socket:
    if unix:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(port.address.unix_path)
    else:
        connection = socket.create_connection((port.address.host, port.address.port))
    connection.settimeout(5)
    return connection


def until(port: DataPort, counter: str, value: int) -> None:
    """Waits for the port's thread to have counted."""
    deadline = time.monotonic() + 10
    while port.counters[counter] < value:
        assert time.monotonic() < deadline, port.counters
        os.sched_yield()
    assert port.counters[counter] == value, port.counters


def rest(connection: socket.socket) -> bytes:
    """Everything until the other side closes."""
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(4096):
            data += part
    return data


@pytest.mark.parametrize("way", ["unix", "tcp"])
def test_right_secret_connects_and_not_a_byte_is_lost(make_port: Any, accepted: Any, way: Any) -> None:
    port = make_port()
    with dialled(port.address if way == "unix" else tcp_only(port)) as near:
        assert near.family == (socket.AF_UNIX if way == "unix" else socket.AF_INET)
        near.sendall(b"first bytes")
        far, hello = accepted.get()
        assert hello == Hello("pe-0", "pe-1", "link:a->b", 0)
        far.settimeout(5)
        assert far.recv(64) == b"first bytes"
        far.sendall(b"and back")
        assert near.recv(64) == b"and back"
        assert near.gettimeout() is None
        until(port, "accepted", 1)


@pytest.mark.parametrize("unix", [True, False])
def test_wrong_secret_is_refused_and_counted(make_port: Any, accepted: Any, unix: Any) -> None:
    port = make_port()
    with pytest.raises(HandshakeError) as caught:
        dialled(port.address if unix else tcp_only(port), secret=secrets.token_bytes(32))
    assert caught.value.refusal is Refusal.SECRET
    until(port, "secret", 1)
    assert accepted.queue.empty()


def test_a_port_with_another_secret_is_not_trusted(accepted: Any) -> None:
    impostor = DataPort("job", "pe-1", bytes(32), "127.0.0.1", accepted)
    with contextlib.closing(impostor), pytest.raises(HandshakeError):
        dialled(impostor.address)


def test_ingest_has_a_secret_of_its_own(make_port: Any, accepted: Any) -> None:
    port = make_port()
    with dialled(port.address, channel="ingest:lines", secret=derive_secret(SECRET, "ingest:lines")):
        assert accepted.get()[1].channel == "ingest:lines"
    with pytest.raises(HandshakeError):
        dialled(port.address, channel="ingest:lines")


def test_garbage_wrong_lengths_and_versions_are_refused_and_counted(make_port: Any) -> None:
    port = make_port()
    good = Dialler("job", Hello("pe-0", "pe-1", "link:a->b", 0), SECRET).opening
    for expected, counter in (
        (b"GET / HTTP/1.1\r\nHost: somewhere\r\n" + bytes(64), "garbage"),
        (good[:6] + b"\xff\xff" + good[8:], "length"),
        (good[:6] + b"\x01\x00" + good[8:], "length"),
        (good[:PREFIX_BYTES] + b"\xff" + good[PREFIX_BYTES + 1 :], "length"),
        (good[:4] + b"\x63" + good[5:], "version"),
    ):
        before = port.counters[counter]
        with stranger(port) as connection:
            connection.sendall(expected)
            assert len(rest(connection)) <= 1
        until(port, counter, before + 1)


def test_slow_and_dead_peers_are_dropped_at_the_deadline(make_port: Any, accepted: Any) -> None:
    port = make_port(limits=PortLimits(deadline=0.3))
    good = Dialler("job", Hello("pe-0", "pe-1", "link:a->b", 0), SECRET).opening
    with stranger(port) as silent, stranger(port, unix=True) as slow, dialled(port.address):
        slow.sendall(good[:10])
        accepted.get()  # the third got in while both were pending
        rest(silent), rest(slow)
        until(port, "timeout", 2)


def test_a_peer_that_stops_in_the_middle_is_counted(make_port: Any) -> None:
    port = make_port()
    with stranger(port) as connection:
        connection.sendall(Dialler("job", Hello("pe-0", "pe-1", "link:a->b", 0), SECRET).opening)
        assert len(connection.recv(REPLY_BYTES)) > 0
    until(port, "lost", 1)


def test_replayed_handshakes_are_refused(make_port: Any, accepted: Any) -> None:
    port = make_port()
    dialler = Dialler("job", Hello("pe-0", "pe-1", "link:a->b", 0), SECRET)
    with stranger(port) as connection:
        connection.sendall(dialler.opening)
        connection.sendall(dialler.prove(connection.recv(REPLY_BYTES, socket.MSG_WAITALL)))
        assert connection.recv(1) == b"\0"
        accepted.get()
    with stranger(port) as connection:
        connection.sendall(dialler.opening)
        assert rest(connection) != b"\0"
    until(port, "replay", 1)


def test_old_epochs_are_refused(make_port: Any, accepted: Any) -> None:
    port = make_port(epoch=3)
    with pytest.raises(HandshakeError) as old:
        dialled(port.address, epoch=2)
    with dialled(port.address, epoch=3):
        accepted.get()
    port.advance(4)
    with pytest.raises(HandshakeError) as older:
        dialled(port.address, epoch=3)
    assert (old.value.refusal, older.value.refusal) == (Refusal.EPOCH, Refusal.EPOCH)
    until(port, "epoch", 2)


def test_another_job_or_processing_element_is_refused(make_port: Any) -> None:
    port = make_port()
    for changes in ({"job_id": "other"}, {"receiver": "pe-2"}):
        with pytest.raises(HandshakeError) as caught:
            dialled(port.address, **changes)
        assert caught.value.refusal is Refusal.IDENTITY
    until(port, "identity", 2)


def test_a_channel_that_nobody_serves_is_closed_and_counted(make_port: Any) -> None:
    port = make_port()
    with dialled(port.address, channel="link:unknown") as near:
        near.settimeout(5)
        assert rest(near) == b""
    until(port, "channel", 1)


def test_only_sixteen_wait_and_those_who_prove_in_time_get_in(make_port: Any, accepted: Any) -> None:
    port = make_port(limits=PortLimits(deadline=0.5))
    with contextlib.ExitStack() as open_connections:
        for _ in range(16):
            open_connections.enter_context(stranger(port, unix=True))
        with stranger(port) as one_too_many:
            assert len(rest(one_too_many)) <= 1
        until(port, "busy", 1)
        with dialled(port.address):  # tries again until the strangers have had their time
            accepted.get()
        until(port, "timeout", 16)


def test_many_diallers_at_once_all_get_in(make_port: Any, accepted: Any) -> None:
    port = make_port()
    near: list[socket.socket] = []
    threads = [threading.Thread(target=lambda: near.append(dialled(port.address, timeout=20.0))) for _ in range(48)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for _ in threads:
        accepted.get()
    for connection in near:
        connection.close()
    until(port, "accepted", 48)


def test_more_connections_a_second_than_allowed_are_refused(make_port: Any) -> None:
    port = make_port(limits=PortLimits(per_second=0.001, burst=3))
    for _ in range(3):
        with pytest.raises(HandshakeError):
            dialled(port.address, secret=bytes(32))
    with pytest.raises(HandshakeError) as caught:
        dialled(port.address, timeout=0.2)
    assert caught.value.refusal in (Refusal.BUSY, Refusal.TIMEOUT)
    assert port.counters["busy"] >= 1
    assert port.counters["secret"] == 3


def test_bad_handshakes_in_a_row_neither_crash_nor_hang_nor_grow(make_port: Any, accepted: Any) -> None:
    port = make_port(limits=PortLimits(per_second=1e6, burst=100_000))
    rng = random.Random(5)
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    good = Dialler("job", Hello("pe-0", "pe-1", "link:a->b", 0), SECRET).opening
    for _ in range(1500):
        data = bytearray(good)
        for _ in range(rng.randrange(4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        with stranger(port, unix=True) as connection, contextlib.suppress(OSError):
            connection.sendall(data[: rng.randrange(len(data) + 1)] + bytes(rng.randrange(40)))
            connection.shutdown(socket.SHUT_WR)
            rest(connection)
    assert accepted.queue.empty()
    with dialled(port.address):
        accepted.get()
    assert sum(port.counters.values()) == 1501
    accepted.open.pop().close()
    assert len(list(Path("/proc/self/fd").iterdir())) <= descriptors + 1


def test_all_interfaces_are_refused() -> None:
    for host in ("", "0.0.0.0", "::"):
        with raises(ConfigError, "open-address"):
            DataPort("job", "pe-1", SECRET, host, lambda connection, hello: None)


def test_it_listens_on_the_given_address_alone(make_port: Any) -> None:
    port = make_port()
    assert port.address.host == "127.0.0.1"
    with pytest.raises(OSError) as caught:
        socket.create_connection(("127.0.0.2", port.address.port))
    assert caught.value.errno == errno.ECONNREFUSED


def test_the_unix_socket_is_private_and_goes_with_the_port(make_port: Any) -> None:
    port = make_port()
    path = Path(port.address.unix_path)
    assert len(os.fsencode(path)) < 107
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    port.close()
    assert not path.parent.exists()


def test_a_directory_that_is_too_long_for_a_unix_socket_leaves_tcp(
    make_port: Any, accepted: Any, tmp_path: Path
) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    port = make_port(unix_directory=str(deep))
    assert port.address.unix_path == ""
    assert list(deep.iterdir()) == []
    with dialled(port.address):
        accepted.get()


def test_a_stale_unix_path_falls_back_to_tcp(make_port: Any, accepted: Any, tmp_path: Path) -> None:
    port = make_port()
    stale = tmp_path / "s"
    stale.touch()
    with dialled(PortAddress(port.address.host, port.address.port, str(stale))) as near:
        assert near.family == socket.AF_INET
        accepted.get()


def test_a_unix_path_of_another_node_is_not_tried(make_port: Any) -> None:
    port = make_port()
    elsewhere = PortAddress("192.0.2.1", 9, port.address.unix_path)  # TEST-NET-1: nobody's address, and not this node's
    with pytest.raises(LinkError):
        dialled(elsewhere, timeout=0.2)
    assert port.counters["accepted"] == 0


def test_nobody_there_is_an_error_that_says_so(make_port: Any) -> None:
    port = make_port()
    address = port.address
    port.close()
    with raises(LinkError, "link-timeout"):
        dialled(address)


def test_a_peer_that_accepts_and_says_nothing_is_a_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute, pytest.raises(HandshakeError) as caught:
        dialled(PortAddress("127.0.0.1", mute.getsockname()[1]), timeout=0.2)
    assert caught.value.refusal is Refusal.TIMEOUT


def test_close_ends_the_thread_and_the_pending_ones_and_may_be_repeated(make_port: Any) -> None:
    port = make_port()
    with stranger(port) as connection:
        port.close()
        assert len(rest(connection)) <= 1
    port.close()
    assert "rayelastic-port-pe-1" not in [thread.name for thread in threading.enumerate()]


def test_the_secret_is_shown_nowhere(make_port: Any, caplog: Any) -> None:
    caplog.set_level(logging.DEBUG)
    port = make_port()
    with dialled(port.address, channel="link:unknown") as near:
        near.settimeout(5)
        rest(near)
    with pytest.raises(HandshakeError) as caught:
        dialled(port.address, secret=bytes(32))
    shown = repr(port) + str(port) + repr(port.address) + repr(caught.value) + str(caught.value) + caplog.text
    assert SECRET.hex() not in shown
    assert repr(SECRET) not in shown


def test_a_peer_may_wake_the_thread_before_close_does(make_port: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    port = make_port()
    stranger(port).close()
    until(port, "lost", 1)  # the thread runs
    waker = port._waker

    class Overtaken:
        def __getattr__(self, name: str) -> Any:
            with contextlib.suppress(ConnectionError):  # its listener may end before all of the connection is made
                stranger(port).close()  # the thread wakes, sees that it's to end, and ends
            port._thread.join(10)
            assert not port._thread.is_alive()
            return getattr(waker, name)

    monkeypatch.setattr(port, "_waker", Overtaken())
    port.close()
