"""Two native schedulers joined by an authenticated link: what one sends is what the other gets, or both say why not."""

import contextlib
import queue
import secrets
import socket
import threading
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from rayelastic.runtime.port.data_port import DataPort, dial
from rayelastic.runtime.port.secure_socket import tls_of

native = pytest.importorskip("rayelastic._native")

SECRET = secrets.token_bytes(32)
FIELDS = [("value", "int64", False, "l"), ("payload", "binary", False, "z")]


@pytest.fixture(params=["unix", "tcp", "tls"])
def sockets(request: Any) -> Any:
    """The two ends of an authenticated connection, as the data port hands them over."""
    arrived: queue.Queue[socket.socket] = queue.Queue()
    secure = request.param == "tls"
    port = DataPort("job", "pe-1", SECRET, "127.0.0.1", lambda far, _: arrived.put(far), secure=secure)
    with contextlib.closing(port):
        address = port.address if request.param == "unix" else replace(port.address, unix_path="")
        names = {"job_id": "job", "sender": "pe-0", "receiver": "pe-1", "channel": "link:a->b"}
        near = dial(address, **names, epoch=0, secret=SECRET, timeout=10.0)
        yield near, arrived.get(timeout=10)


def sender(connection: socket.socket, fields: Any, count: int, payload_bytes: int = 100) -> Any:
    schema = native.Schema(fields)
    tls = tls_of(connection)
    link = native.Link(connection.detach(), name="a->b", peer="pe-1", tls=tls)
    scheduler = native.Scheduler()
    source = scheduler.add(native.Operator.sequence_source("numbers", schema, count, payload_bytes))
    scheduler.connect(source, scheduler.add(native.Operator.link_out("out", schema, link)))
    scheduler.start(1)
    return scheduler, link


def receiver(connection: socket.socket, fields: Any, sink: Any) -> Any:
    schema = native.Schema(fields)
    tls = tls_of(connection)
    link = native.Link(connection.detach(), name="a->b", peer="pe-0", tls=tls)
    scheduler = native.Scheduler()
    source = scheduler.add(native.Operator.link_in("in", schema, link))
    scheduler.connect(source, scheduler.add(sink(schema)))
    scheduler.start(1)
    return scheduler, link


def test_all_tuples_cross_in_order_with_their_payload(sockets: Any) -> None:
    near, far = sockets
    batches: list[pa.RecordBatch] = []
    received, link_in = receiver(
        far, FIELDS, lambda schema: native.Operator.arrow_sink("collect", schema, batches.append, 5_000)
    )
    sent, link_out = sender(near, FIELDS, 50_000)
    assert sent.wait(60)
    assert received.wait(60)
    assert sent.failure() is None
    assert received.failure() is None
    table = pa.Table.from_batches(batches)
    assert table["value"].to_pylist() == list(range(50_000))
    assert {len(payload) for payload in table["payload"].to_pylist()} == {100}
    assert link_out.counters()["records_sent"] == link_in.counters()["records_received"] == 50_000
    assert link_out.counters()["bytes_sent"] == link_in.counters()["bytes_received"]


SILENT = 4.0  # seconds; three were the end of a job once
PIECE = 1 << 16  # bytes


def carry(here: socket.socket, there: socket.socket, cut: threading.Event, mended: threading.Event) -> None:
    """Carries bytes one way, and none while the cable is cut."""
    with contextlib.suppress(OSError):
        while piece := here.recv(PIECE):
            if cut.is_set():
                mended.wait()
            there.sendall(piece)
        there.shutdown(socket.SHUT_WR)


def test_a_line_that_is_silent_for_seconds_loses_nothing() -> None:
    """With the settings that links have by default. Neither rows nor heartbeats come through, in either direction."""
    cut, mended = threading.Event(), threading.Event()
    near, one = socket.socketpair()
    other, far = socket.socketpair()
    carriers = [
        threading.Thread(target=carry, args=(*ends, cut, mended), daemon=True) for ends in ((one, other), (other, one))
    ]
    received, link_in = receiver(far, FIELDS, lambda schema: native.Operator.count_sink("count", schema))
    sent, link_out = sender(near, FIELDS, 1 << 60)
    for carrier in carriers:
        carrier.start()
    try:
        while link_in.counters()["records_received"] == 0:
            received.wait(0.01)
        cut.set()
        assert not sent.wait(SILENT), sent.failure()
        mended.set()
        before = link_in.counters()["records_received"]
        while link_in.counters()["records_received"] < before + 100_000:
            assert not received.wait(0.01), received.failure()
    finally:
        mended.set()
        sent.stop(True)
    assert received.wait(60)
    assert (sent.failure(), received.failure(), link_in.failure, link_out.failure) == (None, None, "", "")
    assert link_out.counters()["records_sent"] == link_in.counters()["records_received"]


def test_different_schemas_fail_both_sides(sockets: Any) -> None:
    near, far = sockets
    received, link_in = receiver(far, FIELDS[:1], lambda schema: native.Operator.count_sink("count", schema))
    sent, link_out = sender(near, FIELDS, 1_000)
    assert sent.wait(60)
    assert received.wait(60)
    assert sent.failure().operator == "out"
    assert received.failure().operator == "in"
    assert "link 'a->b'" in received.failure().message
    assert "schemas" in link_in.failure + link_out.failure


def test_a_sender_that_stops_in_the_middle_is_not_the_end_of_the_stream(sockets: Any) -> None:
    near, far = sockets
    received, link_in = receiver(far, FIELDS, lambda schema: native.Operator.count_sink("count", schema))
    sent, link_out = sender(near, FIELDS, 1 << 60)
    while link_in.counters()["records_received"] == 0:
        received.wait(0.01)
    sent.stop()
    assert received.wait(60)
    assert "without a goodbye" in received.failure().message
    assert "pe-0" in received.failure().message
    assert link_out.failure == ""


def test_garbage_after_the_handshake_is_refused_and_counted(sockets: Any) -> None:
    near, far = sockets
    received, link_in = receiver(far, FIELDS, lambda schema: native.Operator.count_sink("count", schema))
    with near:
        near.sendall(b"\x00" * 64)
        assert received.wait(60)
    assert sum(link_in.counters()["refused"].values()) == 1
    assert "it isn't a frame" in received.failure().message


def test_draining_the_sender_ends_the_stream_and_loses_nothing(sockets: Any) -> None:
    near, far = sockets
    counted = []

    def count(schema: Any) -> Any:
        counted.append(native.Operator.count_sink("count", schema))
        return counted[0]

    received, _ = receiver(far, FIELDS, count)
    sent, link_out = sender(near, FIELDS, 1 << 60)
    while link_out.counters()["records_sent"] == 0:
        sent.wait(0.01)
    sent.stop(drain=True)
    assert received.wait(60)
    assert received.failure() is None
    assert counted[0].count == link_out.counters()["records_sent"]
