"""What the jobs of a cluster use of its machines: each tells in Ray's own store, and leaves room for what others tell.

A key for each job, until it ends; one whose job is closed counts no more. Must not know who measures.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from rayelastic.on_ray.connect import NAMESPACE
from rayelastic.on_ray.private import adapter
from rayelastic.on_ray.store.gcs_store import JOB

__all__ = ["NodeUse", "left_to"]

PREFIX = "use:"  # of the key of a job
CHANGE = 0.25  # CPUs of a machine from which on it is told anew: what is less is noise, and writing isn't free
LEAST = 0.1  # CPUs of a machine that a job uses to be one of those who share it


class NodeUse:
    """What one job uses, and what the others do.

    Args:
        job_id: of the job.
    """

    def __init__(self, job_id: str) -> None:
        self._job_id = job_id
        self._told: dict[str, float] | None = None  # nobody knows what the coordinator before told

    def tell(self, used: Mapping[str, float]) -> None:
        """Tells others, if it has changed by much.

        Args:
            used: {machine: CPUs}; empty: nothing any more.
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
        found: dict[str, list[float]] = {}
        for key in adapter.kv_keys(PREFIX, NAMESPACE):
            job = key.removeprefix(PREFIX)
            told = adapter.kv_get(key, NAMESPACE) if job != self._job_id else None
            if told is None or not adapter.kv_keys(JOB + job, NAMESPACE):
                continue
            for node, cpus in json.loads(told).items():
                found.setdefault(node, []).append(cpus)
        return found


def left_to(cpus: float, others: list[float]) -> float:
    """Return the CPUs of a machine for one job: what others leave, and in any case its fair part.

    Args:
        cpus: of the machine.
        others: CPUs of each other job there.

    >>> left_to(8, [1.5]), left_to(8, [8.0]), left_to(8, [7.0, 0.5])
    (6.5, 4.0, 2.6666666666666665)
    """
    return max(cpus - sum(others), cpus / (1 + len(others)))
