"""Jobs over Ray nodes with different addresses (network namespaces); skipped where these can't be had.

Cables are cut and mended, hosts die, `ray job submit` spreads a job over three of them.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NETNS = Path(__file__).parents[2] / "cluster" / "netns.py"
JOB_TIMEOUT = 150.0


def load_netns() -> Any:
    spec = importlib.util.spec_from_file_location("netns", NETNS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


netns = load_netns()
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.netns,
    pytest.mark.skipif(bool(netns.missing()), reason=netns.missing() or "everything is there"),
]

COUNT = """
import json, socket, sys, threading
import ray
import rayelastic as rel
from topologies import word_count
text, output, secure = sys.argv[1:]

packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))  # all that passes the switch
packets.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE: none is missed
packets.settimeout(1.0)
seen, ended = {"words": 0, "greetings": 0}, threading.Event()
def sniff():
    while not ended.is_set():
        try:
            packet = packets.recv(1 << 16)
        except TimeoutError:
            continue
        seen["words"] += packet.count(b"a-longer" + b"-word-")  # in two pieces: Ray tells nodes this text
        seen["greetings"] += packet.count(b"REL" + b"H")
sniffing = threading.Thread(target=sniff, daemon=True)
sniffing.start()

config = rel.JobConfig(pes=2, secure=secure == "encrypted")
job = rel.submit(word_count.build(input=text, output=output), config)
coordinator = ray.get(job._control._actor.__ray_call__.remote(lambda _: socket.gethostname()))
result = job.wait(timeout=120)
encryption = [pe.encryption for pe in job.status.pes]  # the last of them: each element had its links
ended.set()
sniffing.join()
print(json.dumps({
    "seen": seen,
    "encryption": encryption,
    "nodes": sorted({pe.node for pe in job.status.pes}),
    "coordinator": coordinator,
    "records": sum(link["records_sent"] for pe in result.metrics.pes for link in pe.links.values()),
}))
"""


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    with netns.Nodes(2) as made:
        yield made


@pytest.mark.parametrize("secure", ["encrypted", "open"])
def test_word_count_over_two_nodes(nodes: Any, tmp_path: Path, secure: str) -> None:
    from pyarrow import parquet

    text, output = tmp_path / "text.txt", tmp_path / "counts"
    text.write_text("".join(f"word{n % 97} and a-longer-word-{n % 13}\n" for n in range(20_000)))
    done = nodes.run(0, [sys.executable, "-c", COUNT, str(text), str(output), secure], timeout=JOB_TIMEOUT)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["nodes"] == ["rel-node0", "rel-node1"]
    assert report["coordinator"] == "rel-node0", "it is with its driver"
    assert report["records"] > 0
    assert report["seen"]["greetings"] > 0, "the names of the operators aren't hidden"
    if secure == "encrypted":
        assert report["seen"]["words"] == 0
        assert {each.partition(" on ")[0] for each in report["encryption"]} == {"TLSv1.3 TLS_AES_128_GCM_SHA256"}
    else:
        assert report["seen"]["words"] > 1000, "nobody looked"
        assert set(report["encryption"]) == {"off; JobConfig(secure=True) has it"}
    table = parquet.read_table(output)
    counted = dict(zip(table["word"].to_pylist(), table["n"].to_pylist(), strict=True))
    assert counted == Counter(text.read_text().split())


# --- cables and hosts ---------------------------------------------------------------------------------------------

FLOWS = """
import json, sys
import rayelastic as rel
from rayelastic.errors import JobCancelledError, JobFailedError
topology = rel.Topology("endless")
numbers = topology.source("numbers", rel.generate(lambda n: n, None, schema={"n": int}))
numbers.map("same", lambda t: t.n, schema={"n": int}).sink("out", rel.count())
job = rel.submit(topology, rel.JobConfig(pins={"out": 1}))
def say(**what):
    print(json.dumps(what), flush=True)
def flows():
    before = job.metrics().operator("out").tuples_in
    while job.metrics().operator("out").tuples_in < before + 5000:
        job.pause(0.05)
flows()
say(nodes=sorted(pe.node for pe in job.status.pes))
for line in sys.stdin:
    if line == "flows\\n":
        flows()
        say(flows=True)
    elif line == "drain\\n":
        job.cancel(drain=True)
        try:
            job.wait(timeout=60)
        except JobCancelledError:
            metrics = job.metrics()
            say(sent=metrics.operator("numbers").tuples_out, arrived=metrics.operator("out").tuples_in)
    elif line == "fails\\n":
        try:
            job.wait(timeout=60)
        except JobFailedError as error:
            say(failed=str(error))
"""
SHORT_CUT = 0.5  # seconds; a peer that says nothing for 3 is lost, and TCP needs as long again to find its way back


class Driver:
    """A driver on node 0 that does what it is told and answers with lines of JSON."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdout is not None
        self._answers = (line for line in process.stdout if line.startswith("{"))

    def ask(self, command: str) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        return self.answer()

    def answer(self) -> Any:
        return json.loads(next(self._answers))

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(JOB_TIMEOUT)


@pytest.fixture
def driver(nodes: Any) -> Iterator[Driver]:
    made = Driver(nodes.start(0, [sys.executable, "-c", FLOWS]))
    assert made.answer() == {"nodes": ["rel-node0", "rel-node1"]}
    yield made
    made.close()


@pytest.mark.nightly
def test_a_cable_that_is_cut_and_mended_loses_nothing(nodes: Any, driver: Driver) -> None:
    nodes.cut(1)
    threading.Event().wait(SHORT_CUT)
    nodes.heal(1)
    assert driver.ask("flows") == {"flows": True}
    counts = driver.ask("drain")
    assert counts["sent"] == counts["arrived"] > 10_000


@pytest.mark.nightly
def test_a_cable_that_stays_cut_fails_the_job_with_its_reason(nodes: Any, driver: Driver) -> None:
    nodes.cut(1)
    try:
        assert "pe" in driver.ask("fails")["failed"]
    finally:
        nodes.heal(1)


@pytest.mark.nightly
def test_a_host_that_is_switched_off_fails_the_job_with_its_reason() -> None:
    with netns.Nodes(2) as own:
        driver = Driver(own.start(0, [sys.executable, "-c", FLOWS]))
        assert driver.answer() == {"nodes": ["rel-node0", "rel-node1"]}
        own.kill(1)
        assert "pe" in driver.ask("fails")["failed"]
        driver.close()


@pytest.mark.nightly
def test_ray_job_submit_over_three_hosts(tmp_path: Path) -> None:
    from pyarrow import parquet

    text, output = tmp_path / "text.txt", tmp_path / "counts"
    text.write_text("".join(f"word{n % 97} and a-longer-word-{n % 13}\n" for n in range(20_000)))
    variables = {"env_vars": {"INPUT": str(text), "OUTPUT": str(output), "PES": "3"}}
    with netns.Nodes(3, dashboard=True) as hosts:

        def ray(*arguments: str) -> str:
            done = hosts.run(0, [sys.executable, "-m", "ray.scripts.scripts", *arguments], timeout=JOB_TIMEOUT)
            assert done.returncode == 0, done.stdout + done.stderr
            return str(done.stdout)

        told = ray(
            "job", "submit", "--address", hosts.dashboard, "--working-dir", str(NETNS.parents[1]),
            "--runtime-env-json", json.dumps(variables), "--", sys.executable, "examples/word_count_job.py",
        )  # fmt: skip
        assert "succeeded" in told
        listed = json.loads(ray("list", "actors", "--address", hosts.dashboard, "--detail", "--format", "json"))
        assert len({actor["node_id"] for actor in listed if actor["class_name"] == "PEActor"}) == 3
        assert not [actor for actor in listed if actor["state"] == "ALIVE"]
        for number in range(3):
            left = hosts.run(number, ["ls", "/dev/shm"]).stdout.split()
            assert not [name for name in left if name.startswith("rayelastic")]
    table = parquet.read_table(output)
    counted = dict(zip(table["word"].to_pylist(), table["n"].to_pylist(), strict=True))
    assert counted == Counter(text.read_text().split())


def test_the_switchs_node_has_no_cable() -> None:
    with pytest.raises(ValueError, match="carries the switch"):
        netns.Nodes(1).cut(0)
