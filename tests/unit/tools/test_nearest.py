"""Which tests are nearest to a file, over a tiny tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.nearest import Nearest

TREE = {
    "rayelastic/__init__.py": "if TYPE_CHECKING:\n    from rayelastic.graph.sums import total as total\n",
    "rayelastic/graph/sums.py": "from rayelastic.graph.numbers import add\n",
    "rayelastic/graph/numbers.py": "from rayelastic.graph.deep import x\n",
    "rayelastic/graph/deep.py": "",
    "rayelastic/graph/alone.py": "",
    "tests/unit/graph/fakes.py": "from rayelastic.graph.numbers import add\n",
    "tests/unit/graph/test_more.py": "from tests.unit.graph.fakes import add\n",
    "tests/unit/graph/test_numbers.py": "from rayelastic.graph import numbers\n",
    "tests/unit/plan/test_plans.py": "from rayelastic.graph import numbers\n",
    "tests/component/test_running.py": "import rayelastic as rel\nrel.total(1)\n",
    "native_sched/src/queue.cpp": "",
}


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("rayelastic/graph/numbers.py", ["unit/graph/test_numbers", "unit/graph/test_more", "unit/plan/test_plans"]),
        ("rayelastic/graph/sums.py", ["component/test_running"]),
        ("rayelastic/graph/deep.py", ["unit/graph/test_numbers", "unit/graph/test_more", "unit/plan/test_plans"]),
        ("rayelastic/graph/alone.py", []),
        ("tests/unit/graph/fakes.py", ["unit/graph/test_more"]),
        ("tests/unit/graph/test_more.py", ["unit/graph/test_more"]),
        ("setup.cfg", []),
    ],
)
def test_nearest(changed: str, tests: list[str], tmp_path: Path) -> None:
    assert Nearest(written(tmp_path)).of_files([Path(changed)]) == [Path(f"tests/{name}.py") for name in tests]


def test_native_sources_and_pages_have_tests_of_their_own(tmp_path: Path) -> None:
    nearest = Nearest(written(tmp_path))
    assert nearest.of_files([Path("native_sched/src/queue.cpp")]) == [Path("tests/component/native")]
    assert nearest.of_files([Path("docs/how_to/join_streams.md")]) == [Path("tests/component/test_guide.py")]


def test_a_files_own_examples_come_first(tmp_path: Path) -> None:
    root = written(tmp_path)
    path = Path("rayelastic/graph/numbers.py")
    (root / path).write_text('"""Numbers.\n\n>>> 1 + 1\n2\n"""\n')
    assert Nearest(root).of_files([path])[:2] == [path, Path("tests/unit/graph/test_numbers.py")]


def test_a_module_that_has_become_a_folder_keeps_its_tests(tmp_path: Path) -> None:
    root = written(tmp_path)
    path = root / "rayelastic/graph/numbers.py"
    path.unlink()
    path.with_suffix("").mkdir()
    (path.with_suffix("") / "__init__.py").write_text(TREE["rayelastic/graph/numbers.py"])
    found = Nearest(root).of_files([Path("rayelastic/graph/numbers.py"), Path("rayelastic/graph/numbers/__init__.py")])
    assert found[0] == Path("tests/unit/graph/test_numbers.py")


def written(root: Path) -> Path:
    for name, text in TREE.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root
