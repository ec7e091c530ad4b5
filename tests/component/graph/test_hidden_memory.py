"""What an operator is known to remember outside its state keeps it in one place, and `explain` says so."""

from __future__ import annotations

import functools
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import ConfigError, GraphError
from rayelastic.job import prepare
from rayelastic.plan.replica_bounds import bounds_of_regions
from rayelastic.reasons import Code
from rayelastic.runtime.job.region_level import why_together
from tests.raising import raises

pytestmark = pytest.mark.edges
SEEN: set[int] = set()
COUNTS: Counter[int] = Counter()


class Sum(NamedTuple):
    total: int = 0


def fresh(t: Any) -> bool:
    new = t.n not in SEEN
    SEEN.add(t.n)
    return new


class Numbered:
    def __init__(self) -> None:
        self.n = 0

    def __call__(self, t: Any) -> int:
        self.n += 1
        return self.n


class Timed:
    def __init__(self) -> None:
        self.total = 0

    def on_tuple(self, t: Any, state: Any, out: Any) -> None:
        self.total += t.n
        out.give((t.k, self.total))


class Totals:
    def init(self) -> Sum:
        return Sum()

    def add(self, t: Any, state: Any) -> None:
        COUNTS[t.k] += 1
        state.total += t.n

    def merge(self, other: Any, state: Any) -> None:
        state.total += other.total

    def result(self, state: Any) -> int:
        return int(state.total)


def running(t: Any, s: Any) -> tuple[int, int]:
    s.total += t.n
    COUNTS[t.k] += 1
    return t.k, s.total


def run_of(run: np.ndarray) -> dict[str, np.ndarray]:
    COUNTS.update(run["n"].tolist())
    return {"n": run["n"]}


async def waiting(t: Any) -> int:
    SEEN.add(t.n)
    return int(t.n)


def counter() -> Callable[[Any], int]:
    n = 0

    def count(t: Any) -> int:
        nonlocal n
        n += 1
        return n

    return count


PAIR = {"k": int, "total": int}
DECLARED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "filter": (lambda s: s.filter(fresh, name="op"), "SEEN"),
    "object": (lambda s: s.map(Numbered(), name="op", schema=int), "self.n"),
    "nonlocal": (lambda s: s.map(counter(), name="op", schema=int), "n"),
    "vectorised": (lambda s: s.map(run_of, name="op", schema={"n": int}), "COUNTS"),
    "async": (lambda s: s.map(waiting, name="op", schema=int), "SEEN"),
    "keyed": (lambda s: s.key_by("k").map(running, name="op", state=Sum, schema=PAIR), "COUNTS"),
    "process": (lambda s: s.key_by("k").process(Timed, name="op", state=Sum, schema=PAIR), "self.total"),
    "combine": (lambda s: s.key_by("k").combine(Totals(), name="op", schema=int), "COUNTS"),
    "scan": (
        lambda s: s.key_by("k").scan(lambda a, t: COUNTS.update([t.n]) or a + 1, 0, name="op", schema=int),
        "COUNTS",
    ),
}


def declared(name: str) -> rel.Topology:
    topology = rel.Topology("hidden")
    rows = rel.rows([(i % 3, i % 7) for i in range(50)], schema={"k": int, "n": int})
    DECLARED[name][0](topology.source(rows, name="rows")).sink(rel.list(), name="out")
    return topology


@pytest.mark.parametrize("name", DECLARED)
def test_it_has_one_replica_and_says_so(name: str) -> None:
    """A8."""
    topology, remembered = declared(name), DECLARED[name][1]
    text = " ".join(topology.explain().split())
    assert f"remembers `{remembered}` outside its state: one replica" in text
    plan = topology.plan()
    assert not plan.region_of("op").region.kind.is_replicable
    with raises(ConfigError, "invalid-setting", str(remembered)):
        bounds_of_regions(plan, {"op": (2, 2)})
    assert bounds_of_regions(plan, {"op": (1, 1)})


def test_asking_for_replicas_is_an_error_before_anything_starts() -> None:
    """A8."""
    with raises(ConfigError, "invalid-setting", "op", "SEEN"):
        rel.run(declared("filter"), rel.JobConfig(regions="elastic", replicas={"op": 2}))


@pytest.mark.parametrize("stage", ["parallel", "parallel by key", "elastic"])
def test_no_stage_has_it_in_several_channels(stage: str) -> None:
    """A8."""
    stream = rel.Topology("stages").source(rel.rows([(1, 2)], schema={"k": int, "n": int}), name="rows")
    body = lambda s: s.filter(fresh, name="op")  # noqa: E731
    by = "k" if stage == "parallel by key" else None
    declare = stream.elastic if stage == "elastic" else functools.partial(stream.parallel, width=2, by=by)
    with raises(GraphError, "branching-stage", "op", "SEEN"):
        declare(name="stage", body=body)


def fresh_number(t: Any) -> bool:
    SEEN.add(t.value)
    return True


def test_it_never_moves_to_another_process_by_itself() -> None:
    """A8: a move begins again from a checkpoint, which doesn't have what it remembers."""
    topology = rel.Topology("hidden")
    numbers = topology.source(rel.sequence(10), name="numbers")
    numbers.filter(fresh_number, name="op").sink(rel.list(), name="out")
    why = why_together(prepare(topology, rel.JobConfig()), saves=True)
    assert why == Code.REMEMBERS(operator="op", names=["SEEN"])


def test_functions_that_remember_nothing_keep_their_replicas() -> None:
    """A8."""
    topology = rel.Topology("free")
    source = topology.source(rel.rows([(1, 2)], schema={"k": int, "n": int}), name="rows")
    source.filter(lambda t: t.n in SEEN, name="python", lane="python").sink(rel.list(), name="a")
    source.key_by("k").map(lambda t, s: (t.k, s.total), name="keyed", state=Sum, schema=PAIR).sink(rel.list(), name="b")
    here = threading.local()

    def connected(t: Any) -> bool:
        if not hasattr(here, "connection"):
            here.connection = []
        here.connection.append(t.n)
        return True

    source.filter(connected, name="connected").sink(rel.list(), name="c")
    kinds = [topology.plan().region_of(name).region.kind.value for name in ("python", "keyed", "connected")]
    assert kinds == ["stateless", "data-parallel", "stateless"]
    assert "remembers" not in topology.explain()


def changed() -> Callable[[Any], bool]:
    last: int | None = None

    def differs(t: Any) -> bool:
        nonlocal last
        new, last = t.n != last, t.n
        return new

    return differs


def nested() -> Callable[[Any], int]:
    n = 0

    def add(x: int) -> int:
        nonlocal n
        n += x
        return n

    return lambda t: add(t.n)


def numbered() -> Callable[[Any], Any]:
    n = 0

    def each(t: Any) -> Any:
        nonlocal n
        n += 1
        yield n

    return each


def of_keys() -> Callable[[Any, Any], int]:
    n = 0

    def count(t: Any, s: Any) -> int:
        nonlocal n
        n += 1
        s.total += t.n
        return n

    return count


def timed() -> type:
    n = 0

    class Counting:
        def on_tuple(self, t: Any, state: Any, out: Any) -> None:
            nonlocal n
            n += 1
            state.total = n
            out.give((n,))

    return Counting


def called() -> object:
    calls = 0

    class Calls:
        def init(self) -> Sum:
            return Sum()

        def add(self, t: Any, state: Any) -> None:
            nonlocal calls
            calls += 1
            state.total = calls

        def result(self, state: Any) -> int:
            return int(state.total)

    return Calls()


def of_turn() -> Callable[[Any], int]:
    n = 0

    def turn(t: Any) -> int:
        nonlocal n
        n += 1
        return n % 2

    return turn


def parts_of(streams: Any) -> Any:
    return streams[0].map(lambda t: t.n, name="as_it_is").union(streams[1].map(lambda t: t.n * 10, name="times"))


NS = [1, 1, 2, 2, 1]
COUNTED: dict[str, tuple[Callable[[Any], Any], list[int]]] = {
    "map": (lambda s: s.map(counter(), name="op", schema=int), [1, 2, 3, 4, 5]),
    "filter": (lambda s: s.filter(changed(), name="op"), [1, 2, 1]),
    "nested": (lambda s: s.map(nested(), name="op", schema=int), [1, 2, 4, 6, 7]),
    "flat_map": (lambda s: s.flat_map(numbered(), name="op", schema=int), [1, 2, 3, 4, 5]),
    "keyed": (lambda s: s.key_by("n").map(of_keys(), name="op", state=Sum, schema=int), [1, 2, 3, 4, 5]),
    "process": (lambda s: s.key_by("n").process(timed(), name="op", state=Sum, schema=int), [1, 2, 3, 4, 5]),
    "combine": (
        lambda s: (
            s.key_by("n").combine(called(), name="op", schema=int, emit="update").map(lambda t: t.value, name="v")
        ),
        [1, 2, 3, 4, 5],
    ),
    "split": (lambda s: parts_of(s.split(2, name="op", by=of_turn())), [10, 1, 20, 2, 10]),
}


@pytest.mark.parametrize("name", COUNTED)
def test_what_counts_in_a_cell_gives_what_python_gives(name: str) -> None:
    """A1."""
    declare, wanted = COUNTED[name]
    assert sorted(testing.collect(declare, [(n,) for n in NS], {"n": int})) == sorted((n,) for n in wanted)
