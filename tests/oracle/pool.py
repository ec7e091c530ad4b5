"""Processes that compare and shrink: as many as there are cores, each forked from one that is warm.

Knows what a worker sends, and that a worker may die of what it runs: that is a difference, too.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import resource
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.oracle.alone import left_alone

_FORK = multiprocessing.get_context("fork")

MAX_MEMORY = 6 << 30  # bytes of a worker's address space: a program whose text doubles would take the machine's memory


@dataclass
class _Job:
    process: Any
    conn: Any
    numbers: range
    at: int = -1


def _alone(target: Callable[..., None], *arguments: Any) -> None:
    left_alone()
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    target(*arguments)


class Pool:
    """Runs workers.

    Args:
        jobs: how many at once.
        options: of the run.
        batch: compares the programs of these numbers: sends a number before each, results, and None at the end.
        died: the result of a program of whose worker this is said.
        shrink: shrinks what it is given, and sends what it has found.
    """

    def __init__(
        self,
        jobs: int,
        options: Any,
        batch: Callable[..., None],
        died: Callable[[int, str], Any],
        shrink: Callable[..., None] | None = None,
    ) -> None:
        self._jobs, self._options = jobs, options
        self._batch, self._died, self._shrink = batch, died, shrink
        self._running: list[_Job] = []

    def _start(self, target: Callable[..., None], *arguments: Any, numbers: range = range(0)) -> None:
        ours, theirs = _FORK.Pipe()
        process = _FORK.Process(target=_alone, args=(target, *arguments, self._options, theirs), daemon=True)
        process.start()
        theirs.close()
        self._running.append(_Job(process, ours, numbers))

    def _messages(self) -> Iterator[tuple[_Job, Any]]:
        """What any worker sends next; EOFError in place of it where one has died."""
        ready = multiprocessing.connection.wait([job.conn for job in self._running])
        for job in [job for job in self._running if job.conn in ready]:
            try:
                yield job, job.conn.recv()
            except EOFError as end:
                yield job, end

    def _ended(self, job: _Job) -> int:
        self._running.remove(job)
        job.process.join()
        return int(job.process.exitcode or 0)

    def results(self, numbers: range, size: int) -> Iterator[Any]:
        """What came of each program; some may come twice."""
        waiting = [numbers[at : at + size] for at in range(0, len(numbers), size)][::-1]
        while waiting or self._running:
            while waiting and len(self._running) < self._jobs:
                mine = waiting.pop()
                self._start(self._batch, mine, numbers=mine)
            for job, message in self._messages():
                if isinstance(message, int):
                    job.at = message
                elif message is None:
                    self._ended(job)
                elif not isinstance(message, EOFError):
                    yield message
                else:
                    yield self._died(job.at, f"the process ended with {self._ended(job)}")
                    rest = job.numbers[job.numbers.index(job.at) + 1 if job.at in job.numbers else 1 :]
                    waiting += [rest] if rest else []

    def shrunk(self, wanted: Callable[[], tuple[Any, ...] | None]) -> Iterator[tuple[int, Any, Any]]:
        """Shrinks what `wanted` gives until it gives None: number, program and difference of each."""
        more = True
        while more or self._running:
            while more and len(self._running) < self._jobs:
                task = wanted()
                if task is None:
                    more = False
                else:
                    assert self._shrink is not None
                    self._start(self._shrink, *task)
            for job, message in list(self._messages()) if self._running else ():
                self._ended(job)
                if not isinstance(message, EOFError):
                    yield message[0], *message[1]
                more = True

    def stop(self) -> None:
        """Ends all workers."""
        for job in self._running:
            job.process.terminate()
            job.process.join()
        self._running = []
