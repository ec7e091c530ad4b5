"""Stages of channels: nothing is lost or doubled, order is kept where it is asked for, while their number changes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import ConfigError
from rayelastic.fluent.stream import Stream
from rayelastic.testing.collect import SINK, SOURCE, topology_of
from tests.component.rescale.gated import gated, rows_under_changes
from tests.raising import raises
from tests.waiting import wait_until, wait_until_emitted

PATIENCE = 60.0
MODELS = ("manual", "dynamic", "dedicated", None)


class Row(NamedTuple):
    k: int
    n: int
    word: str


class Seen(NamedTuple):
    total: int = 0


ROWS = [Row(n % 13, n, f"the word that is called {n * 7 % 100}") for n in range(3000)]


def some(t: Row) -> Any:
    for copy in range(t.n % 3):
        yield Row(t.k, t.n + copy, t.word)


def shout(t: Row) -> Row:
    return Row(t.k, t.n, t.word.upper())


def add_up(t: Row, s: Any) -> Row:
    s.total += t.n
    return Row(t.k, s.total, t.word)


def body(stream: Stream) -> Stream:
    return stream.flat_map(some, name="some", schema=Row).map(shout, name="shout", schema=Row)


def keyed(stream: Any) -> Stream:
    made: Stream = (
        stream.filter(lambda t: t.n % 2 == 1, name="odd").key_by("k").map(add_up, name="add", state=Seen, schema=Row)
    )
    return made


Declare = Callable[[Stream], Stream]

STAGES: dict[str, tuple[Declare, Declare]] = {
    "parallel": (body, lambda s: s.parallel(3, body, name="work")),
    "parallel, ordered": (body, lambda s: s.parallel(3, body, name="work", order=True)),
    "parallel by key": (keyed, lambda s: s.parallel(3, keyed, name="work", by="k")),
    "parallel by key, ordered": (keyed, lambda s: s.key_by("k").parallel(3, keyed, name="work", order=True)),
    "elastic": (body, lambda s: s.elastic(body, name="work", most=4, start=2)),
    "elastic, ordered": (body, lambda s: s.elastic(body, name="work", most=4, start=2, order=True)),
    "one channel": (body, lambda s: s.elastic(body, name="work", most=1, order=True)),
    "nothing in it": (lambda s: s, lambda s: s.elastic(lambda c: c, name="work", most=3, start=3, order=True)),
    "a stage in a stage": (body, lambda s: s.parallel(2, lambda c: c.elastic(body, name="work", most=2), name="outer")),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_gives_what_its_operators_give(stage: str, model: Any) -> None:
    plain, declare = STAGES[stage]
    expected = testing.collect(plain, ROWS, Row, rel.JobConfig(elasticity="off"))
    config = rel.JobConfig(
        threads=rel.Threads(count=2, model=model, queue_records=64, run_records=16), elasticity="off"
    )
    found = testing.collect(declare, ROWS, Row, config)
    assert Counter(found) == Counter(expected)
    if "ordered" in stage or stage in ("one channel", "nothing in it"):
        assert found == expected


def test_a_stage_across_processing_elements_keeps_the_order() -> None:
    plain, declare = STAGES["parallel, ordered"]
    assert testing.collect(declare, ROWS, Row, rel.JobConfig(pes=3)) == testing.collect(plain, ROWS, Row)


@pytest.mark.parametrize("ordered", [False, True])
def test_nothing_is_lost_while_the_number_of_channels_changes(ordered: bool) -> None:
    dice = random.Random(5)
    cuts = sorted(dice.sample(range(1, len(ROWS)), 12))
    source, gates = gated(ROWS, cuts, Row)
    used = set()

    def widen(job: Any) -> None:
        width = job._control._coordinator._cluster.handles["pe0"]._element._hosted.widths["work"]
        width.active = dice.randint(1, 5)  # while tuples are under way
        used.add(job.metrics().operator("work").channels)

    config = rel.JobConfig(elasticity="off", threads=rel.Threads(queue_records=64, run_records=16))
    topology = topology_of(lambda s: s.elastic(body, name="work", most=5, order=ordered), source)
    found = rows_under_changes(topology, config, gates, widen)
    expected = testing.collect(body, ROWS, Row, rel.JobConfig(elasticity="off"))
    assert len(used) >= 3
    assert Counter(found) == Counter(expected)
    assert not ordered or found == expected


@pytest.mark.parametrize("kind", ["elastic", "elastic_split"])
def test_channels_come_by_themselves(kind: str, tmp_path: Any) -> None:
    """The rate of two channels is tried, by IPDPS'09; a congested channel gets company, by ElasticLoadBalance."""

    def dear(t: Any) -> int:
        x = t.value
        for _ in range(20_000):
            x = (x * 1103515245 + 12345) % 2147483648
        return x

    def declare(stream: Stream) -> Stream:
        if kind == "elastic":
            return stream.elastic(lambda s: s.map(dear, name="dear"), name="work", most=3)
        parts = stream.elastic_split(3, name="work")
        one, *others = [part.map(dear, name=f"dear{number}") for number, part in enumerate(parts)]
        return one.union(*others)

    topology = rel.Topology("growing")
    declare(topology.source(rel.sequence(1 << 40), name=SOURCE)).sink(rel.count(), name=SINK)
    job = rel.start(topology, rel.JobConfig(elasticity=rel.Elasticity(thread_period=0.1)))
    try:
        wait_until(job, lambda: job.metrics().operator("work").channels >= 2)
        result = job.stop(f"{tmp_path}/snapshot")
        metrics = job.metrics()
    finally:
        job.close()
    assert result[SINK] == metrics.operator(SOURCE).tuples_out == metrics.operator("work").tuples_in


def test_what_is_under_way_is_in_no_snapshot(tmp_path: Any) -> None:
    gate = testing.Gate()
    topology = topology_of(STAGES["elastic, ordered"][1], testing.script([*ROWS[:1000], gate, *ROWS[1000:]], Row))
    job = rel.start(topology)
    try:
        assert gate.wait_reached(PATIENCE)
        wait_until_emitted(job, SOURCE, 1000)
        snapshot = rel.Snapshot(f"{tmp_path}/snapshot")
        first = job.stop(snapshot)[SINK]
    finally:
        job.close()
    rest = testing.collect(STAGES["elastic, ordered"][1], ROWS, Row, restore=snapshot)
    assert [*map(tuple, first), *rest] == testing.collect(body, ROWS, Row)


def test_an_elastic_stage_stays_in_one_processing_element() -> None:
    topology = rel.Topology("pinned")
    rows = topology.source(rel.rows(ROWS, Row), name="rows")
    rows.elastic(body, name="work", most=2).sink(rel.count(), name="out")
    with raises(ConfigError, "conflicting-arguments"):
        topology.plan(rel.JobConfig(pes={"work.1.some": 1}))
    assert "elastic stage: has as many channels as pay" in topology.explain()
