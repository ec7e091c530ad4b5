"""What a process of the pool does: makes programs, compiles them, compares; and the same once more in a new process.

A worker is forked from a process that has compiled already, so that Numba and the helpers that all programs share cost
nothing again. What it is about to do it says before it does it: if it dies, that is known.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rayelastic.compile import Compiler
from rayelastic.compile.cache.code_cache import CodeCache
from rayelastic.errors import LaneError
from tests.component.compile.harness import built_shim, opened_shim
from tests.oracle.alone import limited
from tests.oracle.compare import Comparison, Difference, request, rows_of
from tests.oracle.generate import program as made_program
from tests.oracle.known import known
from tests.oracle.program import Program
from tests.oracle.repeated import repeated
from tests.oracle.shrink import Shrinker

BETWEEN_STARTS = 100  # programs


@dataclass(frozen=True, slots=True)
class Options:
    """Of a run.

    Args:
        seed: of all programs.
        folder: for the shim and what is written on the way.
        second: whether each program runs again in a new process.
        shrink_seconds: for one difference.
        limit: seconds of a processor for one program, after which it counts as hung; 0: none.
    """

    seed: int
    folder: Path
    second: bool = True
    shrink_seconds: float = 60.0
    limit: int = 120


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one program.

    Args:
        number: of the program.
        program: it.
        lane: 'compiled', 'python' or 'error'.
        reason: why it isn't compiled.
        found: the differences.
    """

    number: int
    program: Program
    lane: str
    reason: str = ""
    found: tuple[Difference, ...] = ()


@contextlib.contextmanager
def silent() -> Any:
    """Nothing is printed: compilers warn about what nobody wrote."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def compared(
    program: Program, name: str, rows: list[tuple[Any, ...]], shim: ctypes.CDLL, cache: CodeCache
) -> tuple[str, str, list[Difference]]:
    """Lane, reason and differences of a program over tuples."""
    names = program.module(name)
    try:
        with silent():
            code = Compiler(cache).compile(request(program, names))
    except LaneError as error:
        return "python", str(error), []
    except Exception as error:
        return "error", "", [Difference("error", (), "", f"{type(error).__name__}: {error}")]
    try:
        return "compiled", "", Comparison(shim, program, names, code).differences(rows)
    except LookupError as error:
        return "compiled", "", [Difference("error", (), "", f"{type(error).__name__}: {error}")]


def batch(numbers: range, options: Options, conn: Any) -> None:
    """Compares the programs of these numbers; sends what it starts and what came of it."""
    shim = opened_shim(built_shim(options.folder))
    for first in range(0, len(numbers), BETWEEN_STARTS):
        _some(numbers[first : first + BETWEEN_STARTS], options, shim, conn)
    conn.send(None)


def _some(numbers: range, options: Options, shim: ctypes.CDLL, conn: Any) -> None:
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        cache = CodeCache(Path(folder))
        again: list[tuple[int, Program]] = []
        for number in numbers:
            conn.send(number)
            limited(options.limit)
            program = made_program(options.seed, number)
            rows = rows_of(program, f"{options.seed}:{number}")
            compare = repeated if program.repeated else compared
            lane, reason, found = compare(program, f"oracle-{options.seed}-{number}", rows, shim, cache)
            conn.send(Result(number, program, lane, reason, tuple(found)))
            if lane == "compiled" and not found and not program.repeated:
                again.append((number, program))
        if options.limit:
            signal.setitimer(signal.ITIMER_PROF, 0)
        if options.second and again:
            for number, program, late in second_start(again, options, Path(folder)):
                conn.send(Result(number, program, "second", "", (late,)))


def second_start(
    programs: list[tuple[int, Program]], options: Options, cache: Path
) -> list[tuple[int, Program, Difference]]:
    """Differences of programs in a new process that takes the machine code from the cache."""
    rest, found = list(programs), []
    while rest:
        task = pickle.dumps((rest, options, cache))
        command = [sys.executable, "-m", "tests.oracle.second"]
        done = subprocess.run(command, input=task, capture_output=True, check=False, env={**os.environ})
        answers = []
        with contextlib.suppress(EOFError, pickle.UnpicklingError):
            lines = memoryview(done.stdout)
            while lines:
                size = int.from_bytes(lines[:8], "little")
                answers.append(pickle.loads(lines[8 : 8 + size]))
                lines = lines[8 + size :]
        for (number, program), difference in zip(rest, answers, strict=False):
            if difference is not None:
                found.append((number, program, replace(difference, kind="second start")))
        if len(answers) == len(rest):
            break
        number, program = rest[len(answers)]
        text = f"the process ended with {done.returncode}: {done.stderr.decode(errors='replace')[-300:]}"
        found.append((number, program, Difference("second start", (), "", text)))
        rest = rest[len(answers) + 1 :]
    return found


def shrink(result: Result, found: Difference, options: Options, conn: Any) -> None:
    """Shrinks one difference and sends the program and what it shows."""
    from numba.core import config

    config.OPT.__init__(0)  # type: ignore[attr-defined]  # what it is made of matters, not how fast it is
    shim = opened_shim(built_shim(options.folder))

    def check(program: Program, rows: list[tuple[Any, ...]]) -> Difference | None:
        if not rows and found.kind != "error":
            rows = rows_of(program, f"{options.seed}:{result.number}")
        if found.kind == "second start":
            return _second_of(program, options, shim)
        if found.kind not in ("error", "raises") and not program.keyed and _raises(program, rows[-1]):
            return None
        *_, now = compared(program, "oracle-shrunk", rows, shim, CodeCache(None))
        new = [one for one in now if one.kind == found.kind and known(program, one) == known(result.program, found)]
        if found.kind == "error":
            new = [one for one in new if one.ours[:40] == found.ours[:40]]
        return new[0] if new else None

    limited(int(options.shrink_seconds * 3) + 60)
    conn.send((result.number, Shrinker(check, options.shrink_seconds).shrunk(result.program, found)))


def _raises(program: Program, row: tuple[Any, ...]) -> bool:
    from tests.oracle.compare import Python

    try:
        return bool(Python(program, program.module("oracle-shrunk")).answer(row).raised)
    except Exception:
        return True


def _second_of(program: Program, options: Options, shim: ctypes.CDLL) -> Difference | None:
    rows = rows_of(program, f"{options.seed}:0")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        lane, _, now = compared(program, f"oracle-{options.seed}-0", rows, shim, CodeCache(Path(folder)))
        if lane != "compiled" or now:
            return None
        found = second_start([(0, program)], options, Path(folder))
        return found[0][2] if found else None


def died(number: int, seed: int, said: str) -> Result:
    """The result of a program that its process died of."""
    return Result(number, made_program(seed, number), "error", "", (Difference("died", (), "", said),))
