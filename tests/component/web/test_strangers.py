"""Whoever reaches the ports of page and metrics without a token takes next to nothing of the job's process (E8)."""

from __future__ import annotations

import itertools
import logging
import os
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.job import Job, start
from rayelastic.runtime.watch import metrics_port
from rayelastic.web import access
from tests.component.network.certificates import make_certificates

pytestmark = pytest.mark.edges

HALF = b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n"
HALF_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"  # the first bytes of a TLS handshake
STRANGERS = 200
TIMEOUT = 30.0


@pytest.fixture(params=["plain", "TLS"])
def job(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Job]:
    tls = None
    if request.param == "TLS":
        folder = make_certificates(tmp_path)
        tls = rel.TLS(str(folder / "port.pem"), str(folder / "port.key"))
    gate, topology = testing.Gate(), rel.Topology("watched")
    topology.source(testing.script([gate, (1,)], {"n": int}), name="rows").sink(rel.count(), name="out")
    made = start(topology, rel.JobConfig(web_port=0, network=rel.Network(tls=tls)), metrics_port=0)
    yield made
    gate.open()
    made.close()


def strangers(port: int, stack: ExitStack, half: bytes = HALF) -> list[socket.socket]:
    """Open many connections, each with half a request; return them."""
    found = []
    for _ in range(STRANGERS):
        found.append(stack.enter_context(socket.create_connection(("127.0.0.1", port), TIMEOUT)))
        found[-1].sendall(half)
    return found


def still_open(sockets: list[socket.socket], most: int) -> int:
    """Return how many connections the other side keeps, once it has ended all but so many."""
    ended = 0
    for one in sockets[: len(sockets) - most]:
        one.settimeout(TIMEOUT)
        try:
            ended += one.recv(1) == b""
        except ConnectionError:
            ended += 1
    return len(sockets) - ended


def descriptors() -> int:
    """How many files and connections this process has open."""
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def sinks_to(most: int, number: Callable[[], int]) -> None:
    """Wait until there are no more than so many."""
    deadline = time.monotonic() + TIMEOUT
    while (there := number()) > most:
        assert time.monotonic() < deadline, f"{there} after {TIMEOUT} s, at most {most}"
        os.sched_yield()


def test_half_requests_take_few_descriptors_and_threads(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (access, metrics_port):
        monkeypatch.setattr(module, "DEADLINE", 10 * TIMEOUT)  # their number alone ends them
    url = urlsplit(str(job.web_url))
    port, half = url.port, HALF_HELLO if url.scheme == "https" else HALF
    assert port is not None
    assert job.metrics_port is not None
    for at, most in ((port, access.MOST_UNKNOWN), (job.metrics_port, metrics_port.MOST_CONNECTIONS)):
        threads, files = threading.active_count(), descriptors()
        with ExitStack() as stack:
            assert still_open(strangers(at, stack, half), most) <= most
            sinks_to(files + STRANGERS + most + 8, descriptors)  # some of those that were ended are about to be closed
            sinks_to(threads + most + 8, threading.active_count)


def test_whoever_has_the_token_comes_through_beside_them(job: Job) -> None:
    if job.web_url is None or not job.web_url.startswith("http:"):
        pytest.skip("the same with TLS, whose handshake takes a second here")
    url = urlsplit(job.web_url)
    assert url.port is not None
    with ExitStack() as stack:
        strangers(url.port, stack)
        root, _, token = job.web_url.partition("?token=")
        with urllib.request.urlopen(f"{root}api/jobs?token={token}", timeout=TIMEOUT) as answer:
            assert b"watched" in answer.read()
    assert job.metrics_port is not None
    with ExitStack() as stack:
        strangers(job.metrics_port, stack)
        with urllib.request.urlopen(f"http://127.0.0.1:{job.metrics_port}/metrics", timeout=TIMEOUT) as answer:
            assert b"rayelastic_" in answer.read()


def test_a_connection_without_a_token_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "DEADLINE", 0.2)
    monkeypatch.setattr(metrics_port, "DEADLINE", 0.2)
    gate, topology = testing.Gate(), rel.Topology("watched")
    topology.source(testing.script([gate, (1,)], {"n": int}), name="rows").sink(rel.count(), name="out")
    job = start(topology, rel.JobConfig(web_port=0), metrics_port=0)
    try:
        for port in (urlsplit(job.web_url).port, job.metrics_port):
            with socket.create_connection(("127.0.0.1", int(port or 0)), TIMEOUT) as one:
                one.sendall(HALF)
                assert one.recv(1) == b""
    finally:
        gate.open()
        job.close()


@pytest.mark.parametrize(
    ("header", "path"), [("Bearer \xe9\xff", "api/jobs"), (None, "api/jobs/watched/events?from=nan")]
)
def test_what_is_no_request_is_answered_by_400(header: str | None, path: str) -> None:
    gate, topology = testing.Gate(), rel.Topology("watched")
    topology.source(testing.script([gate, (1,)], {"n": int}), name="rows").sink(rel.count(), name="out")
    job = start(topology, rel.JobConfig(web_port=0))
    try:
        root, _, token = str(job.web_url).partition("?token=")
        request = urllib.request.Request(root + path, headers={"Authorization": header or f"Bearer {token}"})
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=TIMEOUT)
        assert refused.value.code == 400
    finally:
        gate.open()
        job.close()


class Listening(BaseHTTPRequestHandler):
    """A server of somebody else on this machine, which keeps what browsers send."""

    cookies: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        self.cookies.append(self.headers.get("Cookie"))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_the_cookie_goes_to_no_other_port() -> None:
    gate, topology = testing.Gate(), rel.Topology("watched")
    topology.source(testing.script([gate, (1,)], {"n": int}), name="rows").sink(rel.count(), name="out")
    job = start(topology, rel.JobConfig(web_port=0))
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    other = HTTPServer(("127.0.0.1", 0), Listening)
    serving = threading.Thread(target=other.serve_forever, daemon=True)
    serving.start()
    try:
        with browser.open(str(job.web_url), timeout=TIMEOUT) as answer:
            assert b"<title>" in answer.read()
            page = answer.url
        with browser.open(f"{page}api/jobs", timeout=TIMEOUT) as answer:
            assert b"watched" in answer.read()
        for path in ("", "api/jobs"):
            browser.open(f"http://127.0.0.1:{other.server_port}/{path}", timeout=TIMEOUT).close()
        assert Listening.cookies == [None, None]
    finally:
        other.shutdown()
        other.server_close()
        serving.join()
        gate.open()
        job.close()


def test_bad_requests_are_one_line_a_minute(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(access.QUIET.filters[0], "_last", -access.LOG_PERIOD)
    for number in range(1000):
        try:
            raise ValueError(f"request {number}")
        except ValueError:
            access.QUIET.exception("Error handling request")
    assert [record.getMessage() for record in caplog.records] == [
        "web UI: Error handling request: ValueError('request 0')"
    ]
    assert caplog.records[0].exc_info is None
    monkeypatch.setattr(access.QUIET.filters[0], "_last", -access.LOG_PERIOD)
    access.QUIET.log(logging.WARNING, "again")
    assert caplog.records[-1].getMessage() == "web UI: again (999 more since the last line)"


@pytest.mark.parametrize("job", ["TLS"], indirect=True)
def test_a_connection_that_is_ended_while_tls_wraps_it_is_closed(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    assert job.metrics_port is not None
    wrap, calls = ssl.SSLContext.wrap_socket, itertools.count(1)
    begun, ended = threading.Event(), threading.Event()

    def wrap_late(context: ssl.SSLContext, *args: Any, **kwargs: Any) -> ssl.SSLSocket:
        number, wrapped = next(calls), wrap(context, *args, **kwargs)
        if number == 1:
            begun.set()
            assert ended.wait(TIMEOUT)
        elif number > metrics_port.MOST_CONNECTIONS:
            ended.set()
        return wrapped

    monkeypatch.setattr(ssl.SSLContext, "wrap_socket", wrap_late)
    monkeypatch.setattr(metrics_port, "DEADLINE", 10 * TIMEOUT)
    with ExitStack() as stack:
        first = stack.enter_context(socket.create_connection(("127.0.0.1", job.metrics_port), TIMEOUT))
        assert begun.wait(TIMEOUT)
        strangers(job.metrics_port, stack, HALF_HELLO)
        first.settimeout(TIMEOUT)
        with suppress(ConnectionError):
            assert first.recv(1) == b""
