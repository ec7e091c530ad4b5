"""Compiled operators that need more than the CPU of their host go to another one, with all defaults, and lose nothing.

The hosts are namespaces, each on one CPU of this machine: threads can't use what the other has, as on real hosts.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.test_nodes import load_netns

netns = load_netns()
pytestmark = [
    pytest.mark.alone,
    pytest.mark.cluster,
    pytest.mark.netns,
    pytest.mark.timeout(400),
    pytest.mark.skipif(bool(netns.missing()), reason=netns.missing() or "everything is there"),
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two hosts need a CPU each"),
]
TIMEOUT = 300.0  # seconds
KEYS = 100, 7  # of the first operator, and besides of the others: such a region keeps one replica
ROWS = 2_100_000

NATIVE = """
import json, sys
from typing import NamedTuple
import rayelastic as rel
from rayelastic.reasons import Code
FIRST, SECOND, ROWS, ROUNDS, PATIENCE = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), 1000, 200.0
class Row(NamedTuple):
    a: int
    b: int
    value: int
    seen: int
class Seen(NamedTuple):
    rows: int = 0
def burn(t, s):
    left = t.value
    for _ in range(ROUNDS):
        left = left * 31 % 65537
    s.rows += 1 if left < 65537 else 2
    return t.a, t.b, t.value, s.rows
topology = rel.Topology("native")
numbers = topology.source(rel.sequence(ROWS), name="numbers")
stream = numbers.map(lambda t: (t.value % FIRST, t.value % SECOND, t.value, 0), name="keys", schema=Row)
for number in range(4):
    keys = ("a", "b") if number else ("a",)
    stream = stream.key_by(*keys).map(burn, name=f"burn{number}", state=Seen, schema=Row, lane="compiled")
stream.filter(lambda t: t.value % 1000 == 0, name="some").sink(rel.list(), name="out")
job = rel.submit(topology)
nodes = {node.node for node in job.status.pes}
def decided():
    return [one for one in job.adaptations() if one.pe == "regions"]
while not job.status.state.is_final and not (changed := [one for one in decided() if one.changed]):
    job.pause(0.2)
spread = sorted(set(job.plan().nodes.values()))
rows = job.wait(PATIENCE)["out"]
print(json.dumps({
    "began": sorted(nodes), "spread": spread, "rows": [[t.value, t.seen] for t in rows],
    "why": [reason.as_dict()["code"] for reason in changed[0].decision.reasons] if changed else [],
    "full": Code.HOST_FULL(nodes=[], operators=[]).as_dict()["code"],
    "told": [str(one) for one in job.adaptations(every_pass=True) if one.pe == "regions"],
}))
"""


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    with netns.Nodes(2, cpus=1, pinned=True) as made:
        yield made


def test_compiled_operators_go_to_the_other_host_by_themselves(nodes: Any) -> None:
    command = [sys.executable, "-c", NATIVE, *map(str, (*KEYS, ROWS))]
    done = nodes.run(0, command, timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["began"] == ["rel-node0"], told["told"]
    assert told["spread"] == ["rel-node0", "rel-node1"], told["told"]
    assert told["full"] in told["why"], told["told"]
    period = KEYS[0] * KEYS[1]
    expected = [[value, value // period + 1] for value in range(0, ROWS, 1000)]
    assert sorted(told["rows"]) == expected, "each row once, and the state of each key as if nothing had moved"
