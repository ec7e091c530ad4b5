"""An element of a job on Ray learns which processes of its host belong to the job: it leaves them no CPUs (P32).

On Ray, because only there do a coordinator and elements have processes of their own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from tests.waiting import wait_until

pytestmark = pytest.mark.cluster

PAUSE = 0.02  # s


class Kin(NamedTuple):
    processes: int


def kin_of_this_process(t: Any) -> Kin:
    import gc
    import threading

    from rayelastic.runtime.loops.adaptation_loop import AdaptationLoop

    threading.Event().wait(PAUSE)
    loops = [one for one in gc.get_objects() if isinstance(one, AdaptationLoop)]
    return Kin(sum(len(one.kin) for one in loops))


def test_the_coordinator_is_no_other_process(ray_cluster: str) -> None:
    topology = rel.Topology("kin")
    seen = topology.source(rel.sequence(1 << 40), name="numbers").map(
        kin_of_this_process, name="look", schema=Kin, lane="python"
    )
    seen.filter(lambda t: t.processes > 0, name="kin").sink(rel.count(), name="out")
    job = rel.submit(topology, config=rel.JobConfig(regions="manual"))
    try:
        wait_until(job, lambda: job.metrics().operator("out").tuples_in > 0)
    finally:
        job.cancel(drain=False)
        job.close()
