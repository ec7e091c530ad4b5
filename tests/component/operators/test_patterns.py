"""Sequences of tuples of a key, against a brute force that has all of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import GraphError, StateError
from tests.component.operators.running import CONFIGS, table_of
from tests.raising import raises
from tests.waiting import wait_until_emitted

PATIENCE = 60.0
MANUAL = rel.JobConfig(threads=rel.Threads(count=1, model="manual"), elasticity="off")


class Event(NamedTuple):
    key: str
    at: int
    what: str  # letters, each of which a step or its end may look for


class Wanted(NamedTuple):
    """A step: a letter, how long behind the one before, and the letter that ends it; '' for none."""

    letter: str
    within: int
    without: str = ""


TWO = [Wanted("a", 0), Wanted("b", 6, "c")]
THREE = [Wanted("a", 0), Wanted("b", 6, "c"), Wanted("a", 4)]
PATTERNS = {
    "two": TWO,
    "three": THREE,
    "four": [*THREE, Wanted("long", 9, "b")],
    "at once": [Wanted("a", 0), Wanted("a", 0)],
}


def has(letter: str) -> Callable[[Any], bool]:
    return lambda t: letter in t.what


def python_has(letter: str) -> Callable[[Any], bool]:
    return lambda t: bool({letter} & {letter if letter in t.what else ""})


def pattern_of(steps: list[Wanted], holds: Callable[[str], Callable[[Any], bool]] = has) -> rel.Pattern:
    pattern = rel.Pattern("s0", holds(steps[0].letter))
    for number, step in enumerate(steps[1:], 1):
        without = holds(step.without) if step.without else None
        pattern = pattern.then(f"s{number}", holds(step.letter), within=step.within, without=without)
    return pattern


def topology_of(source: Any, steps: list[Wanted], lateness: int = 0, lane: Any = "auto") -> rel.Topology:
    topology = rel.Topology("patterns")
    timed = topology.source(source, name="events").event_time("at", name="time", lateness=lateness)
    pattern = pattern_of(steps, has if lane == "auto" else python_has)
    found = timed.key_by("key").match(pattern, name="found", how="left", lane=lane)
    found.sink(rel.list(), name="out")
    found.late().sink(rel.list(), name="late")
    return topology


def brute_force(events: list[Event], steps: list[Wanted]) -> list[tuple[int, Any]]:
    """Every beginning by itself: when it is complete, or nothing has come, and what is given."""
    found = []
    for number, event in enumerate(events):
        if steps[0].letter not in event.what:
            continue
        taken, ended = [event], False
        for following in [one for one in events[number + 1 :] if one.key == event.key]:
            step = steps[len(taken)]
            if following.at > taken[-1].at + step.within:
                break
            ended = bool(step.without) and step.without in following.what
            if ended:
                break
            if step.letter in following.what:
                taken.append(following)
                if len(taken) == len(steps):
                    break
        values = [value for one in taken for value in one[1:]]
        if len(taken) == len(steps):
            found.append((taken[-1].at, (event.key, *values, None)))
        elif not ended:
            lacking = [None] * 2 * (len(steps) - len(taken))
            until = taken[-1].at + steps[len(taken)].within
            found.append((until, (event.key, *values, *lacking, f"s{len(taken)}")))
    return found


def check(rows: list[Any], events: list[Event], steps: list[Wanted]) -> None:
    found = brute_force(sorted(events, key=lambda one: one.at), steps)
    assert sorted(str(tuple(row)) for row in rows) == sorted(str(given) for _, given in found)


def check_in_order(rows: list[Any], events: list[Event], steps: list[Wanted]) -> None:
    check(rows, events, steps)
    complete = [row for row in rows if row.missing is None]
    assert [row[-3] for row in complete] == sorted(row[-3] for row in complete)


EVENTS = st.lists(
    st.builds(
        Event,
        st.sampled_from(["x", "a key of more than twelve bytes"]),
        st.integers(0, 30),
        st.sampled_from(["", "a", "b", "c", "ab", "bc", "abc", "a long text, of all"]),
    ),
    max_size=30,
)


def check_stream(events: list[Event], steps: str, run: int) -> None:
    config = rel.JobConfig(threads=rel.Threads(count=1, model="manual", run_records=run), elasticity="off")
    result = rel.run(topology_of(rel.arrow(table_of(Event, events), Event), PATTERNS[steps], 30), config)
    check_in_order(result["out"], events, PATTERNS[steps])


@settings(max_examples=100, deadline=None, derandomize=True)
@given(EVENTS, st.sampled_from(list(PATTERNS)), st.sampled_from([1, 3, 64]))
def test_sequences_of_random_streams(events: list[Event], steps: str, run: int) -> None:
    check_stream(events, steps, run)


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@settings(max_examples=500, deadline=None)
@given(EVENTS, st.sampled_from(list(PATTERNS)), st.sampled_from([1, 3, 64]))
def test_sequences_of_many_random_streams(events: list[Event], steps: str, run: int) -> None:
    check_stream(events, steps, run)


def many(number: int) -> list[Event]:
    return [Event(f"key {n % 13}", n // 5, "abc"[n * n % 3] if n % 4 else "") for n in range(number)]


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_sequences_however_the_job_runs(config: rel.JobConfig) -> None:
    events = many(3000)
    rows = rel.run(topology_of(rel.arrow(table_of(Event, events), Event), THREE), config)["out"]
    check_in_order(rows, events, THREE)


def test_predicates_in_the_python_lane() -> None:
    events = many(500)
    topology = topology_of(rel.arrow(table_of(Event, events), Event), THREE, lane="python")
    assert topology.operators["found"].lane is rel.Lane.PYTHON
    check(rel.run(topology)["out"], events, THREE)


def test_late_tuples_leave_and_a_predicate_that_raises_is_told() -> None:
    events = [Event("x", 1, "a"), Event("x", 20, ""), Event("x", 3, "b")]
    result = rel.run(topology_of(rel.arrow(table_of(Event, events), Event), TWO))
    assert [tuple(t) for t in result["late"]] == [events[2]]
    assert [tuple(t) for t in result["out"]] == [("x", 1, "a", None, None, "s1")]
    topology = rel.Topology("raises")
    timed = topology.source(rel.rows(events), name="events").event_time("at", name="time").key_by("key")
    broken = rel.Pattern("a", lambda t: 1 // (t.at - 20) > 0).then("b", has("b"), within=1)
    timed.match(broken, name="found").sink(rel.list(), name="out")
    with raises(rel.errors.JobFailedError, "function-raised"):
        rel.run(topology)


@pytest.mark.parametrize("cut", [1, 250, 401])
def test_snapshots_have_what_has_begun(cut: int, tmp_path: Path) -> None:
    events = many(600)
    gate = testing.Gate()
    job = rel.start(topology_of(testing.script([*events[:cut], gate], Event), THREE, 10), MANUAL)
    try:
        assert gate.wait_reached(PATIENCE)
        wait_until_emitted(job, "events", cut)
        before = job.stop(tmp_path / "there")
    finally:
        job.close()
    source = testing.script(events, Event)
    with raises(StateError, "changed-state"):
        rel.run(topology_of(source, TWO, 10), MANUAL, restore=tmp_path / "there")
    after = rel.run(topology_of(source, THREE, 10), MANUAL, restore=tmp_path / "there")
    check_in_order([*before["out"], *after["out"]], events, THREE)


def declared(pattern: Any, timed: bool = True) -> None:
    topology = rel.Topology("refused")
    events = topology.source(rel.rows([Event("a", 1, "")]), name="events")
    keyed = events.event_time("at", name="time").key_by("key") if timed else events.key_by("key")
    keyed.match(pattern, name="found")


@pytest.mark.parametrize(
    ("pattern", "code"),
    [
        ("a", "wrong-type"),
        (rel.Pattern("a", has("a")), "out-of-range"),
        (rel.Pattern("a", has("a")).then("a", has("b"), within=1), "duplicate-name"),
        (rel.Pattern("a", has("a")).then("b", has("b"), within=-1), "out-of-range"),
        (rel.Pattern("a", has("a")).then("b", has("b"), within=0.5), "out-of-range"),
        (rel.Pattern("a", has("a")).then("no name", has("b"), within=1), "bad-name"),
        (rel.Pattern("a", lambda: True).then("b", has("b"), within=1), "wrong-parameters"),  # type: ignore[arg-type, misc]
    ],
)
def test_patterns_that_cant_be(pattern: Any, code: str) -> None:
    with raises(GraphError, code, operator="found"):
        declared(pattern)


def test_a_pattern_needs_an_event_time() -> None:
    with raises(GraphError, "no-event-time"):
        declared(pattern_of(TWO), timed=False)
