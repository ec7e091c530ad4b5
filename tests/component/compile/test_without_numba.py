"""A Python without Numba and llvmlite runs every function in Python, with the same results."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
COMPILER = ("numba", "llvmlite")
PORTS = ("count_with_timeout", "structured_sessions", "orderbook")  # timers, windows, keyed state
EXAMPLES = "import runpy\n" + "".join(
    f"runpy.run_path('examples/ported/{name}.py', run_name='__main__')\n" for name in PORTS
)
DECLARATIONS = """
import rayelastic as rel

topology = rel.Topology("prices")
prices = topology.source(rel.rows([(1.5,)], schema={"price": float}))
prices.filter(lambda t: t.price > 1, name="above")
print(topology.operators["above"].reason)
for lane, schema in (("auto", None), ("compiled", {"value": float})):
    try:
        prices.map(lambda t: t.price * 2, lane=lane, schema=schema)
    except rel.errors.DeclarationError as error:
        print(error.code, error.details["code"], error.details["package"], error.hint)
"""


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with all packages of this one but the compiler's; its Python."""
    folder = tmp_path_factory.mktemp("without")
    venv.create(folder, symlinks=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not entry.name.startswith(COMPILER):
            (packages / entry.name).symlink_to(entry)
    return folder / "bin" / "python"


def printed(python: Path, script: str) -> str:
    """What a script prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [python, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_results_are_those_of_compiled_functions(without: Path) -> None:
    assert printed(without, EXAMPLES) == printed(Path(sys.executable), EXAMPLES) != ""


def test_declarations_say_what_is_missing(without: Path) -> None:
    reason, *errors = printed(without, DECLARATIONS).splitlines()
    assert reason == "not compiled: numba isn't installed, and it makes the machine code"
    hint = "Install numba. Or pass schema=, or annotate what it returns with a class of typed fields"
    assert errors == [
        f"no-schema no_compiler numba {hint}",
        "not-compiled no_compiler numba Install numba, or use lane='python'",
    ]


def test_a_process_that_receives_machine_code_names_the_package(without: Path) -> None:
    script = """
from rayelastic.compile.cache.loader import host_target
from rayelastic.errors import SetupError

try:
    host_target()
except SetupError as error:
    print(error.code, error.hint)
"""
    assert printed(without, script) == (
        "missing-package Install numba on each node, or declare the functions with lane='python'\n"
    )
