"""Links by certificates of both sides: who has none, another authority's, or no key of the job's, isn't heard."""

from __future__ import annotations

import contextlib
import os
import queue
import secrets
import select
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import rayelastic as rel
from rayelastic import _native
from rayelastic.errors import ConfigError
from rayelastic.job.starting import start
from rayelastic.runtime.port import dialling
from rayelastic.runtime.port.data_port import DataPort, HandshakeError, PortAddress, Refusal, dial
from rayelastic.runtime.port.secure_socket import SecureSocket
from rayelastic.testing import Gate, script
from tests.component.network.certificates import make_certificates
from tests.raising import raises

pytestmark = pytest.mark.skipif(bool(_native.Tls.missing()), reason=_native.Tls.missing() or "OpenSSL is there")

SECRET = secrets.token_bytes(32)
IN_FORCE = "TLSv1.3 TLS_AES_128_GCM_SHA256 by certificates"
TIMEOUT = 10.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def shown(folder: Path, name: str, authority: str = "ours") -> rel.TLS:
    return rel.TLS(f"{folder}/{name}.pem", f"{folder}/{name}.key", f"{folder}/{authority}.pem", links=True)


@contextlib.contextmanager
def listening(certificates: rel.TLS | None) -> Iterator[tuple[DataPort, queue.Queue[socket.socket]]]:
    arrived: queue.Queue[socket.socket] = queue.Queue()
    port = DataPort(
        "job", "pe-1", SECRET, "127.0.0.1", lambda far, _: arrived.put(far), secure=True, certificates=certificates
    )
    with contextlib.closing(port):
        yield port, arrived


def dialled(address: PortAddress, certificates: rel.TLS | None) -> socket.socket:
    names = {"job_id": "job", "sender": "pe-0", "receiver": "pe-1", "channel": "link:a->b"}
    over_tcp = replace(address, unix_path="", certificates=certificates)
    return dial(over_tcp, **names, epoch=0, secret=SECRET, timeout=TIMEOUT)


def both(step: Callable[[], str], other: Callable[[], str]) -> None:
    """Goes on with both ends of a connection until both are done."""
    left, deadline = [step, other], time.monotonic() + TIMEOUT
    while left:
        assert time.monotonic() < deadline
        left = [one for one in left if one() != "done"]


def test_both_sides_show_certificates_of_one_authority(folder: Path) -> None:
    with listening(shown(folder, "port")) as (port, arrived):
        near = dialled(port.address, shown(folder, "friend"))
        with near, arrived.get(timeout=TIMEOUT) as far:
            assert isinstance(near, SecureSocket)
            assert isinstance(far, SecureSocket)
            assert near.in_force == far.in_force == IN_FORCE
            near.sendall(b"there")
            far.sendall(b"back")
            for end, said in ((far, b"there"), (near, b"back")):
                end.settimeout(TIMEOUT)
                assert end.recv(16) == said


@pytest.mark.parametrize("name", ["stranger", None])
def test_who_has_no_certificate_of_the_authority_is_refused_and_counted(folder: Path, name: str | None) -> None:
    certificates = shown(folder, name) if name else None  # None: the key of the connection alone
    with listening(shown(folder, "port")) as (port, arrived):
        with pytest.raises(HandshakeError) as refused:
            dialled(port.address, certificates)
        assert refused.value.refusal is Refusal.ENCRYPTION
        assert ("Have certificates of rel.TLS(ca=) on both nodes" in str(refused.value)) == (name is not None)
        assert arrived.empty()
        dialled(port.address, shown(folder, "friend")).close()  # the port goes on
        assert port.counters["encryption"] == 1


@pytest.mark.parametrize("name", ["stranger", None])
def test_a_port_without_a_certificate_of_the_authority_is_not_believed(folder: Path, name: str | None) -> None:
    certificates = shown(folder, name, "ours") if name else None
    with listening(certificates) as (port, arrived):
        with raises(HandshakeError, "link-failed", "rel.TLS(ca=)"):
            dialled(port.address, shown(folder, "friend"))
        assert arrived.empty()


def test_a_certificate_does_not_stand_in_for_the_key(folder: Path) -> None:
    """Another job's element of the same authority, which knows both nonces and not the secret."""
    near, far = socket.socketpair()
    near.setblocking(False)
    far.setblocking(False)
    certificates = shown(folder, "port")
    with (
        SecureSocket(near, SECRET, certificates, server=False) as dialler,
        SecureSocket(far, secrets.token_bytes(32), certificates, server=True) as listener,
        pytest.raises(ConnectionAbortedError, match="doesn't have the key"),
    ):
        both(dialler.step, listener.step)


def test_nobody_with_a_certificate_stands_in_between(folder: Path) -> None:
    """Who passes the proofs on, from one encrypted connection to another, proves nothing: each is of its connection."""
    (near, left), (right, far) = socket.socketpair(), socket.socketpair()
    for each in (near, left, right, far):
        each.setblocking(False)
    ours, friend = shown(folder, "port"), shown(folder, "friend")
    files = friend.cert, friend.key, str(friend.ca)
    to_dialler = _native.Tls.certified(left.fileno(), *files, True)
    to_listener = _native.Tls.certified(right.fileno(), *files, False)
    with (
        left,
        right,
        SecureSocket(near, SECRET, ours, server=False) as dialler,
        SecureSocket(far, SECRET, ours, server=True) as listener,
    ):
        deadline = time.monotonic() + TIMEOUT
        while not (to_dialler.in_force and to_listener.in_force):
            assert time.monotonic() < deadline
            for step in (dialler.step, to_dialler.handshake, to_listener.handshake, listener.step):
                step()
        for source, target in ((to_dialler, to_listener), (to_listener, to_dialler)):
            proof = bytearray(32)
            while source.receive_into(proof) != len(proof):
                assert time.monotonic() < deadline
                dialler.step()
                listener.step()
            assert target.send(proof) == len(proof)
        for end in (dialler, listener):
            assert select.select([end], [], [], TIMEOUT)[0]
            with pytest.raises(ConnectionAbortedError, match="doesn't have the key"):
                end.step()


def test_files_are_read_anew_and_damaged_ones_are_told(folder: Path, tmp_path: Path) -> None:
    renewed = Path(shutil.copytree(folder, tmp_path / "renewed"))
    with listening(shown(renewed, "port")) as (port, arrived):
        (renewed / "port.pem").write_text("nothing")
        with pytest.raises(HandshakeError) as refused:
            dialled(port.address, shown(folder, "friend"))
        assert refused.value.refusal is Refusal.ENCRYPTION
        assert port.counters["encryption"] == 1
        with raises(HandshakeError, "link-failed", "port.pem", "rel.TLS(links=True)"):
            dialled(port.address, shown(renewed, "port"))
        shutil.copy(folder / "port.pem", renewed / "port.pem")
        with dialled(port.address, shown(folder, "friend")), arrived.get(timeout=TIMEOUT) as far:
            assert isinstance(far, SecureSocket)


def topology(gate: Gate) -> rel.Topology:
    made, rows = rel.Topology("numbers"), [(n,) for n in range(500)]
    numbers = made.source(script([*rows[:100], gate, *rows[100:]], {"n": int}), name="numbers")
    numbers.key_by("n").aggregate(name="counts", count=rel.count()).sink(rel.list(), name="out")
    return made


def test_a_job_with_replicas_has_its_links_and_its_state_by_certificates(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Unix socket is taken away, so that the PEs reach each other as from two hosts."""
    monkeypatch.setattr(dialling, "_is_here", lambda _: False)
    gate = Gate()
    config = rel.JobConfig(
        regions="manual", elasticity="off", network=rel.Network(secure=True, tls=shown(folder, "port"))
    )
    job = start(topology(gate), config)
    with contextlib.closing(job):
        assert gate.wait_reached(TIMEOUT)
        job.rescale("r1", 2)
        deadline = time.monotonic() + TIMEOUT
        while not all(pe.encryption.startswith(f"{IN_FORCE} on ") for pe in job.status.pes):  # the status of before
            assert time.monotonic() < deadline, job.status
            os.sched_yield()
        gate.open()
        assert sorted(t.n for t in job.wait(timeout=60)["out"]) == list(range(500))


def test_mistakes_are_told_before_the_start(folder: Path) -> None:
    with raises(ConfigError, "invalid-setting", "True"):
        rel.JobConfig(network=rel.Network(tls=shown(folder, "port")))
    with raises(ConfigError, "missing-file", "cert="):
        start(topology(Gate()), rel.JobConfig(network=rel.Network(secure=True, tls=shown(folder, "none"))))
    with raises(ConfigError, "invalid-setting", "True"):
        rel.TLS("cert.pem", "cert.key", links=True)
    with raises(ConfigError, "bad-certificate"):
        DataPort("job", "pe-1", SECRET, "127.0.0.1", lambda *_: None, secure=True, certificates=replace(
            shown(folder, "friend"), key=f"{folder}/port.key"
        ))  # fmt: skip
