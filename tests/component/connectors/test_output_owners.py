"""Outputs have an owner: two jobs on one output, savepoints tried beside and after each other, files of others."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.connectors.output import owner as output_owner
from rayelastic.connectors.output.folder import OutputFolder
from rayelastic.connectors.output.owner import LEASE, OutputOwner
from rayelastic.connectors.output.record import SinkContext
from rayelastic.errors import JobFailedError, SinkError, SinkTakenError, StateError
from rayelastic.runtime.values.failure import Failure
from tests.component.checkpoint.test_checkpoints import Losing
from tests.component.checkpoint.test_copied_state import PATIENCE, ROWS, Row
from tests.component.connectors.outputs import KINDS, SCHEMA, TOTAL, Held, Kind, writes
from tests.raising import raises

pytestmark = pytest.mark.edges

ALL = list(range(TOTAL))
kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
CHECKPOINTS = rel.JobConfig(checkpoint=rel.Checkpoint(every=600.0))


@contextmanager
def holding(sink: Any, stops: list[int], name: str = "writes", **options: Any) -> Iterator[Held]:
    held = Held(sink, stops, name, **options)
    try:
        yield held
    finally:
        held.cancel()


@kinds
def test_a_second_job_on_an_output_is_rejected_before_it_starts(kind: Kind, tmp_path: Path) -> None:
    """E2, rows 1 and 2."""
    target = str(tmp_path / kind.name)
    first = Held(kind.sink(target), [300], "first", config=CHECKPOINTS)
    first.wait()
    with raises(SinkTakenError, "output-taken", str(target)):
        rel.run(writes(kind.sink(target), name="second"))
    first.end()
    assert kind.rows(tmp_path) == ALL


@kinds
def test_a_savepoint_isnt_tried_in_the_output_of_the_running_job(kind: Kind, tmp_path: Path) -> None:
    """E2, row 3."""
    sink, saved = kind.sink(str(tmp_path / kind.name)), tmp_path / "saved"
    first = Held(sink, [300, 700])
    first.wait()
    first.job.snapshot(saved)
    first.wait()
    first.job.snapshot(tmp_path / "later")
    seen = kind.files(tmp_path)
    with raises(SinkTakenError, "output-taken"):
        rel.run(writes(sink, name="version B"), restore=saved)
    assert kind.files(tmp_path) == seen, "nothing is touched"
    first.end()
    assert kind.rows(tmp_path) == ALL
    rel.run(writes(sink, name="version B"), restore=saved)
    assert kind.rows(tmp_path) == ALL


@kinds
def test_savepoints_of_one_run_are_exact_or_rejected_in_whatever_order(kind: Kind, tmp_path: Path) -> None:
    """E2, row 4."""
    sink = kind.sink(str(tmp_path / kind.name))
    first, saved = Held(sink, [300, 600]), (tmp_path / "A", tmp_path / "B")
    for place in saved:
        first.wait()
        first.job.snapshot(place)
    first.end()
    for place in (saved[1], saved[1], saved[0], saved[0]):
        rel.run(writes(sink), restore=place)
        assert kind.rows(tmp_path) == ALL
    seen = kind.files(tmp_path)
    with raises(StateError, "missing-output", operator="out"):
        rel.run(writes(sink), restore=saved[1])
    assert kind.files(tmp_path) == seen
    rel.run(writes(sink), restore=saved[0])
    assert kind.rows(tmp_path) == ALL


@pytest.mark.parametrize("end", ["finished", "failed", "cancelled", "stopped"])
@kinds
def test_the_same_topology_again(kind: Kind, end: str, tmp_path: Path) -> None:
    """E2, what was right."""
    sink = kind.sink(str(tmp_path / kind.name))
    if end == "failed":
        bad = rel.rows([(n,) for n in range(300)], schema=SCHEMA)
        topology = rel.Topology("writes")
        topology.source(bad, name="numbers").map(lambda t: 1 // (299 - t.n), name="fails", schema=SCHEMA).sink(
            sink, name="out"
        )
        with pytest.raises(JobFailedError):
            rel.run(topology)
    else:
        held = Held(sink, [300], config=CHECKPOINTS)
        held.wait()
        if end == "stopped":
            held.job.stop(tmp_path / "saved")
        held.cancel() if end == "cancelled" else held.end() if end == "finished" else held.job.close()
        held.let_go()
    before = kind.rows(tmp_path)
    for _ in range(2):
        rel.run(writes(sink))
    assert kind.rows(tmp_path) == (before + ALL + ALL if kind.appends else ALL)


@pytest.mark.parametrize(
    ("named", "other"),
    [
        *((kind, other) for kind in ("csv-folder", "growing", "csv-file") for other in ("./{}", "link/{}", "file")),
        *((kind, other) for kind in ("csv-folder", "growing") for other in ("{}/", "{}/../{}")),
    ],
)
def test_two_names_are_one_output(named: str, other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kind = KINDS[named]
    (tmp_path / "link").symlink_to(tmp_path)
    name = other.format(kind.name, kind.name)
    if other == "file":
        name = "another.csv" if kind.is_file else "another"
        (tmp_path / name).symlink_to(tmp_path / kind.name)
    first = Held(kind.sink(str(tmp_path / kind.name)), [300])
    first.wait()
    with raises(SinkTakenError, "output-taken", "writes"):
        rel.run(writes(kind.sink(name)))
    first.job.snapshot(tmp_path / "saved")
    first.cancel()
    rel.run(writes(kind.sink(name)), restore=tmp_path / "saved")
    assert kind.rows(tmp_path) == ALL


@pytest.mark.parametrize("whose", ["another job", "another program"])
def test_a_lone_part_of_somebody_else_is_never_replaced(whose: str, tmp_path: Path) -> None:
    kind = KINDS["csv-folder"]
    target = tmp_path / kind.name
    if whose == "another job":
        rel.run(writes(rel.csv(target), name="other"))
    else:
        target.mkdir()
        (target / "part-0.csv").write_text("n\n7\n")
    seen = kind.files(tmp_path)
    with raises(SinkError, "foreign-output"):
        rel.run(writes(rel.csv(target)))
    assert kind.files(tmp_path) == seen


def test_the_part_of_an_earlier_run_stays_until_that_of_the_next_one_is_shown(tmp_path: Path) -> None:
    kind = KINDS["csv-folder"]
    sink = kind.sink(str(tmp_path / kind.name))
    rel.run(writes(sink))
    seen = kind.files(tmp_path)
    with holding(sink, [300], config=CHECKPOINTS) as held:
        held.wait()
        assert kind.files(tmp_path) == seen
    assert kind.files(tmp_path) == seen
    rel.run(writes(sink))
    assert len(kind.files(tmp_path)) == 1
    assert kind.files(tmp_path) != seen
    assert kind.rows(tmp_path) == ALL


def test_the_part_of_an_earlier_run_goes_when_a_restore_shows_the_first_one(tmp_path: Path) -> None:
    kind = KINDS["csv-folder"]
    sink = kind.sink(str(tmp_path / kind.name))
    rel.run(writes(sink))
    held = Held(sink, [300], config=CHECKPOINTS)
    held.wait()
    held.job.snapshot(tmp_path / "saved")  # hidden, as the job takes checkpoints
    held.cancel()
    with holding(sink, [300, 600], config=CHECKPOINTS, restore=tmp_path / "saved") as restored:
        restored.wait()
        assert kind.rows(tmp_path) == ALL[:300]


def test_no_output_of_a_job_is_touched_if_one_of_them_is_anothers(tmp_path: Path) -> None:
    kind = KINDS["csv-folder"]
    first = Held(kind.sink(str(tmp_path / kind.name)), [300, 600])
    for name in ("A", "B"):
        first.wait()
        first.job.snapshot(tmp_path / name)
    first.end()
    seen = kind.files(tmp_path)
    with holding(rel.csv(tmp_path / "taken"), [300], "other") as other:
        other.wait()
        topology = writes(kind.sink(str(tmp_path / kind.name)))
        topology.source(rel.sequence(10), name="more").sink(rel.csv(tmp_path / "taken"), name="second")
        for pins in ({}, {"numbers": 0, "out": 0, "more": 1, "second": 1}):
            with raises(SinkTakenError, "output-taken", operator="second"):
                rel.run(topology, rel.JobConfig(pes=pins), restore=tmp_path / "A")
            assert kind.files(tmp_path) == seen


@kinds
def test_a_run_that_lost_its_output_fails_by_name_and_shows_nothing_more(kind: Kind, tmp_path: Path) -> None:
    target = tmp_path / kind.name
    held = Held(kind.sink(str(target)), [300], config=CHECKPOINTS)
    held.wait()
    folder = OutputFolder(str(target), is_file=kind.is_file)
    records = (target.parent if kind.is_file else target) / ".rayelastic"
    (record,) = records.iterdir()
    owner = json.loads(record.read_text()) | {"process": None}
    record.write_text(json.dumps(owner))
    other = OutputOwner(folder, SinkContext("other", "there", "run of the other"), "run of the other")
    try:
        with raises(JobFailedError, "output-taken", "other", "there"):
            held.end()
        assert kind.rows(tmp_path) == []
        assert [file.name for file in records.iterdir()] == [f"{folder.file or 'owner'}-00000002.json"]
    finally:
        other.release(changed=True)


def test_an_output_whose_owner_was_killed_is_free_at_once(tmp_path: Path) -> None:
    program = (
        "import sys, rayelastic as rel\n"
        "def rows():\n"
        "    yield (1,)\n"
        "    print('runs', flush=True)\n"
        "    sys.stdin.read()\n"
        "topology = rel.Topology('writes')\n"
        "topology.source(rel.callable(rows, {'n': int}), name='numbers').sink(rel.csv(sys.argv[1]), name='out')\n"
        "rel.run(topology)\n"
    )
    kind, target = KINDS["csv-folder"], str(tmp_path / "out")
    command, pipe = [sys.executable, "-c", program, target], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "runs\n"
            with raises(SinkTakenError, "output-taken", str(process.pid)):
                rel.run(writes(rel.csv(target)))
        finally:
            process.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, though nobody has asked how
        rel.run(writes(rel.csv(target)))
    assert kind.rows(tmp_path) == ALL
    assert not list((tmp_path / "out").glob(".*.partial"))


def test_two_sinks_of_one_job_have_outputs_of_their_own(tmp_path: Path) -> None:
    topology = writes(rel.csv(tmp_path / "out"))
    topology.source(rel.sequence(10), name="more").sink(rel.parquet(tmp_path / "out"), name="second")
    with raises(SinkTakenError, "output-taken", "writes", "out", operator="second"):
        rel.run(topology)
    job = rel.start(writes(rel.csv(tmp_path / "out")))
    job.wait()
    rel.run(writes(rel.csv(tmp_path / "out")))  # what has ended holds nothing, closed or not


@pytest.mark.parametrize("renewed", [True, False])
def test_an_owner_on_another_machine_stands_while_its_claim_is_renewed(renewed: bool, tmp_path: Path) -> None:
    folder, waited = OutputFolder(str(tmp_path)), list[float]()
    first = OutputOwner(folder, SinkContext("first", "out", "1"), "1")
    (record,) = (tmp_path / ".rayelastic").iterdir()
    held = json.loads(record.read_text())
    record.write_text(json.dumps(held | {"process": held["process"] | {"host": "far", "space": "another boot"}}))

    def wait(seconds: float) -> None:
        waited.append(seconds)
        if renewed:
            os.utime(record, ns=(1, record.stat().st_mtime_ns + 1000))

    def claim() -> OutputOwner:
        return OutputOwner(folder, SinkContext("second", "out", "2"), "2", wait=wait)

    if renewed:
        with raises(SinkTakenError, "output-taken", "first"):
            claim()
        assert len(waited) == 1
    else:
        second = claim()
        assert LEASE - 2 < sum(waited) < LEASE + 2
        with raises(SinkTakenError, "output-taken", "second"):
            first.check()
        second.check()
        second.release(changed=True)
    first.release(changed=True)


def test_a_claim_is_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_owner, "BEAT", 0.01)
    owner = OutputOwner(OutputFolder(str(tmp_path)), SinkContext("first", "out", "1"), "1")
    (record,) = (tmp_path / ".rayelastic").iterdir()
    before = record.stat().st_mtime_ns
    while record.stat().st_mtime_ns == before:
        pass
    owner.release(changed=True)


def renewing(sink: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == f"owner-{sink}"]


def test_nothing_renews_the_claim_of_a_writer_that_was_dropped(tmp_path: Path) -> None:
    owner = OutputOwner(OutputFolder(str(tmp_path)), SinkContext("first", "out", "1"), "1")
    (thread,) = renewing("out")
    del owner
    gc.collect()
    thread.join(5)
    assert not thread.is_alive()


def test_a_lost_element_leaves_no_thread(tmp_path: Path) -> None:
    topology, gate = rel.Topology("lost"), testing.Gate()
    rows = topology.source(testing.script([*ROWS[:100], gate, *ROWS[100:200]], Row), name="rows")
    rows.sink(rel.parquet(tmp_path / "out"), name="lost sink")
    made = Losing(topology, rel.JobConfig(checkpoint=rel.Checkpoint(tmp_path / "saved", every=600.0)))
    assert gate.wait_reached(PATIENCE)
    made.take()
    before = renewing("lost sink")
    made.lose(gate)
    made.job.wait(PATIENCE)
    made.job.close()
    gc.collect()
    for thread in before:
        thread.join(5)
    assert (len(before), renewing("lost sink")) == (1, [])


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "flipped": lambda file: file.write_bytes(b"n\n" + bytes([file.read_bytes()[2] ^ 1]) + file.read_bytes()[3:]),
    "emptied": lambda file: file.write_bytes(b""),
    "lost": lambda file: file.unlink(),
    "replaced": lambda file: file.write_bytes(b"n\n" + b"7\n" * 300),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("shown", [True, False])
@pytest.mark.parametrize("kind", [KINDS["csv-folder"], KINDS["csv-file"]], ids=["folder", "file"])
def test_a_damaged_part_that_a_checkpoint_counts_on_is_an_error(
    kind: Kind, shown: bool, damage: str, tmp_path: Path
) -> None:
    """E5."""
    sink, saved = kind.sink(str(tmp_path / kind.name)), tmp_path / "saved"
    (tmp_path / "out.csv").write_text("n\n" + "7\n" * TOTAL)  # last week's
    config = rel.JobConfig(checkpoint=rel.Checkpoint(tmp_path / "checkpoints", every=600.0) if not shown else False)
    held = Held(sink, [300], config=config)
    held.wait()
    held.job.snapshot(saved)  # which a job without checkpoints shows
    held.cancel()
    pattern = "part-*" if shown and not kind.is_file else ".*.partial"
    (part,) = (tmp_path / kind.name if not kind.is_file else tmp_path).glob(pattern)
    DAMAGES[damage](part)
    seen = kind.files(tmp_path)
    with raises(StateError, "missing-output", operator="out"):
        rel.run(writes(sink), restore=saved)
    assert kind.files(tmp_path) == seen


def test_a_job_recovers_from_the_checkpoint_before_one_whose_part_is_damaged(tmp_path: Path) -> None:
    """E5, while the job runs."""
    kind = KINDS["csv-folder"]
    held = Held(kind.sink(str(tmp_path / kind.name)), [300, 600], config=CHECKPOINTS)
    coordinator = held.job._control._coordinator  # type: ignore[attr-defined]
    for _ in range(2):
        held.wait()
        coordinator._checkpoints.loop.take()
    newest = max((tmp_path / "out").glob("part-1-*"))
    newest.write_bytes(newest.read_bytes().replace(b"555", b"556"))
    coordinator._recovery.lose(Failure("planted"))
    held.end()
    assert kind.rows(tmp_path) == ALL
    assert held.job.status.checkpoints.restarts >= 1
