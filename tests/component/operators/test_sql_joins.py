"""Joins without event times mean what SQL means, whatever comes first: against a naive interpretation of SQL."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import pytest

import rayelastic as rel
from rayelastic import testing

pytestmark = pytest.mark.edges

LEFT, RIGHT = {"k": str | None, "j": int | None, "n": int}, {"k": str | None, "j": int | None, "text": str | None}
How = Literal["inner", "left", "right", "full"]
HOWS: tuple[How, ...] = ("inner", "left", "right", "full")
Row = tuple[Any, ...]
ONE = rel.JobConfig(threads=1, elasticity="off")
CONFIGS = {
    "one thread": ONE,
    "two threads, queues": rel.JobConfig(threads=rel.Threads(count=2, model="dynamic"), elasticity="off"),
    "eight threads, queues": rel.JobConfig(threads=rel.Threads(count=8, model="dynamic"), elasticity="off"),
    "elastic": rel.JobConfig(),
    "several elements": rel.JobConfig(pes=3),
}
PROGRAMS = 150


def sql(lefts: Sequence[Row], rights: Sequence[Row], keys: int, how: str) -> Counter[Row]:
    """SELECT l.*, r.n FROM l <how> JOIN r ON l.k = r.k [AND l.j = r.j], as the standard says it."""

    def matches(left: Row, right: Row) -> bool:
        pairs = list(zip(left[:keys], right[:keys], strict=True))
        return all(one is not None and other is not None and one == other for one, other in pairs)

    rest = 3 - keys
    found = [(*one, *other[keys:]) for one in lefts for other in rights if matches(one, other)]
    if how in ("left", "full"):
        found += [(*one, *(None,) * rest) for one in lefts if not any(matches(one, other) for other in rights)]
    if how in ("right", "full"):
        alone = [other for other in rights if not any(matches(one, other) for one in lefts)]
        found += [(*other[:keys], *(None,) * rest, *other[keys:]) for other in alone]
    return Counter(found)


def topology_of(left: Any, right: Any, keys: int, how: How) -> rel.Topology:
    topology = rel.Topology("sql")
    fields = ("k", "j")[:keys]
    lefts, rights = topology.source(left, name="left"), topology.source(right, name="right")
    lefts.key_by(*fields).join(rights.key_by(*fields), name="joined", how=how).sink(rel.list(), name="out")
    return topology


def out(result: Any) -> Counter[Row]:
    return Counter(tuple(row) for row in result["out"])


def rows(dice: random.Random, side: str) -> list[Row]:
    key = ("a", "b", "a key of more than twelve bytes", None)
    other = (1, 2, None)
    value: Any = {"left": lambda: dice.randrange(3), "right": lambda: dice.choice(["x", "a text that is long", None])}
    return [(dice.choice(key), dice.choice(other), value[side]()) for _ in range(dice.randrange(25))]


def endless(given: Sequence[Row], schema: Any) -> Any:
    """A source of which nobody knows whether it ends."""
    return rel.callable(lambda: iter([*given]), schema)


SOURCES: dict[str, Any] = {"ends": rel.rows, "may not end": endless}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_random_joins_are_as_in_sql(config: rel.JobConfig) -> None:
    for seed in range(PROGRAMS // len(CONFIGS)):
        dice = random.Random(f"{seed} {config}")
        lefts, rights = rows(dice, "left"), rows(dice, "right")
        keys, how = dice.choice((1, 2)), dice.choice(HOWS)
        kinds = dice.choice([*SOURCES]), dice.choice([*SOURCES])
        topology = topology_of(SOURCES[kinds[0]](lefts, LEFT), SOURCES[kinds[1]](rights, RIGHT), keys, how)
        assert out(rel.run(topology, config)) == sql(lefts, rights, keys, how), (seed, keys, how, kinds)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(400))
def test_more_random_joins_are_as_in_sql(seed: int) -> None:
    dice = random.Random(seed)
    lefts, rights = rows(dice, "left") * dice.choice((1, 40)), rows(dice, "right") * dice.choice((1, 3))
    keys, how, config = dice.choice((1, 2)), dice.choice(HOWS), dice.choice([*CONFIGS.values()])
    kinds = dice.choice([*SOURCES]), dice.choice([*SOURCES])
    topology = topology_of(SOURCES[kinds[0]](lefts, LEFT), SOURCES[kinds[1]](rights, RIGHT), keys, how)
    assert out(rel.run(topology, config)) == sql(lefts, rights, keys, how)


L: list[Row] = [("a", 1, 0), ("b", 1, 1), (None, 1, 2), ("a", 2, 3), ("d", 1, 4)]
R: list[Row] = [("a", 1, "x"), ("c", 1, "y"), (None, 1, "z"), ("a", 1, "w"), ("b", None, None)]


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("first", ["left", "right"])
@pytest.mark.parametrize("before", [0, 2, len(L)], ids=str)
def test_the_order_of_arrival_decides_nothing(how: How, first: str, before: int) -> None:
    """So many tuples of one side, then the other side, then the rest; without queues, so all is joined at a gate."""
    begins, ends, goes_on = gates = testing.Gate(), testing.Gate(), testing.Gate()
    steps: dict[str, list[Any]] = {"left": [*L], "right": [*R]}
    second = "right" if first == "left" else "left"
    steps[first].insert(before, goes_on)
    steps[second] = [begins, *steps[second], ends]
    topology = topology_of(testing.script(steps["left"], LEFT), testing.script(steps["right"], RIGHT), 1, how)
    job = rel.start(topology, rel.JobConfig(threads=rel.Threads(count=1, model="manual"), elasticity="off"))
    try:
        assert goes_on.wait_reached(30)
        begins.open()
        assert ends.wait_reached(30)
        ends.open()
        goes_on.open()
        assert out(job.wait()) == sql(L, R, 1, how)
    finally:
        for gate in gates:
            gate.open()
        job.close()


def test_a_side_that_ends_is_read_first_and_alone_is_kept() -> None:
    """Of two that end it is the right one: the left has given nothing before that, and is never kept."""
    many = [("a", 1, n) for n in range(20_000)]
    topology = topology_of(rel.rows(many, LEFT), rel.rows(R, RIGHT), 1, "left")
    result = rel.run(topology, ONE)
    assert [row[2] for row in result["out"]] == list(itertools.chain.from_iterable((n, n) for n in range(20_000)))
    assert (
        "joined keeps its right side, which is read first: left begins when it has ended"
        in topology.explain().replace("\n          ", " ")
    )
