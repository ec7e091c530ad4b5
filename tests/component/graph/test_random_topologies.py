"""Random topologies give what a naive interpreter makes of them: the part of `./dev topologies` that the gate runs."""

from __future__ import annotations

from typing import Any

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.graph.operators.aggregates import last
from rayelastic.graph.operators.gathering import folds
from rayelastic.graph.operators.joins import equality
from tests.random_topologies.compare import checked
from tests.random_topologies.generate import program
from tests.random_topologies.naive import interpreted
from tests.random_topologies.naive_windows import Windows
from tests.random_topologies.program import Program

pytestmark = pytest.mark.edges

SEED = 20261129
PROGRAMS = 60
PART = 20


@pytest.mark.parametrize("first", range(0, PROGRAMS, PART))
def test_random_topologies(first: int) -> None:
    for number in range(first, first + PART):
        for difference in checked(SEED, number).found:
            pytest.fail(difference.text)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(1, 4))
def test_more_random_topologies(seed: int) -> None:
    for number in range(1000):
        for difference in checked(seed, number).found:
            pytest.fail(difference.text)


def _first_difference(among: range) -> str:
    """The first difference of some programs, by an operator's kind; at most 1,000 programs are tried for one."""
    for number in among:
        for difference in checked(SEED, number, shrink=False).found:
            return difference.text
    return ""


def test_fields_of_two_tuples_in_one_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants B2: a null of the latest tuple is left out."""
    monkeypatch.setattr(folds, "last", lambda field, nulls: last(field))
    assert _first_difference(range(100))


def test_keys_of_like_types_that_match_nothing_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants B3: the parameters of a key's type don't count."""
    monkeypatch.setattr(equality, "are_comparable", lambda one, other: one.type is other.type)
    text = _first_difference(range(0, 1000, 5))
    assert ".join(" in text or "reject" in text


def test_windows_that_are_called_corrected_because_they_are_late_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants B4: windows are native, so it is the interpreter that takes late for emitted before."""
    monkeypatch.setattr(Windows, "was_given", lambda self, key, start: True)
    assert "window(" in _first_difference(range(50, 70))


def test_the_interpreter_marks_only_windows_that_were_emitted() -> None:
    """B4: programs have windows that are corrected, and late tuples of windows that were never emitted."""

    def corrects(made: Program) -> set[bool]:
        nodes = [node for node in made.nodes if node.options.get("lateness") and node.kind in ("windows", "sessions")]
        flows = interpreted(made)
        return {value for node in nodes for value in flows[node.name].column("corrected")}

    assert any(corrects(program(SEED, number)) == {False, True} for number in range(400))


def test_reduce_emits_the_keys_first() -> None:
    def reduced(emit: Any) -> list[Any]:
        return testing.collect(
            lambda s: s.key_by("k").reduce(lambda _, new: new, name="newest", emit=emit), [(1, "a", 2)], schema
        )

    schema = {"x": int, "k": str, "y": int}
    assert reduced("update") == reduced("final") == [("a", 1, 2)]
    topology = rel.Topology("names")
    made = (
        topology.source(rel.rows([], schema=schema), name="s")
        .key_by("k")
        .reduce(lambda _, new: new, name="r", emit="update")
    )
    assert made.schema.names == ("k", "x", "y")
