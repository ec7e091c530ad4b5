"""The environment that `./dev setup` leaves behind, and the limit of what runs in it."""

from __future__ import annotations

import importlib.util
import os
import select
import sys
from pathlib import Path

import pytest

from tools.environment import VENV, compile_bytecode, run

PATIENCE = 20.0
is_set_up = pytest.mark.skipif(Path(sys.prefix) != VENV, reason="installed by other means than ./dev setup")


@is_set_up
@pytest.mark.parametrize("module", ["ray", "ray/util", "numpy", "numba", "pyarrow", "pyspark"])
def test_what_a_process_imports_is_compiled(module: str) -> None:
    path = VENV / "lib" / f"python3.{sys.version_info.minor}" / "site-packages" / module / "__init__.py"
    assert Path(importlib.util.cache_from_source(str(path))).exists()


@is_set_up
def test_what_makes_each_import_of_ray_slow_is_not_installed() -> None:
    assert importlib.util.find_spec("rfc3987_syntax") is None


@is_set_up
def test_files_for_another_python_are_passed_over_and_so_is_what_nobody_imports(tmp_path: Path) -> None:
    folder = tmp_path / "test" / "lib"  # a project may well lie below a folder of that name
    (folder / "tests").mkdir(parents=True)
    (folder / "later.py").write_text("print 'not yet'\n", encoding="utf-8")
    (folder / "now.py").write_text("VALUE = 1\n", encoding="utf-8")
    (folder / "tests" / "unused.py").write_text("", encoding="utf-8")
    compile_bytecode(tmp_path / "test", "lib")
    assert [path.name.split(".")[0] for path in tmp_path.rglob("*.pyc")] == ["now"]


def test_a_command_beyond_its_limit_ends_with_its_children(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "open")
    reader = os.open(tmp_path / "open", os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(tmp_path / "open", os.O_WRONLY)
    endless = f"exec > {tmp_path / 'open'}; (trap '' ABRT; tail -f /dev/null) & tail -f /dev/null"
    try:
        assert run(["sh", "-c", endless], limit=1.0) == 1
    finally:
        os.close(writer)
    readable, _, _ = select.select([reader], [], [], PATIENCE)
    assert readable, "a child still writes"
    os.close(reader)
