"""Jobs of one cluster know what others use of each machine, as long as they run, and leave room for that."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rayelastic as rel
from rayelastic.on_ray.cluster import cpu_count
from rayelastic.on_ray.metrics_publisher import UsedCpus
from rayelastic.on_ray.ray_host import PlacementSettings, RayHost
from rayelastic.on_ray.store.gcs_store import GcsStore
from rayelastic.on_ray.store.node_use import NodeUse
from rayelastic.runtime.values.status import PESample
from tests.cluster.test_nodes import load_netns

netns = load_netns()
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

PATIENCE = 60.0  # seconds
LOOK = 0.2  # seconds
BUSY = 0.1  # CPUs that a job which computes all the time uses at least, on however busy a machine


def left(host: RayHost) -> float:
    (node,) = host.nodes()
    return node.cpus


def test_what_others_use_is_theirs_until_they_end_but_for_a_fair_part(ray_cluster: str) -> None:
    there = cpu_count()
    stores = [GcsStore(job) for job in ("use1", "use2")]
    uses = [NodeUse(job) for job in ("use1", "use2")]
    first, second = (RayHost(PlacementSettings(0.25, job_id=job)) for job in ("use1", "use2"))
    (node,) = first.nodes()
    try:
        for store in stores:
            store.keep_job(b"a job")
        uses[1].tell({node.name: 1.5, "another": 7.0})
        assert left(first) == there - 1.5
        assert left(second) == there, "its own use is included"
        uses[1].tell({node.name: 1.6})
        assert left(first) == there - 1.6, "it left the other one"
        uses[1].tell({node.name: 1.7})
        assert left(first) == there - 1.6, "so little isn't told"
        uses[1].tell({node.name: 2.0 * there})
        assert left(first) == there / 2, "half of it is its fair part"
        stores[1].close()  # its coordinator died, and somebody has closed the job
        assert left(first) == there
        stores[1].keep_job(b"a job")
        assert left(first) == there / 2
        second.close()
        assert left(first) == there
    finally:
        for host, store in zip((first, second), stores, strict=True):
            host.close()
            store.close()


def busy(folder: Path) -> Iterator[int]:
    value = 0
    while not (folder / "enough").exists():
        for _ in range(10_000):
            value += 1
        yield value


def test_a_job_that_computes_tells_what_it_uses_while_it_runs(ray_cluster: str, tmp_path: Path) -> None:
    other, there = RayHost(PlacementSettings(0.25, job_id="looks")), cpu_count()
    topology = rel.Topology("busy")
    topology.source(rel.callable(lambda: busy(tmp_path), int), name="numbers").sink(
        rel.call(lambda _: None), name="out"
    )
    job = rel.submit(topology, rel.JobConfig(regions="fixed"), address=ray_cluster)
    try:
        until = time.monotonic() + PATIENCE
        while (used := there - left(other)) < BUSY:
            assert time.monotonic() < until, used
            job.pause(LOOK)
        (tmp_path / "enough").touch()
        job.wait(PATIENCE)
        until = time.monotonic() + PATIENCE
        while left(other) < there:
            assert time.monotonic() < until, "it has ended"
            job.pause(LOOK)
    finally:
        (tmp_path / "enough").touch()
        job.close()


def sample(pe: str, cpu_seconds: float) -> PESample:
    return PESample(pe, 1.0, 1, 0.0, (), cpu_seconds=cpu_seconds)


def test_cpus_are_counted_by_machine_in_the_mean_and_those_who_start_anew_from_nothing() -> None:
    now = [0.0]
    used = UsedCpus(lambda: now[0])
    nodes = {"pe0": "a", "pe1": "a", "pe2": "b"}
    assert used.add([sample("pe0", 5.0)], nodes) == {}, "nobody knows since when"
    now[0] = 2.0
    assert used.add([sample("pe0", 8.0), sample("pe1", 1.0), sample("pe2", 1.0)], nodes) == {"a": 0.75}
    now[0] = 4.0
    third = used.add([sample("pe0", 1.0), sample("pe1", 3.0), sample("pe2", 4.0)], nodes)
    assert third == pytest.approx({"a": (0.0 + 1.5 + 1.0) / 3, "b": 0.5})


BESIDE = """
import json, pathlib, sys
from typing import NamedTuple
import rayelastic as rel
from rayelastic.on_ray.ray_host import PlacementSettings, RayHost
class Number(NamedTuple):
    value: int
folder = pathlib.Path(sys.argv[1])
def busy():
    value = 0
    while not (folder / "enough").exists():
        for _ in range(10_000):
            value += 1
        yield Number(value)
def at(job, nodes):
    job.change(job.plan().with_nodes(dict(zip(job.plan().pes, nodes))))
    return job
topology = rel.Topology("first")
for name in ("one", "two"):
    topology.source(rel.callable(busy, Number), name=name).sink(rel.call(lambda _: None), name=f"out-{name}")
first = rel.submit(topology, rel.JobConfig(regions="manual", pes={"two": 1, "out-two": 1}))
at(first, ["rel-node0", "rel-node1"])
host = RayHost(PlacementSettings(0.25, job_id="looks"))
while sum(node.cpus < 2 for node in host.nodes()) < 2:
    first.pause(0.5)
topology = rel.Topology("second")
rows = topology.source(rel.callable(busy, Number), name="rows")
rows.map(lambda t: t, name="same", lane="python", schema=Number).sink(rel.call(lambda _: None), name="out")
second = at(rel.submit(topology, rel.JobConfig(regions="manual")), ["rel-node0"])
second.rescale(second.plan().region_of("same").region.name, 2)
print(json.dumps({"first": [one.node for one in first.status.pes], "second": [one.node for one in second.status.pes]}))
(folder / "enough").touch()
first.close()
second.close()
"""


@pytest.mark.netns
@pytest.mark.nightly
@pytest.mark.skipif(bool(netns.missing()), reason=netns.missing() or "everything is there")
def test_a_replica_goes_to_the_host_where_no_other_job_computes(tmp_path: Path) -> None:
    with netns.Nodes(3, cpus=2) as nodes:
        done: Any = nodes.run(0, [sys.executable, "-c", BESIDE, str(tmp_path)], timeout=240)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert sorted(told["first"]) == ["rel-node0", "rel-node1"], told
    assert sorted(told["second"]) == ["rel-node0", "rel-node2"], told
