"""Runs tests in a process forked from this one, with a mutant in place of one of the modules: no file changes."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import psutil

LOOK = 0.02  # seconds between two looks at a running process
WAITING = 10.0
NO_TESTS = 5  # pytest's status
FAILED_TO_START = 70  # no status of pytest: the mutant can't even be imported
CACHE = "XDG_CACHE_HOME"
OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore")  # of pytest


class Outcome(Enum):
    """What became of a mutant, or of a run without one."""

    SURVIVED = "survived"
    KILLED = "killed"
    STUCK = "stuck"  # killed, too: the tests would never end

    @property
    def mark(self) -> str:
        """As progress shows it."""
        word: str = self.value
        return word.upper() if self is Outcome.SURVIVED else word


class Planted:
    """Finds one module, made of faulty code, before Python finds it where it is."""

    def __init__(self, module: str, path: Path, code: Any) -> None:
        self._module, self._path, self._code = module, path, code

    def load(self) -> None:
        """Import it here and now: pytest finds the files that it is given by itself, where they are."""
        sys.meta_path.insert(0, self)
        importlib.import_module(self._module)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        inside = [str(self._path.parent)] if self._path.name == "__init__.py" else None
        if name != self._module:
            return None
        return importlib.util.spec_from_file_location(
            name,
            self._path,
            loader=self,  # type: ignore[arg-type]
            submodule_search_locations=inside,
        )

    def create_module(self, spec: ModuleSpec) -> None:  # noqa: ARG002
        return None

    def exec_module(self, module: Any) -> None:
        exec(self._code, module.__dict__)


class Chosen:
    """A plugin of pytest: some tests, within a budget.

    Args:
        tests: which, in their order.
        whole: files all of whose tests are wanted, too, behind these.
        seconds: that a test takes; 0 where that isn't known.
        budget: seconds of tests.
    """

    def __init__(self, tests: Sequence[str], whole: Sequence[str], seconds: Mapping[str, float], budget: float) -> None:
        self._tests, self._whole = ({one: place for place, one in enumerate(them)} for them in (tests, whole))
        self._seconds, self.budget = seconds, budget

    def cost(self, item: Any) -> float:
        """Seconds that a test takes; 0 where that isn't known."""
        return self._seconds.get(item.nodeid, 0.0)

    def among(self, items: Sequence[Any]) -> list[Any]:
        """Which of all tests, in the order in which they are to run."""
        wanted = [one for one in items if one.nodeid in self._tests or file_of(one) in self._whole]
        last = len(self._tests)
        wanted.sort(key=lambda item: (self._tests.get(item.nodeid, last), self._whole.get(file_of(item), 0)))
        return within_budget(wanted, list(map(self.cost, wanted)), self.budget)

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = self.among(items)

    def pytest_terminal_summary(self, terminalreporter: Any, exitstatus: int) -> None:  # noqa: ARG002
        """All has been said: what pytest tidies up after that, the end of the process does."""
        sys.stdout.flush()
        os._exit(int(exitstatus))


def file_of(item: Any) -> str:
    return str(item.nodeid).partition("::")[0]


class Caches:
    """Compiled code of a process.

    Args:
        folder: for what it compiles, which is nobody else's.
        allowed: whether compiled code may be used that there is.
    """

    def __init__(self, folder: Path, *, allowed: bool) -> None:
        self._folder, self._allowed = folder / "cache", allowed
        self._compiled = Path(os.environ.get(CACHE) or Path.home() / ".cache") / "rayelastic"

    def use(self) -> None:
        """From now on, in this process; what another compiled before is gone, but links to what there is stay."""
        linked = self._folder / self._compiled.name
        missing = set(files(self._compiled)) if self._allowed else set()
        for name, is_link in list(files(linked).items()):
            if is_link and name in missing:
                missing.remove(name)
            else:
                Path(f"{linked}{name}").unlink()
        for name in missing:
            link = Path(f"{linked}{name}")
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(f"{self._compiled}{name}")
        os.environ[CACHE] = str(self._folder)


def files(folder: Path) -> dict[str, bool]:
    """Return whether each in a folder, and in those in it, is a link; by its path from the folder, with the slash."""
    found, left = {}, [""]
    while left and folder.is_dir():
        inside = left.pop()
        with os.scandir(f"{folder}{inside}") as entries:
            for one in entries:
                if one.is_dir(follow_symlinks=False):
                    left.append(f"{inside}/{one.name}")
                else:
                    found[f"{inside}/{one.name}"] = one.is_symlink()
    return found


def within_budget(items: Sequence[Any], seconds: Sequence[float], budget: float) -> list[Any]:
    """As many as fit, and one in any case."""
    taken: list[Any] = []
    spent = 0.0
    for item, cost in zip(items, seconds, strict=True):
        spent += cost
        if taken and spent > budget:
            break
        taken.append(item)
    return taken


def run(
    files: Sequence[str], plugin: Chosen, folder: Path, limit: float, plant: Planted | None, *, caches: bool
) -> Outcome:
    """Run tests in a process of their own.

    Args:
        files: of tests.
        plugin: which of their tests.
        folder: for the log and for compiled code.
        limit: seconds of CPU; a process that only waits gets `WAITING` times as many by the clock.
        plant: the module with the mutant; None: as it is.
        caches: whether compiled code may be used that there is; what the mutant compiles is nobody else's.

    Raises:
        LookupError: there are no such tests.
    """
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        child(files, plugin, folder, plant, caches)
    seen, started = psutil.Process(process), time.monotonic()
    code = watched(process, lambda: time.monotonic() - started > WAITING * limit or cpu_time(seen) > limit)
    if code == NO_TESTS:
        raise LookupError(f"no tests in {', '.join(files)}")
    if code is None:
        return Outcome.STUCK
    return Outcome.SURVIVED if code == 0 else Outcome.KILLED


def watched(process: int, is_late: Callable[[], bool]) -> int | None:
    """Wait for a child that leads a group; its status, None if it was late and has been ended with its group."""
    try:
        while True:
            done, status = os.waitpid(process, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            if is_late():
                return None
            time.sleep(LOOK)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(process, 0)


def cpu_time(process: psutil.Process) -> float:
    """Seconds of CPU; a busy machine doesn't lengthen them."""
    with contextlib.suppress(psutil.Error):
        used = process.cpu_times()
        return float(used.user + used.system)
    return 0.0


def child(files: Sequence[str], plugin: Chosen, folder: Path, plant: Planted | None, caches: bool) -> None:
    """What the forked process does; it never returns."""
    status = FAILED_TO_START
    try:
        into_log(folder / "log")
        Caches(folder, allowed=caches).use()
        if plant is not None:
            plant.load()
        import pytest

        status = int(pytest.main([*OPTIONS, f"--basetemp={folder / 'tests'}", *files], plugins=[plugin]))
    finally:
        sys.stdout.flush()
        os._exit(status)


def into_log(log: Path) -> None:
    """Make this process a group of its own, whose output goes into a file."""
    os.setpgid(0, 0)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
