"""The draw of mutants, the tests within a budget, the summary, and the list of known mutants."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.mutate import KNOWN, ROOT, Mutant, Outcome, drawn, listed, mutants, summary, within_budget

SOURCE = "def f(a, b):\n    return a if a < b else b\n\n\ndef g(a):\n    return a is None\n"


def tree(root: Path) -> Path:
    (root / "rayelastic" / "plan").mkdir(parents=True)
    (root / "rayelastic" / "plan" / "some.py").write_text(SOURCE)
    return root


def test_a_draw_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    root = tree(tmp_path)
    assert [one.after for one in mutants(root, root)] == ["a <= b", "a > b", "a is not None"]
    draws = {seed: drawn(root, "plan", seed, frozenset()) for seed in range(20)}
    assert all(drawn(root, "plan", seed, frozenset()) == draw for seed, draw in draws.items())
    assert len({tuple(one.after for one in draw) for draw in draws.values()}) > 1


def test_a_draw_stays_when_other_files_change(tmp_path: Path) -> None:
    root = tree(tmp_path)
    before = [one.key for one in drawn(root, "plan", 1, frozenset())]
    (root / "rayelastic" / "plan" / "another.py").write_text(SOURCE)
    (root / "rayelastic" / "plan" / "some.py").write_text("\n\n" + SOURCE)
    after = [one.key for one in drawn(root, "plan", 1, frozenset()) if "some.py" in one.key]
    assert before == after


def test_mutants_that_look_the_same_are_told_apart(tmp_path: Path) -> None:
    root = tree(tmp_path)
    (root / "rayelastic" / "plan" / "some.py").write_text("def f(a, b, c):\n    return (a is b, a is b)\n")
    one, other = mutants(root, root)
    assert one.identity == other.identity
    assert one.key != other.key


def test_what_changes_nothing_is_not_drawn(tmp_path: Path) -> None:
    root = tree(tmp_path)
    none = frozenset({("rayelastic/plan/some.py", "f", "a < b", "a <= b")})
    assert {one.after for one in drawn(root, "plan", 1, none)} == {"a > b", "a is not None"}


@pytest.mark.parametrize("kind", ["equivalent", "survivor"])
def test_every_known_mutant_is_still_one_and_has_a_reason(kind: str) -> None:
    found = listed(KNOWN, kind)
    known = {one.identity for one in mutants(ROOT, ROOT / "rayelastic")}
    assert found.keys() <= known
    assert all(len(reason) > 20 for reason in found.values())


def test_none_is_both_equivalent_and_a_survivor() -> None:
    assert not listed(KNOWN, "equivalent").keys() & listed(KNOWN, "survivor").keys()


def test_fast_tests_fit_the_budget_and_one_runs_in_any_case() -> None:
    seconds = {"a": 1.0, "b": 2.0, "c": 9.0}
    assert within_budget(["a", "b", "c"], seconds, 3.5) == ["a", "b"]
    assert within_budget(["c", "a"], seconds, 3.5) == ["c"]
    assert within_budget([], seconds, 3.5) == []


def test_the_summary_names_who_survived_and_why() -> None:
    one = Mutant(Path("rayelastic/plan/some.py"), 0, 2, "f", "a < b", "a <= b")
    other = Mutant(Path("rayelastic/plan/some.py"), 1, 3, "g", "1", "2")
    done = [("plan", one, Outcome.SURVIVED), ("plan", other, Outcome.SURVIVED), ("policy", one, Outcome.KILLED)]
    assert summary(done, {}).splitlines() == [
        "plan     0/2 killed (0%)",
        "policy   1/1 killed (100%)",
        "2 survived:",
        "rayelastic/plan/some.py:2 f: `a < b` -> `a <= b`",
        "rayelastic/plan/some.py:3 g: `1` -> `2`",
    ]
    assert summary(done, {one.identity: "nobody waits so long"}).splitlines()[2:] == [
        "1 survived for a reason:",
        "rayelastic/plan/some.py:2 f: `a < b` -> `a <= b`",
        "    nobody waits so long",
        "1 survived:",
        "rayelastic/plan/some.py:3 g: `1` -> `2`",
        "killed, though listed as survivors:",
        "rayelastic/plan/some.py:2 f: `a < b` -> `a <= b`",
    ]
