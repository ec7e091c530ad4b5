"""Windows and joins in regions whose replicas change: all as if one operator had had all keys all the time (R3)."""

from __future__ import annotations

import itertools
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic.job import start
from rayelastic.topologies import vwap
from tests.component.rescale.rescaling import flows

KEYS = 200
ROWS = 3000  # between two changes
LATENESS = 20  # ticks
ELASTIC = rel.JobConfig(regions="manual", elasticity="off")


class Event(NamedTuple):
    key: int
    at: int
    number: int


WINDOWS: dict[str, Callable[[Any], Any]] = {
    "count": lambda keyed: keyed.window(count=7, slide=3),
    "tumbling": lambda keyed: keyed.window(seconds=500),
    "sliding": lambda keyed: keyed.window(seconds=600, slide=200),
    "session": lambda keyed: keyed.session(gap=40),
    "assigned": lambda keyed: keyed.window(assign=lambda t: [(t.at // 300 * 300, t.at // 300 * 300 + 500)]),
}


def windows(window: str) -> Callable[[Any], Any]:
    def declared(events: Any) -> Any:
        timed = events.event_time("at", name="time", lateness=LATENESS)
        keyed = timed.map(lambda t: Event(t.key, t.at, 2 * t.number), name="doubled").key_by("key")
        sums = {"n": rel.count(), "first": rel.first("number"), "total": rel.sum("number")}
        return WINDOWS[window](keyed).aggregate(name="windows", **sums)

    return declared


def topology_of(source: Any, declared: Callable[[Any], Any]) -> rel.Topology:
    topology = rel.Topology("windows")
    declared(topology.source(source, name="events")).sink(rel.list(), name="out")
    return topology


def events() -> Iterator[Event]:
    dice = random.Random(7)
    for number in itertools.count():
        yield Event(dice.randrange(KEYS), number - dice.randrange(LATENESS), number)


class Summed(NamedTuple):
    rows: int = 0
    total: int = 0
    latest: int = 0


class Sums:
    """An aggregate of our own."""

    init = Summed

    def add(self, t: Any, state: Any) -> None:
        state.rows += 1
        state.total += t.number
        state.latest = max(state.latest, t.number)

    def merge(self, other: Any, state: Any) -> None:
        state.rows += other.rows
        state.total += other.total
        state.latest = max(state.latest, other.latest)

    def result(self, state: Any) -> Summed:
        return Summed(state.rows, state.total, state.latest)


def trades_and_quotes() -> Iterator[vwap.Event]:
    day = [vwap.Event(**row) for row in vwap.synthetic(30_000).to_pylist()]
    for number in itertools.count():
        yield from (event._replace(at=event.at + number * vwap.DAY) for event in day)


def by_key(rows: list[Any]) -> dict[Any, list[tuple[Any, ...]]]:
    found: dict[Any, list[tuple[Any, ...]]] = {}
    for row in rows:
        found.setdefault(row[0], []).append(tuple(row))
    return found


PORTION, PAUSE = 100, 0.005  # rows, and seconds behind them: a load that every lane carries, however fast the machine


def check_moving(
    declared: Callable[[Any], Any],
    source: Callable[[], Iterator[Any]],
    schema: type,
    inside: list[str],
    compared: Callable[[Any], Any] | None = None,
) -> None:
    """Some operators get more and fewer replicas while the stream flows; then what came out is compared."""
    enough, made = threading.Event(), list[Any]()

    def until_enough() -> Iterator[Any]:
        for event in source():
            made.append(event)
            yield event
            if len(made) % PORTION == 0 and enough.wait(PAUSE):
                return

    job = start(topology_of(rel.callable(until_enough, schema), declared), ELASTIC)
    try:
        region = job.plan().region_of(inside[0]).region
        assert set(inside) <= set(region.operators), job.plan().text()
        for replicas in (2, 3, 1, 2):
            flows(job, inside[0], ROWS)
            assert job.rescale(region.name, replicas).region(region.name).replicas == replicas
        flows(job, inside[0], ROWS)
        enough.set()
        rows = job.wait()["out"]
    finally:
        enough.set()
        job.close()
    expected = rel.run(topology_of(rel.rows(made, schema=schema), declared), rel.JobConfig(elasticity="off"))["out"]
    assert len(expected) > KEYS
    compared = compared or by_key
    assert compared(rows) == compared(expected)


@pytest.mark.parametrize("window", WINDOWS)
def test_windows_are_given_as_if_nothing_had_moved(window: str) -> None:
    check_moving(windows(window), events, Event, ["windows", "doubled"])


def test_the_best_of_windows_are_given_as_if_nothing_had_moved() -> None:
    def declared(events: Any) -> Any:
        keyed = events.event_time("at", name="time", lateness=LATENESS).key_by("key")
        return keyed.window(seconds=600, slide=200).top(3, "number", name="windows")

    check_moving(declared, events, Event, ["windows"])


@pytest.mark.parametrize("window", ["sliding", "session"])
def test_folds_are_given_as_if_nothing_had_moved(window: str) -> None:
    def declared(events: Any) -> Any:
        keyed = events.event_time("at", name="time", lateness=LATENESS).key_by("key")
        return WINDOWS[window](keyed).fold(lambda n, t: (n * 31 + t.number) % 1_000_003, 0, name="windows")

    check_moving(declared, events, Event, ["windows"])


@pytest.mark.parametrize("lane", ["compiled", "python"])
def test_own_aggregates_are_given_as_if_nothing_had_moved(lane: str) -> None:
    def declared(events: Any) -> Any:
        keyed = events.event_time("at", name="time", lateness=LATENESS).key_by("key")
        return keyed.window(seconds=600, slide=200).combine(Sums, name="windows", lane=lane)

    check_moving(declared, events, Event, ["windows"])


class Quote(NamedTuple):
    item: int
    at: int
    amount: int


JOINS: dict[str, dict[str, Any]] = {
    "latest": {},
    "interval": {"within": (150, 50)},
    "window": {"window": 200},
    "outer": {"within": 20, "how": "left"},
    "full": {"within": 20, "how": "full"},
    "first": {"keep": "first"},
}


def joins(join: str) -> Callable[[Any], Any]:
    """Odd ones meet even ones, whose key has another name; the operator behind the join is of its region."""

    def declared(events: Any) -> Any:
        timed = events.event_time("at", name="time", lateness=LATENESS)
        left = timed.filter(lambda t: t.number % 2 == 1, name="left").key_by("key")
        right = timed.filter(lambda t: t.number % 2 == 0, name="right")
        quotes = right.map(lambda t: Quote(t.key, t.at, t.number), name="quotes").key_by("item")
        joined = left.join(quotes, name="joined", **JOINS[join])
        return joined.filter(lambda t: t.key >= 0, name="behind")

    return declared


@pytest.mark.edges
@pytest.mark.parametrize("ended", [False, True], ids=["both flow", "one has ended"])
def test_all_pairs_are_joined_as_if_nothing_had_moved(ended: bool) -> None:
    """By both sides of one source, or by one source and a table that ends."""

    def declared(events: Any) -> Any:
        rare = events.filter(lambda t: t.number % 50 == 0, name="rare").map(
            lambda t: Quote(t.key, t.at, t.number), name="quotes"
        )
        known = events.topology.source(
            rel.rows([Quote(key, 0, key % 3) for key in range(-KEYS, KEYS, 2)]), name="known"
        )
        right = known if ended else rare
        if ended:
            rare.sink(rel.count(), name="rare_count")
        else:
            known.sink(rel.count(), name="known_count")
        return events.key_by("key").join(right.key_by("item"), name="joined", how="full")

    check_moving(declared, events, Event, ["joined"], lambda rows: Counter(tuple(row) for row in rows))


def rules(events: Any) -> Any:
    """Each event with every tenth one, which change all the time and are the same in all replicas."""
    timed = events.event_time("at", name="time", lateness=LATENESS)
    tenth = timed.filter(lambda t: t.number % 100 == 0, name="tenth")
    now = tenth.map(lambda t: Quote(t.key % 3, t.at, t.number), name="now").key_by("item")
    joined = timed.key_by("key").cross_join(now, name="joined", how="left")
    return joined.filter(lambda t: t.key >= 0, name="behind")


def test_rules_are_known_to_all_replicas_as_if_there_were_one() -> None:
    check_moving(rules, events, Event, ["joined", "behind"])


HAS_ENDED: dict[str, Callable[[Any, Any], Any]] = {
    "rules": lambda keyed, right: keyed.cross_join(right.key_by("amount"), name="joined", how="left"),
    "table": lambda keyed, right: keyed.join(right.key_by("item"), name="joined", how="left"),
}


@pytest.mark.parametrize("join", HAS_ENDED)
def test_what_a_stream_that_has_ended_has_left_moves_on(join: str) -> None:
    def declared(events: Any) -> Any:
        known = events.topology.source(rel.rows([Quote(key, 0, key % 3) for key in range(0, KEYS, 2)]), name="known")
        timed = events.event_time("at", name="time", lateness=LATENESS)
        return HAS_ENDED[join](timed.key_by("key"), known.event_time("at", name="known_time"))

    check_moving(declared, events, Event, ["joined"])


def pattern(events: Any) -> Any:
    timed = events.event_time("at", name="time", lateness=LATENESS)
    first = rel.Pattern("a", lambda t: t.number % 5 == 0)
    second = first.then("b", lambda t: t.number % 7 == 0, within=900, without=lambda t: t.number % 11 == 0)
    third = second.then("c", lambda t: t.number % 3 == 0, within=300)
    return timed.key_by("key").match(third, name="found", how="left")


def test_patterns_are_found_as_if_nothing_had_moved() -> None:
    check_moving(pattern, events, Event, ["found"])


@pytest.mark.parametrize("join", JOINS)
def test_joins_are_given_as_if_nothing_had_moved(join: str) -> None:
    check_moving(joins(join), events, Event, ["joined", "behind"])


def test_vwap_is_what_it_would_have_been() -> None:
    """Windows by count move, which feed one port of a join."""
    check_moving(vwap.bargains, trades_and_quotes, vwap.Event, ["pre_vwap", "trades", "vwap"])


def test_quotes_that_wait_for_their_averages_move() -> None:
    check_moving(vwap.bargains, trades_and_quotes, vwap.Event, ["bargains.joined", "bargains"])
