"""A tiny package with one of each fault: the numbers find every one, and nothing in a sound one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tools.imports import Import, Where, all_imports, components, modules
from tools.structure import LONG, Number, judged, measured

SOUND = {
    "rayelastic/__init__.py": '"""The package."""\n',
    "rayelastic/low/__init__.py": "",
    "rayelastic/low/values.py": "LIMIT = 1\n",
    "rayelastic/high/__init__.py": "",
    "rayelastic/high/user.py": "from rayelastic.low.values import LIMIT\nfrom rayelastic.low import values\n",
    "rayelastic/on_ray/actors.py": "import ray\n",
    "native_sched/src/queue.cpp": "int main() {}\n",
}

FAULTS: list[tuple[str, Mapping[str, str], int]] = [
    ("files-in-a-folder", {f"rayelastic/low/more_{n}.py": "" for n in range(3)}, 4),
    ("files-in-a-native-folder", {"native_sched/src/queue.hpp": "", "native_sched/src/notes.md": ""}, 2),
    (
        "modules-in-circles",
        {"rayelastic/low/values.py": "def late():\n    from rayelastic.low.other import x\n"}
        | {"rayelastic/low/other.py": "from rayelastic.low import values\n"},
        2,
    ),
    (
        "modules-in-circles",
        {"rayelastic/low/values.py": "if TYPE_CHECKING:\n    from .other import X\n"}
        | {"rayelastic/low/other.py": "from .values import LIMIT\n"},
        2,
    ),
    ("folders-in-circles", {"rayelastic/low/other.py": "from rayelastic.high import user\n"}, 2),
    (
        "folders-in-circles",
        {"rayelastic/between.py": "import rayelastic.high.user\n"}
        | {"rayelastic/low/other.py": "from rayelastic import between\n"},
        3,
    ),
    ("imports-in-functions", {"rayelastic/high/late.py": "def f():\n    from rayelastic.low.values import LIMIT\n"}, 1),
    ("imports-in-functions", {"rayelastic/on_ray/jobs.py": "def f():\n    import rayelastic.on_ray.actors\n"}, 1),
    ("optional-imports-in-functions", {"rayelastic/job.py": "def f():\n    import rayelastic.on_ray.actors\n"}, 1),
    (
        "optional-imports-in-functions",
        {"rayelastic/plot.py": "def f():\n    import rayelastic.picture\n"}
        | {"rayelastic/picture.py": "import rayelastic.shapes\n", "rayelastic/shapes.py": "import matplotlib\n"},
        1,
    ),
    ("long-files", {"rayelastic/low/values.py": "x = 1\n" * (LONG + 1)}, 1),
    ("long-files", {"native_sched/src/queue.cpp": "\n" * (LONG + 1)}, 1),
    ("long-files", {"tests/unit/test_values.py": "x = 1\n" * (LONG + 1)}, 1),
    ("long-files", {"bench/queue.cpp": "\n" * (LONG + 1), "tools/values.py": "\n" * (LONG + 1)}, 2),
    ("long-files", {"dev": "x = 1\n" * (LONG + 1)}, 1),
    ("string-calls", {"rayelastic/job.py": "def call(self, name: str, *arguments: Any) -> Any: ...\n"}, 1),
    ("string-calls", {"rayelastic/job.py": "def call(self, name: str, arguments: tuple[Any, ...]) -> Any: ...\n"}, 1),
    (
        "modules-without-types",
        {"pyproject.toml": '[[tool.mypy.overrides]]\nmodule = ["tests.a", "tests.b.*"]\nignore_errors = true\n'},
        1,
    ),
]


def test_a_sound_package_has_no_fault(tmp_path: Path) -> None:
    assert {one.name: one.value for one in measured(written(tmp_path, SOUND))} == {
        "files-in-a-folder": 1,
        "files-in-a-native-folder": 1,
        "modules-in-circles": 0,
        "folders-in-circles": 0,
        "imports-in-functions": 0,
        "optional-imports-in-functions": 0,
        "long-files": 0,
        "string-calls": 0,
        "modules-without-types": 0,
    }


@pytest.mark.parametrize(("name", "files", "value"), FAULTS)
def test_each_fault_is_found(name: str, files: Mapping[str, str], value: int, tmp_path: Path) -> None:
    sound = {one.name: one.value for one in measured(written(tmp_path / "sound", SOUND))}
    faulty = {one.name: one.value for one in measured(written(tmp_path / "faulty", {**SOUND, **files}))}
    assert faulty[name] == value > sound[name]


def test_what_a_long_file_is(tmp_path: Path) -> None:
    files = {"rayelastic/low/values.py": "x = 1\n" * LONG} | dict.fromkeys(
        ["build/made.py", ".venv/lib/installed.py", "rayelastic/_native.pyi", "docs/values.txt"], "x = 1\n" * (LONG + 1)
    )
    assert {one.name: one.value for one in measured(written(tmp_path, SOUND | files))}["long-files"] == 0


def test_a_number_may_fall_and_not_rise() -> None:
    numbers = [Number("a", 3), Number("b", 3), Number("c", 3), Number("new", 1)]
    assert judged(numbers, {"a": 2, "b": 3, "c": 4}) == (
        ["a: 3, the limit is 2", "new: 1, the limit is 0"],
        ["c = 3"],
    )


def test_imports_say_where_they_stand(tmp_path: Path) -> None:
    text = "import os\nif TYPE_CHECKING:\n    import a.b\nelse:\n    import c\nasync def f():\n    from . import low\n"
    root = written(tmp_path, {"rayelastic/__init__.py": text, "rayelastic/low.py": ""})
    assert all_imports(modules(root, ["rayelastic"])) == [
        Import("rayelastic", "os", "", 1, Where.TOP),
        Import("rayelastic", "a.b", "", 3, Where.TYPE_CHECKING),
        Import("rayelastic", "c", "", 5, Where.TOP),
        Import("rayelastic", "rayelastic.low", "", 7, Where.FUNCTION),
    ]


def test_components() -> None:
    assert components({"a": ["b"], "b": ["c"], "c": ["a", "d"], "d": ["e"], "e": ["d"], "f": ["a"]}) == [
        ["a", "b", "c"],
        ["d", "e"],
    ]


def written(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root
