"""Python values of keys are pickled beside their operator, which goes on changing them in place: a checkpoint has what
there was at its mark."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic.runtime.values.checkpoint_record import CheckpointRecord
from tests.component.checkpoint.test_checkpoints import Losing
from tests.waiting import wait_until_received

PATIENCE = 60.0
SECRET = b"of this test alone"
KEYS = 5000
STEP = 7919  # prime to KEYS: rows go from key to key all over the table
LAST = 3  # rows that a key remembers
AFTER = 2500  # ticks from a tuple to its timer
LIFE = 60_000  # ticks without a tuple, and a key is forgotten
ROWS_A_KEY = 10  # where keys come and go


class Row(NamedTuple):
    key: int
    n: int


def spread(t: Any) -> Row:
    return Row(t.value * 7919 % 5000, t.value)


def passing(t: Any) -> Row:
    return Row(t.value // 10, t.value)


def fresh() -> dict[str, Any]:
    return {"rows": 0, "last": [], "sums": {"all": 0}}


def remember(t: Row, kept: dict[str, Any]) -> Row:
    """Changes a value in place, at several depths."""
    kept["rows"] += 1
    kept["last"].append(t.n)
    del kept["last"][:-LAST]
    kept["sums"]["all"] += t.n
    return t


class Remembering:
    """The same by event time, with a timer behind each tuple."""

    def on_tuple(self, t: Row, kept: dict[str, Any], out: rel.Out) -> None:
        remember(t, kept)
        out.timer(t.n + AFTER)

    def on_time(self, time: int, kept: dict[str, Any], out: rel.Out) -> None:
        kept["fired"] = time


def remembered(rows: int, key: int) -> dict[str, Any]:
    """What a key has after so many rows of the stream."""
    given = range(key * pow(STEP, -1, KEYS) % KEYS, rows, KEYS)
    total = len(given) * (given[0] + given[-1]) // 2 if given else 0
    return {"rows": len(given), "last": list(given[-LAST:]), "sums": {"all": total}}


class Running:
    """A job with an endless source, of which checkpoints are taken while it runs."""

    def __init__(self, topology: rel.Topology, folder: Path, watched: str) -> None:
        self.saved = rel.Checkpoint(folder / "saved", every=600.0, key=SECRET)
        self.losing = Losing(topology, rel.JobConfig(checkpoint=self.saved, elasticity="off"))
        self.job = self.losing.job
        self._watched = watched

    def await_rows(self, rows: int) -> None:
        wait_until_received(self.job, self._watched, rows)

    def take(self) -> tuple[Any, CheckpointRecord]:
        """What a checkpoint has, and what is told of it."""
        self.losing.take()
        record = self.job.status.checkpoints.recent[-1]
        assert record.problem == ""
        assert record.held == "", "nobody stands still"
        saved = rel.read_snapshot(self.saved)
        assert self.job.metrics().operator(self._watched).tuples_in > saved.positions["numbers"], "it went on meanwhile"
        return saved, record


def started(topology: rel.Topology, folder: Path, watched: str) -> Iterator[Running]:
    running = Running(topology, folder, watched)
    try:
        yield running
    finally:
        running.job.close()


@pytest.fixture
def mapping(tmp_path: Path) -> Iterator[Running]:
    topology = rel.Topology("values")
    rows = topology.source(rel.sequence(1 << 50), name="numbers").map(spread, name="row", schema=Row).key_by("key")
    rows.map(remember, name="kept", state=fresh, schema=Row, lane="python").sink(rel.count(), name="out")
    yield from started(topology, tmp_path, "kept")


def test_values_are_saved_as_they_were_at_the_mark_while_they_are_changed(mapping: Running) -> None:
    for number in range(1, 3):
        mapping.await_rows(number * 2 * KEYS)
        saved, _ = mapping.take()
        rows = saved.positions["numbers"]
        found = {row["key"]: row["value"] for row in saved["kept"].to_pylist()}
        assert found == {key: remembered(rows, key) for key in range(KEYS)}


@pytest.fixture
def timing(tmp_path: Path) -> Iterator[Running]:
    topology = rel.Topology("timers")
    rows = topology.source(rel.sequence(1 << 50), name="numbers").map(spread, name="row", schema=Row)
    timed = rows.event_time("n", name="timed", lateness=0).key_by("key")
    made = timed.process(Remembering, name="kept", schema=Row, state=fresh, lane="python")
    made.sink(rel.count(), name="out")
    yield from started(topology, tmp_path, "kept")


def test_what_timers_change_is_saved_as_it_was_at_the_mark(timing: Running) -> None:
    for number in range(1, 3):
        timing.await_rows(number * 2 * KEYS)
        saved, _ = timing.take()
        rows = saved["kept"].to_pylist()
        reached = max(row["value"]["last"][-1] for row in rows if row["value"]["last"]) + 1
        assert reached <= saved.positions["numbers"]
        for row in rows:  # all keys were at the same time of their streams
            expected = remembered(reached, row["key"])
            timers = [n + AFTER for n in expected["last"] if n + AFTER >= reached]
            fired = row["value"].pop("fired", None)
            assert (row["value"], row["timers"]) == (expected, timers), row
            assert fired is None or reached - KEYS <= fired < reached, "as late as it could be"
        assert len(rows) == KEYS


@pytest.fixture
def passing_by(tmp_path: Path) -> Iterator[Running]:
    topology = rel.Topology("lives")
    rows = topology.source(rel.sequence(1 << 50), name="numbers").map(passing, name="row", schema=Row)
    timed = rows.event_time("n", name="timed", lateness=0).key_by("key")
    timed.map(remember, name="kept", state=fresh, schema=Row, lane="python", ttl=LIFE).sink(rel.count(), name="out")
    yield from started(topology, tmp_path, "kept")


def test_what_is_forgotten_behind_the_mark_is_saved(passing_by: Running) -> None:
    for number in range(1, 4):
        passing_by.await_rows((number + 2) * LIFE // 2)
        saved, _ = passing_by.take()
        rows = saved.positions["numbers"]
        found = {row["key"]: row["value"]["last"][-1] for row in saved["kept"].to_pylist()}
        for key in range((rows - LIFE) // ROWS_A_KEY + 1, rows // ROWS_A_KEY):
            assert found[key] == key * ROWS_A_KEY + ROWS_A_KEY - 1


def unpicklable(t: Row, kept: dict[str, Any]) -> Row:
    kept["rows"] += 1
    if t.key == 1234:
        kept["lock"] = threading.Lock()
    return t


def test_a_value_that_cannot_be_pickled_ends_the_checkpoint_and_not_the_job(tmp_path: Path) -> None:
    topology = rel.Topology("locked")
    rows = topology.source(rel.sequence(1 << 50), name="numbers").map(spread, name="row", schema=Row).key_by("key")
    rows.map(unpicklable, name="kept", state=fresh, schema=Row, lane="python").sink(rel.count(), name="out")
    for running in started(topology, tmp_path, "kept"):
        running.await_rows(2 * KEYS)
        running.losing.take()
        told = running.job.status.checkpoints
        assert (told.taken, told.abandoned) == (0, 1)
        assert "operator 'kept'" in told.problem
        assert "cannot pickle '_thread.lock' object" in told.problem
        assert "Keep values that can be pickled" in told.problem
        running.await_rows(running.job.metrics().operator("kept").tuples_in + 2 * KEYS)
