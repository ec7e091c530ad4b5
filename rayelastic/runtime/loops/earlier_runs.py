"""Threads and queues that were best when the same operators ran on such a machine before: a small file for each.

A search begins with them, but they have to stand a trial. So a file may be lost, or be of a job whose functions have
other costs. Must not know how the best is found.
"""

from __future__ import annotations

import hashlib
import json
import platform
from pathlib import Path

from rayelastic.policy.element.guided.estimate import Configuration
from rayelastic.runtime.loops.kept_values import KeptValues
from rayelastic.runtime.values.specs import PESpec

FORMAT = 1  # of the files, and of the keys in their names


class EarlierRuns:
    """The findings of earlier runs of the same operators on such a machine.

    Args:
        folder: The folder of the files; made when there is something to save.
        key: Identifies the operators and the machine.

    >>> import tempfile
    >>> runs = EarlierRuns(Path(tempfile.mkdtemp()), "4f2a")
    >>> runs.best() is None
    True
    >>> runs.keep(Configuration(2, frozenset({"parse"})))
    >>> runs.best()
    Configuration(threads=2, queued=frozenset({'parse'}))
    """

    def __init__(self, folder: Path, key: str) -> None:
        self._values = KeptValues(folder, key)
        self._kept: Configuration | None = None

    def best(self) -> Configuration | None:
        """Return what was best last; None: unknown, or the file is damaged, which is logged."""
        values = self._values.read()
        if values is None:
            return None
        threads, queued = values.get("threads"), values.get("queued")
        named = isinstance(queued, list) and all(isinstance(name, str) for name in queued)
        if not isinstance(threads, int) or threads < 1 or not named:
            self._values.damaged(f"threads {threads!r}, queues {queued!r}")
            return None
        self._kept = Configuration(threads, frozenset(queued or ()))
        return self._kept

    def keep(self, best: Configuration | None) -> None:
        """Save what is best by now, if that is new; None: nothing is known yet."""
        if best is None or best == self._kept:
            return
        self._kept = best
        self._values.write({"threads": best.threads, "queued": sorted(best.queued)})


def key_of(spec: PESpec, cpus: int) -> str:
    """Return the key of a PE's operators, its settings and its machine.

    Args:
        spec: The PE.
        cpus: The CPUs that it may use.
    """
    threads = spec.config.threads
    operators = [[operator.name, operator.kind, list(operator.upstream)] for operator in spec.operators]
    settings = [threads.count, threads.max, str(threads.model), threads.queue_records, threads.run_records]
    machine = [platform.node(), platform.machine(), cpus]
    return hashlib.sha256(json.dumps([FORMAT, operators, settings, machine]).encode()).hexdigest()[:32]
