"""The development environment: `.venv` from requirements.lock, and the package built and installed editable into it.

It has three steps; a step is skipped while its stamp matches its inputs. It uses only the standard library, because it
runs before anything is installed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOCK = ROOT / "requirements.lock"
DOCS_LOCK = ROOT / "requirements.docs.lock"
WHEELS_LOCK = ROOT / "requirements.wheels.lock"
LOG = VENV / "setup.log"
STACKS_TIMEOUT = 10  # seconds that a program has to print its stacks before it is killed
PIP_OPTIONS = ("--no-input", "--disable-pip-version-check", "--progress-bar=off")
# What of the packages no process of a job imports, nor the tests: half of all files.
UNUSED = "pip setuptools mypy mypyc debugpy fontTools pygments playwright rllib tune train serve llm test tests testing"

if TYPE_CHECKING:  # Pythons that are too old have no such types
    Step = tuple[str, Callable[[], None]]


class SetupError(Exception):
    """A step that can't go on, in words for the person at the keyboard."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


def setup(arguments: list[str] | None = None) -> int:
    """Three steps, each skipped when a stamp says that its inputs are unchanged."""
    return take(environment_step(), packages_step(), extension_step(), told=arguments is not None)


def take(*wanted: Step | None, told: bool = False) -> int:
    """Take those steps that are needed; with `told` also says when none was."""
    started = time.monotonic()
    steps = [step for step in wanted if step is not None]
    for number, (title, act) in enumerate(steps, start=1):
        say(f"[{number}/{len(steps)}] {title}")
        act()
    if steps:
        say(f"ready in {time.monotonic() - started:.0f} s")
    elif told:
        say("nothing to do")
    return 0


def environment_step() -> Step | None:
    if PYTHON.exists() and (VENV / "pyvenv.cfg").exists():
        return None
    check_machine()

    def act() -> None:
        shutil.rmtree(VENV, ignore_errors=True)
        made = subprocess.run([sys.executable, "-m", "venv", str(VENV)], capture_output=True, text=True, check=False)
        if made.returncode:
            shutil.rmtree(VENV, ignore_errors=True)
            raise SetupError(
                f"{sys.executable} can't create a virtual environment:\n{made.stdout}{made.stderr}"
                "On Debian or Ubuntu: apt install python3-venv"
            )

    return f"virtual environment in .venv, Python {platform.python_version()}", act


def packages_step() -> Step | None:
    stamp = Stamp("packages", [LOCK])
    if stamp.valid():
        return None

    def act() -> None:
        # A new pip first: it reads the index in half the time of the one that Python 3.11 brings.
        text = LOCK.read_text()
        newest = re.search(r"(?m)^pip==(?:.*\\\n)*.*", text)
        total = len(re.findall(r"(?m)^[A-Za-z0-9._-]+==", text))
        if newest:
            only_pip = VENV / "pip.lock"
            only_pip.write_text(newest.group())
            pip(
                ["install", "--quiet", "--no-deps", "--require-hashes", "-r", str(only_pip)], Counter("pip", 1, r"(?!)")
            )
        pip(
            ["install", "--no-compile", "--no-deps", "--require-hashes", "-r", str(LOCK)],
            Counter("fetched", total, r"^(?:Collecting|Requirement already satisfied:) ([^\s=<>;\[]+)"),
        )
        compile_bytecode(VENV, "lib")
        stamp.write()

    return "packages of requirements.lock (1.4 GB on disk, Spark, Ray and a JVM among them)", act


def compile_bytecode(root: Path, *folders: str) -> None:
    """Once, on all CPUs: many processes start at once later, and each would compile what it imports, under load.

    Where nothing may be written to a cache (PYTHONDONTWRITEBYTECODE), each would do so every time.
    """
    unused = rf"/({'|'.join(UNUSED.split())})/"
    command = [str(PYTHON), "-m", "compileall", "-q", "-j", "0", "-x", unused, *folders]
    # From there, so that what is unused is told by its place in it. Packages bring files for other Pythons, too.
    subprocess.run(command, cwd=root, capture_output=True, check=False)


def docs_step() -> Step | None:
    """What the documentation's site is built with, which only `./dev docs` needs."""
    stamp = Stamp("docs", [LOCK, DOCS_LOCK])
    if stamp.valid():
        return None

    def act() -> None:
        arguments = ["install", "--no-compile", "--no-deps", "--require-hashes", "-r", str(DOCS_LOCK)]
        pip(arguments, Counter("fetched", 0, r"^Collecting ([^\s=<>;\[]+)"))
        stamp.write()

    return "packages of requirements.docs.lock: Sphinx and its theme", act


def extension_step() -> Step | None:
    native = [path for folder in ("include", "src", "bindings") for path in (ROOT / "native_sched" / folder).rglob("*")]
    packages = [path for package in ("rayelastic", "papers", "topologies") for path in (ROOT / package).rglob("*.py")]
    inputs = [LOCK, ROOT / "pyproject.toml", ROOT / "native_sched" / "CMakeLists.txt", *native]
    stamp = Stamp("extension", inputs, packages)  # an editable install lists the modules that there are
    if stamp.valid():
        return None
    check_machine()

    def act() -> None:
        pip(
            ["install", "--verbose", "--no-deps", "--no-build-isolation", "--editable", "."],
            Counter("compiled", 0, r"^\s*\[(\d+/\d+)\]"),
        )
        compile_bytecode(ROOT, "rayelastic", "papers", "topologies")
        stamp.write()

    return "the package: native extension built, installed editable", act


def check_machine() -> None:
    """What the steps need from the machine, with the way to get it."""
    if sys.version_info < (3, 11):  # noqa: UP036 - a program is run by whatever Python it meets
        raise SetupError(
            f"Python 3.11 or newer is needed, this is {platform.python_version()}. Try: python3.11 ./dev setup"
        )
    missing = []
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        missing.append(("Python's venv and ensurepip", "python3-venv"))
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        missing.append(("Python's C headers", "python3-dev"))
    compiler = os.environ.get("CXX", "c++").split()[0]
    if not any(shutil.which(name) for name in (compiler, "g++", "clang++")):
        missing.append(("a C++20 compiler (g++ 11 or newer)", "g++"))
    if missing:
        what = ", ".join(name for name, _ in missing)
        raise SetupError(
            f"missing: {what}. On Debian or Ubuntu: apt install {' '.join(package for _, package in missing)}"
        )


class Stamp:
    """Remembers the inputs that a step was last done with, and the names of other files that it knows."""

    def __init__(self, name: str, inputs: Iterable[Path], names: Iterable[Path] = ()) -> None:
        self._path = VENV / f"{name}.stamp"
        digest = hashlib.sha256(str(ROOT).encode())
        for path in sorted(set(inputs)):
            if path.is_file():
                digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
        for path in sorted(set(names)):
            digest.update(str(path.relative_to(ROOT)).encode() + b"\0")
        self._digest = digest.hexdigest()

    def valid(self) -> bool:
        return self._path.exists() and self._path.read_text() == self._digest

    def write(self) -> None:
        self._path.write_text(self._digest)


class Counter:
    """Shows how far a step is, from the lines that its command prints.

    On a terminal one line is rewritten in place; elsewhere a line comes every ten seconds.
    """

    def __init__(self, verb: str, total: int, pattern: str) -> None:
        self._verb, self._total, self._pattern = verb, total, re.compile(pattern)
        self._count = 0
        self._shown = time.monotonic()
        self._terminal = sys.stdout.isatty()

    def line(self, text: str) -> None:
        found = self._pattern.search(text)
        if found:
            self._count += 1
            state = f"{self._count}/{self._total} {found[1]}" if self._total else found[1]
            self._show(f"      {self._verb} {state}")
        elif text.startswith("Building wheel"):
            self._show(f"      {text.strip()}")
        elif text.startswith("Installing collected packages"):
            self._show("      installing what was fetched", at_once=True)

    def _show(self, text: str, at_once: bool = False) -> None:
        if self._terminal:
            width = shutil.get_terminal_size().columns - 1
            print("\r" + text[:width].ljust(width), end="", flush=True)
        elif at_once or time.monotonic() - self._shown >= 10:
            self._shown = time.monotonic()
            print(text, flush=True)

    def done(self) -> None:
        if self._terminal:
            print("\r" + " " * (shutil.get_terminal_size().columns - 1) + "\r", end="", flush=True)


def pip(arguments: Sequence[str], counter: Counter) -> None:
    """Run pip in the environment, shows its progress, keeps its output in .venv/setup.log."""
    command = [str(PYTHON), "-m", "pip", *arguments, *PIP_OPTIONS]
    environment = environment_variables()
    environment.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", str(os.cpu_count() or 2))
    with LOG.open("a") as log:
        log.write(f"$ {' '.join(command)}\n")
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        assert process.stdout is not None
        last: list[str] = []
        try:
            for text in process.stdout:
                log.write(text)
                last = [*last[-39:], text]
                counter.line(text)
        except BaseException:
            process.terminate()
            raise
        finally:
            process.wait()
            counter.done()
    if process.returncode:
        raise SetupError(f"pip failed:\n{''.join(last)}(all of it: {LOG})")


def environment_variables() -> dict[str, str]:
    """Return the caller's, with the environment's programs first on PATH (Spark starts `python3` from there)."""
    variables = dict(os.environ)
    variables["PATH"] = f"{VENV / 'bin'}{os.pathsep}{variables.get('PATH', os.defpath)}"
    variables["VIRTUAL_ENV"] = str(VENV)
    variables.pop("PYTHONHOME", None)
    return variables


def run(command: Sequence[str], quiet: bool = False, limit: float | None = None) -> int:
    """Run a program of the environment from the repository's root.

    Args:
        command: the program and its arguments.
        quiet: whether to show its output only if it fails.
        limit: seconds after which it and its children are ended, not of a quiet one. Python prints its stacks then.
    """
    variables = environment_variables()
    program = shutil.which(command[0], path=variables["PATH"]) or str(ROOT / command[0])
    full = [program, *command[1:]]
    if limit is not None:
        with subprocess.Popen(full, cwd=ROOT, env=variables, process_group=0) as process:
            return _within(limit, process)
    if not quiet:
        return subprocess.run(full, cwd=ROOT, env=variables, check=False).returncode
    result = subprocess.run(
        full, cwd=ROOT, env=variables, check=False, capture_output=True, text=True, errors="replace"
    )
    if result.returncode:
        print(result.stdout + result.stderr, file=sys.stderr)
    return result.returncode


def _within(limit: float, process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        say(f"ended after {limit:.0f} s: {process.args!r}")
        _end(process, signal.SIGABRT)
        return 1
    except KeyboardInterrupt:
        _end(process, signal.SIGINT)
        raise
    finally:
        with contextlib.suppress(ProcessLookupError):  # all have ended
            os.killpg(process.pid, signal.SIGKILL)


def _end(process: subprocess.Popen[bytes], by: signal.Signals) -> None:
    os.killpg(process.pid, by)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(STACKS_TIMEOUT)


def say(text: str) -> None:
    print(text, flush=True)
