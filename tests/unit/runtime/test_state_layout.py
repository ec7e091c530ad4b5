"""The layout of state in bytes is known to native operators alone: no Python module takes exported state apart."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import rayelastic

ROOT = Path(rayelastic.__file__).parent
READERS = [ROOT / "job/state.py", ROOT / "runtime/checkpoint/state_files.py", *(ROOT / "runtime/state").glob("*.py")]
OF_BYTES = {"struct", "ctypes", "numpy", "from_bytes", "frombuffer", "unpack", "unpack_from", "from_buffers"}


@pytest.mark.parametrize("path", READERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_reads_bytes_of_state(path: Path) -> None:
    used: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            used |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            used.add(str(node.module))
        elif isinstance(node, ast.Attribute):
            used.add(node.attr)
    assert not used & OF_BYTES
