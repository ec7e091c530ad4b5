"""Which mutants are drawn, what is kept of a run, what is left out within a budget, and the list of equivalent ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.mutant_runs import Outcome, within_budget
from tools.mutant_session import differing
from tools.mutate import FILES, KNOWN, ROOT, Mutant, Results, drawn, equivalents, listed, mutants, rounds, summary

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


@pytest.mark.parametrize("kind", ["equivalent", "survivor"])
def test_every_known_mutant_is_still_one_and_has_a_reason(kind: str) -> None:
    found = listed(KNOWN, kind)
    known = {one.identity for layer in {Path(file).parts[1] for file, *_ in found} for one in mutants(ROOT, layer)}
    assert found.keys() <= known
    assert all(len(reason) > 20 for reason in found.values())


def test_none_is_both_equivalent_and_a_survivor() -> None:
    assert not equivalents(KNOWN) & listed(KNOWN, "survivor").keys()


def test_fast_tests_fit_the_budget_and_one_runs_in_any_case() -> None:
    assert within_budget(["a", "b", "c"], [1.0, 2.0, 3.0], 3.5) == ["a", "b"]
    assert within_budget(["a", "b"], [9.0, 10.0], 3.5) == ["a"]


def test_few_files_come_first_and_nothing_is_left_out() -> None:
    tests = [f"{number}::{name}" for name in "ab" for number in range(FILES + 1)]
    first, later = rounds(tests, ["whole"])
    assert first == ([test for test in tests if not test.startswith(f"{FILES}:")], [])
    assert later == ([f"{FILES}::a", f"{FILES}::b"], ["whole"])
    assert list(rounds([], ["whole"])) == [([], ["whole"])]
    assert list(rounds(["0::a"], [])) == [(["0::a"], [])]


CODE = "def f(a):\n    return [a + 1]\n\nclass C:\n    most = 3\n    def g(self):\n        return lambda: 5\n"


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        ("a + 1", "a + 1", []),
        ("a + 1", "a - 1", ["f"]),
        ("lambda: 5", "lambda: 6", ["C.g"]),
        ("most = 3", "most = 4", None),
        ("most = 3", "most = 3.0", None),
        ("class C:", "del f\nclass C:", None),
        ("f(a):", "f(a=3):", None),
        ("lambda: 5", "5", ["C.g"]),
    ],
)
def test_functions_differ_or_what_runs_when_a_module_is_imported(
    before: str, after: str, names: list[str] | None
) -> None:
    one, other = (compile(code, "", "exec") for code in (CODE, CODE.replace(before, after)))
    found = differing(one, other)
    assert (None if found is None else [code.co_qualname for code, _ in found]) == names


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
