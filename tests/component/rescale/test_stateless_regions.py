"""Regions without state get replicas that take turns; what they give comes out in the order of the source (J11)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import ConfigError
from rayelastic.graph.spec.declaration import LaneChoice
from rayelastic.job import start
from rayelastic.plan.settings.threads import ModelName
from tests.component.rescale.rescaling import PAUSE, flows
from tests.raising import raises
from tests.waiting import wait_until, wait_until_received


class Number(NamedTuple):
    value: int


class Text(NamedTuple):
    value: int
    text: str


def several(t: Number) -> Iterator[Text]:
    """None, one or two tuples, some with more text than fits a record."""
    for turn in range(t.value % 3):
        yield Text(t.value * 2 + turn, "x" * (t.value % 40))


class Numbers:
    """0, 1, 2, ... with a pause (s) after each 64, until told to end."""

    def __init__(self, pause: float = PAUSE) -> None:
        self.enough = threading.Event()
        self.made = 0
        self._pause = pause

    def __call__(self) -> Iterator[Number]:
        while not self.enough.wait(self._pause):
            for _ in range(64):
                yield Number(self.made)
                self.made += 1


def expected(made: int) -> list[Text]:
    return [text for value in range(made) for text in several(Number(value))]


@pytest.mark.parametrize("lane", ["compiled", "python"])
@pytest.mark.parametrize("model", [None, "dynamic"])
def test_replicas_come_and_go_and_the_order_stays(lane: LaneChoice, model: ModelName | None) -> None:
    numbers = Numbers()
    topology = rel.Topology("turns")
    stream = topology.source(rel.callable(numbers, Number), name="numbers").flat_map(
        several, name="texts", schema=Text, lane=lane
    )
    stream.sink(rel.list(), name="out")
    job = start(topology, rel.JobConfig(regions="manual", elasticity="off", threads=rel.Threads(count=2, model=model)))
    try:
        for replicas in (2, 3, 1, 2, 1):
            flows(job)
            assert job.rescale("r1", replicas).region("r1").replicas == replicas
            assert len(job.status.pes) == replicas
        flows(job)
        numbers.enough.set()
        assert job.wait()["out"] == expected(numbers.made)
    finally:
        numbers.enough.set()
        job.close()


class Kept(NamedTuple):
    key: int
    value: int


def seen_in_order(t: Kept, s: dict[str, int]) -> Kept:
    """Each key's values ascend, whichever replicas they have passed."""
    assert s.get("last", -1) < t.value, f"{t} came behind {s['last']}"
    s["last"] = t.value
    return t


class Last(dict[str, int]):
    """The last value of a key."""


def watch(t: Kept, s: Last) -> Kept:
    return seen_in_order(t, s)


def test_a_keyed_region_behind_it_changes_too_and_a_fork_gets_all_twice() -> None:
    """Replicas come home before keys are dealt out: to a sink in another element, and to keys that move."""
    numbers = Numbers()
    topology = rel.Topology("mixed")
    stream = topology.source(rel.callable(numbers, Number), name="numbers")
    tagged = stream.map(lambda t: (t.value * 7919 % 50, t.value), name="tag", schema=Kept, lane="python")
    tagged.sink(rel.list(), name="all")
    tagged.key_by("key").map(watch, name="watch", state=Last, schema=Kept, lane="python").sink(rel.list(), name="out")
    job = start(topology, rel.JobConfig(regions="manual", elasticity="off", pes={"all": 1}))
    try:
        stateless, keyed = (job.plan().region_of(name).region.name for name in ("tag", "watch"))
        for region, replicas in ((stateless, 2), (keyed, 2), (stateless, 3), (keyed, 1), (stateless, 1)):
            flows(job)
            job.rescale(region, replicas)
        flows(job)
        numbers.enough.set()
        results = job.wait()
    finally:
        numbers.enough.set()
        job.close()
    assert [t.value for t in results["all"]] == list(range(numbers.made))
    assert sorted(t.value for t in results["out"]) == list(range(numbers.made))


def ruled(numbers: Any, rules: Any) -> rel.Topology:
    """Each sixteenth number with all rules."""
    topology = rel.Topology("ruled")
    changes = topology.source(rules, name="rules").key_by("rule")
    each = topology.source(numbers, name="numbers").cross_join(changes, name="each", how="left", by="arrival")
    behind = each.filter(lambda t: t.value % 16 == 0, name="behind")
    behind.sink(rel.list(), name="out")
    behind.filter(lambda t: t.rule == "a" and t.version == 1, name="old").sink(rel.count(), name="olds")
    behind.filter(lambda t: t.rule is None, name="none").sink(rel.count(), name="nones")
    return topology


def settles(job: rel.Job, sink: str) -> None:
    """Waits until a sink gets nothing more, while the others do."""
    for _ in range(60):
        before = job.metrics().operator(sink).tuples_in
        flows(job, tuples=400)
        if job.metrics().operator(sink).tuples_in == before:
            return
    raise AssertionError(f"{sink} still gets tuples")


def test_rules_are_known_to_replicas_that_take_turns() -> None:
    """New replicas know the rules so far, all of them hear of changes, and the order stays."""
    numbers, gates = Numbers(), [testing.Gate(), testing.Gate()]
    rules: list[Any] = [("a", 1), ("b", 1), gates[0], ("a", 2), gates[1]]
    source = testing.script(rules, {"rule": str, "version": int})
    config = rel.JobConfig(regions="manual", elasticity="off", threads=2)
    job = start(ruled(rel.callable(numbers, Number), source), config)
    try:
        region = job.plan().region_of("each").region.name
        assert gates[0].wait_reached(60)
        settles(job, "nones")
        for replicas in (2, 3):
            assert job.rescale(region, replicas).region(region).replicas == replicas
            flows(job, tuples=400)
        gates[0].open()
        assert gates[1].wait_reached(60)
        settles(job, "olds")
        for replicas in (1, 2, 1):
            job.rescale(region, replicas)
            flows(job, tuples=400)
        numbers.enough.set()
        gates[1].open()
        results = job.wait()
    finally:
        numbers.enough.set()
        for gate in gates:
            gate.open()
        job.close()
    out = results["out"]
    assert [t.value for t in out] == sorted(t.value for t in out)
    of: dict[int, list[tuple[str | None, int | None]]] = {value: [] for value in range(0, numbers.made, 16)}
    for t in out:
        of[t.value].append((t.rule, t.version))
    seen = list(of.values())
    first = next(at for at, rules in enumerate(seen) if len(rules) == 2)
    assert {tuple(rules) for rules in seen[:first]} <= {((None, None),), (("a", 1),)}
    assert {tuple(rules) for rules in seen[first:]} == {(("a", 1), ("b", 1)), (("a", 2), ("b", 1))}
    assert all(rules == [("a", 2), ("b", 1)] for rules in seen[-100:])


@pytest.mark.parametrize("pins", [{}, {"rules": 1}], ids=["beside the numbers", "in an element that has ended"])
def test_rules_that_have_ended_are_known_to_new_replicas(pins: dict[str, int]) -> None:
    """Replicas come and go behind the end of the rules, and have all of them."""
    numbers, known = Numbers(), [("a", 2), ("b", 1)]
    rules = rel.rows([("a", 1), *known], {"rule": str, "version": int})
    config = rel.JobConfig(regions="manual", elasticity="off", threads=2, pes=pins)
    job = start(ruled(rel.callable(numbers, Number), rules), config)
    try:
        region = job.plan().region_of("each").region.name
        settles(job, "nones")
        settles(job, "olds")
        wait_until(job, lambda: not pins or any(one.state.is_final for one in job.status.pes))
        for replicas in (2, 3, 1, 2, 1):
            assert job.rescale(region, replicas).region(region).replicas == replicas
            flows(job, tuples=400)
        numbers.enough.set()
        out = job.wait()["out"]
    finally:
        numbers.enough.set()
        job.close()
    first = next(at for at, t in enumerate(out) if t.rule == "b")
    seen = out[first - 1 :]
    assert [(t.rule, t.version) for t in seen] == known * (len(seen) // 2)
    assert [t.value for t in seen[::2]] == list(range(seen[0].value, numbers.made, 16))


def test_what_has_no_replicas_says_why() -> None:
    topology = rel.Topology("others")
    stream = topology.source(rel.sequence(10), name="numbers")
    stream.aggregate(name="sum", n=rel.count()).sink(rel.list(), name="out")
    job = start(topology, rel.JobConfig(regions="manual"))
    try:
        with raises(ConfigError, "fixed-region", "r1", operator="sum"):
            job.rescale("r1", 2)
        job.wait()
    finally:
        job.close()


def test_a_job_whose_replicas_take_turns_is_saved_at_one_moment_and_goes_on(tmp_path: Path) -> None:
    gates = [testing.Gate(), testing.Gate()]
    numbers: list[Any] = [(n,) for n in range(20_000)]
    numbers[15_000:15_000], numbers[5_000:5_000] = [gates[1]], [gates[0]]

    def topology() -> rel.Topology:
        made = rel.Topology("saved")
        source = made.source(testing.script(numbers, {"value": int}), name="numbers")
        source.flat_map(several, name="texts", schema=Text, lane="python").sink(rel.list(), name="out")
        return made

    config = rel.JobConfig(regions="manual", elasticity="off")
    rows: list[Text] = []
    for gate in gates:
        job = start(topology(), config, restore=tmp_path / "saved" if rows else None)
        try:
            job.rescale("r1", 3)
            assert gate.wait_reached(60)
            job.rescale("r1", 2)
            if gate is gates[0]:
                rows += job.stop(tmp_path / "saved")["out"]
            else:
                gate.open()
                rows += job.wait()["out"]
        finally:
            gate.open()
            job.close()
    assert rows == expected(20_000)


def test_replicas_that_take_turns_are_saved_with_their_rules(tmp_path: Path) -> None:
    def topology(numbers: list[Any], rules: list[Any]) -> rel.Topology:
        made = rel.Topology("saved rules")
        changes = made.source(testing.script(rules, {"rule": str, "version": int}), name="rules").key_by("rule")
        source = made.source(testing.script(numbers, {"value": int}), name="numbers")
        source.cross_join(changes, name="each", how="left", by="arrival").sink(rel.list(), name="out")
        return made

    config = rel.JobConfig(regions="manual", elasticity="off")
    held, ready, reached = testing.Gate(), testing.Gate(), testing.Gate()
    numbers: list[Any] = [(n,) for n in range(6000)]
    known: list[Any] = [("a", 1), ("b", 1)]
    job = start(topology([ready, *numbers[:3000], reached, *numbers[3000:]], [*known, held]), config)
    try:
        assert held.wait_reached(60)
        wait_until_received(job, "each", 2)
        region = job.plan().region_of("each").region.name
        job.rescale(region, 3)
        ready.open()
        assert reached.wait_reached(60)
        rows = job.stop(tmp_path / "saved")["out"]
    finally:
        for gate in (held, ready, reached):
            gate.open()
        job.close()
    job = start(topology(numbers, known), config, restore=tmp_path / "saved")
    try:
        rows += job.wait()["out"]
    finally:
        job.close()
    assert [tuple(t) for t in rows] == [(n, *rule) for n in range(6000) for rule in known]


@pytest.mark.parametrize("answer", [0.0002, 0.004])
def test_replicas_that_wait_for_answers_all_wait_all_the_time(answer: float) -> None:
    """The first one runs in the thread that deals: the others would have nothing to do while it had a long turn, and it
    would have nothing to do while whoever deals waited for one of the others."""

    def ask(t: Number) -> Number:
        threading.Event().wait(answer)
        return t

    numbers = Numbers(pause=0.0)
    topology = rel.Topology("answers")
    stream = topology.source(rel.callable(numbers, Number), name="numbers").map(
        ask, name="ask", schema=Number, lane="python"
    )
    stream.sink(rel.call(lambda t: None), name="out")
    job = start(topology, rel.JobConfig(regions="manual", elasticity="off"))
    try:
        job.rescale("r1", 4)
        job.pause(1.0)  # until those who send know how fast each of the others is
        before = job.metrics()
        job.pause(2.0)
        after = job.metrics()
        inside = [
            sum(o.inside_seconds for o in now.operators if o.name == "ask")
            - sum(o.inside_seconds for o in then.operators if o.name == "ask")
            for then, now in zip(before.pes, after.pes, strict=True)
        ]
        assert min(inside) > 0.85 * (after.seconds - before.seconds), inside
    finally:
        numbers.enough.set()
        job.close()
