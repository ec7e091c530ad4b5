"""Replicas and processes that paid off in earlier runs of the same job: a small file for each job.

A later run tries them first once it has too little, and they have to stand a trial there. Must not know how they were
found, nor what a trial is.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from rayelastic.policy.regions.tried.earlier import Earlier
from rayelastic.runtime.loops.kept_values import KeptValues
from rayelastic.runtime.values.specs import JobSpec

FORMAT = 1  # of the files, and of the keys in their names


class EarlierPlans:
    """The findings of earlier runs of a job.

    Args:
        folder: The folder of the files; made when there is something to save.
        key: Identifies the job.

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
        """Return what paid off last; nothing if that is unknown, or the file is damaged, which is logged."""
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
        """Save what has paid off by now, if that is new."""
        if paid != self._kept:
            self._kept = paid
            self._values.write({"replicas": dict(paid.replicas), "apart": list(paid.apart)})


def key_of_job(job: JobSpec) -> str:
    """Return the key of a job: its name, and its operators, whatever they compute.

    Args:
        job: The job.
    """
    operators = [[operator.name, operator.kind, list(operator.upstream)] for operator in job.operators.values()]
    return hashlib.sha256(json.dumps([FORMAT, job.name, operators]).encode()).hexdigest()[:32]
