"""Jobs that are fed from outside and go back to a checkpoint: every row once, by whoever pushes again what is lost."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import rayelastic as rel
from rayelastic.connectors.pushed.declaration import IngestSource
from rayelastic.connectors.pushed.frames import Epoch
from rayelastic.errors import JobCancelledError, JobFailedError
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import SourceDescription
from rayelastic.job import LocalControl, prepare
from rayelastic.job.job import Job
from rayelastic.runtime.element.host import InProcessHost
from rayelastic.runtime.ingest.client import PushError, push_partition
from rayelastic.runtime.job.coordinator import Coordinator
from rayelastic.runtime.values.failure import Failure
from rayelastic.runtime.values.status import State
from tests.raising import raises

PATIENCE = 60.0
SCHEMA = Schema.of({"n": int})
ARROW = SCHEMA.to_arrow()
PARTITIONS, ROWS, EPOCHS = 2, 50, 6  # rows of a partition of a micro-batch


def batches(epoch: int, partition: int) -> Iterator[pa.RecordBatch]:
    first = (epoch * PARTITIONS + partition) * ROWS
    for at in range(first, first + ROWS, 10):
        yield pa.RecordBatch.from_pydict({"n": list(range(at, at + 10))}, schema=ARROW)


ALL = list(range(EPOCHS * PARTITIONS * ROWS))


@dataclass
class Pushed(SourceDescription):
    """What Spark does, in small: micro-batches in order, each of which is committed when the job has secured it.

    Args:
        streams: else it pushes all partitions of all epochs once.
        between: called with the number of a micro-batch when it was pushed, before it is secured.
        committed: the number of the next micro-batch: what another driver goes on from.
    """

    streams: bool = True
    between: Callable[[int], None] = lambda _: None
    committed: int = 0
    pushes: list[int] = field(default_factory=list)
    query: str = "q"
    schema: Schema = SCHEMA
    reason: str = "a test pushes"
    cancelled: bool = False

    def check(self, operator: str) -> None:
        pass

    def for_pe(self) -> IngestSource:
        return IngestSource(SCHEMA, self.reason, self.streams)

    def cancel(self) -> None:
        self.cancelled = True

    def push(self, feed: Any) -> dict[int, int]:
        if not self.streams:
            address = feed.address()
            self.pushes.append(0)
            rows = {}
            for partition in range(EPOCHS * PARTITIONS):
                given = batches(*divmod(partition, PARTITIONS))
                rows[partition] = push_partition(address, ARROW, partition, given, sender="task")
                self.between(partition)
            return rows
        while self.committed < EPOCHS and not self.cancelled:
            self._take_in(feed, self.committed)
            self.committed += 1
        return {}

    def _take_in(self, feed: Any, number: int) -> None:
        while True:
            address, epoch = feed.address(), Epoch(self.query, number)
            self.pushes.append(number)
            try:
                rows = {
                    partition: push_partition(
                        address, ARROW, partition, batches(number, partition), sender="t", epoch=epoch
                    )
                    for partition in range(PARTITIONS)
                }
            except PushError as error:
                if feed.must_repeat(address, str(error)):
                    continue
                raise
            self.between(number)
            if feed.secure(address, epoch, rows):
                return


def idle(until: Path) -> Iterator[tuple[int]]:
    """So many rows at least, more than there are before there is the file: whoever calls again gets those again."""
    nobody = threading.Event()
    for n in itertools.count():
        if until.exists():
            if n >= 10_000:
                return
        else:
            nobody.wait(0.01)
        yield (n,)


class Fed:
    """A job in this process, into a table, that loses an element when told to.

    Args:
        keyed: it has an elastic region.
        until: it isn't over before there is this file.
    """

    def __init__(
        self, source: Pushed, folder: Path, *, keyed: bool = False, until: Path | None = None, **config: Any
    ) -> None:
        self.folder = folder
        topology = rel.Topology("fed")
        if until is not None:
            topology.source(rel.callable(lambda: idle(until), schema={"n": int}), name="others").sink(
                rel.count(), name="none"
            )
        rows: Any = topology.source(source, name="rows")
        if keyed:
            rows = rows.key_by("n").aggregate(name="counts", emit="update", all=rel.count())
        rows.sink(rel.parquet(str(folder / "out")), name="table")
        rows.sink(rel.list(), name="kept")
        settings = {"checkpoint": rel.Checkpoint(folder / "checkpoints", every=600.0), **config}
        self.coordinator = Coordinator(prepare(topology, rel.JobConfig(**settings)), InProcessHost())
        self.job = Job("fed", LocalControl(self.coordinator), topology)

    def lose(self) -> None:
        before = self.job.status.checkpoints.restarts
        self.coordinator._lose(Failure("PE pe0 was lost"))
        self.wait_for(lambda: self.job.status.checkpoints.restarts > before)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        nobody = threading.Event()
        for _ in range(int(PATIENCE / 0.01)):
            if condition():
                return
            nobody.wait(0.01)
        raise AssertionError("it didn't happen")

    def check(self) -> None:
        result = self.job.wait(PATIENCE)
        assert sorted(t.n for t in result["kept"]) == ALL
        assert sorted(parquet.read_table(self.folder / "out").column("n").to_pylist()) == ALL


def test_a_micro_batch_is_committed_once_a_checkpoint_has_it(tmp_path: Path) -> None:
    seen: list[int] = []
    source = Pushed()
    fed = Fed(source, tmp_path)
    source.between = lambda number: seen.append(fed.job.status.checkpoints.taken)
    fed.job._start()
    fed.check()
    assert all(after > before for before, after in zip(seen, seen[1:], strict=False))
    assert source.pushes == list(range(EPOCHS))


@pytest.mark.parametrize("pes", [1, 2])
def test_what_was_pushed_and_is_in_no_checkpoint_comes_again(tmp_path: Path, pes: int) -> None:
    source = Pushed()
    fed = Fed(source, tmp_path, pes=pes)
    lost: list[int] = []

    def lose_sometimes(number: int) -> None:
        if number in (0, 3) and number not in lost:
            lost.append(number)
            fed.lose()

    source.between = lose_sometimes
    fed.job._start()
    fed.check()
    assert source.pushes == [0, 0, 1, 2, 3, 3, 4, 5]


@pytest.mark.parametrize("streams", [True, False])
def test_replicas_that_change_between_two_pushes_refuse_nobody(tmp_path: Path, streams: bool) -> None:
    source = Pushed(streams)
    fed = Fed(source, tmp_path, keyed=True, regions="manual")

    seen = []

    def grow(number: int) -> None:
        if number in (1, 3):
            name = fed.job.plan().region_of("counts").region.name
            seen.append(fed.job.rescale(name, 2 + number // 2).region(name).replicas)

    source.between = grow
    fed.job._start()
    fed.check()
    assert seen == [2, 3]
    assert source.pushes == (list(range(EPOCHS)) if streams else [0]), "nothing is pushed twice for it"


def test_a_micro_batch_behind_the_checkpoint_of_a_change_comes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job goes on by another plan, from a checkpoint without it; the next one is complete without it, too."""
    source = Pushed()
    fed = Fed(source, tmp_path)
    checkpoints: Any = fed.coordinator._checkpoints
    loop, save, take_in, saved = checkpoints.loop, checkpoints._save, source._take_in, threading.Event()

    def save_and_wait(wanted: Any) -> None:
        save(wanted)
        saved.set()
        fed.wait_for(lambda: loop._wanted > loop._begun)  # the micro-batch has come, and is to be saved

    def take_in_late(feed: Any, number: int) -> None:
        if number == 2:
            changing.start()
            assert saved.wait(PATIENCE)
        take_in(feed, number)

    monkeypatch.setattr(checkpoints, "_save", save_and_wait)
    monkeypatch.setattr(source, "_take_in", take_in_late)
    changing = threading.Thread(target=fed.coordinator.renew_secret)
    fed.job._start()
    fed.check()
    changing.join()
    assert source.pushes == [0, 1, 2, 2, 3, 4, 5]


def test_a_source_that_ended_behind_the_checkpoint_of_a_change_is_pushed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, go = Pushed(streams=False), tmp_path / "go"
    fed = Fed(source, tmp_path, until=go)
    checkpoints: Any = fed.coordinator._checkpoints
    save, saved = checkpoints._save, threading.Event()

    def save_and_wait(wanted: Any) -> None:
        save(wanted)
        saved.set()
        fed.wait_for(lambda: fed.coordinator._hosting("rows").ingest_address("rows").complete)

    def change(partition: int) -> None:
        if partition == 5 and not saved.is_set():
            changing.start()
            assert saved.wait(PATIENCE)

    monkeypatch.setattr(checkpoints, "_save", save_and_wait)
    source.between = change
    changing = threading.Thread(target=fed.coordinator.renew_secret)
    fed.job._start()
    assert saved.wait(PATIENCE)
    changing.join(PATIENCE)
    go.touch()
    fed.check()
    assert source.pushes == [0, 0]


def test_another_driver_sends_what_the_first_one_did_not_commit(tmp_path: Path) -> None:
    """The rows of epoch 2 are in a checkpoint, and not committed: they come again, after the job went back."""
    source = Pushed()
    fed = Fed(source, tmp_path)
    here, go = threading.Event(), threading.Event()

    def stay(number: int) -> None:
        if number == 2:
            here.set()
            go.wait(PATIENCE)
            fed.wait_for(lambda: source.cancelled)  # as if the driver were gone

    source.between = stay
    fed.job._start()
    assert here.wait(PATIENCE)
    fed.wait_for(lambda: fed.job.metrics().operator("rows").tuples_out == 3 * PARTITIONS * ROWS)
    fed.coordinator._checkpoints.loop.take()  # type: ignore[union-attr]
    fed.lose()
    go.set()
    fed.wait_for(lambda: fed.job.status.state is State.RUNNING)
    fed.job.feed("rows", Pushed(committed=2))
    fed.check()


def test_a_source_that_is_pushed_once_is_pushed_again_as_far_as_it_is_missing(tmp_path: Path) -> None:
    source = Pushed(streams=False)
    fed = Fed(source, tmp_path)
    lost: list[int] = []

    def lose_once(partition: int) -> None:
        if partition == 5 and not lost:
            lost.append(partition)
            fed.coordinator._checkpoints.loop.take()  # type: ignore[union-attr]
            fed.lose()

    source.between = lose_once
    fed.job._start()
    fed.check()
    assert source.pushes == [0, 0]


def test_a_stream_that_comes_with_later_epochs_than_any_checkpoint_has_is_refused(tmp_path: Path) -> None:
    source = Pushed()
    fed = Fed(source, tmp_path)
    source.between = lambda number: setattr(source, "committed", 4) if number == 1 else None
    fed.job._start()
    with raises(JobFailedError, "feed-failed", "epoch 5 of its query comes after epoch 1: those between are in no"):
        fed.job.wait(PATIENCE)


def test_a_job_that_is_cancelled_ends_behind_the_micro_batch_it_is_at(tmp_path: Path) -> None:
    """So a new job on the table goes on with the first one that is not in it."""
    source = Pushed()
    fed = Fed(source, tmp_path)

    def cancel(number: int) -> None:
        if number == 3:
            fed.job.cancel()

    source.between = cancel
    fed.job._start()
    with pytest.raises(JobCancelledError):
        fed.job.wait(PATIENCE)
    fed.wait_for(lambda: source.committed == 4)
    rows = parquet.read_table(tmp_path / "out").column("n").to_pylist()
    assert sorted(rows) == list(range(4 * PARTITIONS * ROWS))


def test_a_stopped_job_goes_on_from_its_snapshot(tmp_path: Path) -> None:
    source = Pushed()
    fed = Fed(source, tmp_path)
    stopped = threading.Event()

    def stay(number: int) -> None:
        if number == 2:
            stopped.set()
            fed.wait_for(lambda: fed.coordinator.status().state.is_final)

    source.between = stay
    fed.job._start()
    assert stopped.wait(PATIENCE)
    left = [t.n for t in fed.job.stop(tmp_path / "saved")["kept"]]
    topology = rel.Topology("fed")
    rows = topology.source(Pushed(committed=2), name="rows")
    rows.sink(rel.parquet(str(tmp_path / "out")), name="table")
    rows.sink(rel.list(), name="kept")
    result = rel.run(topology, restore=tmp_path / "saved")
    assert sorted(left + [t.n for t in result["kept"]]) == ALL
    assert sorted(parquet.read_table(tmp_path / "out").column("n").to_pylist()) == ALL


def test_a_stream_takes_checkpoints_without_being_told_to(tmp_path: Path) -> None:
    fed = Fed(Pushed(), tmp_path, checkpoint=None)
    fed.job._start()
    fed.check()
    assert fed.job.status.checkpoints.taken >= EPOCHS
