"""What `./dev setup` leaves behind: processes that start at once, by the dozen, have nothing to compile."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from tools.environment import VENV, compile_bytecode

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
def test_files_for_another_python_are_passed_over(tmp_path: Path) -> None:
    for name, text in [("later.py", "print 'not yet'\n"), ("now.py", "VALUE = 1\n")]:
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "unused.py").write_text("", encoding="utf-8")
    compile_bytecode(tmp_path)
    assert [path.name.split(".")[0] for path in tmp_path.rglob("*.pyc")] == ["now"]
