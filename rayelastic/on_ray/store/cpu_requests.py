"""Requests of jobs for CPUs. Ray's autoscaler has one request for a whole cluster: the sum of what the jobs lack.

A job's request is a key in Ray's own store until the job has enough CPUs or ends. Requests of lost jobs don't count.
"""

from __future__ import annotations

import math

from rayelastic.on_ray.cluster import cpu_count
from rayelastic.on_ray.connect import NAMESPACE
from rayelastic.on_ray.private import adapter
from rayelastic.on_ray.store.gcs_store import JOB

PREFIX = "cpus:"  # of the key of a job's request


class CpuRequest:
    """The request of one job.

    Args:
        job_id: of the job.
    """

    def __init__(self, job_id: str) -> None:
        self._key = f"{PREFIX}{job_id}"

    def set(self, cpus: int) -> None:
        """Ask Ray's autoscaler, if the cluster has one, for CPUs beyond those of the cluster.

        Args:
            cpus: CPUs that the job lacks; 0 withdraws the request.
        """
        from ray.autoscaler.sdk import request_resources

        if cpus:
            adapter.kv_put(self._key, str(cpus).encode(), NAMESPACE)
        elif adapter.kv_get(self._key, NAMESPACE) is None:
            return
        else:
            adapter.kv_delete(self._key, NAMESPACE)
        lacking = sum(requests().values())
        request_resources(num_cpus=math.ceil(cpu_count()) + lacking if lacking else 0)


def requests() -> dict[str, int]:
    """Return what each job lacks: {job id: CPUs}."""
    jobs = (key.removeprefix(PREFIX) for key in adapter.kv_keys(PREFIX, NAMESPACE))
    values = {job: adapter.kv_get(f"{PREFIX}{job}", NAMESPACE) for job in jobs if adapter.kv_keys(JOB + job, NAMESPACE)}
    return {job: int(cpus) for job, cpus in values.items() if cpus is not None}
