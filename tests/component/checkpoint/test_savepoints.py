"""Savepoints of running jobs, and jobs that go on from them or from the checkpoints of another job."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from pyarrow import parquet

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import ConfigError, DamagedError, ErrorCode, StateError
from rayelastic.runtime.checkpoint.element import HOLD_LEASE
from rayelastic.runtime.checkpoint.files import SnapshotFolder
from rayelastic.runtime.checkpoint.standstill import ANSWER_TIMEOUT
from rayelastic.runtime.checkpoint.take import SAVE_TIMEOUT, STOP_PATIENCE
from tests.component.rescale.rescaling import Counted, Event, Events, Seen, check, count
from tests.raising import raises
from tests.waiting import wait_until_taken

PATIENCE = 60.0
KEYS, ROWS = 97, 4000


def counting(rows: Any, path: Path | None = None, names: tuple[str, str] = ("count", "out")) -> rel.Topology:
    topology = rel.Topology("savepoints")
    keyed = topology.source(rows, name="events").key_by("key")
    counts = keyed.map(count, name=names[0], state=Seen, schema=Counted, lane="compiled")
    counts.sink(rel.list(), name=names[1])
    if path is not None:
        counts.sink(rel.parquet(str(path)), name="files")
    return topology


def written(path: Path) -> list[Any]:
    table = parquet.read_table(path)
    return [Counted(*row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]


@pytest.fixture
def feed() -> Events:
    return Events(KEYS, ROWS)


@pytest.fixture
def gates() -> Iterator[list[testing.Gate]]:
    made = [testing.Gate(), testing.Gate()]
    yield made
    for gate in made:
        gate.open()


def script(feed: Events, gates: list[testing.Gate]) -> Any:
    given = feed.given
    return testing.script([*given[:1000], gates[0], *given[1000:2000], gates[1], *given[2000:]], Event)


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_running_job_is_saved_and_goes_on_and_others_go_on_from_there(
    feed: Events, gates: list[testing.Gate], checkpoint: bool, tmp_path: Path
) -> None:
    config = rel.JobConfig(
        regions="manual",
        elasticity="off",
        checkpoint=rel.Checkpoint(tmp_path / "checkpoints", every=0.2) if checkpoint else None,
    )
    job = rel.start(counting(script(feed, gates), tmp_path / "files"), config)
    try:
        assert gates[0].wait_reached(PATIENCE)
        assert job.rescale("r1", 3).region("r1").replicas == 3
        wait_until_taken(job, 2 if checkpoint else 0)  # a savepoint counts on none of them
        first = job.snapshot(tmp_path / "first")
        gates[0].open()
        assert gates[1].wait_reached(PATIENCE)
        second = job.snapshot(rel.Snapshot(tmp_path / "second"))
        gates[1].open()
        check(job.wait(PATIENCE)["out"], feed)
    finally:
        job.close()
    check(written(tmp_path / "files"), feed)
    for saved, replicas in ((second, 5), (first, 1)):
        gate = testing.Gate()
        rows = testing.script([*feed.given[:3000], gate, *feed.given[3000:]], Event)
        job = rel.start(counting(rows, tmp_path / "files"), config, restore=saved)
        try:
            assert gate.wait_reached(PATIENCE)
            assert job.rescale("r1", replicas).region("r1").replicas == replicas
            gate.open()
            check(job.wait(PATIENCE)["out"], feed)
        finally:
            gate.open()
            job.close()
        check(written(tmp_path / "files"), feed)


def test_a_job_that_is_stopped_with_three_replicas_goes_on_with_one_and_with_five(
    feed: Events, gates: list[testing.Gate], tmp_path: Path
) -> None:
    config = rel.JobConfig(regions="manual", elasticity="off")
    job = rel.start(counting(script(feed, gates)), config)
    try:
        assert gates[0].wait_reached(PATIENCE)
        assert job.rescale("r1", 3).region("r1").replicas == 3
        gates[0].open()
        assert gates[1].wait_reached(PATIENCE)
        assert len(job.plan().pes) >= 3
        before = job.stop(tmp_path / "saved")["out"]
    finally:
        job.close()
    assert len(before) == 2000
    for replicas in (1, 5):
        gate = testing.Gate()
        rows = testing.script([*feed.given[:3000], gate, *feed.given[3000:]], Event)
        job = rel.start(
            counting(rows), replace(config, replicas={"count": (replicas, replicas)}), restore=tmp_path / "saved"
        )
        try:
            assert gate.wait_reached(PATIENCE)
            assert job.plan().region("r1").replicas == replicas
            taken = [one.tuples_in for pe in job.metrics().pes for one in pe.operators if one.name == "count"]
            assert len([tuples for tuples in taken if tuples]) == replicas, "each has keys"
            gate.open()
            check([*before, *job.wait(PATIENCE)["out"]], feed)
        finally:
            gate.open()
            job.close()


def test_a_job_goes_on_from_the_checkpoints_of_another(feed: Events, gates: list[testing.Gate], tmp_path: Path) -> None:
    place = rel.Checkpoint(tmp_path / "checkpoints", every=0.2, keep=3)
    job = rel.start(counting(script(feed, gates)), rel.JobConfig(checkpoint=place, pes=2))
    try:
        for gate in gates:
            assert gate.wait_reached(PATIENCE)
            taken = job.status.checkpoints.taken
            wait_until_taken(job, taken + 2)
            gate.open()
        job.cancel(drain=False)
    finally:
        job.close()
    folders = sorted((tmp_path / "checkpoints").glob("0*"))
    newest = int(folders[-1].name)
    rows = rel.rows(feed.given, schema=Event)
    for restore in (place, tmp_path / "checkpoints", rel.Snapshot(folders[0])):
        check(rel.run(counting(rows), restore=restore)["out"], feed)
    # The numbers of another run at the same place go on behind those that are there: the newest is the highest.
    gate = testing.Gate()
    job = rel.start(
        counting(testing.script([*feed.given, gate], Event)), rel.JobConfig(checkpoint=place), restore=place
    )
    try:
        assert gate.wait_reached(PATIENCE)
        wait_until_taken(job, 1)
        assert job.status.checkpoints.last > newest
        assert job.status.checkpoints.abandoned == 0
        gate.open()
        check(job.wait(PATIENCE)["out"], feed)
    finally:
        gate.open()
        job.close()


def saved_at(feed: Events, gates: list[testing.Gate], folder: Path) -> rel.Snapshot:
    job = rel.start(counting(script(feed, gates)))
    try:
        assert gates[0].wait_reached(PATIENCE)
        return job.snapshot(folder)
    finally:
        for gate in gates:
            gate.open()
        job.close()


def test_a_topology_may_have_changed(feed: Events, gates: list[testing.Gate], tmp_path: Path) -> None:
    saved = saved_at(feed, gates, tmp_path / "saved")
    rows = rel.rows(feed.given, schema=Event)
    renamed = counting(rows, names=("tally", "result"))
    with raises(StateError, "unknown-state", "count"):
        rel.run(renamed, restore=saved)
    names = {"count": "tally", "out": "result"}
    check(rel.run(renamed, restore=rel.Snapshot(saved.location, rename=names))["result"], feed)
    more = counting(rows, tmp_path / "files")  # an added sink begins with what comes
    check(rel.run(more, restore=saved)["out"], feed)
    assert len(written(tmp_path / "files")) == ROWS - 1000
    fewer = rel.Topology("savepoints")
    fewer.source(rows, name="events").sink(rel.count(), name="out")
    with raises(StateError, "unknown-state", "count"):
        rel.run(fewer, restore=saved)
    assert rel.run(fewer, restore=rel.Snapshot(saved.location, drop=("count",)))["out"] == ROWS


@pytest.mark.parametrize(
    ("rename", "code"), [({"cuont": "tally"}, "unknown-state"), ({"count": "events"}, "duplicate-name")]
)
def test_a_wrong_name_is_refused(
    feed: Events, gates: list[testing.Gate], rename: dict[str, str], code: str, tmp_path: Path
) -> None:
    saved = saved_at(feed, gates, tmp_path / "saved")
    with raises(StateError, code, operator=next(iter(rename))):
        rel.run(counting(rel.rows(feed.given, schema=Event)), restore=rel.Snapshot(saved.location, rename=rename))


def test_a_wrong_name_to_be_dropped_is_refused(feed: Events, gates: list[testing.Gate], tmp_path: Path) -> None:
    saved = saved_at(feed, gates, tmp_path / "saved")
    again = counting(rel.rows(feed.given, schema=Event))
    with raises(StateError, "unknown-state", "count", operator="cuont"):
        rel.run(again, restore=rel.Snapshot(saved.location, drop=("cuont",)))
    rel.run(again, restore=rel.Snapshot(saved.location, drop=("out",)))
    for names in ("count", 7, (1,)):
        with raises(ConfigError, "wrong-type"):
            rel.Snapshot(saved.location, drop=names)  # type: ignore[arg-type]
    assert rel.Snapshot(saved.location, drop=(name for name in ("a", "b"))).drop == ("a", "b")  # type: ignore[arg-type]


def test_where_earlier_checkpoints_cannot_be_seen_nothing_starts(tmp_path: Path) -> None:
    """Those of an earlier run would pass for newer ones."""
    place = tmp_path / "a file"
    place.write_text("")
    with raises(StateError, "bad-location"):
        rel.run(counting(rel.rows([(0, 0)], schema=Event)), rel.JobConfig(checkpoint=rel.Checkpoint(place)))


def test_checkpoints_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for name in ("00000007", "99999999", "100000000", "rows", "1"):
        (tmp_path / name).mkdir()
    assert SnapshotFolder(rel.Snapshot(tmp_path)).numbered() == ["100000000", "99999999", "00000007"]


def test_nobody_goes_on_by_himself_while_others_are_being_saved() -> None:
    assert HOLD_LEASE > STOP_PATIENCE + SAVE_TIMEOUT + 2 * ANSWER_TIMEOUT


def test_what_cannot_be_gone_on_from_is_refused_before_anything_starts(tmp_path: Path) -> None:
    topology = counting(rel.rows([(0, 0)], schema=Event))
    with raises(ConfigError, "bad-location"):
        rel.run(topology, restore=rel.Checkpoint())
    with raises(DamagedError, "damaged-state"):
        rel.run(topology, restore=rel.Checkpoint(tmp_path / "nothing"))
    with raises(ConfigError, "wrong-type"):
        rel.run(topology, restore=7)  # type: ignore[arg-type]
    with raises(ConfigError, "duplicate-name"):
        rel.Snapshot(tmp_path, rename={"a": "c", "b": "c"})


def test_a_savepoint_that_cannot_be_written_lets_the_job_go_on(
    feed: Events, gates: list[testing.Gate], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no folder")
    job = rel.start(counting(script(feed, gates)))
    try:
        assert gates[0].wait_reached(PATIENCE)
        with raises(StateError, "bad-location"):
            job.snapshot(tmp_path / "file")
        saved = job.snapshot(tmp_path / "saved")
        with raises(StateError, "bad-location"):
            job.snapshot(saved)
        for gate in gates:
            gate.open()
        check(job.wait(PATIENCE)["out"], feed)
        with raises(StateError, "job-not-running"):
            job.snapshot(tmp_path / "late")
    finally:
        job.close()


def test_python_values_are_saved_under_a_key_alone_and_the_job_goes_on(
    feed: Events, gates: list[testing.Gate], tmp_path: Path
) -> None:
    topology = rel.Topology("values")
    keyed = topology.source(script(feed, gates), name="events").key_by("key")
    keyed.map(lambda t, kept: kept.append(t) or t, name="kept", state=list, schema=Event, lane="python").sink(
        rel.count(), name="out"
    )
    job = rel.start(topology)
    try:
        assert gates[0].wait_reached(PATIENCE)
        with raises(StateError, "unsigned-values", "kept"):
            job.snapshot(tmp_path / "unsigned")
        job.snapshot(rel.Snapshot(tmp_path / "signed", key=b"of this test alone"))
        for gate in gates:
            gate.open()
        assert job.wait(PATIENCE)["out"] == len(feed.given)
    finally:
        job.close()


class Small(NamedTuple):
    n: int
    text: str


class Narrow(NamedTuple):
    rows: np.int32 = 0  # type: ignore[assignment]
    name: str = "first"


class Wide(NamedTuple):
    note: str = "twelve bytes"
    rows: int = 0
    more: float | None = None
    name: str = ""
    short: str = "few"


class Other(NamedTuple):
    rows: str = ""


def narrow(t: Small, s: Any) -> tuple[int, str]:
    s.rows += 1
    s.name = t.text
    return s.rows, s.name


def wide(t: Small, s: Any) -> tuple[int, str, str, str]:
    s.rows += 1
    return s.rows, s.name, s.note, s.short


def other(t: Small, s: Any) -> int:
    s.rows = "x"
    return 1


def test_a_record_of_state_may_have_become_wider(tmp_path: Path) -> None:
    gate, rows = testing.Gate(), [Small(n % 5, f"{n:03} is a long text") for n in range(100)]
    before = rel.Topology("wider")
    keyed = before.source(testing.script([*rows[:50], gate], Small), name="rows").key_by("n")
    schema: dict[str, Any] = {"rows": int, "name": str}
    keyed.map(narrow, name="seen", state=Narrow, schema=schema, lane="compiled").sink(rel.list(), name="out")
    job = rel.start(before)
    try:
        assert gate.wait_reached(PATIENCE)
        saved = job.snapshot(tmp_path / "saved")
    finally:
        gate.open()
        job.close()
    after = rel.Topology("wider")
    keyed = after.source(rel.rows(rows, schema=Small), name="rows").key_by("n")
    schema |= {"note": str, "short": str}
    keyed.map(wide, name="seen", state=Wide, schema=schema, lane="compiled").sink(rel.list(), name="more")
    given = [tuple(t) for t in rel.run(after, restore=saved)["more"]]
    last = [rows[45 + n % 5].text for n in range(50)]  # each key's, before the savepoint
    assert given == [(n // 5 + 1, last[n - 50], "twelve bytes", "few") for n in range(50, 100)]
    wrong = rel.Topology("wider")
    keyed = wrong.source(rel.rows(rows, schema=Small), name="rows").key_by("n")
    keyed.map(other, name="seen", state=Other, schema={"n": int}, lane="compiled").sink(rel.count(), name="out")
    with raises(StateError, "changed-state", "seen"):
        rel.run(wrong, restore=saved)


@pytest.mark.parametrize("shape", [{}, {"kind": "nonsense"}, {"kind": "record", "keys": 7}, []])
def test_a_manifest_that_was_changed_tells_no_untyped_error(tmp_path: Path, shape: Any) -> None:
    """Of an unsigned one with a right digest: how the state was laid out is nonsense, and the record is another one."""
    gate, before = testing.Gate(), rel.Topology("wider")
    keyed = before.source(testing.script([(1, "a"), gate], Small), name="rows").key_by("n")
    keyed.map(narrow, name="seen", state=Narrow, schema={"rows": int, "name": str}, lane="compiled").sink(
        rel.list(), name="out"
    )
    job = rel.start(before)
    try:
        assert gate.wait_reached(PATIENCE)
        saved = job.snapshot(tmp_path / "saved")
    finally:
        gate.open()
        job.close()
    file = Path(saved.location) / "manifest.json"
    body = json.loads(json.loads(file.read_text())["body"]) | {"shapes": {"seen": shape}}
    text = json.dumps(body, sort_keys=True)
    file.write_text(json.dumps({"body": text, "sha256": hashlib.sha256(text.encode()).hexdigest(), "hmac": None}))
    after = rel.Topology("wider")
    keyed = after.source(rel.rows([], schema=Small), name="rows").key_by("n")
    schema = {"rows": int, "name": str, "note": str, "short": str}
    keyed.map(wide, name="seen", state=Wide, schema=schema, lane="compiled").sink(rel.list(), name="more")
    with raises(StateError, "changed-state", "seen"):
        rel.run(after, restore=saved)


class Number(NamedTuple):
    key: int
    n: int


AGGREGATES: dict[str, Any] = {
    "count": lambda stream: stream.key_by("key").count(name="totals"),
    "sum": lambda stream: stream.key_by("key").sum("n", name="totals"),
    "window": lambda stream: stream.key_by("key").window(count=1000).sum("n", name="totals"),
}


def test_a_job_whose_streams_end_while_it_is_stopped_says_where_it_was_saved(tmp_path: Path) -> None:
    saved = 0
    for attempt in range(20):
        gate, final = testing.Gate(), list[rel.JobStatus]()
        topology = rel.Topology("short")
        rows = topology.source(testing.script([(1,), gate, (2,)], {"n": int}), name="rows")
        rows.sink(rel.list(), name="out")
        job = rel.start(topology)

        def look(job: rel.Job = job, final: list[rel.JobStatus] = final) -> None:
            while not final:
                final.extend(status for status in [job.status] if status.state.is_final)

        looking = threading.Thread(target=look)
        looking.start()
        try:
            assert gate.wait_reached(PATIENCE)
            gate.open()  # the stream ends before the job is held, while it is, or after
            try:
                job.stop(tmp_path / str(attempt))
            except StateError as error:
                if error.code is not ErrorCode.JOB_NOT_RUNNING:
                    raise
            else:
                saved += 1
                looking.join(PATIENCE)
                assert final[0].savepoint == str(tmp_path / str(attempt)), "seen as finished before it was saved"
        finally:
            job.close()
            looking.join(PATIENCE)
    assert saved, "no job was stopped before it ended"


@pytest.mark.parametrize("replicas", [2, (3, 4)])
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_replicas_that_are_there_from_the_start_share_the_keys_of_a_savepoint(
    aggregate: str, replicas: Any, gates: list[testing.Gate], tmp_path: Path
) -> None:
    numbers = [Number(n % KEYS, n) for n in range(ROWS)]

    def totals(rows: Any) -> rel.Topology:
        topology = rel.Topology("totals")
        AGGREGATES[aggregate](topology.source(rows, name="rows")).sink(rel.list(), name="out")
        return topology

    config = (
        rel.JobConfig() if aggregate == "of all" else rel.JobConfig(regions="elastic", replicas={"totals": replicas})
    )
    expected = sorted(rel.run(totals(testing.script(numbers, Number)))["out"])
    job = rel.start(totals(testing.script([*numbers[:2000], gates[0], *numbers[2000:]], Number)))
    assert gates[0].wait_reached(PATIENCE)
    left = list(job.stop(tmp_path / "saved")["out"])
    gates[0].open()
    job.close()
    again = rel.run(totals(testing.script(numbers, Number)), config, restore=tmp_path / "saved")
    assert sorted([*left, *again["out"]]) == expected
