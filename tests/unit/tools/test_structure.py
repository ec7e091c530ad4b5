"""A tiny package with one of each fault: each count finds its own, and nothing in a sound one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.structure import MEMBERS, main, measured

SOUND = {
    "rayelastic/low/values.py": "LIMIT = 1\n",
    "rayelastic/high/user.py": "import low\nclass A:\n    def f(self):\n        self.a = self.b = Kind.OPEN\n",
    "native_sched/src/queue.hpp": "class Queue {\n  std::array<int, 4> held_{};\n  int size() const;\n};\n",
}
MANY = range(MEMBERS + 1)
FAULTS = {
    "a class": (
        "large-classes",
        "rayelastic/low/large.py",
        "class A:\n    def f(self):\n" + "".join(f"        self.a{n} = 1\n" for n in MANY),
    ),
    "a C++ class": (
        "large-classes",
        "native_sched/src/port.hpp",
        "class Port final : public Base {\n" + "".join(f"  std::atomic<int> a{n}_{{{n}}};\n" for n in MANY) + "};\n",
    ),
    "an import": ("imports-in-functions", "rayelastic/low/late.py", "def f():\n    from rayelastic.high import user\n"),
    "a concept": (r"Kind\.", "rayelastic/low/kinds.py", "if kind is Kind.OPEN: ...\n"),
    "a concept in C++": (r"Kind\.", "native_sched/src/kinds.cpp", "// Kind.OPEN\n"),
}


def written(root: Path, *more: tuple[str, str]) -> Path:
    for name, text in [*SOUND.items(), *more]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_a_sound_tree(tmp_path: Path) -> None:
    counts = measured(written(tmp_path), {r"Kind\.": 1})
    assert {name: len(places) for name, places in counts.items()} == {
        "large-classes": 0,
        "imports-in-functions": 0,
        r"Kind\.": 1,
    }


@pytest.mark.parametrize(("name", "path", "text"), FAULTS.values(), ids=FAULTS)
def test_each_fault_is_counted_and_fails(name: str, path: str, text: str, tmp_path: Path) -> None:
    root = written(tmp_path, (path, text))
    settings = "[tool.structure]\nlarge-classes = 0\nimports-in-functions = 0\nfiles-that-mention = {'Kind\\.' = 1}\n"
    (root / "pyproject.toml").write_text(settings)
    counts = measured(root, {r"Kind\.": 1})
    assert any(path in place for place in counts[name])
    assert main([], root) == 1
    (root / path).unlink()
    assert main([], root) == 0
