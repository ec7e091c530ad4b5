"""What goes by time, in snapshots: stopped anywhere, any number of times, nothing is lost, doubled or late for it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import StateError
from rayelastic.fluent.stream import Stream
from rayelastic.testing.collect import topology_of
from tests.raising import raises
from tests.waiting import wait_until_emitted

PATIENCE = 60.0
MANUAL = rel.JobConfig(threads=rel.Threads(count=1, model="manual"), elasticity="off")
ROWS = 600

Outputs = dict[str, list[tuple[Any, ...]]]


class Row(NamedTuple):
    at: int
    user: str | None
    x: float


def rows_of(seed: int) -> list[Row]:
    dice = random.Random(seed)
    users = [None, "", "a", "b", "a user with a long name", "another one of more than twelve bytes"]
    time, made = 0, []
    for _ in range(ROWS):
        time += dice.choice((0, 0, 1, 1, 2, 9))
        made.append(Row(time - dice.choice((0, 0, 1, 2, 5, 30)), dice.choice(users), dice.random()))
    return made


def declare(rows: Any) -> rel.Topology:
    topology = rel.Topology("timed")
    timed = topology.source(testing.script(rows, Row), name="rows").event_time("at", name="time", lateness=3)
    keyed = timed.key_by("user")
    counts = keyed.window(count=6, slide=2).aggregate(name="counts", mean=rel.mean("x"), last=rel.last("x"))
    tumbling = timed.window(seconds=10).aggregate(name="tumbling", n=rel.count(), users=rel.distinct("user"))
    sliding = keyed.window(seconds=12, slide=4).aggregate(
        name="sliding", total=rel.sum("x"), middle=rel.quantile("x", 0.5)
    )
    sessions = keyed.session(gap=5).aggregate(name="sessions", first=rel.first("x"), least=rel.min("at"))
    coarse = sliding.window(seconds=48).aggregate(name="coarse", n=rel.count())
    low, high = timed.filter(lambda t: t.x < 0.5, name="low"), timed.filter(lambda t: t.x >= 0.5, name="high")
    interval = low.key_by("user").join(high.key_by("user"), name="interval", within=(4, 2), how="left")
    latest = low.key_by("user").join(high.key_by("user"), name="latest", keep="latest")
    same = low.key_by("user").join(high.key_by("user"), name="same", window=10)
    merged = low.merge_by_time(high, name="merged")
    counts.sink(rel.list(), name="counts out")
    timely: list[Any] = [tumbling, sliding, sessions, coarse, interval, latest, same, merged]
    for stream in timely:
        name = stream.inputs[0]
        stream.sink(rel.list(), name=f"{name} out")
        stream.late().sink(rel.list(), name=f"{name} late")
    return topology


TWO_STREAMS = ("interval late", "latest late", "same late", "merged late")


def outputs(result: Mapping[str, Any], names: list[str]) -> Outputs:
    return {name: [tuple(row) for row in result[name]] for name in names}


def comparable(left: Outputs) -> Outputs:
    """What came late by either of two streams has an order in each of them, and none between them."""
    return {name: sorted(rows, key=repr) if name in TWO_STREAMS else rows for name, rows in left.items()}


def interrupted(rows: list[Row], cuts: list[int], folder: Path, config: rel.JobConfig, names: list[str]) -> Outputs:
    """What comes of the rows when the job is stopped after each of some numbers of them, and another goes on."""
    total: Outputs = {name: [] for name in names}
    restore: rel.Snapshot | None = None
    done = 0
    for number, cut in enumerate(cuts):
        gate = testing.Gate()
        job = rel.start(declare([*rows[:cut], gate]), config, restore=restore)
        try:
            assert gate.wait_reached(PATIENCE)
            wait_until_emitted(job, "rows", cut - done)
            restore, done = rel.Snapshot(folder / str(number)), cut
            for name, some in outputs(job.stop(restore), names).items():
                total[name] += some
        finally:
            job.close()
    for name, some in outputs(rel.run(declare(rows), config, restore=restore), names).items():
        total[name] += some
    return total


@pytest.mark.parametrize("seed", range(6))
def test_stopped_anywhere_they_give_what_one_run_gives(seed: int, tmp_path: Path) -> None:
    rows = rows_of(seed)
    names = [name for name in declare(rows).operators if name.endswith(("out", "late"))]
    expected = outputs(rel.run(declare(rows), MANUAL), names)
    assert all(expected[name] for name in names if not name.startswith("coarse late")), "nothing to compare"
    dice = random.Random(seed)
    cuts = sorted(dice.randrange(ROWS + 1) for _ in range(4))
    assert comparable(interrupted(rows, cuts, tmp_path, MANUAL, names)) == comparable(expected)


def test_they_go_on_in_other_processing_elements(tmp_path: Path) -> None:
    rows = rows_of(99)
    names = ["counts out", *(f"{n} {port}" for n in ("tumbling", "sliding", "sessions") for port in ("out", "late"))]
    expected = outputs(rel.run(declare(rows), MANUAL), names)
    config = rel.JobConfig(pes=2, threads=rel.Threads(count=2, model="dynamic"))
    assert comparable(interrupted(rows, [123, 456], tmp_path, config, names)) == comparable(expected)


def windowed(stream: Stream) -> Stream:
    timed = stream.event_time("at", name="time", lateness=3).key_by("user")
    return timed.window(seconds=12, slide=4).aggregate(name="sums", total=rel.sum("x"), last=rel.last("user"))


def test_a_window_is_the_same_under_every_condition() -> None:
    report = testing.verify_operator(windowed, rows_of(5)[:200], Row, snapshots=5)
    assert len(report.output) > 50
    assert "restored after 100 rows" in report.conditions


def other_size(stream: Stream) -> Stream:
    timed = stream.event_time("at", name="time", lateness=3).key_by("user")
    return timed.window(seconds=12, slide=6).aggregate(name="sums", total=rel.sum("x"), last=rel.last("user"))


def test_a_window_of_another_size_is_refused(tmp_path: Path) -> None:
    gate = testing.Gate()
    job = rel.start(topology_of(windowed, testing.script([*rows_of(1)[:50], gate], Row)))
    assert gate.wait_reached(PATIENCE)
    job.stop(tmp_path / "saved")
    with raises(StateError, "changed-state", "12", operator="sums"):
        testing.collect(other_size, rows_of(1), Row, restore=tmp_path / "saved")
