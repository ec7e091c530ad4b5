"""What jobs lack comes to Ray's autoscaler as one request: the sum, until each has enough or ends."""

from __future__ import annotations

import json
import math

import pytest

from rayelastic.on_ray.cluster import cpu_count
from rayelastic.on_ray.ray_host import PlacementSettings, RayHost
from rayelastic.on_ray.store.gcs_store import GcsStore

pytestmark = pytest.mark.cluster


def asked() -> int:
    """CPUs that Ray's autoscaler is asked for, as it would read it."""
    from ray.autoscaler._private.constants import AUTOSCALER_RESOURCE_REQUEST_CHANNEL
    from ray.experimental import internal_kv

    found = internal_kv._internal_kv_get(AUTOSCALER_RESOURCE_REQUEST_CHANNEL)
    return sum(int(bundle["CPU"]) for bundle in json.loads(found or "[]"))


def test_jobs_do_not_overwrite_what_others_ask_for(ray_cluster: str) -> None:
    there = math.ceil(cpu_count())
    hosts, stores = [], []
    for job in ("first", "second"):
        stores.append(GcsStore(job))
        stores[-1].keep_job(b"a job")
        hosts.append(RayHost(PlacementSettings(0.25, job_id=job)))
    first, second = hosts
    try:
        first.request(3)
        assert asked() == there + 3
        second.request(2)
        assert asked() == there + 5
        second.request(4)
        assert asked() == there + 7
        first.close()
        assert asked() == there + 4
        first.request(1)
        stores[0].close()  # its coordinator died, and somebody has closed the job
        second.request(2)
        assert asked() == there + 2
        second.request(0)
        assert asked() == 0
    finally:
        for host, store in zip(hosts, stores, strict=True):
            host.close()
            store.close()
