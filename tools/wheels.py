"""Builds wheels that run on any Linux with glibc 2.28 or newer, and an sdist: `./dev wheels`.

The compiler is zig's clang from PyPI: it brings the headers and symbols of any glibc and architecture and links its C++
library in, so the wheels need neither a container to be built nor a library that a machine may lack. Each
Python has its own wheel, because the stable ABI lacks datetime's C interface and needs a call for each item of a list.
auditwheel checks that the linked symbols are in that glibc, and names the wheel after it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.environment import PIP_OPTIONS, ROOT, WHEELS_LOCK, SetupError, say

FOLDER = ROOT / "build" / "wheels"
VERSIONS = ("3.11", "3.12", "3.13")
MACHINES = ("x86_64", "aarch64")
GLIBC = "2.28"  # RHEL 8, Debian 10, Ubuntu 20.04 and newer
MOST_BYTES = 5_000_000

TEST_EXTRAS = "delta,kafka,plot,postgres"  # what the tests need of the wheel's own extras
TEST_TOOLS = (
    *("axe-playwright-python", "hypothesis", "jupyter-server", "jupyter-server-proxy", "pandas", "playwright"),
    *("pytest", "pytest-timeout", "pytest-xdist"),
)
LAYERS = ("tests/unit", "tests/component")
ABOUT_SOURCES = (  # they look at the tree that isn't there
    "tests/unit/tools",
    "tests/component/project/test_first_build.py",
    "tests/component/project/test_guide.py::test_troubleshooting_quotes_messages_of_the_code",
    "tests/component/project/test_guide.py::test_what_papers_names_is_there",
    "tests/component/project/test_mutate.py",
)
GATE, GATE_ALONE = (f"not nightly and not bench and {which}" for which in ("not alone", "alone"))
NONE_CHOSEN = 5  # pytest's exit code
INSTALLED = ("rayelastic", "native_sched")
ISOLATED = {"PYTHONPATH": ""}  # what is tried is the wheel, not a tree that somebody's PYTHONPATH names
EMULATED_TIMEOUT = 1800  # seconds for a native test, which takes ten times as long in qemu
TOO_SLOW_TO_EMULATE = ("^test_model$", "^test_soak$")  # they look for interleavings by the hundred thousand
# auditwheel takes names of policies of the machine that it is on, so it is told to be on the wheel's.
AUDIT = "import platform, sys; platform.machine = lambda: {!r}; from auditwheel.main import main; sys.exit(main())"
# Prints what a wheel's extension wants of no library's version and not of Python: auditwheel passes it over.
UNBOUND = """
import io, sys, zipfile
from elftools.elf.elffile import ELFFile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    for name in wheel.namelist():
        if name.endswith(".so"):
            file = ELFFile(io.BytesIO(wheel.read(name)))
            versions = file.get_section_by_name(".gnu.version")
            for at, symbol in enumerate(file.get_section_by_name(".dynsym").iter_symbols()):
                strong = symbol["st_info"]["bind"] == "STB_GLOBAL" and symbol["st_shndx"] == "SHN_UNDEF"
                free = versions.get_symbol(at)["ndx"] in ("VER_NDX_LOCAL", "VER_NDX_GLOBAL")
                if strong and free and not symbol.name.startswith(("Py", "_Py")):
                    print(symbol.name)
"""


def pythons(versions: Sequence[str]) -> dict[str, Path]:
    """Return the interpreters of some versions, from PATH and pyenv."""
    found = {}
    for version in versions:
        kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python3"))
        named = [Path(path) for path in [shutil.which(f"python{version}")] if path and "shims" not in path]
        if [*kept, *named]:
            found[version] = [*kept, *named][-1]
    return found


def builder(version: str, python: Path) -> Path:
    """Return the folder of programs of an environment with the tools, made the first time."""
    folder = FOLDER / f"tools-{version}"
    stamp = folder / "lock"
    if not stamp.exists() or stamp.read_text() != WHEELS_LOCK.read_text():
        say(f"tools for Python {version}")
        shutil.rmtree(folder, ignore_errors=True)
        _run([str(python), "-m", "venv", str(folder)])
        _run([str(folder / "bin" / "pip"), "install", "-q", *PIP_OPTIONS, "--require-hashes", "-r", str(WHEELS_LOCK)])
        stamp.write_text(WHEELS_LOCK.read_text())
    return folder / "bin"


def cross_tools(programs: Path, machine: str) -> dict[str, str]:
    """Write programs that are zig's compiler for a machine, and return the variables by which CMake finds them."""
    folder = FOLDER / f"zig-{machine}-{programs.parent.name}"
    folder.mkdir(parents=True, exist_ok=True)
    target = f"-target {machine}-linux-gnu.{GLIBC}"
    # nanobind's headers leave it to the C++ library to include <cstdio>, which libc++ doesn't.
    words = {"cc": target, "c++": f"{target} -include stdio.h", "ar": "", "ranlib": ""}
    for name, options in words.items():
        program, text = folder / name, f'#!/bin/sh\nexec {programs}/python -m ziglang {name} {options} "$@"\n'
        if not program.exists() or program.read_text() != text:  # ccache takes one that was written anew for another
            program.write_text(text)
            program.chmod(0o755)
    cache = str(FOLDER / "zig-cache")
    return {
        "CC": f"{folder}/cc",
        "CXX": f"{folder}/c++",
        "ZIG_GLOBAL_CACHE_DIR": cache,
        "ZIG_LOCAL_CACHE_DIR": cache,
        "CMAKE_ARGS": f"-DCMAKE_AR={folder}/ar -DCMAKE_RANLIB={folder}/ranlib -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON",
        "CMAKE_BUILD_PARALLEL_LEVEL": str(os.cpu_count() or 2),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
    }


def build(version: str, programs: Path, compiler: Path, machine: str, output: Path) -> Path:
    """Build one wheel, audit it, and return its path.

    Args:
        version: of Python.
        programs: the folder of its tools.
        compiler: the folder of tools whose zig compiles: one for all versions, or the core is compiled for each.
        machine: to build for.
        output: the folder of wheels.
    """
    variables = {**cross_tools(compiler, machine), "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    if machine != os.uname().machine:
        tag = version.replace(".", "")
        variables |= {
            "_PYTHON_HOST_PLATFORM": f"linux-{machine}",
            "SETUPTOOLS_EXT_SUFFIX": f".cpython-{tag}-{machine}-linux-gnu.so",
        }
        variables["CMAKE_ARGS"] += f" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR={machine}"
    with tempfile.TemporaryDirectory() as raw:
        command = [
            f"{programs}/pip",
            "wheel",
            *PIP_OPTIONS,
            "--no-deps",
            "--no-build-isolation",
            "--no-cache-dir",
            "-w",
            raw,
        ]
        _run([*command, "-C", f"build-dir={FOLDER}/{machine}-{version}", str(ROOT)], variables)
        (made,) = Path(raw).glob("*.whl")
        with tempfile.TemporaryDirectory() as audited:
            options = ["--plat", f"manylinux_{GLIBC.replace('.', '_')}_{machine}", "--only-plat", "-w", audited]
            _run([f"{programs}/python", "-c", AUDIT.format(machine), "repair", *options, str(made)], variables)
            (wheel,) = Path(audited).glob("*.whl")
            output.mkdir(parents=True, exist_ok=True)
            kept = Path(shutil.copy(wheel, output))
    if kept.stat().st_size > MOST_BYTES:
        raise SetupError(f"{kept.name} has {kept.stat().st_size:,} bytes, more than {MOST_BYTES:,}")
    if wanting := _run([f"{programs}/python", "-c", UNBOUND, str(kept)]).split():
        raise SetupError(f"{kept.name} wants what glibc {GLIBC} hasn't: {', '.join(wanting)}")
    say(f"{kept}: {kept.stat().st_size:,} bytes, named by auditwheel")
    return kept


def first_example() -> str:
    """The README's first program, which reads the README and prints how often words occur in it."""
    (program,) = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    return str(program)


def try_out(version: str, python: Path, wheel: Path) -> None:
    """Install a wheel in an empty environment in which no compiler is found, and run the README's first example."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        _run([str(python), "-m", "venv", folder])
        bare = {"PATH": f"{folder}/bin", "CC": "/bin/false", "CXX": "/bin/false", **ISOLATED}
        _run([f"{folder}/bin/pip", "install", "-q", *PIP_OPTIONS, "--only-binary=:all:", str(wheel)], bare)
        program = Path(folder) / "first_example.py"
        program.write_text(first_example())
        said = _run([f"{folder}/bin/python", str(program)], bare, cwd=ROOT)
        if "{'word': " not in said:
            raise SetupError(f"{wheel.name}: the README's first example counted nothing:\n{said}")
    say(f"{wheel.name} runs the README's first example on Python {version} without a compiler")


def test_tools() -> list[str]:
    """What the tests are run by, in the ranges of pyproject.toml."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    ranges = {re.split(r"[^\w-]", wanted)[0]: wanted for extra in ("dev", "spark") for wanted in extras[extra]}
    return [ranges[name] for name in TEST_TOOLS]


def run_tests(version: str, python: Path, wheel: Path, chosen: Sequence[str]) -> None:
    """Run tests from an environment in which the wheel is installed, in a folder that has all but its sources."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        environment, tree = Path(folder) / "environment", Path(folder) / "tree"
        _run([str(python), "-m", "venv", str(environment)])
        install = [f"{environment}/bin/pip", "install", "-q", *PIP_OPTIONS, "--only-binary=:all:"]
        _run([*install, f"{wheel}[{TEST_EXTRAS}]", *test_tools()])
        for name in tracked_files():
            if name.partition("/")[0] not in INSTALLED and (ROOT / name).is_file():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, tree / name)
        own = "import rayelastic, sys; assert rayelastic.__file__.startswith(sys.prefix), rayelastic.__file__"
        inside = [f"{environment}/bin/python"]
        variables = {**os.environ, **ISOLATED}
        subprocess.run([*inside, "-c", own], cwd=tree, env=variables, check=True)
        left_out = [f"--{'deselect' if '::' in name else 'ignore'}={name}" for name in ABOUT_SOURCES]
        command = [*inside, "-m", "pytest", "-q", "-p", "no:cacheprovider", *left_out, *(chosen or LAYERS)]
        beside = ["-n", str(os.cpu_count() or 2), "--dist=loadfile"]
        found = {
            subprocess.run([*command, *options], cwd=tree, env=variables, check=False).returncode
            for options in ([*beside, "-m", GATE], ["-m", GATE_ALONE])
        }
        if not {0} <= found <= {0, NONE_CHOSEN}:
            raise SetupError(f"{wheel.name}: tests failed on Python {version}, or there were none")
    say(f"{wheel.name}: tests passed on Python {version}")


def native_tests(programs: Path, machine: str) -> None:
    """Build the core's tests as the wheels are built and runs them; those for another machine in qemu's user mode.

    Raises:
        SetupError: one failed, or what it takes isn't there.
    """
    variables, options = cross_tools(programs, machine), []
    if machine != os.uname().machine:
        emulator, libraries = shutil.which(f"qemu-{machine}-static"), Path(f"/usr/{machine}-linux-gnu")
        if emulator is None or not libraries.is_dir():
            packages = "qemu-user-static and libc6-arm64-cross"
            raise SetupError(f"native tests for {machine} take Debian's {packages}: ./dev programs installs them")
        options = [
            *("-DCMAKE_SYSTEM_NAME=Linux", f"-DCMAKE_SYSTEM_PROCESSOR={machine}"),
            f"-DCMAKE_CROSSCOMPILING_EMULATOR={emulator};-L;{libraries}",
            f"-DREL_TEST_TIMEOUT={EMULATED_TIMEOUT}",
        ]
    folder = FOLDER / f"native-{machine}"
    configure = [f"{programs}/cmake", "-S", str(ROOT / "native_sched"), "-B", str(folder), "-G", "Ninja"]
    _run([*configure, "-DREL_PYTHON=OFF", *variables["CMAKE_ARGS"].split(), *options], variables)
    _run([f"{programs}/cmake", "--build", str(folder), "--target", "native_tests"], variables)
    left_out = f"({'|'.join(TOO_SLOW_TO_EMULATE)})" if options else "^$"
    run = [f"{programs}/ctest", "--test-dir", str(folder), "--output-on-failure", "--no-tests=error", "-E", left_out]
    said = _run(run, variables)
    (summary,) = re.findall(r"^\d+% tests passed.*$", said, re.MULTILINE)
    say(f"native tests for {machine}{' in qemu' if options else ''}: {summary}")


def build_sdist(programs: Path, output: Path) -> None:
    """Build the sdist.

    Raises:
        SetupError: something would be in it that isn't in the repository.
    """
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        _run([f"{programs}/python", "-m", "build", "-q", "--sdist", "--no-isolation", "-o", folder, str(ROOT)])
        (sdist,) = Path(folder).iterdir()
        with tarfile.open(sdist) as archive:
            names = [member.name for member in archive if not member.isdir()]
        if strange := strangers(names, tracked_files()):
            raise SetupError(f"{sdist.name} has what isn't in the repository: {', '.join(strange[:5])}")
        shutil.copy(sdist, output)


def strangers(names: Sequence[str], tracked: Sequence[str]) -> list[str]:
    """Return the files of an sdist that git doesn't know; what the build adds to say what it is doesn't count.

    Args:
        names: of its files, below the folder that an sdist has.
        tracked: what git knows; what is reached by a link there is known by its own path.
    """
    paths = {os.path.relpath(os.path.realpath(ROOT / name.partition("/")[2]), os.path.realpath(ROOT)) for name in names}
    return sorted(paths - {"PKG-INFO", *tracked})


def tracked_files() -> list[str]:
    """What git knows, as paths below the project's folder."""
    told = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return told.rstrip("\0").split("\0")


def _run(command: Sequence[str], variables: Mapping[str, str] | None = None, cwd: Path = FOLDER) -> str:
    done = subprocess.run(
        command, env={**os.environ, **(variables or {})}, cwd=cwd, capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = (done.stdout + done.stderr).splitlines()
        raise SetupError("\n".join([f"failed: {' '.join(command)}", *lines[-40:]]))
    return done.stdout


def main(arguments: Sequence[str]) -> int:
    """Build what is asked for."""
    parser = argparse.ArgumentParser(prog="./dev wheels", description="Builds wheels for glibc 2.28, and an sdist.")
    parser.add_argument("--python", nargs="+", choices=VERSIONS, default=list(VERSIONS), help="versions; default: all")
    parser.add_argument("--machine", nargs="+", choices=MACHINES, default=list(MACHINES), help="default: all")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="a folder; default: dist")
    parser.add_argument("--try-out", action="store_true", help="also install each in an empty environment, and run it")
    parser.add_argument(
        "--tests",
        nargs="*",
        metavar="PATH",
        help=f"also run these tests with each, installed, and the native ones; without a path: {', '.join(LAYERS)}",
    )
    given = parser.parse_args(arguments)
    FOLDER.mkdir(parents=True, exist_ok=True)
    output = given.output.resolve()
    found = pythons(given.python)
    try:
        if missing := sorted(set(given.python) - set(found)):
            raise SetupError(f"no Python {', '.join(missing)} on PATH or in ~/.pyenv; --python takes some of them")
        tools = {version: builder(version, python) for version, python in found.items()}
        compiler = next(iter(tools.values()))
        for version, python in found.items():
            for machine in given.machine:
                wheel = build(version, tools[version], compiler, machine, output)
                if given.try_out and machine == os.uname().machine:
                    try_out(version, python, wheel)
                if given.tests is not None and machine == os.uname().machine:
                    run_tests(version, python, wheel, given.tests)
        for machine in given.machine if given.tests is not None else ():
            native_tests(compiler, machine)
        build_sdist(compiler, output)
        say(f"{output}: {', '.join(sorted(path.name for path in output.iterdir()))}")
    except SetupError as error:
        say(f"./dev wheels: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
