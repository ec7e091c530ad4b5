"""Rows pushed into a source over real connections: each counted once, whatever tasks do; garbage refused."""

from __future__ import annotations

import contextlib
import random
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

import rayelastic as rel
from rayelastic.connectors.pushed.frames import MAX_FRAME, QUERY, Epoch, FrameKind, receive_frame, send_frame
from rayelastic.connectors.pushed.receiver import IngestServer
from rayelastic.errors import SourceError
from rayelastic.runtime.ingest.client import PushError, push_partition
from rayelastic.runtime.port.data_port import DataPort, derive_secret
from rayelastic.runtime.values.specs import IngestAddress
from tests.component.network.certificates import make_certificates
from tests.raising import raises

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("text", pa.string())])
CHANNEL = "ingest:rows"
TIMEOUT = 10.0


class Rows:
    """A feeder that keeps what it takes, and takes nothing while it is held."""

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []
        self.changed = threading.Condition()
        self.held = False
        self.stopped = False
        self.finished = False

    def push(self, batch: pa.RecordBatch) -> bool:
        with self.changed:
            self.changed.wait_for(lambda: not self.held, TIMEOUT)
            if not self.stopped:
                self.batches.append(batch)
                self.changed.notify_all()
            return not self.stopped

    def finish(self) -> None:
        self.finished = True

    def release(self) -> None:
        with self.changed:
            self.held = False
            self.changed.notify_all()

    @property
    def ids(self) -> list[int]:
        return [value for batch in self.batches for value in batch.column(0).to_pylist()]


class Ingest:
    """An ingest server behind a real data port."""

    def __init__(
        self, max_frame: int | None = None, *, secure: bool = False, certificates: rel.TLS | None = None
    ) -> None:
        self.rows = Rows()
        self.server = IngestServer("rows", SCHEMA, self.rows, max_frame=max_frame or MAX_FRAME)
        secret = secrets.token_bytes(32)
        self.port = DataPort(
            "job", "pe0", secret, "127.0.0.1", lambda far, _: self.server.serve(far),
            secure=secure, certificates=certificates,
        )  # fmt: skip
        address = replace(self.port.address, unix_path="") if secure else self.port.address
        self.address = IngestAddress(address, "job", "pe0", CHANNEL, derive_secret(secret, CHANNEL))

    def push(
        self, partition: int, batches: list[pa.RecordBatch] | Iterator[pa.RecordBatch], epoch: Epoch | None = None
    ) -> int:
        return push_partition(self.address, SCHEMA, partition, batches, sender="task", epoch=epoch)

    @contextlib.contextmanager
    def raw(self) -> Iterator[socket.socket]:
        near, far = socket.socketpair()
        near.settimeout(TIMEOUT)
        self.server.serve(far)
        with near:
            yield near

    def close(self) -> None:
        self.rows.release()
        self.server.close()
        self.port.close()


@pytest.fixture(params=["on this host", "from another", "by certificates"])
def ingest(request: pytest.FixtureRequest) -> Iterator[Ingest]:
    certificates = None
    if request.param == "by certificates":
        folder = make_certificates(request.getfixturevalue("tmp_path"))
        certificates = rel.TLS(f"{folder}/port.pem", f"{folder}/port.key", f"{folder}/ours.pem", links=True)
    made = Ingest(secure=request.param != "on this host", certificates=certificates)
    yield made
    made.close()


def batch(first: int, count: int, text: str | None = "x") -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"id": list(range(first, first + count)), "text": [text] * count}, schema=SCHEMA)


def batches(partition: int, count: int, rows: int = 10) -> list[pa.RecordBatch]:
    return [batch(partition * 1000 + first, rows) for first in range(0, count * rows, rows)]


def dying(given: list[pa.RecordBatch], after: int) -> Iterator[pa.RecordBatch]:
    """A task that dies after some batches."""
    yield from given[:after]
    raise KeyboardInterrupt


def wait_for(condition: Callable[[], bool]) -> None:
    done = threading.Event()
    for _ in range(int(TIMEOUT / 0.01)):
        if condition():
            return
        done.wait(0.01)
    raise AssertionError("it didn't happen")


def test_partitions_arrive_whole_and_in_order(ingest: Ingest) -> None:
    rows = {partition: ingest.push(partition, batches(partition, 5)) for partition in range(3)}
    assert rows == {0: 50, 1: 50, 2: 50}
    assert ingest.rows.ids == [1000 * p + i for p in range(3) for i in range(50)]
    ingest.server.finish(rows)
    assert ingest.rows.finished
    counters = ingest.server.counters()
    assert (counters.rows, counters.repeated_rows, counters.partitions_ended) == (150, 0, 3)


def test_empty_partition_is_complete(ingest: Ingest) -> None:
    assert ingest.push(0, []) == 0
    ingest.server.finish({0: 0})
    assert ingest.rows.finished


def test_retried_task_does_not_double_rows(ingest: Ingest) -> None:
    given = batches(0, 6)
    with pytest.raises(KeyboardInterrupt):
        ingest.push(0, dying(given, 4))
    wait_for(lambda: ingest.server.counters().rows == 40)  # its frames may still be on their way
    assert ingest.push(0, given) == 60
    assert ingest.rows.ids == list(range(60))
    assert ingest.server.counters().repeated_rows > 0


def test_retry_with_other_cuts_is_sliced(ingest: Ingest) -> None:
    with pytest.raises(KeyboardInterrupt):
        ingest.push(0, dying([batch(0, 7), batch(7, 7)], 1))
    wait_for(lambda: ingest.server.counters().rows == 7)
    assert ingest.push(0, [batch(0, 5), batch(5, 5), batch(10, 5)]) == 15
    assert ingest.rows.ids == list(range(15))


def test_a_micro_batch_that_is_replayed_changes_nothing(ingest: Ingest) -> None:
    for number in range(5):
        for partition in range(2):
            given = batches(10 * number + partition, 3)
            with pytest.raises(KeyboardInterrupt):
                ingest.push(partition, dying(given, 2), Epoch("q", number))
            for _ in range(2):  # the second time after a crash between push and commit
                assert ingest.push(partition, given, Epoch("q", number)) == 30
    expected = [
        1000 * (10 * number + partition) + row for number in range(5) for partition in range(2) for row in range(30)
    ]
    assert ingest.rows.ids == expected
    counters = ingest.server.counters()
    assert counters.rows == 300
    assert counters.repeated_rows >= 300
    assert counters.partitions_ended <= 4, "old epochs are forgotten"
    ingest.push(0, batches(99, 1), Epoch("another", 0))
    ingest.server.finish({})
    assert ingest.rows.finished


def test_an_epoch_that_spark_cant_replay_is_refused(ingest: Ingest) -> None:
    for number in (7, 8, 9):
        ingest.push(0, batches(number, 1), Epoch("q", number))
    with pytest.raises(PushError, match=r"epoch 7 of its query comes again after epoch 9.*checkpoint is older"):
        ingest.push(0, batches(7, 1), Epoch("q", 7))


@pytest.mark.parametrize("metadata", [{QUERY: b"q" * 100}, {QUERY: b"q", b"rayelastic.epoch": b"-1"}])
def test_metadata_that_name_no_epoch_are_refused(ingest: Ingest, metadata: dict[bytes, bytes]) -> None:
    with ingest.raw() as near:
        send_frame(near, FrameKind.OPEN, 0, payload=SCHEMA.with_metadata(metadata).serialize())
        answer = receive_frame(near)
        assert answer is not None
        assert answer.kind is FrameKind.REFUSED
        assert b"no epoch" in bytes(answer.payload)


@pytest.mark.parametrize("seed", range(5))
def test_speculation_and_crashes_at_random(ingest: Ingest, seed: int) -> None:
    """Several attempts of each partition at once, some of which die: every row once, in order within its partition."""
    chance = random.Random(seed)

    def attempt(partition: int, dies_after: int | None) -> None:
        given = batches(partition, 8)
        with contextlib.suppress(KeyboardInterrupt):
            ingest.push(partition, given if dies_after is None else dying(given, dies_after))

    plans = [(p, chance.randrange(8)) for p in range(3) for _ in range(2)] + [(p, None) for p in range(3)] * 2
    chance.shuffle(plans)
    threads = [threading.Thread(target=attempt, args=plan) for plan in plans]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    ingest.server.finish(dict.fromkeys(range(3), 80))
    for partition in range(3):
        assert [i for i in ingest.rows.ids if i // 1000 == partition] == [1000 * partition + i for i in range(80)]


def test_task_that_comes_back_with_other_rows_is_refused(ingest: Ingest) -> None:
    with pytest.raises(KeyboardInterrupt):
        ingest.push(0, dying(batches(0, 3), 2))
    wait_for(lambda: ingest.server.counters().rows == 20)
    with pytest.raises(PushError, match="in another order"):
        ingest.push(0, list(reversed(batches(0, 3))))
    assert ingest.rows.ids == list(range(20))


def test_finish_wants_every_row(ingest: Ingest) -> None:
    ingest.push(0, batches(0, 2))
    with raises(SourceError, "rejected-push"):
        ingest.server.finish({0: 20, 1: 7})
    with raises(SourceError, "rejected-push", "21"):
        ingest.server.finish({0: 21})
    assert not ingest.rows.finished


def test_slow_source_makes_the_task_wait_and_loses_nothing(ingest: Ingest) -> None:
    ingest.rows.held = True
    wide = [batch(first, 10, "y" * 100_000) for first in range(0, 200, 10)]  # 20 MB: more than sockets hold
    drawn = []

    def task() -> Iterator[pa.RecordBatch]:
        for one in wide:
            drawn.append(one)
            yield one

    pushing = threading.Thread(target=ingest.push, args=(0, task()))
    pushing.start()
    pushing.join(0.5)
    waited_at = len(drawn)
    assert pushing.is_alive()
    assert waited_at < len(wide)
    assert ingest.server.counters().rows == 0
    ingest.rows.release()
    pushing.join(TIMEOUT)
    assert ingest.rows.ids == list(range(200))


def test_source_that_has_ended_tells_the_task(ingest: Ingest) -> None:
    ingest.rows.stopped = True
    with pytest.raises(PushError, match="its job has ended"):
        ingest.push(0, batches(0, 50))


def test_closed_source_breaks_its_connections(ingest: Ingest) -> None:
    with ingest.raw() as near:
        send_frame(near, FrameKind.OPEN, 0, payload=SCHEMA.serialize())
        wait_for(lambda: ingest.server.counters().connections == 1)
        ingest.server.close()
        assert receive_frame(near) is None
    ingest.port.close()
    with pytest.raises(PushError, match="can't be reached"):
        ingest.push(0, [])


def test_null_for_a_field_that_takes_none(ingest: Ingest) -> None:
    nullable = pa.schema([pa.field("id", pa.int64()), SCHEMA.field("text")])
    given = pa.RecordBatch.from_pydict({"id": [1, None], "text": ["a", None]}, schema=nullable)
    with pytest.raises(PushError, match=r"operator 'rows': column 'id' has nulls.*None"):
        ingest.push(0, [given])
    assert ingest.rows.ids == []


def test_other_schema_is_refused(ingest: Ingest) -> None:
    with ingest.raw() as near:
        send_frame(near, FrameKind.OPEN, 0, payload=pa.schema([("id", pa.int32())]).serialize())
        answer = receive_frame(near)
        assert answer is not None
        assert answer.kind is FrameKind.REFUSED
        assert b"not of (id: int32)" in bytes(answer.payload)


def refusal_of(ingest: Ingest, send: Callable[[socket.socket], None]) -> str:
    with ingest.raw() as near:
        send_frame(near, FrameKind.OPEN, 0, payload=SCHEMA.serialize())
        send(near)
        near.shutdown(socket.SHUT_WR)
        answer = receive_frame(near)
    assert answer is not None
    assert answer.kind is FrameKind.REFUSED
    return bytes(answer.payload).decode()


def test_what_is_no_frame_is_refused_and_counted(ingest: Ingest) -> None:
    body = batch(0, 3).serialize()
    message = bytearray(body.to_pybytes())
    for place in range(8, 64):
        message[place] ^= 0xFF
    long = batch(0, 3).slice(0, 2).serialize()

    def far_too_long(near: socket.socket) -> None:
        near.sendall(b"REIN" + bytes([FrameKind.BATCH, 0, 0, 0]) + bytes(16) + b"\xff\xff\xff\xff" + bytes(4))

    cases: list[tuple[str, Callable[[socket.socket], None]]] = [
        ("not an ingest frame", lambda near: near.sendall(b"GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n")),
        ("at most", far_too_long),
        ("ended within a frame", lambda near: near.sendall(b"REIN")),
        ("Arrow can't read", lambda near: send_frame(near, FrameKind.BATCH, 0, rows=3, payload=bytes(message))),
        ("of 2 rows that says it has 3", lambda near: send_frame(near, FrameKind.BATCH, 0, rows=3, payload=long)),
        ("are missing", lambda near: send_frame(near, FrameKind.BATCH, 0, first_row=5, rows=3, payload=body)),
        ("of partition 1 on", lambda near: send_frame(near, FrameKind.BATCH, 1, rows=3, payload=body)),
        ("ended after 9 rows", lambda near: send_frame(near, FrameKind.END, 0, first_row=9)),
        ("OPEN where a batch", lambda near: send_frame(near, FrameKind.OPEN, 0)),
    ]
    for expected, send in cases:
        assert expected in refusal_of(ingest, send)
    assert ingest.rows.ids == []
    assert ingest.server.counters().rejected == len(cases)


def test_damaged_batches_never_reach_the_source(ingest: Ingest) -> None:
    """Any byte of an Arrow message changed, checksum made right again: refused, or a batch that Arrow finds valid."""
    chance = random.Random(7)
    good = batch(0, 5).serialize().to_pybytes()
    for _ in range(300):
        message = bytearray(good)
        message[chance.randrange(len(message))] = chance.randrange(256)
        with ingest.raw() as near:
            send_frame(near, FrameKind.OPEN, 0, payload=SCHEMA.serialize())
            send_frame(near, FrameKind.BATCH, 0, rows=5, payload=bytes(message))
            near.shutdown(socket.SHUT_WR)
            receive_frame(near)
    for taken in ingest.rows.batches:
        taken.validate(full=True)


def test_batch_larger_than_a_frame_is_cut(ingest: Ingest) -> None:
    wide = batch(0, 40, "z" * 1_000_000)  # 40 MB in one batch
    assert ingest.push(0, [wide]) == 40
    assert ingest.rows.ids == list(range(40))
    assert len(ingest.rows.batches) >= 3


def test_a_row_larger_than_a_cut_frame_passes_and_one_beyond_the_limit_is_told_by_its_number(
    ingest: Ingest, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ingest.push(0, [batch(0, 2, "y" * 30_000_000)]) == 2
    monkeypatch.setattr("rayelastic.runtime.ingest.client.MAX_FRAME", 20_000_000)
    with pytest.raises(PushError, match=r"row 1 of partition 1 has 3\d{7} bytes, .* cut it into several rows"):
        ingest.push(1, [batch(0, 1), batch(1, 1, "y" * 30_000_000)])
    assert ingest.rows.ids[:2] == [0, 1]


@pytest.mark.parametrize("given", [20, 12])
def test_what_was_given_whole_is_at_its_end_when_it_goes_on(given: int) -> None:
    first, again = Ingest(), Ingest()
    try:
        first.push(0, batches(0, 2))
        first.server.finish({0: 20})
        again.server.restore(first.server.position(given))
        assert (again.server.finished, again.rows.finished) == (given == 20, given == 20)
    finally:
        first.close()
        again.close()
