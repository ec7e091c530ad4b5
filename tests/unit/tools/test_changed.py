"""What counts as changed, in a repository of its own, and which tests that selects."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tools.changed import base, changed, selected

AUTHOR = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]


def test_changed_since_main_committed_or_not(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "old.py").write_text("1")
    commit(tmp_path)
    assert base(tmp_path, "") == "HEAD"
    git(tmp_path, "checkout", "-q", "-b", "branch")
    (tmp_path / "committed.py").write_text("1")
    commit(tmp_path)
    git(tmp_path, "checkout", "-q", "main")
    (tmp_path / "of_others.py").write_text("1")
    commit(tmp_path)
    git(tmp_path, "checkout", "-q", "branch")
    (tmp_path / "old.py").write_text("2")
    (tmp_path / "new.py").write_text("1")
    assert set(changed(tmp_path, base(tmp_path, ""))) == {Path("committed.py"), Path("old.py"), Path("new.py")}
    assert set(changed(tmp_path, base(tmp_path, "HEAD"))) == {Path("old.py"), Path("new.py")}


class FakeMap:
    def tests_of_change(self, path: Path) -> list[str]:
        tests = ["tests/unit/graph/test_sums.py::test_a", "tests/component/test_runs.py::test_b"]
        return tests if path.name == "sums.py" else []

    def is_unchanged(self, path: Path) -> bool:
        return path.name == "test_sums.py"


@pytest.mark.parametrize(
    ("file", "tests"),
    [
        ("rayelastic/graph/sums.py", ["tests/component/test_runs.py", "tests/unit/graph/test_sums.py::test_a"]),
        ("rayelastic/graph/unknown.py", ["tests/unit/graph", "tests/component"]),
        (
            "rayelastic/graph/with_examples.py",
            ["rayelastic/graph/with_examples.py", "tests/unit/graph", "tests/component"],
        ),
        ("rayelastic/topology.py", ["tests/unit", "tests/component"]),
        ("tests/unit/graph/test_sums.py", ["tests/unit/graph/test_sums.py"]),
        ("tests/unit/graph/fakes.py", ["tests/unit/graph"]),
        ("tests/unit/graph/test_gone.py", ["tests/unit/graph"]),
        ("native_sched/src/queue.cpp", ["tests/component/native"]),
        ("docs/how_to/join_streams.md", ["tests/component/project/test_guide.py"]),
        ("setup.cfg", []),
    ],
)
def test_the_tests_of_a_file(file: str, tests: list[str], tmp_path: Path) -> None:
    for name in ("tests/unit/graph/test_sums.py", "tests/component/test_runs.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    (tmp_path / "rayelastic/graph").mkdir(parents=True)
    (tmp_path / "rayelastic/graph/with_examples.py").write_text(">>> 1\n1\n")
    covered: Any = FakeMap()
    assert selected(tmp_path, [Path(file)], covered) == tests


def test_a_whole_file_makes_its_tests_needless(tmp_path: Path) -> None:
    covered: Any = FakeMap()
    (tmp_path / "tests/unit/graph").mkdir(parents=True)
    (tmp_path / "tests/unit/graph/test_sums.py").touch()
    files = [Path("rayelastic/graph/sums.py"), Path("tests/unit/graph/test_sums.py")]
    assert selected(tmp_path, files, covered) == ["tests/unit/graph/test_sums.py"]


def commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, *AUTHOR, "commit", "-q", "-m", "one")


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=root, check=True)
