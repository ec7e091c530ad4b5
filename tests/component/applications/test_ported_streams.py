"""Timers, sessions with gaps of their own, fraud and top words of random streams, against brute force.

As they run, stopped in their midst and gone on with, and in replicas that come and go.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rayelastic as rel
from examples.ported import count_with_timeout, dynamic_sessions, fraud, top_words
from rayelastic import testing
from tests.component.applications import by_brute_force
from tests.waiting import wait_until_emitted

KEY = b"0123456789abcdef"
PATIENCE = 60.0
DISORDER = 5  # seconds before or behind; programs take 10
MANUAL = rel.JobConfig(threads=rel.Threads(model="manual"), elasticity="off")
ELASTIC = rel.JobConfig(regions="manual", elasticity="off")


@dataclass(frozen=True)
class Program:
    """A ported program: how it is built, what keeps its keys, what else has to come out of it, and its rows."""

    build: Callable[[Sequence[Any]], rel.Topology]
    keeps: str
    source: str
    expected: Callable[[Sequence[Any]], list[Any]]
    row: Callable[[int, int, int], Any]  # of a time and two dice


PROGRAMS = {
    "timers": Program(
        count_with_timeout.build,
        "counted",
        "seen",
        by_brute_force.counted,
        lambda at, one, _: count_with_timeout.Seen("abc"[one % 3], at),
    ),
    "gaps": Program(
        dynamic_sessions.build,
        "sessions",
        "events",
        by_brute_force.dynamic_sessions,
        lambda at, one, other: dynamic_sessions.Event("abc"[one % 3], at, (1, 5, 20)[other % 3]),
    ),
    "fraud": Program(
        fraud.build,
        "fraud",
        "payments",
        by_brute_force.alerts,
        lambda at, one, other: fraud.Payment(one % 3, at, (0.5, 20.0, 700.0)[other % 3]),
    ),
    "top words": Program(
        top_words.build,
        "top",
        "words",
        by_brute_force.top_words,
        lambda at, one, _: top_words.Word("abcdefghi"[one], at),
    ),
}
steps = st.tuples(st.integers(0, 9), st.integers(-DISORDER, DISORDER), st.integers(0, 8), st.integers(0, 8))
streams = st.lists(steps, min_size=1, max_size=60)


def rows_of(program: Program, stream: list[tuple[int, int, int, int]]) -> list[Any]:
    rows, now = [], DISORDER
    for pace, disorder, one, other in stream:
        now += pace
        rows.append(program.row(now + disorder, one, other))
    return rows


def fed(program: Program, rows: Sequence[Any], source: Any) -> rel.Topology:
    """The program, fed by another source than its own, which gives the same rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rel, "rows", lambda *_, **__: source)
        return program.build(rows)


def wait_until_given(job: rel.Job, program: Program, count: int) -> None:
    wait_until_emitted(job, program.source, count)


def check(name: str, stream: list[tuple[int, int, int, int]]) -> None:
    program = PROGRAMS[name]
    rows = rows_of(program, stream)
    assert sorted(map(tuple, rel.run(program.build(rows), MANUAL)["out"])) == sorted(map(tuple, program.expected(rows)))


def check_restored(name: str, stream: list[tuple[int, int, int, int]]) -> None:
    program = PROGRAMS[name]
    rows = rows_of(program, stream)
    cut = len(rows) // 2
    gate = testing.Gate()
    with tempfile.TemporaryDirectory() as folder:
        snapshot = rel.Snapshot(Path(folder) / "cut", key=KEY)
        kind = type(rows[0])
        job = rel.start(fed(program, rows, testing.script([*rows[:cut], gate], kind)), MANUAL)
        try:
            assert gate.wait_reached(PATIENCE)
            wait_until_given(job, program, cut)
            before = job.stop(snapshot)["out"]
        finally:
            job.close()
        after = rel.run(fed(program, rows, testing.script(rows, kind)), MANUAL, restore=snapshot)["out"]
    assert sorted(map(tuple, [*before, *after])) == sorted(map(tuple, program.expected(rows)))


def check_rescaled(name: str, stream: list[tuple[int, int, int, int]]) -> None:
    program = PROGRAMS[name]
    rows = rows_of(program, stream)
    gates = [testing.Gate() for _ in range(3)]
    script: list[Any] = []
    for number, gate in enumerate(gates):
        script += [*rows[number * len(rows) // 4 : (number + 1) * len(rows) // 4], gate]
    script += rows[3 * len(rows) // 4 :]
    job = rel.start(fed(program, rows, testing.script(script, type(rows[0]))), ELASTIC)
    try:
        region = job.plan().region_of(program.keeps).region.name
        for gate, replicas in zip(gates, (2, 3, 1), strict=True):
            assert gate.wait_reached(PATIENCE)
            assert job.rescale(region, replicas).region(region).replicas == replicas
            gate.open()
        found = job.wait(PATIENCE)["out"]
    finally:
        for gate in gates:
            gate.open()
        job.close()
    assert sorted(map(tuple, found)) == sorted(map(tuple, program.expected(rows)))


WAYS = {"run": check, "restored": check_restored, "rescaled": check_rescaled}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=4, deadline=None)
@given(streams)
def test_random_streams(name: str, way: str, stream: list[tuple[int, int, int, int]]) -> None:
    WAYS[way](name, stream)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=500, deadline=None)
@given(streams)
def test_many_random_streams(name: str, way: str, stream: list[tuple[int, int, int, int]]) -> None:
    WAYS[way](name, stream)
