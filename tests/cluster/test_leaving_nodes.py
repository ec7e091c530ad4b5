"""A job on several hosts, each with a disk of its own, leaves them one after the other and loses nothing."""

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
    pytest.mark.cluster,
    pytest.mark.netns,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(netns.missing()), reason=netns.missing() or "everything is there"),
]
TIMEOUT = 240.0  # seconds

LEAVES = """
import json, pathlib, sys, threading
import rayelastic as rel
ROWS, KEYS, go = 20_000, 97, pathlib.Path(sys.argv[1])
def numbers():
    nobody = threading.Event()
    for n in range(ROWS):
        if n % 100 == 0:
            nobody.wait(0.05)
        while n == ROWS - 1000 and not go.exists():
            nobody.wait(0.02)
        yield n % KEYS, n
topology = rel.Topology("leaves")
keyed = topology.source(rel.callable(numbers, schema={"key": int, "n": int}), name="numbers").key_by("key")
keyed.aggregate(name="counts", emit="update", n=rel.last("n"), all=rel.count()).sink(rel.list(), name="out")
job = rel.submit(topology, rel.JobConfig(pes={"counts": 1, "out": 2}))
def nodes():
    return {pe.pe: pe.node for pe in job.status.pes}
before = nodes()
left, after = [], []
while job.metrics().operator("out").tuples_in < 1000:
    job.pause(0.05)
for operator in ("out", "counts", "numbers"):
    node = nodes()[job.plan().pe_of(operator)]
    if node != "rel-node0" and len(left) < 2:
        job.leave(node)
        left.append(node)
        after.append(nodes())
go.touch()
rows = job.wait(120)["out"]
print(json.dumps({
    "before": before, "left": left, "after": after, "restarts": job.status.checkpoints.restarts,
    "right": sorted((t.n, t.all) for t in rows) == [(n, n // KEYS + 1) for n in range(ROWS)],
}))
"""


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    with netns.Nodes(3, cpus=1) as made:
        yield made


def test_a_job_leaves_two_of_three_nodes(nodes: Any, tmp_path: Path) -> None:
    done = nodes.run(0, [sys.executable, "-c", LEAVES, str(tmp_path / "go")], timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert len(set(told["before"].values())) == 3, told
    assert len(told["left"]) == 2, told
    for gone, placed in zip(told["left"], told["after"], strict=True):
        assert gone not in placed.values(), told
    assert told["left"][0] not in told["after"][1].values(), told
    assert (told["right"], told["restarts"]) == (True, 0), told
