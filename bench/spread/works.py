"""The works: endless until told, heavy or in a lull as files in a folder say, with results that show any loss.

Sources read the folder, which all nodes see; so the load changes for all of them at once, wherever they run.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import rayelastic as rel
from rayelastic.topologies import vwap

ANSWER = 0.002  # seconds that a function waits for its answer
BURN = 40_000  # rounds of a loop: some 2 ms under the Python token
BURST = 100  # tuples between two looks at the folder
LULL = 0.05  # seconds between two tuples of a lull
KEYS = 97
PARTED = 60_000  # rows of a source that can seek: more than are burned in two minutes
SEED, DRAWN = 19, 100_000  # of keys by Zipf's law, which come again and again
SENTENCE = ["to", "be", "or", "not", "to", "be", "that", "is", "the", "question", "whether", "tis", "nobler"]
TRADED = 20_000  # events that come again and again, later


class Row(NamedTuple):
    key: int
    n: int


class Seen(NamedTuple):
    times: int = 0


class Word(NamedTuple):
    word: str


@dataclass(frozen=True)
class Signals:
    """What is wanted of a running work.

    Args:
        folder: that all nodes see.
    """

    folder: Path

    def set(self, name: str, made: int = 0) -> None:
        """Says 'lull' or 'enough'; of enough, how many tuples are made: a source that begins again makes all."""
        fresh = self.folder / f".{name}"
        fresh.write_text(str(made), encoding="utf-8")
        fresh.rename(self.folder / name)

    def clear(self) -> None:
        for path in self.folder.iterdir():
            path.unlink()

    @property
    def lull(self) -> bool:
        return (self.folder / "lull").exists()

    @property
    def enough(self) -> bool:
        return (self.folder / "enough").exists()

    def is_over(self, made: int) -> bool:
        """Return whether it is enough, and was so far."""
        return self.enough and made >= int((self.folder / "enough").read_text(encoding="utf-8") or 0)

    def turns(self) -> Iterator[int]:
        """0, 1, 2, ... as fast as they are taken, few in a lull, until it is enough."""
        pause, n = threading.Event(), 0
        while not self.is_over(n):
            lull = self.lull and not self.enough
            for _ in range(1 if lull else BURST):
                yield n
                n += 1
            if lull:
                pause.wait(LULL)


@dataclass(frozen=True)
class Work:
    """One of the works.

    Args:
        title: what it is.
        build: its topology.
        operator: whose region is replicated by hand.
        exact: whether rows are right, given how many tuples the source made.
        apart: an operator that gets a process of its own by hand.
    """

    title: str
    build: Callable[[Signals], rel.Topology]
    operator: str
    exact: Callable[[Any, int], bool]
    apart: str = ""


def rows(signals: Signals) -> Iterator[Row]:
    for n in signals.turns():
        yield Row(n % KEYS, n // KEYS)


def ask(t: Row) -> Row:
    threading.Event().wait(ANSWER)
    return t


def ask_with_state(t: Row, s: Any) -> Row:
    threading.Event().wait(ANSWER)
    if s.times != t.n:
        raise ValueError(f"{t} came where {s.times} was due")
    s.times += 1
    return t


def keyed(signals: Signals) -> rel.Topology:
    topology = rel.Topology("keyed")
    stream = topology.source(rel.callable(lambda: rows(signals), Row), name="rows").key_by("key")
    stream.map(ask_with_state, name="ask", state=Seen, schema=Row, lane="python").sink(rel.list(), name="out")
    return topology


def stateless(signals: Signals) -> rel.Topology:
    topology = rel.Topology("stateless")
    stream = topology.source(rel.callable(lambda: rows(signals), Row), name="rows")
    stream.map(ask, name="ask", lane="python").sink(rel.list(), name="out")
    return topology


def in_order(found: list[Row], made: int) -> bool:
    return [(t.key, t.n) for t in found] == [(n % KEYS, n // KEYS) for n in range(made)]


def by_key(found: list[Row], made: int) -> bool:
    return Counter(t.key for t in found) == Counter(n % KEYS for n in range(made))  # the operator checks their order


def chain(signals: Signals) -> rel.Topology:
    """Two Python functions that compute, behind a union: no replicas can help, a second process can."""

    def burn(t: Row) -> Row:
        if not signals.enough:
            for _ in range(BURN):
                pass
        return t

    def row(of: int, n: int) -> Row:
        if signals.lull and not signals.enough:  # what holds the job back then isn't the job
            threading.Event().wait(LULL)
        return Row(of, n)

    topology = rel.Topology("chain")
    even = topology.source(rel.generate(partial(row, 0), PARTED, schema=Row), name="even")
    odd = topology.source(rel.generate(partial(row, 1), PARTED, schema=Row), name="odd")
    first = even.union(odd).map(burn, name="first", schema=Row, lane="python")
    first.map(burn, name="second", schema=Row, lane="python").sink(rel.list(), name="out")
    return topology


def all_of_both(found: list[Row], made: int) -> bool:
    del made  # what is counted begins anew with another plan of processes
    return sorted(found) == [(of, n) for of in (0, 1) for n in range(PARTED)]


def market(signals: Signals, averaged: Callable[[Any], vwap.Average]) -> rel.Topology:
    days = vwap.synthetic(TRADED).to_pylist()
    last = max(event["at"] for event in days) + 1

    def events() -> Iterator[vwap.Event]:
        for n in signals.turns():
            day, at = divmod(n, TRADED)
            event = days[at]
            yield vwap.Event(**{**event, "at": event["at"] + day * last})

    topology = rel.Topology("vwap")
    stream = topology.source(rel.callable(events, vwap.Event), name="events")
    vwap.bargains(stream, averaged=averaged).sink(rel.list(), name="out")
    return topology


def dear_average(t: Any) -> vwap.Average:
    for _ in itertools.repeat(None, BURN):  # that isn't compiled: a compiler would leave the loop out
        pass
    return vwap.average(t)


def bargains(signals: Signals) -> rel.Topology:
    return market(signals, dear_average)


def as_without_costs(found: list[vwap.Bargain], made: int) -> bool:
    """As many bargains as the same events give in one process, for each symbol."""

    class Done(Signals):
        def turns(self) -> Iterator[int]:
            return iter(range(made))

    expected = rel.run(market(Done(Path()), vwap.average))["out"]
    return Counter(t.symbol for t in found) == Counter(t.symbol for t in expected)


def words(signals: Signals) -> rel.Topology:
    topology = rel.Topology("words")
    source = rel.callable(lambda: (Word(SENTENCE[n % len(SENTENCE)]) for n in signals.turns()), Word)
    stream = topology.source(source, name="words").key_by("word")
    stream.aggregate(name="counts", n=rel.count()).sink(rel.list(), name="out")
    return topology


def counted(found: list[Any], made: int) -> bool:
    expected = Counter(SENTENCE[n % len(SENTENCE)] for n in range(made))
    return {t.word: t.n for t in found} == dict(expected)


def hot_keys(signals: Signals) -> Iterator[Row]:
    """Zipf's law of exponent 2: the first key has 61 % of the rows."""
    draw = random.Random(SEED)
    weights = [1 / rank**2 for rank in range(1, KEYS + 1)]
    drawn = itertools.cycle(draw.choices(range(KEYS), weights, k=DRAWN))
    return (Row(key, n) for n, key in zip(signals.turns(), drawn, strict=False))


def hot(signals: Signals) -> rel.Topology:
    topology = rel.Topology("hot")
    asked = topology.source(rel.callable(lambda: hot_keys(signals), Row), name="rows").map(
        ask, name="ask", lane="python"
    )
    asked.key_by("key").aggregate(name="counts", n=rel.count()).sink(rel.list(), name="out")
    return topology


def hot_rows(made: int) -> Iterator[Row]:
    """Those that the source made."""

    class Done(Signals):
        def turns(self) -> Iterator[int]:
            return iter(range(made))

    return hot_keys(Done(Path()))


def counted_by_key(found: list[Any], made: int) -> bool:
    return {t.key: t.n for t in found} == Counter(t.key for t in hot_rows(made))


def ask_by_key(t: Row, s: Any) -> Row:
    threading.Event().wait(ANSWER)
    s.times += 1
    return t


def undivided(signals: Signals) -> rel.Topology:
    topology = rel.Topology("undivided")
    stream = topology.source(rel.callable(lambda: hot_keys(signals), Row), name="rows").key_by("key")
    stream.map(ask_by_key, name="ask", state=Seen, schema=Row, lane="python").sink(rel.list(), name="out")
    return topology


def in_order_by_key(found: list[Row], made: int) -> bool:
    return rows_by_key(found) == rows_by_key(hot_rows(made))


def rows_by_key(found: Iterable[Row]) -> dict[int, list[int]]:
    numbers: dict[int, list[int]] = {}
    for t in found:
        numbers.setdefault(t.key, []).append(t.n)
    return numbers


WORKS = {
    "a": Work("a keyed Python function that waits 2 ms", keyed, "ask", by_key),
    "b": Work("the same without state", stateless, "ask", in_order),
    "c": Work("two Python functions that compute, in a row", chain, "first", all_of_both, apart="second"),
    "d": Work("VWAP, some 2 ms of Python for each average", bargains, "pre_vwap", as_without_costs),
    "e": Work("word count, endless", words, "counts", counted),
    "f": Work(
        "a hot key (Zipf 2): counts, by themselves in two steps, behind a function that waits 2 ms",
        hot,
        "ask",
        counted_by_key,
    ),
    "g": Work("a keyed Python function that waits 2 ms, with a hot key (Zipf 2)", undivided, "ask", in_order_by_key),
}
