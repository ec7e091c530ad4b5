"""The CPU use of a cluster's jobs: each publishes its own in Ray's store, and leaves room for that of the others.

A key for each job, until it ends; that of a closed job is ignored. Must not know who measures.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from rayelastic.on_ray.connect import NAMESPACE
from rayelastic.on_ray.private import adapter
from rayelastic.on_ray.store.gcs_store import JOB

PREFIX = "use:"  # of the key of a job
CHANGE = 0.25  # CPUs of a machine: smaller changes are noise, and aren't worth a write
LEAST = 0.1  # CPUs of a machine from which a job counts as one that shares it


class NodeUse:
    """The CPU use of one job, and that of the others.

    Args:
        job_id: The job's id.
    """

    def __init__(self, job_id: str) -> None:
        self._job_id = job_id
        self._told: dict[str, float] | None = None  # unknown: an earlier coordinator may have published

    def tell(self, used: Mapping[str, float]) -> None:
        """Publish the job's use, if it has changed enough.

        Args:
            used: {machine: CPUs}; empty: none any more.
        """
        told = {node: round(cpus, 2) for node, cpus in used.items() if cpus >= LEAST}
        before = self._told
        if before is not None and before.keys() == told.keys():
            changed = any(abs(cpus - before[node]) >= CHANGE for node, cpus in told.items())
            if not changed:
                return
        key = f"{PREFIX}{self._job_id}"
        if told:
            adapter.kv_put(key, json.dumps(told).encode(), NAMESPACE)
        else:
            adapter.kv_delete(key, NAMESPACE)
        self._told = told

    def others(self) -> dict[str, list[float]]:
        """Return {machine: CPUs of each other job that uses some of it}."""
        others: dict[str, list[float]] = {}
        for key in adapter.kv_keys(PREFIX, NAMESPACE):
            job = key.removeprefix(PREFIX)
            published = adapter.kv_get(key, NAMESPACE) if job != self._job_id else None
            if published is None or not adapter.kv_keys(JOB + job, NAMESPACE):
                continue
            for node, cpus in json.loads(published).items():
                others.setdefault(node, []).append(cpus)
        return others


def left_to(cpus: float, others: list[float]) -> float:
    """Return the CPUs of a machine for one job: what others leave, and in any case its fair part.

    Args:
        cpus: The CPUs of the machine.
        others: The CPUs of each other job there.

    >>> left_to(8, [1.5]), left_to(8, [8.0]), left_to(8, [7.0, 0.5])
    (6.5, 4.0, 2.6666666666666665)
    """
    return max(cpus - sum(others), cpus / (1 + len(others)))
