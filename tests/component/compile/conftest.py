from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from harness import MAP, Runner, request

from rayelastic.compile import Compiler
from rayelastic.compile.cache import CodeCache
from rayelastic.graph.operator_spec import Lane


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = tmp_path_factory.mktemp("shim") / "shim.so"
    source = Path(__file__).parent / "shim.c"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.shim_open.restype = loaded.shim_collected.restype = ctypes.c_void_p
    loaded.shim_bytes.restype = loaded.shim_flushes.restype = loaded.shim_blocks.restype = ctypes.c_int64
    loaded.shim_open.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
    return loaded


@pytest.fixture(scope="session")
def compiler() -> Compiler:
    """Keeps nothing on disk: what is tested is what the sources say now."""
    return Compiler(CodeCache(None))


@pytest.fixture(scope="session")
def compiled(shim: ctypes.CDLL, compiler: Compiler) -> Callable[..., Runner]:
    def make(function: Any, schema: Any, kind: Any = MAP, **options: Any) -> Runner:
        code = compiler.compile(request(function, schema, kind, lane=Lane.COMPILED, **options))
        return Runner(shim, code)

    return make
