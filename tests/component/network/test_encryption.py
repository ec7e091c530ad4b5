"""What goes from host to host is encrypted: links, rows that are pushed, state that moves."""

import contextlib
import hashlib
import hmac
import os
import pickle
import queue
import secrets
import shutil
import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rayelastic as rel
from rayelastic import _native
from rayelastic.errors import ConfigError
from rayelastic.graph import Schema
from rayelastic.job.starting import start
from rayelastic.runtime.element.state_transfer import StateStores, receive_state, send_state
from rayelastic.runtime.operators.native_schema import native_schema
from rayelastic.runtime.port import dialling, secure_socket
from rayelastic.runtime.port.data_port import DataPort, HandshakeError, PortAddress, PortLimits, Refusal, dial
from rayelastic.runtime.port.secure_socket import SecureSocket
from rayelastic.testing import Gate, script
from tests.raising import raises

pytestmark = pytest.mark.skipif(bool(_native.Tls.missing()), reason=_native.Tls.missing() or "OpenSSL is there")

SECRET = secrets.token_bytes(32)
SUITE = "TLSv1.3 TLS_AES_128_GCM_SHA256"
MARKER = b"a marker that nobody on the way may see"
NAMES = {"job_id": "job", "sender": "pe-0", "receiver": "pe-1", "channel": "link:a->b"}
TIMEOUT = 10.0


class Tapped:
    """Somebody between two hosts, who keeps what passes, and can change it."""

    def __init__(self, behind: PortAddress) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._behind = behind
        self.address = PortAddress("127.0.0.1", self._listener.getsockname()[1], secure=behind.secure)
        self.seen = b""
        self.change: Callable[[bytes], bytes] = lambda data: data
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            near, _ = self._listener.accept()
            far = socket.create_connection((self._behind.host, self._behind.port))
            threading.Thread(target=self._pass, args=(far, near), daemon=True).start()
            self._pass(near, far)

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self.seen += data
                target.sendall(self.change(data))
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def port() -> Iterator[tuple[DataPort, "queue.Queue[socket.socket]"]]:
    arrived: queue.Queue[socket.socket] = queue.Queue()
    made = DataPort("job", "pe-1", SECRET, "127.0.0.1", lambda far, _: arrived.put(far), secure=True)
    with contextlib.closing(made):
        yield made, arrived


def over_tcp(port: DataPort) -> PortAddress:
    return replace(port.address, unix_path="")


def dialled(address: PortAddress, **changes: Any) -> socket.socket:
    return dial(address, **{**NAMES, "epoch": 0, "secret": SECRET, "timeout": TIMEOUT, **changes})


def test_nothing_that_passes_can_be_read_but_the_names(port: Any) -> None:
    made, arrived = port
    tapped = Tapped(over_tcp(made))
    with contextlib.closing(tapped), dialled(tapped.address) as near, arrived.get(timeout=TIMEOUT) as far:
        assert isinstance(near, SecureSocket)
        assert near.in_force == far.in_force == SUITE
        far.settimeout(TIMEOUT)
        for _ in range(1000):
            near.sendall(MARKER)
        received = b""
        while len(received) < 1000 * len(MARKER):
            received += far.recv(65536)
        assert received == MARKER * 1000
        far.sendall(MARKER)
        near.settimeout(TIMEOUT)
        assert near.recv(100) == MARKER
        assert len(tapped.seen) > 1000 * len(MARKER)
        assert MARKER not in tapped.seen
        assert MARKER[:16] not in tapped.seen


def test_the_same_without_encryption_can_be_read() -> None:
    """What the test above looks for is found where nothing hides it."""
    arrived: queue.Queue[socket.socket] = queue.Queue()
    made = DataPort("job", "pe-1", SECRET, "127.0.0.1", lambda far, _: arrived.put(far))
    tapped = Tapped(over_tcp(made))
    with contextlib.closing(made), contextlib.closing(tapped), dialled(tapped.address) as near:
        near.sendall(MARKER)
        with arrived.get(timeout=TIMEOUT) as far:
            far.settimeout(TIMEOUT)
            assert far.recv(100) == MARKER
        assert MARKER in tapped.seen


def test_what_is_changed_on_the_way_is_never_taken(port: Any) -> None:
    made, arrived = port
    tapped = Tapped(over_tcp(made))
    with contextlib.closing(tapped), dialled(tapped.address) as near, arrived.get(timeout=TIMEOUT) as far:
        far.settimeout(TIMEOUT)
        tapped.change = lambda data: data[:-1] + bytes([data[-1] ^ 1])
        near.sendall(MARKER)
        with pytest.raises(ConnectionAbortedError, match="encryption broke"):
            far.recv(100)


def test_what_stays_on_the_host_is_not_encrypted(port: Any) -> None:
    made, arrived = port
    with dialled(made.address) as near, arrived.get(timeout=TIMEOUT) as far:
        assert near.family == far.family == socket.AF_UNIX
        assert not isinstance(near, SecureSocket)
        assert not isinstance(far, SecureSocket)


def test_a_peer_that_does_not_encrypt_is_refused_and_counted(port: Any) -> None:
    made, arrived = port
    with dialled(replace(over_tcp(made), secure=False)) as near:
        near.sendall(MARKER * 10)
        near.settimeout(TIMEOUT)
        with contextlib.suppress(ConnectionResetError):
            while near.recv(4096):
                pass
    assert arrived.empty()
    assert made.counters["encryption"] == 1
    assert made.counters["accepted"] == 0


def test_the_key_is_of_one_connection_and_of_the_secret(port: Any) -> None:
    """Whoever knows the nonces but not the secret can't speak for either side."""
    made, _ = port
    tapped = Tapped(over_tcp(made))
    with contextlib.closing(tapped), dialled(tapped.address):
        seen = tapped.seen
    transcript = seen[: seen.index(b"link:a->b") + len(b"link:a->b")]
    guessed = hmac.digest(bytes(32), b"rayelastic key\0" + transcript, hashlib.sha256)
    near, far = socket.socketpair()
    with SecureSocket(near, guessed, server=False) as dialler, SecureSocket(far, SECRET, server=True) as listener:
        assert dialler.step() == "reads"
        with pytest.raises(ConnectionAbortedError):
            listener.step()
        with pytest.raises(ConnectionAbortedError):
            dialler.step()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_a_certificate_does_not_stand_in_for_the_key(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-subj",
        "/CN=x",
    ]
    subprocess.run([*made, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True, timeout=30)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    near, far = socket.socketpair()
    impostor = threading.Thread(target=_serve_by_certificate, args=(context, far))
    impostor.start()
    with SecureSocket(near, SECRET, server=False) as dialler, pytest.raises(OSError, match="encrypted|certificate"):
        dialler.shake_hands(time.monotonic() + TIMEOUT)
    impostor.join()


def _serve_by_certificate(context: ssl.SSLContext, far: socket.socket) -> None:
    with far, contextlib.suppress(OSError), context.wrap_socket(far, server_side=True) as served:
        served.recv(1)


def test_a_peer_that_goes_away_shows_as_the_end(port: Any) -> None:
    made, arrived = port
    with dialled(over_tcp(made)) as near, arrived.get(timeout=TIMEOUT) as far:
        near.close()
        far.settimeout(TIMEOUT)
        assert far.recv(1) == b""


def test_state_that_moves_is_not_seen(port: Any) -> None:
    made, arrived = port
    tapped = Tapped(over_tcp(made))
    schema = native_schema(Schema.of({"key": int}))
    from_here, to_there = (_native.KeyedState.objects(schema, ["key"], list) for _ in range(2))
    value = pickle.dumps([MARKER])
    body = b"".join(struct.pack("<IBqI", 8, 0, key, len(value)) + value for key in range(100))
    assert from_here.import_(b"RELPICK1" + struct.pack("<QQQ", from_here.layout, 100, len(body)) + body) == 100
    with contextlib.closing(tapped), ThreadPoolExecutor(1) as pool:
        near = dialled(tapped.address)
        stores = StateStores({"count": (to_there, None)})
        taking = pool.submit(receive_state, arrived.get(timeout=TIMEOUT), SECRET, stores)
        everything = ((0, (1 << 64) - 1),)
        taken, _ = send_state(near, SECRET, StateStores({"count": (from_here, None)}), ["count"], everything)
        assert taken == taking.result(TIMEOUT) == to_there.size == 100
    assert MARKER not in tapped.seen


def test_a_slow_reader_makes_the_sender_wait_and_a_timeout_says_so(port: Any) -> None:
    made, arrived = port
    with dialled(over_tcp(made)) as near, arrived.get(timeout=TIMEOUT):
        near.settimeout(0.05)
        with pytest.raises(TimeoutError):
            near.sendall(bytes(64 << 20))


def test_a_peer_that_never_begins_to_encrypt_is_given_up() -> None:
    limits = PortLimits(deadline=0.2)
    made = DataPort("job", "pe-1", SECRET, "127.0.0.1", lambda far, _: far.close(), limits=limits, secure=True)
    with contextlib.closing(made), dialled(replace(over_tcp(made), secure=False)) as near:
        near.settimeout(TIMEOUT)
        near.recv(16)
        assert made.counters["timeout"] == 1


def test_a_job_says_what_is_in_force_and_its_links_are_as_they_were_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Unix socket is taken away, so that the PEs reach each other as from two hosts."""
    monkeypatch.setattr(dialling, "_is_here", lambda _: False)
    for secure, said in (
        (True, f"{SUITE} on 1 of 1 links"),
        (False, "off; rel.Network(secure=True) has it"),
    ):
        topology, gate = rel.Topology("numbers"), Gate()
        numbers = topology.source(script([(1,), gate, (2,)], {"n": int}), name="numbers")
        numbers.map(lambda t: t.n, name="same", schema={"n": int}, lane="python").sink(rel.list(), name="out")
        job = start(topology, rel.JobConfig(pes=2, network=rel.Network(secure=secure)))
        with contextlib.closing(job):
            assert [pe.encryption for pe in job.status.pes] == [said] * 2
            gate.open()
            assert [t.n for t in job.wait(timeout=60)["out"]] == [1, 2]


def _all_encrypted(said: str) -> bool:
    return said.startswith(f"{SUITE} on ") and "others" not in said


def test_links_to_replicas_are_encrypted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialling, "_is_here", lambda _: False)
    topology, gate, rows = rel.Topology("numbers"), Gate(), [(n,) for n in range(500)]
    numbers = topology.source(script([*rows[:100], gate, *rows[100:]], {"n": int}), name="numbers")
    numbers.key_by("n").aggregate(name="counts", count=rel.count()).sink(rel.list(), name="out")
    job = start(topology, rel.JobConfig(regions="manual", elasticity="off", network=rel.Network(secure=True)))
    with contextlib.closing(job):
        assert gate.wait_reached(TIMEOUT)
        job.rescale("r1", 2)
        deadline = time.monotonic() + TIMEOUT
        while not all(_all_encrypted(pe.encryption) for pe in job.status.pes):  # the status of before
            assert time.monotonic() < deadline, job.status
            os.sched_yield()
        gate.open()
        assert sorted(t.n for t in job.wait(timeout=60)["out"]) == list(range(500))


def test_a_job_that_has_to_be_encrypted_does_not_start_where_it_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    class Without:
        @staticmethod
        def missing() -> str:
            return "there is no OpenSSL"

    monkeypatch.setattr(secure_socket._native, "Tls", Without)  # type: ignore[attr-defined]
    topology = rel.Topology("numbers")
    topology.source(rel.rows([(1,)], schema={"n": int}), name="numbers").sink(rel.list(), name="out")
    with raises(ConfigError, "missing-package", "OpenSSL", "Install"):
        rel.run(topology, rel.JobConfig(network=rel.Network(secure=True)))
    assert rel.run(topology)["out"]
    with raises(ConfigError, "invalid-setting", "None"):
        rel.JobConfig(network=rel.Network(secure=None))  # type: ignore[arg-type]


def test_a_wrong_secret_is_refused_before_any_encryption(port: Any) -> None:
    made, _ = port
    with pytest.raises(HandshakeError) as caught:
        dialled(over_tcp(made), secret=secrets.token_bytes(32))
    assert caught.value.refusal is Refusal.SECRET
