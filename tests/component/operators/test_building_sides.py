"""Joins of all pairs as they run: which side is read first, what is kept, that nobody waits for ever, what survives."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from threading import Event
from typing import Any

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.graph.operators.joins.build_first import Waiting, sources_that_wait
from rayelastic.runtime.element import wiring
from tests.component.operators.test_sql_joins import HOWS, LEFT, ONE, RIGHT, How, out, sql, topology_of

pytestmark = pytest.mark.edges

PATIENCE = 30.0
PAIR = {"k": int, "n": int}
SMALL = rel.JobConfig(threads=rel.Threads(count=2, model="dynamic", queue_records=8, run_records=4), elasticity="off")


def numbers(topology: rel.Topology, name: str, count: int, keys: int) -> Any:
    return topology.source(rel.rows([(n % keys, n) for n in range(count)], PAIR), name=name).key_by("k")


@pytest.mark.parametrize("config", [ONE, SMALL, rel.JobConfig(pes=3)], ids=["one thread", "small queues", "elements"])
def test_a_stream_joined_with_itself_ends(config: rel.JobConfig) -> None:
    """Neither side may wait for the other: both are of one source, which has to go on for either."""
    rows = [(n % 100, n) for n in range(600)]
    topology = rel.Topology("itself")
    sides = topology.source(rel.rows(rows, PAIR), name="all").split(name="sides", even=lambda t: t.n % 2 == 0)
    later = sides.rest.map(lambda t: (t.k + 1, t.n), name="later", schema=PAIR).key_by("k")
    sides.even.key_by("k").join(later, name="pairs", how="full").sink(rel.list(), name="out")
    assert sources_that_wait(topology.operators) == ()
    assert "pairs keeps both sides" in topology.explain()
    lefts: list[Any] = [(k, None, n) for k, n in rows if n % 2 == 0]
    rights: list[Any] = [(k + 1, None, n) for k, n in rows if n % 2 == 1]
    expected = Counter((k, n, other) for (k, _, n, _, other) in sql(lefts, rights, 1, "full").elements())
    assert out(rel.run(topology, config)) == expected


def test_joins_of_joins_wait_for_one_another() -> None:
    topology = rel.Topology("chain")
    first, second, third = (numbers(topology, name, 900, 300) for name in ("a", "b", "c"))
    both = first.join(second, name="ab", how="inner")
    both.key_by("k").join(third, name="abc", how="inner", suffix="_third").sink(rel.list(), name="out")
    assert sources_that_wait(topology.operators) == (
        Waiting("a", "ab", "right"),
        Waiting("a", "abc", "right"),
        Waiting("b", "abc", "right"),
    )
    result = rel.run(topology, SMALL)["out"]
    assert result[0]._fields == ("k", "n", "n_right", "n_third")
    assert len(result) == 300 * 3**3


def test_two_joins_crosswise_wait_for_the_same_side() -> None:
    topology = rel.Topology("crosswise")
    a, b = numbers(topology, "a", 300, 300), numbers(topology, "b", 300, 300)
    a.join(b, name="ab", how="inner").sink(rel.list(), name="out")
    b.join(a, name="ba", how="inner").sink(rel.list(), name="again")
    assert sources_that_wait(topology.operators) == (Waiting("a", "ab", "right"), Waiting("a", "ba", "in"))
    assert "ba keeps its left side, which is read first" in topology.explain()
    result = rel.run(topology, SMALL)
    assert len(result["out"]) == len(result["again"]) == 300


@rel.operator(inputs={"left": rel.exactly(1), "right": rel.exactly(1)}, outputs={"total": int}, stateless=True)
class Sum:
    """Waits for a tuple of each side."""

    def invoke(self, left: Any, right: Any) -> Any:
        return (left[0].n + right[0].n,)


def test_nobody_waits_for_a_side_that_needs_tuples_of_the_other() -> None:
    """The right fills its stage at a barrier that the left feeds, too: neither would go on."""
    topology = rel.Topology("barrier")
    a, b = numbers(topology, "a", 5000, 5000), numbers(topology, "b", 5000, 5000)
    a.join(b, name="ab", how="inner").sink(rel.list(), name="out")
    topology.apply(Sum(), name="sum", left=a, right=b).sink(rel.count(), name="sums")
    assert sources_that_wait(topology.operators) == ()
    result = rel.run(topology, SMALL)
    assert (len(result["out"]), result["sums"]) == (5000, 5000)


def test_an_endless_side_waits_for_the_other_or_both_are_kept() -> None:
    def declared(left: Any, right: Any) -> rel.Topology:
        return topology_of(left, right, 1, "inner")

    ends, may_not = rel.rows([], LEFT), rel.callable(lambda: iter(()), LEFT)
    assert sources_that_wait(declared(may_not, ends).operators) == (Waiting("left", "joined", "right"),)
    assert sources_that_wait(declared(ends, may_not).operators) == (Waiting("right", "joined", "in"),)
    assert sources_that_wait(declared(may_not, may_not).operators) == ()
    assert sources_that_wait(declared(ends, ends).operators) == (Waiting("left", "joined", "right"),)


def test_the_side_that_waits_emits_and_keeps_nothing(tmp_path: Path) -> None:
    """As long as the other one goes on; a snapshot is taken meanwhile, and restored."""
    begun, goes_on = Event(), Event()

    def right(n: int) -> tuple[str, int, str]:
        if n == 200:
            begun.set()
            assert goes_on.wait(PATIENCE)
        return str(n), 1, "x"

    lefts = [(str(n), 1, n) for n in range(5000)]
    expected = [(*left, *((1, "x") if left[2] < 400 else (None, None))) for left in lefts]
    topology = topology_of(rel.rows(lefts, LEFT), rel.generate(right, 400, RIGHT), 1, "left")
    job = rel.start(topology, ONE)
    try:
        assert begun.wait(PATIENCE)
        job.snapshot(tmp_path / "snapshot")
        assert job.metrics().operator("left").tuples_out == 0
        goes_on.set()
        assert [tuple(t) for t in job.wait(PATIENCE)["out"]] == expected
    finally:
        goes_on.set()
        job.close()
    assert [tuple(t) for t in rel.run(topology, ONE, restore=tmp_path / "snapshot")["out"]] == expected


def waits_in_its_source(topology: rel.Topology, wait: Any) -> Any:
    return topology.source(rel.generate(lambda n: (wait(n), n), 20, PAIR), name="right")


def waits_in_a_function(topology: rel.Topology, wait: Any) -> Any:
    rows = topology.source(rel.rows([(n, n) for n in range(20)], PAIR), name="right")
    return rows.map(lambda t: (wait(t.n), t.n), name="waits", schema=PAIR)


@pytest.mark.parametrize("side", [waits_in_its_source, waits_in_a_function])
def test_a_side_that_waits_for_the_other_one_does_not_keep_it_waiting(side: Any, monkeypatch: Any) -> None:
    """The left is to begin when the right has ended, whose function waits for the left."""
    monkeypatch.setattr(wiring, "STANDSTILL", 0.05)
    goes_on = Event()

    def wait(n: int) -> int:
        assert n < 10 or goes_on.wait(PATIENCE)
        return n

    def left(n: int) -> tuple[int, int]:
        goes_on.set()
        return n, n

    topology = rel.Topology("waits")
    lefts = topology.source(rel.generate(left, 20, PAIR), name="left").key_by("k")
    lefts.join(side(topology, wait).key_by("k"), name="joined", how="full").sink(rel.list(), name="out")
    assert sources_that_wait(topology.operators) == (Waiting("left", "joined", "right"),)
    assert sorted(map(tuple, rel.run(topology, ONE)["out"])) == [(n, n, n) for n in range(20)]


def test_a_source_waits_for_one_that_waits_itself(monkeypatch: Any) -> None:
    """`a` for `b`, and `b` for `c`: nothing of `b` moves, and `a` keeps on waiting all the same."""
    monkeypatch.setattr(wiring, "STANDSTILL", 0.05)
    given: list[str] = []

    def numbered(name: str) -> Any:
        def emit(n: int) -> tuple[int, int]:
            given.append(name)
            return n, n

        return topology.source(rel.generate(emit, 20, PAIR), name=name)

    topology = rel.Topology("row")
    a, b, c = map(numbered, "abc")
    a.key_by("k").join(b.key_by("k"), name="ab", how="inner").sink(rel.count(), name="out")
    b.key_by("k").join(c.throttle(name="slow", per_second=50).key_by("k"), name="bc", how="inner").sink(
        rel.count(), name="again"
    )
    result = rel.run(topology, ONE)
    assert (result["out"], result["again"]) == (20, 20)
    assert given == ["c"] * 20 + ["b"] * 20 + ["a"] * 20


def test_a_probing_side_is_not_kept() -> None:
    """State is that of the right, however long the left is."""
    ends = testing.Gate()
    lefts = [*((str(n), 1, n) for n in range(5000)), ends]
    topology = topology_of(testing.script(lefts, LEFT), rel.rows([("7", 1, "x")], RIGHT), 1, "left")
    job = rel.start(topology, ONE)
    try:
        assert ends.wait_reached(PATIENCE)
        assert job.metrics().operator("joined").state_keys == 1
        ends.open()
        assert len(job.wait(PATIENCE)["out"]) == 5000
    finally:
        ends.open()
        job.close()


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("config", [ONE, rel.JobConfig(pes=2)], ids=["one element", "two elements"])
def test_a_restored_join_emits_the_rest(how: How, config: rel.JobConfig, tmp_path: Path) -> None:
    dice = random.Random(f"{how} {config.pes}")
    keys = ["a", "b", "c", "d", "e", None]
    lefts = [(dice.choice(keys), None, n) for n in range(30)]
    rights = [(dice.choice(keys[2:]), None, dice.choice(["x", "a text that is long"])) for _ in range(30)]
    for attempt, cut in enumerate([(0, 30), (30, 0), (12, 17), (30, 5)]):
        gates = testing.Gate(), testing.Gate()
        sides = [[*rows] for rows in (lefts, rights)]
        for steps, gate, at in zip(sides, gates, cut, strict=True):
            steps.insert(at, gate)
        job = rel.start(topology_of(testing.script(sides[0], LEFT), testing.script(sides[1], RIGHT), 1, how), config)
        try:
            assert all(gate.wait_reached(PATIENCE) for gate in gates)
            before = out(job.stop(tmp_path / str(attempt)))
        finally:
            for gate in gates:
                gate.open()
            job.close()
        again = topology_of(testing.script(lefts, LEFT), testing.script(rights, RIGHT), 1, how)
        after = out(rel.run(again, config, restore=tmp_path / str(attempt)))
        assert before + after == sql(lefts, rights, 1, how), cut
