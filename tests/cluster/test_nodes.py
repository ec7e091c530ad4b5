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

from tests.component.network.certificates import make_certificates

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

MARKERS = 1000  # words that somebody who listens to the cable looks for

COUNT = """
import json, re, socket, sys, threading
import ray
import rayelastic as rel
from rayelastic.topologies import word_count
text, output, secure, folder = sys.argv[1:]

packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))  # all that passes the switch
packets.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE: none is missed
packets.settimeout(1.0)
seen, words, ended = {"greetings": 0}, set(), threading.Event()
def sniff():
    while not ended.is_set():
        try:
            packet = packets.recv(1 << 16)
        except TimeoutError:
            continue
        words.update(re.findall(b"a-longer" + b"-word-[0-9]{3}", packet))  # in two pieces: Ray tells nodes this text
        seen["greetings"] += packet.count(b"REL" + b"H")
sniffing = threading.Thread(target=sniff, daemon=True)
sniffing.start()

tls = rel.TLS(f"{folder}/port.pem", f"{folder}/port.key", f"{folder}/ours.pem", links=True)
network = rel.Network(secure=secure != "open", tls=tls if secure == "certificates" else None)
config = rel.JobConfig(pes=2, network=network)
job = rel.submit(word_count.build(input=text, output=output), config)
coordinator = ray.get(job._control._actor.__ray_call__.remote(lambda _: socket.gethostname()))
result = job.wait(timeout=120)
encryption = [pe.encryption for pe in job.status.pes]  # the last of them: each element had its links
ended.set()
sniffing.join()
print(json.dumps({
    "seen": seen | {"words": len(words)},
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


@pytest.mark.parametrize("secure", ["encrypted", pytest.param("certificates", marks=pytest.mark.nightly), "open"])
def test_word_count_over_two_nodes(nodes: Any, tmp_path: Path, secure: str) -> None:
    from pyarrow import parquet

    text, output = tmp_path / "text.txt", tmp_path / "counts"
    text.write_text("".join(f"word{n % 97} and a-longer-word-{n % MARKERS:03}\n" for n in range(20_000)))
    shown = make_certificates(tmp_path)
    done = nodes.run(0, [sys.executable, "-c", COUNT, str(text), str(output), secure, str(shown)], timeout=JOB_TIMEOUT)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["nodes"] == ["rel-node0", "rel-node1"]
    assert report["coordinator"] == "rel-node0", "it is with its driver"
    assert report["records"] > 0
    assert report["seen"]["greetings"] > 0, "the names of the operators aren't hidden"
    if secure != "open":
        assert report["seen"]["words"] == 0
        suite = "TLSv1.3 TLS_AES_128_GCM_SHA256" + (" by certificates" if secure == "certificates" else "")
        assert {each.partition(" on ")[0] for each in report["encryption"]} == {suite}
    else:
        assert report["seen"]["words"] > 0.9 * MARKERS, "nobody looked"  # some lie across two packets each time
        assert set(report["encryption"]) == {"off; rel.Network(secure=True) has it"}
    table = parquet.read_table(output)
    counted = dict(zip(table["word"].to_pylist(), table["n"].to_pylist(), strict=True))
    assert counted == Counter(text.read_text().split())


# --- cables and hosts ---------------------------------------------------------------------------------------------

FLOWS = """
import json, sys
import rayelastic as rel
from rayelastic.errors import JobCancelledError
topology = rel.Topology("endless")
numbers = topology.source(rel.generate(lambda n: n, None, schema={"n": int}), name="numbers")
numbers.map(lambda t: t.n, name="same", schema={"n": int}).sink(rel.count(), name="out")
checkpoint = rel.Checkpoint(sys.argv[1], every=1.0)
job = rel.submit(topology, rel.JobConfig(pes={"out": 1}, checkpoint=checkpoint))
def say(**what):
    print(json.dumps(what), flush=True)
def flows():
    before = job.metrics().operator("out").tuples_in
    while job.metrics().operator("out").tuples_in < before + 5000:
        job.pause(0.05)
flows()
while not job.status.checkpoints.taken:
    job.pause(0.05)
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
            sent, arrived = metrics.operator("numbers").tuples_out, metrics.operator("out").tuples_in
            say(sent=sent, arrived=arrived, restarts=job.status.checkpoints.restarts)
    elif line == "goes back\\n":
        while not job.status.checkpoints.restarts or job.status.state.value != "running":
            assert not job.status.state.is_final, job.status
            job.pause(0.2)
        flows()
        say(restarts=job.status.checkpoints.restarts, nodes=sorted({pe.node for pe in job.status.pes}))
        job.cancel()
"""


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
def driver(nodes: Any, tmp_path: Path) -> Iterator[Driver]:
    made = Driver(nodes.start(0, [sys.executable, "-c", FLOWS, str(tmp_path / "checkpoints")]))
    assert made.answer() == {"nodes": ["rel-node0", "rel-node1"]}
    yield made
    made.close()


@pytest.mark.nightly
@pytest.mark.parametrize("seconds", [0.5, 10])  # TCP needs about as long again to find its way back
def test_a_cable_that_is_cut_and_mended_loses_nothing(nodes: Any, driver: Driver, seconds: float) -> None:
    nodes.cut(1)
    threading.Event().wait(seconds)
    nodes.heal(1)
    assert driver.ask("flows") == {"flows": True}
    counts = driver.ask("drain")
    assert counts["sent"] == counts["arrived"] > 10_000
    assert counts["restarts"] == 0, "nobody was taken for lost"


@pytest.mark.nightly
def test_where_a_cable_stays_cut_the_job_goes_back_and_on_without_that_host(tmp_path: Path) -> None:
    with netns.Nodes(2) as own:  # Ray takes that host for dead after a minute, and it doesn't come back
        driver = Driver(own.start(0, [sys.executable, "-c", FLOWS, str(tmp_path / "checkpoints")]))
        assert driver.answer() == {"nodes": ["rel-node0", "rel-node1"]}
        own.cut(1)
        assert driver.ask("goes back") == {"restarts": 1, "nodes": ["rel-node0"]}
        driver.close()


@pytest.mark.nightly
def test_where_a_host_is_switched_off_the_job_goes_back_and_on_without_it(tmp_path: Path) -> None:
    with netns.Nodes(2) as own:
        driver = Driver(own.start(0, [sys.executable, "-c", FLOWS, str(tmp_path / "checkpoints")]))
        assert driver.answer() == {"nodes": ["rel-node0", "rel-node1"]}
        own.kill(1)
        answer = driver.ask("goes back")
        assert answer["nodes"] == ["rel-node0"]
        assert answer["restarts"] in (1, 2), "it may go back once to a host that Ray doesn't know to be gone yet"
        driver.close()


OWN_DISKS = """
import json, sys
import rayelastic as rel
topology = rel.Topology("disks")
numbers = topology.source(rel.sequence(1 << 40), name="numbers")
numbers.map(lambda t: t.value, name="same", schema={"n": int}).sink(rel.count(), name="out")
checkpoint = rel.Checkpoint("/dev/shm/saved", every=0.5)
job = rel.submit(topology, rel.JobConfig(pes={"out": 1}, checkpoint=checkpoint))
while not job.status.checkpoints.abandoned:
    job.pause(0.05)
print(json.dumps({"counted": job.status.checkpoints.taken, "problem": job.status.checkpoints.problem}))
job.cancel()
"""


@pytest.mark.nightly
def test_nodes_with_disks_of_their_own_are_told_at_the_first_checkpoint(nodes: Any) -> None:
    done = nodes.run(0, [sys.executable, "-c", OWN_DISKS], timeout=JOB_TIMEOUT)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["counted"] == 0
    assert "/dev/shm/saved/00000001 isn't there on rel-node1" in told["problem"], told
    assert "saved" not in nodes.run(1, ["ls", "/dev/shm"]).stdout.split()


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
        elements = {actor["node_id"] for actor in listed if actor["class_name"] == "PEActor"}
        assert len(elements - {None}) == 3  # a spare that found no place before the job was over was on no node
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
