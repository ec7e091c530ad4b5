"""Which mutants are drawn, what is kept of a run, what is left out within a budget, and the list of equivalent ones."""

from __future__ import annotations

import tomllib
from pathlib import Path

from tools.mutant_runs import Outcome, within_budget
from tools.mutate import EQUIVALENT, ROOT, Mutant, Results, drawn, equivalents, mutants, summary

SOURCE = "def f(a, b):\n    return a if a < b else b\n\n\ndef g(a):\n    return a is None\n"


def tree(root: Path) -> Path:
    (root / "rayelastic" / "plan").mkdir(parents=True)
    (root / "rayelastic" / "plan" / "some.py").write_text(SOURCE)
    return root


def test_a_draw_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    root = tree(tmp_path)
    assert [one.after for one in mutants(root, "plan")] == ["a <= b", "a > b", "a is not None"]
    draws = {seed: drawn(root, "plan", 3, seed, frozenset()) for seed in range(20)}
    assert all(drawn(root, "plan", 2, seed, frozenset()) == draw[:2] for seed, draw in draws.items())
    assert len({tuple(one.after for one in draw) for draw in draws.values()}) > 1


def test_a_draw_stays_when_other_files_change(tmp_path: Path) -> None:
    root = tree(tmp_path)
    before = [one.key for one in drawn(root, "plan", 3, 1, frozenset())]
    (root / "rayelastic" / "plan" / "another.py").write_text(SOURCE)
    (root / "rayelastic" / "plan" / "some.py").write_text("\n\n" + SOURCE)
    after = [one.key for one in drawn(root, "plan", 6, 1, frozenset()) if "some.py" in one.key]
    assert before == after


def test_mutants_that_look_the_same_are_told_apart(tmp_path: Path) -> None:
    root = tree(tmp_path)
    (root / "rayelastic" / "plan" / "some.py").write_text("def f(a, b, c):\n    return (a is b, a is b)\n")
    one, other = mutants(root, "plan")
    assert one.identity == other.identity
    assert one.key != other.key


def test_a_run_goes_on_with_what_was_not_killed(tmp_path: Path) -> None:
    root = tree(tmp_path)
    killed, survived, new = mutants(root, "plan")
    results = Results(tmp_path / "made" / "plan.json", killed=False)
    results.add(killed, Outcome.STUCK)
    results.add(survived, Outcome.SURVIVED)
    again = Results(tmp_path / "made" / "plan.json", killed=True)
    assert [again.killed(one) for one in (killed, survived, new)] == [Outcome.STUCK, None, None]
    assert Results(tmp_path / "made" / "plan.json", killed=False).killed(killed) is None


def test_what_changes_nothing_is_not_drawn(tmp_path: Path) -> None:
    root = tree(tmp_path)
    none = frozenset({("rayelastic/plan/some.py", "f", "a < b", "a <= b")})
    assert {one.after for one in drawn(root, "plan", 9, 1, none)} == {"a > b", "a is not None"}


def test_every_equivalent_mutant_is_still_one_and_has_a_reason() -> None:
    listed = tomllib.loads(EQUIVALENT.read_text())["mutant"]
    layers = {Path(one["file"]).parts[1] for one in listed}
    known = {one.identity for layer in layers for one in mutants(ROOT, layer)}
    assert equivalents(EQUIVALENT) <= known
    assert all(len(one["reason"]) > 20 for one in listed)


def test_fast_tests_fit_the_budget_and_one_runs_in_any_case() -> None:
    assert within_budget(["a", "b", "c"], [1.0, 2.0, 3.0], 3.5) == ["a", "b"]
    assert within_budget(["a", "b"], [9.0, 10.0], 3.5) == ["a"]


def test_the_summary_names_who_survived() -> None:
    one = Mutant(Path("rayelastic/plan/some.py"), 0, 2, "f", "a < b", "a <= b")
    said = summary([("plan", one, Outcome.SURVIVED), ("plan", one, Outcome.STUCK), ("policy", one, Outcome.KILLED)])
    assert said.splitlines() == [
        "plan     1/2 killed (50%)",
        "policy   1/1 killed (100%)",
        "1 survived:",
        "rayelastic/plan/some.py:2 f: `a < b` -> `a <= b`",
    ]
