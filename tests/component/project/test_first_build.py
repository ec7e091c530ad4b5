"""Who can't build it is told so in a sentence, before anything is compiled or fetched."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
OLDER = [python for minor in (8, 9, 10) for python in Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python3")]
DARWIN = """
#include <string.h>
#include <sys/utsname.h>

int uname(struct utsname *told) {
  memset(told, 0, sizeof *told);
  strcpy(told->sysname, "Darwin");
  return 0;
}
"""


def configured(folder: Path, **variables: str) -> str:
    """What CMake says to the sources of the extension."""
    cmake = shutil.which("cmake")
    assert cmake is not None
    command = [cmake, "-S", str(ROOT / "native_sched"), "-B", str(folder / "build"), "-DREL_PYTHON=OFF"]
    environment = {name: value for name, value in os.environ.items() if name not in ("CC", "CXX")}
    done = subprocess.run(command, env=environment | variables, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    return " ".join(done.stderr.split())


def test_another_system_is_told(tmp_path: Path) -> None:
    source, shim = tmp_path / "darwin.c", tmp_path / "darwin.so"
    source.write_text(DARWIN)
    subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", str(shim)], check=True)
    said = configured(tmp_path, LD_PRELOAD=str(shim))
    assert "rayelastic runs on Linux only (membarrier, eventfd, glibc); this is Darwin" in said


@pytest.mark.parametrize("named", [{}, {"CXX": "g++"}, {"CXX": "/usr/bin/missing-g++ -pthread"}], ids=str)
def test_a_missing_compiler_is_told(named: dict[str, str], tmp_path: Path) -> None:
    said = configured(tmp_path, PATH=str(tmp_path), **named)
    wanted = named.get("CXX", "c++, g++, clang++").removesuffix(" -pthread")
    assert f"takes a C++20 compiler (Debian, Ubuntu: apt install g++); there is no {wanted}" in said
    assert said.count("CMake Error") == 1


@pytest.mark.skipif(not OLDER, reason="no older Python in ~/.pyenv")
@pytest.mark.parametrize("python", OLDER, ids=lambda path: path.parts[-3])
def test_an_older_python_is_told(python: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    shutil.copy(ROOT / "dev", tmp_path)
    done = subprocess.run([python, "dev", "setup"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Python 3.11 or newer is needed, this is 3." in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
