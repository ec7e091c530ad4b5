"""Rules that change: each tuple with the latest of every key of another stream, against plain Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import GraphError
from tests.component.operators.running import CONFIGS, table_of
from tests.raising import raises
from tests.waiting import wait_until_emitted, wait_until_received

PATIENCE = 60.0


class Paid(NamedTuple):
    who: str
    at: int
    sum: int


class Rule(NamedTuple):
    rule: str | None
    at: int
    most: int


RULES = st.lists(
    st.builds(
        Rule,
        st.sampled_from(["a", "b", "a rule of more than twelve bytes", None]),
        st.integers(0, 20),
        st.integers(0, 9),
    ),
    max_size=12,
)
PAID = st.lists(st.builds(Paid, st.sampled_from(["x", "y"]), st.integers(0, 20), st.integers(0, 9)), max_size=20)


def topology_of(paid: Any, rules: Any, *, keyed: bool = True, how: Any = "inner", by_rule: bool = True) -> rel.Topology:
    topology = rel.Topology("rules")
    right = topology.source(rules, name="rules").event_time("at", name="rule_time", lateness=20)
    left = topology.source(paid, name="paid").event_time("at", name="time", lateness=20)
    left = left.key_by("who") if keyed else left
    left.cross_join(right.key_by("rule") if by_rule else right, name="each", how=how).sink(rel.list(), name="out")
    return topology


def expected(paid: list[Paid], rules: list[Rule], how: str, by_rule: bool) -> list[Any]:
    found = []
    for one in sorted(paid, key=lambda t: t.at):
        latest: dict[Any, Rule] = {}
        for rule in sorted(rules, key=lambda t: t.at):
            if rule.at <= one.at:
                latest[rule.rule if by_rule else ""] = rule
        found += [(*one, *rule) for rule in latest.values()]
        if not latest and how == "left":
            found.append((*one, None, None, None))  # type: ignore[arg-type]
    return sorted(map(str, found))


@settings(max_examples=80, deadline=None, derandomize=True)
@given(PAID, RULES, st.booleans(), st.sampled_from(["inner", "left"]), st.booleans())
def test_each_with_the_latest_of_every_rule(
    paid: list[Paid], rules: list[Rule], keyed: bool, how: str, by_rule: bool
) -> None:
    sources = rel.arrow(table_of(Paid, paid), Paid), rel.arrow(table_of(Rule, rules), Rule)
    rows = rel.run(topology_of(*sources, keyed=keyed, how=how, by_rule=by_rule))["out"]
    assert sorted(str(tuple(t)) for t in rows) == expected(paid, rules, how, by_rule)
    assert [t.at for t in rows] == sorted(t.at for t in rows)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_the_order_is_the_same_however_the_job_runs(config: rel.JobConfig) -> None:
    paid = [Paid(f"who {n % 7}", n // 3, n) for n in range(900)]
    rules = [Rule(f"rule {n % 5}", n * 4, n) for n in range(60)]
    sources = rel.arrow(table_of(Paid, paid), Paid), rel.arrow(table_of(Rule, rules), Rule)
    rows = [tuple(t) for t in rel.run(topology_of(*sources), config)["out"]]
    assert rows == [tuple(t) for t in rel.run(topology_of(*sources))["out"]]
    assert sorted(map(str, rows)) == expected(paid, rules, "inner", True)


def test_without_event_time_it_is_what_there_is() -> None:
    topology = rel.Topology("arrival")
    gate = testing.Gate()
    rules = topology.source(testing.script([("a", 3)], {"rule": str, "most": int}), name="rules")
    paid = topology.source(testing.script([gate, ("x", 5), ("y", 2)], {"who": str, "sum": int}), name="paid")
    over = {"who": str, "over": int}
    broken = paid.cross_join(rules, name="each", by="arrival", fn=lambda t: (t.who, t.sum - t.most), schema=over)
    broken.sink(rel.list(), name="out")
    job = rel.start(topology)
    try:
        assert gate.wait_reached(PATIENCE)
        wait_until_received(job, "each.joined", 1)
        gate.open()
        assert [tuple(t) for t in job.wait(PATIENCE)["out"]] == [("x", 2), ("y", -1)]
    finally:
        job.close()


@pytest.mark.parametrize("attempt", range(4))  # which source ends first is chance: the other's times mustn't go on then
def test_snapshots_have_the_rules(attempt: int, tmp_path: Path) -> None:
    paid = [Paid(f"who {n % 3}", n, n) for n in range(200)]
    rules = [Rule(f"rule {n % 4}", n * 10, n) for n in range(20)]
    gates = testing.Gate(), testing.Gate()
    job = rel.start(
        topology_of(testing.script([*paid[:90], gates[0]], Paid), testing.script([*rules[:9], gates[1]], Rule))
    )
    try:
        assert all(gate.wait_reached(PATIENCE) for gate in gates)
        wait_until_emitted(job, "paid", 90)
        wait_until_emitted(job, "rules", 9)
        before = job.stop(tmp_path / f"there {attempt}")["out"]
    finally:
        job.close()
    again = topology_of(testing.script(paid, Paid), testing.script(rules, Rule))
    after = rel.run(again, restore=tmp_path / f"there {attempt}")["out"]
    assert sorted(str(tuple(t)) for t in [*before, *after]) == expected(paid, rules, "inner", True)


def test_cross_joins_that_cant_be() -> None:
    topology, other = rel.Topology("one"), rel.Topology("other")
    paid = topology.source(rel.rows([Paid("x", 1, 2)]), name="paid")
    with raises(GraphError, "unknown-choice", "full", "how="):
        paid.cross_join(paid, name="each", how="full")  # type: ignore[call-overload]
    with raises(GraphError, "not-a-stream"):
        paid.cross_join({"a": 1}, name="each")  # type: ignore[call-overload]
    with raises(GraphError, "other-topology", "other"):
        paid.cross_join(other.source(rel.rows([Rule("a", 1, 2)]), name="rules"), name="each")
