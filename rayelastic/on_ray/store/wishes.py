"""Requests of jobs to Ray's autoscaler, which knows one request for a whole cluster: the sum of what all jobs lack.

Each job's request is a key in Ray's own store until the job has enough or ends; that of a closed job is ignored.
"""

from __future__ import annotations

import math

from rayelastic.on_ray.cluster import cpu_count
from rayelastic.on_ray.connect import NAMESPACE
from rayelastic.on_ray.private import adapter
from rayelastic.on_ray.store.gcs_store import JOB

__all__ = ["CpuWish"]

PREFIX = "wish:"  # of the key of a job's request


class CpuWish:
    """The request of one job.

    Args:
        job_id: The job's id.
    """

    def __init__(self, job_id: str) -> None:
        self._key = f"{PREFIX}{job_id}"

    def tell(self, cpus: int) -> None:
        """Request so many additional CPUs from Ray's autoscaler, if there is one; 0: none for this job.

        Args:
            cpus: The CPUs that the job lacks.
        """
        from ray.autoscaler.sdk import request_resources

        if cpus:
            adapter.kv_put(self._key, str(cpus).encode(), NAMESPACE)
        elif adapter.kv_get(self._key, NAMESPACE) is None:
            return
        else:
            adapter.kv_delete(self._key, NAMESPACE)
        lacking = sum(wishes().values())
        request_resources(num_cpus=math.ceil(cpu_count()) + lacking if lacking else 0)


def wishes() -> dict[str, int]:
    """Return what each job lacks: {job id: CPUs}."""
    asked = (key.removeprefix(PREFIX) for key in adapter.kv_keys(PREFIX, NAMESPACE))
    requests = {
        job: adapter.kv_get(f"{PREFIX}{job}", NAMESPACE) for job in asked if adapter.kv_keys(JOB + job, NAMESPACE)
    }
    return {job: int(cpus) for job, cpus in requests.items() if cpus is not None}
