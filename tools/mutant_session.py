"""Runs mutants in forks of one process that has imported and collected their tests: functions are given other code.

Imports and collection, on which a process of its own spends most of its time, are done once. It serves for faults in
functions; all others take the way of mutant_runs.py, and so do, when no test has noticed them here, those in functions
that are called while modules are imported: what these made then is without the fault.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import mmap
import os
import signal
import struct
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import Pipe
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, NoReturn, Protocol

import pytest

from tools.mutant_runs import FAILED_TO_START, OPTIONS, Caches, Chosen, Outcome, Planted, into_log, watched
from tools.mutants import planted

TEST_FAILED = 1  # status of a fork
PATIENCE = 3.0  # times what a test takes without a mutant, in seconds of CPU, until it counts as stuck
SPARE = 5.0  # seconds on top
WAITING = 6.0  # times as many by the clock: it may wait, and the machine may be busy
AT = struct.Struct("=id")  # the number of the test that a fork is at, and when it began with it


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the process is asked for.

    Args:
        module: that has the mutant.
        path: of its file.
        number: of the change in the file.
        chosen: the tests.
    """

    module: str
    path: Path
    number: int
    chosen: Chosen


class Collected:
    """A process that has collected tests, and forks another one for each mutant.

    Args:
        files: of tests.
        folder: for the log and for compiled code.
        caches: whether compiled code may be used that there is.
    """

    def __init__(self, files: Sequence[str], folder: Path, *, caches: bool) -> None:
        self._end, its_end = Pipe()
        sys.stdout.flush()
        self._process = os.fork()
        if self._process == 0:
            self._end.close()
            serve(its_end, files, folder, caches)
        its_end.close()

    def outcome(self, wanted: Wanted) -> Outcome | None:
        """What becomes of a mutant; None where this way doesn't serve."""
        with contextlib.suppress(EOFError, OSError):  # it has died
            self._end.send(wanted)
            answer: tuple[Outcome | None, list[str]] = self._end.recv()
            for line in answer[1]:
                print(line, flush=True)
            return answer[0]
        return None

    def close(self) -> None:
        """End it, and the fork that it waits for."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process, signal.SIGTERM)
        self._end.close()
        os.waitpid(self._process, 0)


# --- what differs ---------------------------------------------------------------------------------------------------


def differing(before: CodeType, after: CodeType) -> list[tuple[CodeType, CodeType]] | None:
    """Return the outermost functions that differ; None if anything else does, as it runs when a module is imported.

    >>> one, other = (compile(f"x = 1\\ndef f(): return {n}", "", "exec") for n in (1, 2))
    >>> [after.co_consts for before, after in differing(one, other)]
    [(None, 2)]
    >>> differing(one, compile("x = 2\\ndef f(): return 1", "", "exec")) is None
    True
    """
    if before == after:
        return []
    if before.co_flags & inspect.CO_OPTIMIZED:
        return [(before, after)]
    if rest(before) != rest(after):
        return None
    found = []
    for one, other in zip(codes(before), codes(after), strict=True):
        inner = differing(one, other)
        if inner is None:
            return None
        found += inner
    return found


def codes(code: CodeType) -> list[CodeType]:
    return [one for one in code.co_consts if isinstance(one, CodeType)]


def rest(code: CodeType) -> tuple[object, ...]:
    """What a module, or a class, does besides having functions."""
    consts = [None if isinstance(one, CodeType) else (type(one), one) for one in code.co_consts]
    return code.co_name, code.co_code, code.co_names, consts


def functions() -> Mapping[str, Sequence[FunctionType]]:
    """Return all functions that there are, by their file."""
    found: defaultdict[str, list[FunctionType]] = defaultdict(list)
    for one in gc.get_objects():
        if type(one) is FunctionType:
            found[one.__code__.co_filename].append(one)
    return found


class Ran:
    """A profiler that notes which functions were called."""

    def __init__(self) -> None:
        self._codes: dict[int, CodeType] = {}

    def note(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            self._codes[id(frame.f_code)] = frame.f_code

    def __contains__(self, code: CodeType) -> bool:
        return id(code) in self._codes


class Plant(Protocol):
    """A mutant."""

    def load(self) -> None:
        """Put it in its place, in this process."""
        ...


class Swaps:
    """Functions, each with the code that it is to have."""

    def __init__(self, swaps: Sequence[tuple[FunctionType, CodeType]]) -> None:
        self._swaps = swaps

    def load(self) -> None:
        for function, code in self._swaps:
            function.__code__ = code


# --- inside the process ---------------------------------------------------------------------------------------------


def serve(end: Any, files: Sequence[str], folder: Path, caches: bool) -> NoReturn:
    """What the process does; it never returns."""
    try:
        into_log(folder / "collected.log")
        ran = Ran()
        sys.setprofile(ran.note)
        if "numba" in sys.modules:  # it imports most of what it knows of types with the first function
            sys.modules["numba"].njit(lambda x: x + 1)(1)
        pytest.main(
            [*OPTIONS, f"--basetemp={folder / 'tests'}", *files],
            plugins=[Serving(end, ran, Caches(folder, allowed=caches))],
        )
    finally:
        sys.stdout.flush()
        os._exit(0)


class Serving:
    """A plugin of pytest: in place of running tests it answers what is asked for.

    Args:
        end: of a pipe.
        ran: what has been called until tests are collected.
        caches: of compiled code.
    """

    def __init__(self, end: Any, ran: Ran, caches: Caches) -> None:
        self._end, self._ran, self._caches = end, ran, caches
        self._functions: Mapping[str, Sequence[FunctionType]] = {}
        self._sound: dict[str, bool] = {}  # {test that failed with a mutant: whether it passes without}
        self._unsound: list[str] = []  # what is to be told

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> bool:
        sys.setprofile(None)
        self._functions = functions()
        gc.freeze()
        with contextlib.suppress(EOFError):
            while True:
                outcome = self._outcome(session.items, self._end.recv())
                self._end.send((outcome, self._unsound))
                self._unsound = []
        return True

    def _outcome(self, collected: Sequence[Any], wanted: Wanted) -> Outcome | None:
        (plant, everywhere), items = self._plant(wanted), wanted.chosen.among(collected)
        if plant is None or not items:
            return None
        while items := [one for one in items if self._sound.get(one.nodeid, True)]:
            outcome, at = run_forked(items, wanted.chosen, plant, self._caches)
            if outcome is Outcome.SURVIVED:
                break
            if self._is_sound(items[at], wanted.chosen):
                return outcome
            items = items[at + 1 :]
        return Outcome.SURVIVED if everywhere else None

    def _is_sound(self, item: Any, chosen: Chosen) -> bool:
        """Return whether a test passes without a mutant, here and now."""
        if item.nodeid not in self._sound:
            outcome, _ = run_forked([item], chosen, Swaps([]), self._caches)
            self._sound[item.nodeid] = outcome is Outcome.SURVIVED
            if not self._sound[item.nodeid]:
                self._unsound.append(f"{item.nodeid} is left out, as it is {outcome.value} without a mutant")
        return self._sound[item.nodeid]

    def _plant(self, wanted: Wanted) -> tuple[Plant | None, bool]:
        """The mutant, None where there is no such function; whether nothing has been called yet that it changes."""
        source, file = wanted.path.read_text(), str(wanted.path)
        code = planted(source, file, wanted.number)
        if wanted.module not in sys.modules:
            return Planted(wanted.module, wanted.path, code), True
        swaps: list[tuple[FunctionType, CodeType]] = []
        everywhere, differ = True, differing(compile(source, file, "exec", dont_inherit=True), code)
        for before, after in differ or ():
            found = [one for one in self._functions.get(file, ()) if one.__code__ == before]
            if not found or len(before.co_freevars) != len(after.co_freevars):
                return None, False
            everywhere = everywhere and not any(one.__code__ in self._ran for one in found)
            swaps += [(one, after) for one in found]
        return (Swaps(swaps) if swaps else None), everywhere


def run_forked(items: Sequence[Any], chosen: Chosen, plant: Plant, caches: Caches) -> tuple[Outcome, int]:
    """Run tests up to the first that fails, in a fork; what became of them, and the number of the last."""
    sys.stdout.flush()
    limits = [SPARE + PATIENCE * chosen.cost(item) for item in items]
    with mmap.mmap(-1, AT.size) as place:
        AT.pack_into(place, 0, 0, time.monotonic())
        process = os.fork()
        if process == 0:
            run_here(items, limits, chosen.budget, plant, place, caches)

        def is_late() -> bool:
            number, since = AT.unpack_from(place)
            return bool(time.monotonic() - since > WAITING * limits[number])

        status = watched(process, is_late)
        number, _ = AT.unpack_from(place)
    if status is None or status == -signal.SIGPROF:
        return Outcome.STUCK, number
    return Outcome.SURVIVED if status == 0 else Outcome.KILLED, number


def run_here(
    items: Sequence[Any], limits: Sequence[float], budget: float, plant: Plant, place: mmap.mmap, caches: Caches
) -> NoReturn:
    """What a fork does, within seconds of CPU; it never returns. A test that uses too much of it ends it by SIGPROF."""
    status, session = FAILED_TO_START, items[0].session
    try:
        os.setpgid(0, 0)
        caches.use()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        plant.load()
        for number, (item, limit) in enumerate(zip(items, limits, strict=True)):
            AT.pack_into(place, 0, number, time.monotonic())
            signal.setitimer(signal.ITIMER_PROF, limit)
            # Its module stays, for another test of it may follow; what pytest tidies up the end of the process does.
            following = items[number + 1] if number + 1 < len(items) else item.parent
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed or time.process_time() > budget:
                break
        status = TEST_FAILED if session.testsfailed else 0
    finally:
        os._exit(status)
