"""A host gets half as fast while a job runs on three: keys move away from it, and all is nearly as fast as by hand."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.test_nodes import load_netns

netns = load_netns()
pytestmark = [
    pytest.mark.alone,
    pytest.mark.cluster,
    pytest.mark.netns,
    pytest.mark.nightly,
    pytest.mark.timeout(400),
    pytest.mark.skipif(bool(netns.missing()), reason=netns.missing() or "everything is there"),
]
TIMEOUT = 300.0  # seconds
ENOUGH = 0.9  # of the best split by hand

SLOW = """
import json, pathlib, socket, sys, threading, time
from typing import NamedTuple
import rayelastic as rel
KEYS, ANSWER, PATIENCE, LOOK = 200, 0.002, 90.0, 8.0
folder = pathlib.Path(sys.argv[1])
def numbers():
    n = 0
    while not (folder / "enough").exists():
        for _ in range(100):
            yield n % KEYS, n // KEYS
            n += 1
    (folder / "made").write_text(str(n))  # also of what was given before the elements went to their hosts
class Seen(NamedTuple):
    times: int = 0
def ask(t, s):
    halved = socket.gethostname() == "rel-node1" and (folder / "slow").exists()
    threading.Event().wait(ANSWER * (2 if halved else 1))
    assert s.times == t.n, f"{t} came where {s.times} was due"
    s.times += 1
    return t
topology = rel.Topology("slow")
keyed = topology.source(rel.callable(numbers, schema={"key": int, "n": int}), name="numbers").key_by("key")
keyed.map(ask, name="ask", state=Seen, schema={"key": int, "n": int}, lane="python").sink(rel.count(), name="out")
elasticity = rel.Elasticity(max_processes=3, region_period=1.0)
job = rel.submit(topology, rel.JobConfig(replicas={"ask": 3}, elasticity=elasticity))
def rate():
    before, began = job.metrics().operator("ask").tuples_in, time.monotonic()
    job.pause(LOOK)
    return (job.metrics().operator("ask").tuples_in - before) / (time.monotonic() - began)
plan = job.plan()
region, pes = plan.region_of("ask").region.name, plan.region_of("ask").pipelines[0].pes
job.change(plan.with_nodes({pe: f"rel-node{number}" for number, pe in enumerate(pes)}))
places = {pe.pe: pe.node for pe in job.status.pes if not pe.state.is_final}
even = rate()
(folder / "slow").touch()
until = time.monotonic() + PATIENCE
while not job.plan().region(region).shares and time.monotonic() < until:
    job.pause(0.5)
job.pause(2 * LOOK)
shares, reached = job.plan().region(region).shares, rate()
job.pause_elasticity()
hand = {}
for split in ((), (1632, 832, 1632), (1693, 710, 1693)):
    job.change(job.plan().with_shares(region, split))
    hand[str(split)] = rate()
told = [str(one) for one in job.adaptations() if one.pe == "regions"]
(folder / "enough").touch()
result = job.wait(60)
made = int((folder / "made").read_text())
print(json.dumps({
    "places": places, "even": even, "shares": shares, "reached": reached, "hand": hand,
    "counted": result["out"], "made": made,
    "told": told,
}))
"""


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    with netns.Nodes(3, cpus=2) as made:
        yield made


def test_keys_move_away_from_a_host_that_got_slow(nodes: Any, tmp_path: Path) -> None:
    done = nodes.run(0, [sys.executable, "-c", SLOW, str(tmp_path)], timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert set(told["places"].values()) == {"rel-node0", "rel-node1", "rel-node2"}, told
    assert told["counted"] == told["made"], told
    first, slow, third = told["shares"]
    assert slow < min(first, third), told
    assert told["reached"] >= ENOUGH * max(told["hand"].values()), told
