"""A second process that gets its machine code from the first one's cache, and never imports Numba.

What a compiled function gives here it has to give there: PEs and later starts of a program are such processes.
Run as a program it is that process: pickled requests come on its standard input, answers leave on its output.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import cloudpickle

from rayelastic.compile.reading.bound import taken_apart

HERE = Path(__file__).parent


class SecondProcess:
    """Starts the process; functions are numbered in the order in which they were loaded."""

    def __init__(self, shim: Path, cache: Path) -> None:
        command = [sys.executable, str(Path(__file__)), str(shim), str(cache)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._loaded = 0

    def load(self, request: Any) -> int:
        """Compiles a request, out of the cache; gives the function's number.

        The function and its classes are taken along: the other process can't import a test module.
        """
        made_of = taken_apart(request.function)
        module = sys.modules.get((request.function if made_of is None else made_of.function).__module__)
        if module is not None and not module.__name__.startswith(("rayelastic", "corpus")):
            cloudpickle.register_pickle_by_value(module)
        self._ask(("load", cloudpickle.dumps(request)))
        self._loaded += 1
        return self._loaded - 1

    def run(self, number: int, rows: Any, options: dict[str, Any]) -> str:
        """The outcome as text: NaN equals NaN then."""
        answer: str = self._ask(("run", number, rows, options))
        return answer

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)

    def _ask(self, what: tuple[Any, ...]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        pickle.dump(what, self._process.stdin)
        self._process.stdin.flush()
        answer, error = pickle.load(self._process.stdout)
        if error:
            raise AssertionError(f"in a process that never compiled: {error}")
        return answer


def serve(shim: str, cache: str) -> None:
    import ctypes

    from harness import Runner, opened_shim

    from rayelastic.compile import Compiler
    from rayelastic.compile.cache.code_cache import CodeCache

    library: ctypes.CDLL = opened_shim(Path(shim))
    compiler, runners = Compiler(CodeCache(Path(cache))), []
    first: list[int] = []  # the function for which Numba was imported
    answers, sys.stdout = sys.stdout.buffer, sys.stderr
    while True:
        try:
            what, *rest = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        answer, error = None, ""
        try:
            if what == "load":
                runners.append(Runner(library, compiler.compile(pickle.loads(rest[0]))))
            else:
                answer = repr(runners[rest[0]](rest[1], **rest[2]))
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"
        if "numba" in sys.modules:
            first.append(len(runners) - 1)
            error = error or f"Numba was imported, first for function {first[0]}"
        pickle.dump((answer, error), answers)
        answers.flush()


if __name__ == "__main__":
    serve(*sys.argv[1:])
