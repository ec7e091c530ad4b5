"""State of keys that is forgotten so long after a key's first tuple, or after the last change of its state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import GraphError
from rayelastic.fluent.stream import Stream
from tests.component.operators.visits import LATENESS, TTL, VISITS, Counted, Seen, Visit, visits
from tests.raising import raises
from tests.waiting import wait_until_received


def since(rows: list[Visit], kind: str) -> list[Counted]:
    """What each key's count is after each row, where its life counts since the first row, or the last that counted."""
    kept: dict[str, tuple[int, int]] = {}
    watermark, given = -(10**9), []
    for who, at in rows:
        touched, count = kept.get(who, (at, 0))
        if max(at, watermark) - touched > TTL:
            touched, count = at, 0
        counts = at % 3 == 0
        kept[who] = max(at, touched) if kind == "change" and counts else touched, count + counts
        watermark = max(watermark, at - LATENESS - 1)
        given.append(Counted(who, count + counts))
    return given


def thirds(t: Any, s: Any) -> Counted:
    if t.at % 3 == 0:
        s.count += 1
        s.note = t.who
    return Counted(t.who, s.count)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(VISITS, st.sampled_from([("first", "compiled"), ("first", "python"), ("change", "compiled")]))
def test_a_life_since_the_first_tuple_or_the_last_change(
    steps: list[tuple[str, int, int]], how: tuple[Any, Any]
) -> None:
    def declare(s: Stream) -> Stream:
        timed = s.event_time("at", name="time", lateness=LATENESS).key_by("who")
        return timed.map(thirds, name="op", state=Seen, schema=Counted, lane=how[1], ttl=rel.Ttl(TTL, since=how[0]))

    rows = visits(steps)
    assert testing.collect(declare, rows, Visit) == since(rows, how[0])


def test_a_text_that_is_kept_again_is_a_change() -> None:
    """The same length, another content: the state's bytes may be the same."""

    def noted(t: Any, s: Any) -> Counted:
        if t.at < 8:
            s.note = f"a text of more than twelve bytes {t.at % 2}"
        return Counted(s.note, s.count)

    def declare(s: Stream) -> Stream:
        timed = s.event_time("at", name="time").key_by("who")
        return timed.map(
            noted, name="op", state=Seen, schema=Counted, lane="compiled", ttl=rel.Ttl(TTL, since="change")
        )

    notes = testing.collect(declare, [Visit("a", 0), Visit("a", 7), Visit("a", 8), Visit("a", 17)], Visit)
    assert [t[0][-1:] for t in notes] == ["0", "1", "1", "1"]


@pytest.mark.parametrize(
    ("declare", "code"),
    [
        (
            lambda s: s.map(thirds, name="op", state=Seen, schema=Counted, ttl=rel.Ttl(5, since="ever")),  # type: ignore[arg-type]
            "unknown-choice",
        ),
        (
            lambda s: s.map(
                thirds, name="op", state=Seen, schema=Counted, lane="python", ttl=rel.Ttl(5, since="change")
            ),
            "unsupported-ttl",
        ),
        (
            lambda s: s.aggregate(name="op", n=rel.count(), emit="update", ttl=rel.Ttl(5, since="change")),
            "unsupported-ttl",
        ),
        (lambda s: s.deduplicate(name="op", ttl=rel.Ttl(0, since="first")), "out-of-range"),
    ],
)
def test_lives_that_cant_be(declare: Any, code: str) -> None:
    topology = rel.Topology("refused")
    with raises(GraphError, code, operator="op"):
        declare(topology.source(rel.rows([Visit("a", 1)]), name="rows").key_by("who"))


class Late(NamedTuple):
    """A visit as another stream has it: its key and time have other names and places."""

    number: int
    when: int
    name: str


@rel.operator(inputs={"left": Visit, "right": Late}, outputs=Counted, state=Seen, ttl=TTL)
class Either:
    def invoke(self, port: str, t: Any, s: Any) -> Iterator[Counted]:
        s.count += 1
        yield Counted(f"{port} {t.who if port == 'left' else t.name}", s.count)


RIGHT = [Late(0, 0, "a"), Late(1, 5, "a"), Late(2, 21, "a"), Late(3, 21, "b"), Late(4, 60, "a")]


def either(left: Any, right: Any, *, timed: bool) -> rel.Topology:
    """Two inputs that touch the same keys; nothing orders one before the other."""
    topology = rel.Topology("either")
    first = topology.source(rel.rows(right, Late), name="right")
    second = topology.source(left, name="left")
    if timed:
        first, second = first.event_time("when", name="right_time"), second.event_time("at", name="left_time")
    made = topology.apply(Either(), name="either", left=second.key_by("who"), right=first.key_by("name"))
    made.sink(rel.list(), name="out")
    return topology


@pytest.mark.edges
def test_keys_of_several_inputs_end_by_event_time() -> None:
    """A tuple of either input touches its key, by that input's own time."""
    result = rel.run(either(rel.rows([], Visit), RIGHT, timed=True))
    assert [tuple(t) for t in result["out"]] == [
        ("right a", 1), ("right a", 2), ("right a", 1), ("right b", 1), ("right a", 1),
    ]  # fmt: skip
    held = testing.Gate()
    topology = either(testing.script([held, Visit("a", 62), Visit("a", 90)], Visit), RIGHT, timed=True)
    job = rel.start(topology, rel.JobConfig(pes=1))
    try:
        assert held.wait_reached(60.0)
        wait_until_received(job, "either", len(RIGHT))
        held.open()
        found = Counter(tuple(t) for t in job.wait()["out"])
    finally:
        job.close()
    assert found["left a", 1] == 1, "28 behind the one before: it begins anew"
    assert found.total() == len(RIGHT) + 2


@pytest.mark.edges
@pytest.mark.parametrize("timed", [False, True])
def test_keys_of_several_inputs_that_do_not_come_again_are_removed(timed: bool) -> None:
    """By the clock only a life of no length is over in a test."""
    lives = 100 if timed else 1e-9

    @rel.operator(inputs={"left": Visit, "right": Late}, outputs=Counted, state=Seen, ttl=lives)
    class Short:
        invoke = Either.invoke

    topology = rel.Topology("once")
    visits_once = topology.source(rel.rows([Visit(f"{at}", at) for at in range(4_000)]), name="left")
    lates_once = topology.source(rel.rows([Late(at, at, f"{at}.") for at in range(4_000)]), name="right")
    if timed:
        visits_once, lates_once = visits_once.event_time("at", name="t1"), lates_once.event_time("when", name="t2")
    topology.apply(Short(), name="op", left=visits_once.key_by("who"), right=lates_once.key_by("name")).sink(
        rel.count(), name="out"
    )
    result = rel.run(topology, rel.JobConfig(threads=rel.Threads(run_records=64), pes=1))
    assert result["out"] == 8_000
    assert result.metrics.operator("op").state_keys < 6_000


@pytest.mark.edges
def test_several_inputs_with_times_of_different_units_are_an_error() -> None:
    topology = rel.Topology("units")
    left = topology.source(rel.rows([Visit("a", 1)]), name="left").event_time("at", name="t1", unit="s")
    right = topology.source(rel.rows(RIGHT, Late), name="right").event_time("when", name="t2", unit="ms")
    with raises(GraphError, "event-time-mismatch", "ms and s"):
        topology.apply(Either(), left=left.key_by("who"), right=right.key_by("name"))
