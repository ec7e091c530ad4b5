"""Replicas and processes that paid when a job of the same name and operators ran before: a small file for each.

They are where a later run begins once it has too little, and have to stand a trial there. Must not know how they are
found, nor what a trial is.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from rayelastic.policy.regions.tried.earlier import Earlier
from rayelastic.runtime.loops.kept_values import KeptValues
from rayelastic.runtime.values.specs import JobSpec

__all__ = ["EarlierPlans", "key_of_job"]

FORMAT = 1  # of the files, and of what their names stand for


class EarlierPlans:
    """What earlier runs of a job have found.

    Args:
        folder: where the files are; made when there is something to keep.
        key: stands for the job.

    >>> import tempfile
    >>> plans = EarlierPlans(Path(tempfile.mkdtemp()), "4f2a")
    >>> plans.paid()
    Earlier(replicas={}, apart=())
    >>> plans.keep(Earlier({"r1": 3}))
    >>> plans.paid()
    Earlier(replicas={'r1': 3}, apart=())
    """

    def __init__(self, folder: Path, key: str) -> None:
        self._values = KeptValues(folder, key)
        self._kept = Earlier()

    def paid(self) -> Earlier:
        """Return what paid last; nothing if that isn't known, or the file is damaged, which the log tells."""
        values = self._values.read()
        if values is None:
            return Earlier()
        replicas, apart = values.get("replicas"), values.get("apart")
        if not isinstance(replicas, dict) or not all(isinstance(n, int) and n > 0 for n in replicas.values()):
            self._values.damaged(f"replicas {replicas!r}")
        elif not isinstance(apart, list) or not all(isinstance(name, str) for name in apart):
            self._values.damaged(f"apart {apart!r}")
        else:
            self._kept = Earlier(replicas, tuple(apart))
        return self._kept

    def keep(self, paid: Earlier) -> None:
        """Keep what has paid by now, if that is something new."""
        if paid != self._kept:
            self._kept = paid
            self._values.write({"replicas": dict(paid.replicas), "apart": list(paid.apart)})


def key_of_job(job: JobSpec) -> str:
    """Return what stands for a job: its name, and its operators, whatever they compute.

    Args:
        job: what runs.
    """
    operators = [[one.name, one.kind.value, list(one.upstream)] for one in job.operators.values()]
    return hashlib.sha256(json.dumps([FORMAT, job.name, operators]).encode()).hexdigest()[:32]
