"""Threads and queues that were best when the same operators ran on such a machine before: a small file for each.

They are where a search begins, not what it believes: they have to stand a trial. So a file may be lost, or be of a job
whose functions cost something else. Must not know how the best is found.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import threading
from pathlib import Path

from rayelastic.policy.element.guided.estimate import Configuration
from rayelastic.runtime.values.specs import PESpec

__all__ = ["EarlierRuns", "key_of"]

log = logging.getLogger(__name__)

KEPT = 1000  # files in the folder; the oldest go
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
        self._file = folder / f"{key}.json"
        self._kept: Configuration | None = None

    def best(self) -> Configuration | None:
        """Return what was best last; None: not known, or the file is damaged, which the log tells."""
        try:
            values = json.loads(self._file.read_text(encoding="utf-8"))
            threads, queued = values["threads"], values["queued"]
            if not isinstance(threads, int) or threads < 1 or not all(isinstance(name, str) for name in queued):
                raise ValueError(f"threads {threads!r}, queues {queued!r}")
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("what earlier runs found is left out: %s: %s", self._file, error)
            return None
        self._kept = Configuration(threads, frozenset(queued))
        return self._kept

    def keep(self, best: Configuration | None) -> None:
        """Keep what is best by now, if that is something new; None: nothing is known yet."""
        if best is None or best == self._kept:
            return
        self._kept = best
        values = {"threads": best.threads, "queued": sorted(best.queued)}
        folder, unfinished = self._file.parent, self._file.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            unfinished.write_text(json.dumps(values), encoding="utf-8")
            unfinished.replace(self._file)
            _remove_oldest(folder)
        except OSError as error:
            log.warning("later runs won't know what was best: %s", error)


def _remove_oldest(folder: Path) -> None:
    files = list(folder.iterdir())  # with those that a lost process left unfinished
    if len(files) > KEPT:
        ages = sorted((file.stat().st_mtime, file) for file in files)
        for _, file in ages[: len(files) - KEPT]:
            file.unlink(missing_ok=True)


def key_of(spec: PESpec, cpus: int) -> str:
    """Return what stands for the operators of a processing element, its settings and its machine.

    Args:
        spec: of the processing element.
        cpus: that it may use.
    """
    config = spec.config
    operators = [[one.name, one.kind.value, list(one.upstream)] for one in spec.operators]
    settings = [config.threads, config.max_threads, str(config.threading), config.queue_records, config.run_records]
    machine = [platform.node(), platform.machine(), cpus]
    return hashlib.sha256(json.dumps([FORMAT, operators, settings, machine]).encode()).hexdigest()[:32]
