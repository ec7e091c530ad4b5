"""Threads and queues that were best when the same operators ran on such a machine before: a small file for each.

They are where a search begins, not what it believes: they have to stand a trial. So a file may be lost, or be of a job
whose functions cost something else. Must not know how the best is found.
"""

from __future__ import annotations

import hashlib
import json
import platform
from pathlib import Path

from rayelastic.policy.element.guided.estimate import Configuration
from rayelastic.runtime.loops.kept_values import KeptValues
from rayelastic.runtime.values.specs import PESpec

__all__ = ["EarlierRuns", "key_of"]

FORMAT = 1  # of the files, and of what their names stand for


class EarlierRuns:
    """What earlier runs of the same operators on such a machine have found.

    Args:
        folder: where the files are; made when there is something to keep.
        key: stands for the operators and the machine.

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
        """Return what was best last; None: not known, or the file is damaged, which the log tells."""
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
        """Keep what is best by now, if that is something new; None: nothing is known yet."""
        if best is None or best == self._kept:
            return
        self._kept = best
        self._values.write({"threads": best.threads, "queued": sorted(best.queued)})


def key_of(spec: PESpec, cpus: int) -> str:
    """Return what stands for the operators of a processing element, its settings and its machine.

    Args:
        spec: of the processing element.
        cpus: that it may use.
    """
    threads = spec.config.threads
    operators = [[one.name, one.kind.value, list(one.upstream)] for one in spec.operators]
    settings = [threads.count, threads.max, str(threads.model), threads.queue_records, threads.run_records]
    machine = [platform.node(), platform.machine(), cpus]
    return hashlib.sha256(json.dumps([FORMAT, operators, settings, machine]).encode()).hexdigest()[:32]
