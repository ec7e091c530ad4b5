from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from harness import MAP, Runner, built_shim, opened_shim, request
from second import SecondProcess

from rayelastic.compile import Compiler
from rayelastic.compile.cache.code_cache import CodeCache
from rayelastic.compile.reading.identity import Identity
from rayelastic.graph.spec.operator_spec import Lane


@pytest.fixture(scope="session")
def shim_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_shim(tmp_path_factory.mktemp("shim"))


@pytest.fixture(scope="session")
def shim(shim_file: Path) -> ctypes.CDLL:
    return opened_shim(shim_file)


@pytest.fixture(scope="session")
def code_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Empty at first: what is tested is what the sources say now."""
    return tmp_path_factory.mktemp("code")


@pytest.fixture(scope="session")
def compiler(code_folder: Path) -> Compiler:
    return Compiler(CodeCache(code_folder))


@pytest.fixture(scope="session")
def second_process(shim_file: Path, code_folder: Path) -> Iterator[SecondProcess]:
    process = SecondProcess(shim_file, code_folder)
    yield process
    process.close()


@pytest.fixture(scope="session")
def compiled(shim: ctypes.CDLL, compiler: Compiler, second_process: SecondProcess) -> Callable[..., Runner]:
    """Makes compiled functions, each of which runs in a process that never compiled as well."""

    def make(function: Any, schema: Any, kind: Any = MAP, **options: Any) -> Runner:
        asked = request(function, schema, kind, lane=Lane.COMPILED, **options)
        code = compiler.compile(asked)
        if not Identity(function).known:  # never in a cache
            return Runner(shim, code)
        return Runner(shim, code, functools.partial(second_process.run, second_process.load(asked)))

    return make
