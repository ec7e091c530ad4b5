"""Aggregates in two steps give what those in one give, and a hot key's first step runs on several replicas."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import GraphError, JobFailedError
from rayelastic.job import prepare, start
from rayelastic.plan.regions import RegionKind
from rayelastic.reasons import Code
from rayelastic.runtime.job.region_level import aggregates_for_two_steps
from rayelastic.runtime.values.region_adaptation import REGIONS
from tests.component.rescale.rescaling import flows
from tests.raising import raises
from tests.reasons import codes, values
from tests.waiting import wait_until

PATIENCE = 60.0
ANSWER = 0.002  # seconds that each tuple waits for its answer
PARTIAL = "counts.partial"
HOT = 10  # of a tuple in so many the key isn't the hot one


class Row(NamedTuple):
    key: str
    n: int
    exact: float
    word: str
    maybe: int | None


def rows(count: int, seed: int) -> list[Row]:
    """Keys by Zipf's law of exponent 2, texts that fit a record and that don't, nulls."""
    draw = random.Random(seed)
    keys = [f"key {i}" + " that is rather long" * (i % 2) for i in range(1, 40)]
    drawn = draw.choices(keys, [1 / i**2 for i in range(1, 40)], k=count)
    return [
        Row(
            key,
            draw.randint(-(10**12), 10**12),
            draw.randint(-1000, 1000) / 4,  # sums of these are exact
            "w" * draw.randint(0, 30) + str(draw.random()),
            draw.choice([None, draw.randint(0, 9)]),
        )
        for key in drawn
    ]


ALL: dict[str, Any] = {
    "tuples": rel.count(),
    "some": rel.count("maybe"),
    "sums": rel.sum("n"),
    "exact": rel.sum("exact"),
    "maybes": rel.sum("maybe"),
    "least": rel.min("n"),
    "most": rel.max("exact"),
    "least_word": rel.min("word"),
    "most_word": rel.max("word"),
    "none_least": rel.min("maybe"),
    "head": rel.first("word"),
    "tail": rel.last("word"),
    "maybe_head": rel.first("maybe"),
}


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize(
    "config",
    [
        rel.JobConfig(elasticity="off"),
        rel.JobConfig(elasticity="off", threads=rel.Threads(count=2, model="dynamic", run_records=7)),
        rel.JobConfig(elasticity="off", pes=3),
    ],
    ids=["inline", "short runs", "over links"],
)
def test_two_steps_give_what_one_gives(config: rel.JobConfig, keyed: bool) -> None:
    topology = rel.Topology("both")
    given = rows(5000, seed=1)
    stream = topology.source(rel.rows(given, Row), name="rows")
    grouped = stream.key_by("key") if keyed else stream
    grouped.aggregate(name="once", **ALL).sink(rel.list(), name="one")
    grouped.aggregate(name="twice", two_steps=True, **ALL).sink(rel.list(), name="two")
    result = rel.run(topology, config)
    assert len(result["one"]) == (len({t.key for t in given}) if keyed else 1)
    assert [tuple(t) for t in result["two"]] == [tuple(t) for t in result["one"]], "in the order of the keys, too"


def test_sums_that_are_too_large_fail_in_either_step() -> None:
    for numbers in ([2**62, 2**62], [2**62] * 2000):
        topology = rel.Topology("large")
        stream = topology.source(rel.rows([(1, value) for value in numbers], {"key": int, "n": int}), name="rows")
        stream.key_by("key").aggregate(name="sums", two_steps=True, n=rel.sum("n")).sink(rel.list(), name="out")
        with raises(JobFailedError, "job-failed", "doesn't fit into int64"):
            rel.run(topology, rel.JobConfig(threads=rel.Threads(run_records=1)))


class Hot:
    """Nine of ten tuples have one key, or more, for as long as somebody wants them."""

    def __init__(self, one_in: int = HOT) -> None:
        self.one_in = one_in
        self.enough = threading.Event()
        self.made: Counter[int] = Counter()

    def __call__(self) -> Iterator[tuple[int]]:
        number = 0
        while not self.enough.is_set():
            for _ in range(64):
                number += 1
                key = number % 7 + 1 if number % self.one_in == 0 else 0
                self.made[key] += 1
                yield (key,)


def counting(hot: Hot, ask: Callable[[NamedTuple], tuple[int]] | None = None) -> rel.Topology:
    topology = rel.Topology("hot")
    stream = topology.source(rel.callable(hot, schema={"key": int}), name="keys")
    if ask is not None:
        stream = stream.map(ask, name="ask", schema={"key": int}, lane="python")
    counts = stream.key_by("key").aggregate(name="counts", two_steps=None if ask is not None else True, n=rel.count())
    counts.sink(rel.list(), name="out")
    return topology


def test_the_first_step_is_dealt_out_in_turns_and_the_second_goes_by_keys() -> None:
    hot = Hot()
    job = start(counting(hot), rel.JobConfig(regions="manual", elasticity="off"))
    try:
        plan = job.plan()
        first, second = plan.region_of(PARTIAL).region, plan.region_of("counts").region
        assert (first.kind, second.kind) == (RegionKind.STATELESS, RegionKind.DATA_PARALLEL)
        for region, replicas in ((first, 2), (second, 2), (first, 3), (second, 1), (first, 1), (first, 2)):
            flows(job, PARTIAL)
            job.rescale(region.name, replicas)
        flows(job, PARTIAL)
        wait_until(job, lambda: all(o.tuples_in for pe in job.metrics().pes for o in pe.operators if o.name == PARTIAL))
        metrics = job.metrics()
        assert metrics.operator("counts").tuples_in < metrics.operator(PARTIAL).tuples_in
        hot.enough.set()
        assert {t.key: t.n for t in job.wait(PATIENCE)["out"]} == hot.made
    finally:
        hot.enough.set()
        job.close()


@pytest.mark.timeout(150)
def test_a_hot_key_gets_replicas_by_itself() -> None:
    hot = Hot()

    def ask(t: NamedTuple) -> tuple[int]:
        if not hot.enough.is_set():
            threading.Event().wait(ANSWER)
        return (t[0],)

    config = rel.JobConfig(
        regions="elastic", elasticity=rel.Elasticity(algorithm="off", region_period=0.4, max_processes=3)
    )
    job = start(counting(hot, ask), config)
    try:
        wait_until(job, lambda: job.plan().region_of(PARTIAL).replicas >= 3)
        assert job.plan().region_of("counts").replicas == 1, "what is left to go by keys is little"
        hot.enough.set()
        assert {t.key: t.n for t in job.wait(PATIENCE)["out"]} == hot.made
    finally:
        hot.enough.set()
        job.close()


LOOKS = 40
PARTS = rel.JobConfig(
    elasticity="off", threads=rel.Threads(count=1, model="dynamic")
)  # whoever finds the queue full counts beside it


def endless(value: Callable[[NamedTuple], tuple[int, int]], **wanted: Any) -> rel.Topology:
    topology = rel.Topology("endless")
    numbers = topology.source(rel.sequence(1 << 40), name="numbers")
    keyed = numbers.map(value, name="keyed", schema={"key": int, "n": int}, lane="compiled").key_by("key")
    keyed.aggregate(name="counts", **wanted).sink(rel.list(), name="out")
    return topology


@pytest.mark.parametrize("two_steps", [False, True])
def test_a_count_that_is_read_has_all_that_has_been_counted(two_steps: bool) -> None:
    """Also what the operator's producer counted beside it; that comes together at the next mark: there is none here."""
    job = start(endless(lambda t: (t[0] % 50, t[0]), n=rel.count(), two_steps=two_steps), PARTS)
    seen = 0
    try:
        for _ in range(LOOKS):
            flows(job, "counts")
            counted = 0 if two_steps else job.metrics().operator("counts").tuples_in
            read = sum(values.n for _, values in job.state("counts").items(100))
            assert read >= max(counted, seen)
            seen = read
        if two_steps:  # what is on its way between the steps is some runs
            counted = job.metrics().operator(PARTIAL).tuples_in
            assert sum(values.n for _, values in job.state("counts").items(100)) > counted - 100_000
    finally:
        job.cancel(drain=False)
        job.close()


class Asked(NamedTuple):
    times: int = 0


def test_a_hot_key_is_named_before_any_replica_is_tried_in_vain() -> None:
    """One key has nearly all tuples of a function with keys, which waits for an answer."""
    hot = Hot(one_in=40)

    def ask(t: NamedTuple, s: Any) -> tuple[int]:
        if not hot.enough.is_set():
            threading.Event().wait(ANSWER)
        s.times += 1
        return (t[0],)

    topology = rel.Topology("named")
    keyed = topology.source(rel.callable(hot, schema={"key": int}), name="keys").key_by("key")
    keyed.map(ask, name="ask", state=Asked, schema={"key": int}, lane="python").sink(rel.count(), name="out")
    config = rel.JobConfig(
        regions="elastic", elasticity=rel.Elasticity(algorithm="off", region_period=0.4, max_processes=3)
    )
    job = start(topology, config)
    try:
        wait_until(
            job, lambda: any(Code.HOT_KEY in codes(one.decision.reasons) for one in job.adaptations(every_pass=True))
        )
        assert not any(one.decision.changes for one in job.adaptations(every_pass=True) if one.pe == REGIONS)
        found = job.bottleneck(0.5)
        assert found.operator == "ask"
        assert values(found.held, Code.HOTTEST_KEY)["key"] == "0"
    finally:
        hot.enough.set()
        job.close()


def test_the_first_step_has_nothing_that_would_have_to_be_saved(tmp_path: Path) -> None:
    """A job that is stopped while replicas have the hot key, and goes on, counts each tuple once."""
    gates = [testing.Gate(), testing.Gate()]
    keys: list[Any] = [(0 if n % HOT else n % 7 + 1,) for n in range(20_000)]
    expected = Counter(key for (key,) in keys)
    keys[15_000:15_000], keys[5_000:5_000] = [gates[1]], [gates[0]]

    def topology() -> rel.Topology:
        made = rel.Topology("saved")
        source = made.source(testing.script(keys, {"key": int}), name="keys")
        source.key_by("key").aggregate(name="counts", two_steps=True, n=rel.count()).sink(rel.list(), name="out")
        return made

    config = rel.JobConfig(regions="manual", elasticity="off")
    for gate in gates:
        job = start(topology(), config, restore=tmp_path / "saved" if gate is gates[1] else None)
        try:
            region = job.plan().region_of(PARTIAL).region.name
            job.rescale(region, 3)
            assert gate.wait_reached(PATIENCE)
            job.rescale(region, 2)
            if gate is gates[0]:
                assert not job.stop(tmp_path / "saved")["out"]
                saved = rel.read_snapshot(tmp_path / "saved")
                assert list(saved) == ["counts"]
                assert sum(saved["counts"]["n"].to_pylist()) == 5_000
            else:
                gate.open()
                assert {t.key: t.n for t in job.wait(PATIENCE)["out"]} == expected
        finally:
            gate.open()
            job.close()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"emit": "update", "n": rel.count()}, "two_steps=True needs emit='final'"),
        ({"n": rel.mean("value")}, "n=mean(value) can't be merged"),
        ({"n": rel.top_k("value", 2)}, "n_1=largest(value, 1), n_2=largest(value, 2) can't be merged"),
        ({}, "no aggregates to compute"),
    ],
)
def test_what_can_not_be_in_two_steps_is_told_at_its_declaration(arguments: dict[str, object], problem: str) -> None:
    stream = rel.Topology("bad").source(rel.sequence(10), name="numbers")
    with pytest.raises(GraphError) as raised:
        stream.aggregate(name="totals", two_steps=True, **arguments)  # type: ignore[arg-type]
    assert problem in str(raised.value)
    assert "totals" in str(raised.value)


def test_aggregates_that_could_be_in_two_steps_are_known() -> None:
    topology = rel.Topology("known")
    stream = topology.source(rel.rows(rows(1, seed=1), Row), name="rows").key_by("key")
    stream.aggregate(name="counts", n=rel.count()).sink(rel.list(), name="a")
    stream.aggregate(name="means", n=rel.mean("n")).sink(rel.list(), name="b")
    stream.aggregate(name="updates", emit="update", n=rel.count()).sink(rel.list(), name="c")
    stream.aggregate(name="parts", two_steps=True, n=rel.count()).sink(rel.list(), name="d")
    job = prepare(topology, rel.JobConfig())
    assert set(aggregates_for_two_steps(job).values()) == {"counts"}, "the second of two steps is none of them"
