"""Aggregates at the end that their producer runs in part: results, snapshots and checkpoints are as ever."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic.errors import JobFailedError
from rayelastic.job.job import Job
from rayelastic.policy.element.observation import Observation
from tests.raising import raises
from tests.waiting import wait_until, wait_until_received

PATIENCE = 120.0
MANY = 60_000_000  # numbers: a job is in the middle of them for as long as a test needs
KEYS = 1000
SETTINGS = [
    {"words": "manual", "counts": "dynamic"},
    {"words": "dynamic", "counts": "manual"},
    {"words": "dynamic", "counts": "dynamic"},
]


class Line(NamedTuple):
    line: str


class Word(NamedTuple):
    word: str


class Keyed(NamedTuple):
    key: int
    value: int


def words(t: Line) -> Iterator[Word]:
    for word in t.line.split():
        yield Word(word)


def by_key(t: Any) -> Keyed:
    return Keyed(t.value % KEYS, t.value)


def config(threading: Any, **more: Any) -> rel.JobConfig:
    return rel.JobConfig(elasticity="off", threads=rel.Threads(count=2, model=threading, queue_records=256), **more)


def numbers(many: int = MANY) -> rel.Topology:
    topology = rel.Topology("numbers")
    keyed = topology.source(rel.sequence(many), name="numbers").map(by_key, name="words", schema=Keyed).key_by("key")
    keyed.aggregate(name="counts", n=rel.count(), least=rel.min("value"), total=rel.sum("value")).sink(
        rel.list(), name="out"
    )
    return topology


def check(rows: Any, many: int = MANY) -> None:
    each = many // KEYS
    found = {row.key: (row.n, row.least, row.total) for row in rows}
    assert found == {key: (each, key, each * key + KEYS * each * (each - 1) // 2) for key in range(KEYS)}


def flows(job: Job, tuples: int) -> None:
    wait_until_received(job, "counts", tuples)


@pytest.mark.parametrize("threading", SETTINGS)
def test_words_are_counted(threading: dict[str, str], tmp_path: Path) -> None:
    draw = random.Random(3)
    vocabulary = [f"{'long words of the text ' * (n % 3)}{n}".split()[-1] + "x" * (n % 20) for n in range(5000)]
    text = [" ".join(draw.choices(vocabulary, k=10)) for _ in range(100_000)]
    (tmp_path / "text").write_text("\n".join(text))
    topology = rel.Topology("word_count")
    lines = topology.source(rel.text(str(tmp_path / "text")), name="lines")
    counted = (
        lines.flat_map(words, name="words", schema=Word, lane="compiled")
        .key_by("word")
        .aggregate(name="counts", n=rel.count())
    )
    counted.sink(rel.list(), name="out")
    job = rel.start(topology, config(threading))
    try:
        found = {row.word: row.n for row in job.wait(PATIENCE)["out"]}
        assert found == Counter(word for line in text for word in line.split())
        metrics = job.metrics()
        assert metrics.operator("words").tuples_in == len(text)
        assert metrics.operator("words").tuples_out == metrics.operator("counts").tuples_in == 10 * len(text)
    finally:
        job.close()


@pytest.mark.parametrize("threading", SETTINGS)
def test_a_job_that_is_stopped_keeps_what_was_counted_in_part(threading: dict[str, str], tmp_path: Path) -> None:
    job = rel.start(numbers(), config(threading))
    try:
        flows(job, MANY // 20)
        job.stop(tmp_path / "saved")
    finally:
        job.close()
    check(rel.run(numbers(), config(threading), restore=tmp_path / "saved")["out"])


@pytest.mark.parametrize("threading", SETTINGS)
def test_a_checkpoint_has_what_was_counted_in_part(threading: dict[str, str], tmp_path: Path) -> None:
    settings = config(threading, checkpoint=rel.Checkpoint(tmp_path, every=0.2))
    job = rel.start(numbers(), settings)
    try:
        wait_until(job, lambda: job.status.checkpoints.taken >= 1)
        job.cancel(drain=False)
    finally:
        job.close()
    check(rel.run(numbers(), config(threading), restore=tmp_path)["out"])


def test_keys_move_to_a_replica_and_back_while_they_are_counted_in_part() -> None:
    many = 3 * MANY
    job = rel.start(numbers(many), config({"words": "manual", "counts": "dynamic"}, regions="manual"))
    try:
        flows(job, MANY // 20)
        region = job.plan().region_of("counts").region.name
        assert job.rescale(region, 2).region(region).replicas == 2
        assert job.rescale(region, 1).region(region).replicas == 1
        check(job.wait(PATIENCE)["out"], many)
    finally:
        job.close()


def test_a_sum_that_overflows_in_part_names_the_operator() -> None:
    def large(t: Any) -> Keyed:
        return Keyed(0, 1 << 50)

    topology = rel.Topology("large")
    keyed = topology.source(rel.sequence(MANY), name="numbers").map(large, name="words", schema=Keyed).key_by("key")
    keyed.aggregate(name="sums", total=rel.sum("value")).sink(rel.list(), name="out")
    with raises(JobFailedError, "job-failed", operator="sums"):
        rel.run(topology, config({"words": "manual", "sums": "dynamic"}))


@pytest.mark.parametrize("lane", ["compiled", "python"])
def test_elasticity_is_told_what_the_filler_of_a_queue_runs(lane: Any) -> None:
    topology = rel.Topology("told")
    numbers = topology.source(rel.sequence(1 << 60), name="numbers")
    keyed = numbers.map(by_key, name="words", schema=Keyed, lane=lane).key_by("key")
    keyed.aggregate(name="counts", n=rel.count()).sink(rel.list(), name="out")
    job = rel.start(topology, rel.JobConfig(elasticity=rel.Elasticity(thread_period=0.1)))
    try:
        while not (passes := list(job.adaptations(every_pass=True))):
            assert not job.status.state.is_final
        job.cancel(drain=False)
    finally:
        job.close()
    seen = passes[0].observation
    assert isinstance(seen, Observation)
    shared = {operator.name for operator in seen.operators if operator.shared}
    assert shared == ({"words", "counts"} if lane == "compiled" else {"counts"})


def test_python_answers_in_either_thread_what_machine_code_refuses() -> None:
    def scaled(t: Any) -> Keyed:
        return Keyed(t.value * 3_000_000_000_000 % KEYS, t.value)  # beyond 64 bits from 3,074,458 on

    many = 3_100_000
    topology = rel.Topology("answered")
    keyed = topology.source(rel.sequence(many), name="numbers").map(scaled, name="words", schema=Keyed).key_by("key")
    keyed.aggregate(name="counts", n=rel.count(), total=rel.sum("value")).sink(rel.list(), name="out")
    job = rel.start(topology, config({"words": "dynamic", "counts": "manual"}))
    try:
        rows = job.wait(PATIENCE)["out"]
        assert job.metrics().operator("words").answered_by_python == many - 3_074_458
    finally:
        job.close()
    assert sum(row.n for row in rows) == many
    assert sum(row.total for row in rows) == many * (many - 1) // 2


def test_two_streams_into_one_aggregate_are_counted() -> None:
    topology = rel.Topology("union")
    streams = [
        topology.source(rel.sequence(2_000_000), name=f"numbers{n}").map(by_key, name=f"words{n}", schema=Keyed)
        for n in "ab"
    ]
    keyed = streams[0].union(streams[1]).key_by("key")
    keyed.aggregate(name="counts", n=rel.count()).sink(rel.list(), name="out")
    rows = rel.run(topology, config({"wordsa": "dynamic", "wordsb": "manual", "counts": "dynamic"}))["out"]
    assert {row.key: row.n for row in rows} == dict.fromkeys(range(KEYS), 4000)
