"""Functions of whole windows, against brute force."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic.errors import GraphError
from tests.component.operators.running import CONFIGS, results


class Row(NamedTuple):
    key: str
    at: int
    n: int


class Whole(NamedTuple):
    key: str
    start: int
    end: int
    numbers: str


def rows_of(seed: int) -> list[Row]:
    dice = random.Random(seed)
    return [Row(dice.choice("abc"), n + dice.randrange(-5, 6), n) for n in range(300)]


def whole(key: tuple[str], window: Any, tuples: list[Row]) -> Iterator[Whole]:
    yield Whole(*key, window.start, window.end, " ".join(str(t.n) for t in tuples))


def text(rows: list[Row]) -> str:
    return " ".join(str(row.n) for row in sorted(rows, key=lambda row: row.at))


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize(("size", "slide"), [(10, 10), (10, 4), (4, 10)])
def test_windows(size: int, slide: int, config: str) -> None:
    rows = rows_of(1)
    windows = defaultdict(list)
    for row in rows:
        for start in range(-400, 400, 1):
            if start % slide == 0 and start <= row.at < start + size:
                windows[row.key, start].append(row)
    expected = [Whole(key, start, start + size, text(mine)) for (key, start), mine in windows.items()]

    def declare(s: rel.Stream) -> rel.Stream:
        framed = s.event_time("at", name="time", lateness=10).key_by("key").window(seconds=size, slide=slide)
        return framed.process(whole, name="whole", schema=Whole)

    assert sorted(results(Row, rows, declare, CONFIGS[config])) == sorted(expected)


@pytest.mark.parametrize("seed", range(5))
def test_sessions(seed: int) -> None:
    rows = rows_of(seed)
    expected = []
    for key in "abc":
        sessions: list[list[Row]] = []
        for row in sorted((row for row in rows if row.key == key), key=lambda row: row.at):
            if sessions and row.at - sessions[-1][-1].at <= 2:
                sessions[-1].append(row)
            else:
                sessions.append([row])
        expected += [Whole(key, mine[0].at, mine[-1].at + 2, text(mine)) for mine in sessions]

    def declare(s: rel.Stream) -> rel.Stream:
        framed = s.event_time("at", name="time", lateness=10).key_by("key").session(gap=2)
        return framed.process(whole, name="whole", schema=Whole)

    assert sorted(results(Row, rows, declare)) == sorted(expected)


def test_the_bounds_of_sessions_are_those_of_aggregates() -> None:
    rows = rows_of(7)

    def sessions(s: rel.Stream) -> Any:
        return s.event_time("at", name="time", lateness=10).key_by("key").session(gap=2)

    aggregated = results(Row, rows, lambda s: sessions(s).aggregate(name="n", n=rel.count()))
    processed = results(Row, rows, lambda s: sessions(s).process(whole, name="whole", schema=Whole))
    assert sorted(t[:3] for t in processed) == sorted(t[:3] for t in aggregated)


def test_what_has_no_process() -> None:
    topology = rel.Topology("wrong")
    timed = topology.source(rel.rows(rows_of(1), schema=Row), name="rows").event_time("at", name="time")
    for framed, fn, said in (
        (timed.key_by("key").window(count=3), whole, "windows by count are only aggregated"),
        (timed.window(seconds=3), whole, "Write .key_by(...) before"),
        (timed.key_by("key").window(seconds=3), len, "process calls fn(key, window, tuples)"),
    ):
        with pytest.raises(GraphError) as caught:
            framed.process(fn, name="whole", schema=Whole)  # type: ignore[arg-type]
        assert said in str(caught.value)
