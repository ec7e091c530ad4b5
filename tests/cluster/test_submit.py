"""`rel.submit`: PEs in Ray actors, on one local cluster for all tests of this file."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as parquet
import pytest

import rayelastic as rel
from rayelastic.cli import main
from rayelastic.errors import ConfigError, JobCancelledError, JobFailedError, JobNotFoundError, NotShippableError
from rayelastic.on_ray.private import adapter
from rayelastic.runtime.values.status import State
from rayelastic.runtime.watch.metric_table import METRICS, Kind
from rayelastic.topologies import word_count
from tests.raising import raises
from tests.waiting import wait_until_received

pytestmark = pytest.mark.cluster


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"word{n % 97} and a-longer-word-{n % 13}\n" for n in range(20_000)))
    return path


@pytest.mark.parametrize("pes", [1, 3])
def test_word_count(ray_cluster: None, text: Path, tmp_path: Path, pes: int) -> None:
    output = tmp_path / "out"
    job = rel.submit(word_count.build(input=str(text), output=str(output)), rel.JobConfig(pes=pes))
    result = job.wait(timeout=60)
    table = parquet.read_table(output)
    counted = dict(zip(table["word"].to_pylist(), table["n"].to_pylist(), strict=True))
    assert counted == Counter(text.read_text().split())
    crossing = [counters for pe in result.metrics.pes for counters in pe.links.values()]
    assert len(crossing) == 2 * (pes - 1)
    assert all(counters["records_sent"] + counters["records_received"] > 0 for counters in crossing)


@pytest.mark.parametrize("pes", [1, 2])
def test_processes_that_start_beside_the_coordinator_are_those_of_the_elements(ray_cluster: None, pes: int) -> None:
    import ray

    def processes() -> set[str]:
        return {actor["name"] for actor in ray.util.list_named_actors(all_namespaces=True) if "pe:" in actor["name"]}

    topology = rel.Topology("early")
    topology.source(rel.sequence(10**12), name="numbers").throttle(1000).sink(rel.count(), name="out")
    before, config = processes(), rel.JobConfig(pes=pes, regions="fixed")
    job = rel.submit(topology, config)
    try:
        assert len(processes() - before) == pes, "none was started for nothing"
        assert len({one.pid for one in job.status.pes}) == pes
    finally:
        job.close()
    assert not processes() - before


def spelt(t: Any) -> tuple[str, int]:
    letters: list[str] = []
    seen: dict[int, int] = {}
    for letter in t.word.upper():
        letters.append(letter)
        seen[len(letters) % 3] = len(letters)
    return "-".join(letters), seen.get(2, 0)


@pytest.mark.parametrize("start", ["first", "second"])
def test_lists_and_dicts_run_in_elements_that_never_compile(ray_cluster: None, start: str) -> None:
    topology = rel.Topology(f"spelt_{start}")
    words = topology.source(rel.rows([("stream",), ("ray",)], schema={"word": str}), name="words")
    made = words.map(spelt, name="spelt", schema={"spelt": str, "seen": int}, lane="compiled")
    made.map(lambda t: "numba" in sys.modules, name="numba", schema={"there": bool}, lane="python").sink(
        rel.list(), name="seen"
    )
    made.sink(rel.list(), name="out")
    result = rel.submit(topology).wait(timeout=60)
    assert [tuple(t) for t in result["out"]] == [("S-T-R-E-A-M", 5), ("R-A-Y", 2)]
    assert [t.there for t in result["seen"]] == [False, False]


HALVES = {0: 1, 1: 2}


def halved(t: Any) -> int:
    return t.n * 4 // 8 + HALVES[t.n % 2]


def test_what_machine_code_refuses_is_answered_by_the_function_that_came_along(ray_cluster: None) -> None:
    topology = rel.Topology("answered")
    numbers = topology.source(rel.rows([(1,), (2**62,), (4,), (2**62 + 1,)], schema={"n": int}), name="numbers")
    numbers.map(halved, name="halved", schema={"n": int}, lane="compiled").sink(rel.list(), name="out")
    result = rel.submit(topology).wait(timeout=60)
    assert [t.n for t in result["out"]] == [2, 2**61 + 1, 3, 2**61 + 2]
    assert result.metrics.operator("halved").answered_by_python == 2


def test_calls_wait_at_the_same_time(ray_cluster: None) -> None:
    async def meets(t: Any) -> int:
        everybody = here.setdefault(-1, asyncio.Event())
        here[t.n] = None
        if len(here) > 20:
            everybody.set()
        await everybody.wait()  # until 20 are under way
        return t.n

    here: dict[int, Any] = {}
    topology = rel.Topology("meeting")
    numbers = topology.source(rel.rows([(n,) for n in range(200)], schema={"n": int}), name="numbers")
    numbers.map(meets, name="meets", schema=int, concurrent=rel.concurrent(capacity=20)).sink(rel.list(), name="out")
    assert [t.value for t in rel.submit(topology).wait(timeout=60)["out"]] == list(range(200))


class Silence:
    def on_tuple(self, t: Any, state: Any, out: Any) -> None:
        state["last"] = t.at
        out.after(60)

    def on_time(self, time: Any, state: Any, out: Any) -> None:
        if time == state["last"] + 60:
            out.give((*out.key, time))


class LastSeen(NamedTuple):
    last: int = 0


class CompiledSilence:
    def on_tuple(self, t: Any, state: Any, out: Any) -> None:
        state.last = t.at
        out.after(60)

    def on_time(self, time: Any, state: Any, out: Any) -> None:
        if time == state.last + 60:
            out.give((*out.key, time))


def test_timers_come_in_elements(ray_cluster: None) -> None:
    topology = rel.Topology("silence")
    rows = [(n % 3, n * 7) for n in range(300)] + [(5, 2200), (5, 2250)]
    seen = topology.source(rel.rows(rows, schema={"who": int, "at": int}), name="seen").event_time("at", name="time")
    silent = seen.key_by("who").process(Silence, name="silence", schema={"who": int, "at": int})
    silent.sink(rel.list(), name="out")
    schema = {"who": int, "at": int}
    compiled = seen.key_by("who").process(
        CompiledSilence, name="compiled", schema=schema, state=LastSeen, lane="compiled"
    )
    compiled.sink(rel.list(), name="same")
    sessions = seen.key_by("who").session(gap=lambda t: 60).fold(lambda n, t: n + 1, 0, name="sessions")
    sessions.sink(rel.list(), name="sessions_out")
    result = rel.submit(topology, rel.JobConfig(pes=2)).wait(timeout=60)
    last = dict(rows)
    assert {tuple(t) for t in result["out"]} == {(who, at + 60) for who, at in last.items()}
    assert {tuple(t) for t in result["same"]} == {(who, at + 60) for who, at in last.items()}
    counts = Counter(who for who, _ in rows)
    assert {(t.who, t.end, t.value) for t in result["sessions_out"]} == {(w, last[w] + 60, counts[w]) for w in last}


def endless(name: str) -> rel.Topology:
    topology = rel.Topology(name)
    source = topology.source(rel.generate(lambda n: n % 100, None, schema={"n": int}), name="endless")
    source.throttle(20_000).key_by("n").aggregate(name="counts", emit="update", count=rel.count()).sink(
        rel.count(), name="out"
    )
    return topology


def slowly(n: int) -> int:
    threading.Event().wait(0.001)
    return n % 100


def test_a_job_is_stopped_into_a_snapshot_and_goes_on_elsewhere(ray_cluster: None, tmp_path: Path) -> None:
    def topology() -> rel.Topology:
        topology = rel.Topology("saved")
        numbers = topology.source(rel.generate(slowly, 1500, schema={"n": int}), name="numbers")
        counts = numbers.key_by("n").map(lambda t: t.n, name="same").key_by("value")
        counts.aggregate(name="counts", emit="update", count=rel.count()).sink(rel.list(), name="out")
        return topology

    job = rel.submit(topology(), rel.JobConfig(pes=2))
    wait_until_received(job, "counts", 100)
    before = job.stop(tmp_path / "snapshot")["out"]
    after = rel.submit(topology(), restore=tmp_path / "snapshot").wait(timeout=60)["out"]
    assert 100 <= len(before) < 1500
    assert Counter(map(tuple, before + after)) == Counter((n % 100, n // 100 + 1) for n in range(1500))


def left_sockets() -> set[Path]:
    """Sockets of elements that nobody has any more: what else runs on this machine has its own."""
    there = list(Path(tempfile.gettempdir()).glob("rel-*/port"))
    bound = Path("/proc/net/unix").read_text()
    return {path for path in there if str(path) not in bound and path.exists()}


@pytest.mark.parametrize("pes", [1, 2])
@pytest.mark.guarantee(
    source="any, `checkpoint=False`", sink="any", lost="a process", rows="the job fails within five seconds"
)
def test_killed_process_fails_a_job_without_checkpoints_within_five_seconds(ray_cluster: None, pes: int) -> None:
    sockets_before = left_sockets()
    job = rel.submit(endless(f"killed{pes}"), rel.JobConfig(pes=pes, checkpoint=False))
    victim = job.status.pes[-1]
    while job.status.pes[-1].pid == 0:
        job.metrics()
    victim = job.status.pes[-1]
    started = time.monotonic()
    os.kill(victim.pid, signal.SIGKILL)
    with pytest.raises(JobFailedError, match=victim.pe):
        job.wait(timeout=30)
    assert time.monotonic() - started < 5.0
    assert not left_sockets() - sockets_before, "the socket of the killed element is left behind"


def test_attach_and_cancel(ray_cluster: None) -> None:
    job = rel.submit(endless("attached"))
    found = rel.attach("attached")
    assert found.status.state is State.RUNNING
    assert "endless" in found.plan().text()
    found.cancel()
    with pytest.raises(JobCancelledError):
        job.wait(timeout=30)


LOST_DRIVER = """
import sys
import rayelastic as rel
topology = rel.Topology("orphan")
source = topology.source(rel.generate(lambda n: n % 100, None, schema={"n": int}), name="endless")
counts = source.throttle(20_000).key_by("n").aggregate(name="counts", emit="update", count=rel.count())
counts.sink(rel.count(), name="out")
job = rel.submit(topology, address=sys.argv[1])
print("it runs", flush=True)
job.wait()
"""


@pytest.mark.guarantee(
    source="any but Spark", sink="any", lost="the driver", rows="the job continues; `rel.attach` finds it"
)
def test_a_killed_driver_leaves_its_job_to_another_one(ray_cluster: str) -> None:
    import ray

    command = [sys.executable, "-c", LOST_DRIVER, ray.get_runtime_context().gcs_address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as lost:
        assert lost.stdout is not None
        assert any("it runs" in line for line in lost.stdout)
        lost.kill()
    found = rel.attach("orphan")
    before = found.metrics().operator("out").tuples_in
    while found.metrics().operator("out").tuples_in < before + 1000:
        assert found.status.state is State.RUNNING
    found.cancel(drain=True)
    with pytest.raises(JobCancelledError):
        found.wait(timeout=60)
    metrics = found.metrics()
    assert metrics.operator("endless").tuples_out == metrics.operator("out").tuples_in


def test_the_shell_says_first_that_it_joins_a_cluster_that_nobody_named(
    ray_cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(
        "import rayelastic as rel\ndef build() -> rel.Topology:\n    raise rel.errors.GraphError('wrong')\n"
    )
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert main(["submit", str(path)]) == 2  # nothing was submitted to whatever cluster was found
    first, second = capsys.readouterr().err.splitlines()
    assert "joins the Ray cluster that runs here, at " in first
    assert "wrong" in second
    monkeypatch.setenv("RAY_ADDRESS", "local")
    assert main(["submit", str(path)]) == 2
    assert "joins" not in capsys.readouterr().err


def test_a_raising_function_is_told_with_its_traceback(ray_cluster: None) -> None:
    topology = rel.Topology("raises")
    source = topology.source(rel.sequence(1000), name="numbers")
    source.map(lambda t: 1 // (t.value - 500), name="inverse", schema=int).sink(rel.count(), name="out")
    with pytest.raises(JobFailedError) as caught:
        rel.submit(topology).wait(timeout=60)
    assert caught.value.operator == "inverse"
    assert "ZeroDivisionError" in caught.value.reason
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert "value=500" in str(caught.value.failing_tuple)


def test_what_cannot_be_shipped_is_refused_before_anything_starts(ray_cluster: None) -> None:
    lock = threading.Lock()
    topology = rel.Topology("unshippable")
    source = topology.source(rel.sequence(10), name="numbers")
    source.filter(lambda t: lock.locked() or t.value > 0, name="locked", lane="python").sink(rel.count(), name="out")
    with raises(NotShippableError, "not-shippable"):
        rel.submit(topology)
    with pytest.raises(JobNotFoundError):
        rel.attach("unshippable")


def test_jobs_inspect_and_cancel_from_the_command_line(ray_cluster: None, capsys: pytest.CaptureFixture[str]) -> None:
    job = rel.submit(endless("watched"))
    assert main(["jobs"]) == 0
    assert main(["inspect", "watched"]) == 0
    shown = capsys.readouterr().out
    assert "job watched: running" in shown
    assert "endless" in shown
    assert main(["cancel", "watched"]) == 0
    with pytest.raises(JobCancelledError):
        job.wait(timeout=30)
    assert main(["inspect", "nobody"]) == 2


@pytest.mark.parametrize(
    ("token", "said"), [("f" * 64, "another token than the one shown"), (None, "none is set here")]
)
def test_a_wrong_token_is_told_with_the_way_out(ray_cluster: str, token: str | None, said: str, tmp_path: Path) -> None:
    import ray

    if not adapter.asks_for_token():
        pytest.skip("new clusters of this Ray ask for no token unless RAY_AUTH_MODE says so")
    address = ray.get_runtime_context().gcs_address
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    environment["HOME"] = str(tmp_path)  # where a token would lie
    if token is not None:
        environment |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token}
    for command in ("doctor", "jobs"):
        done = subprocess.run(
            [sys.executable, "-m", "rayelastic.cli", command, "--address", address], env=environment, timeout=60,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        told = done.stdout + done.stderr
        assert said in told
        assert "ray get-auth-token" in told
        assert "Traceback" not in told
        assert done.returncode == (1 if command == "doctor" else 2)


def test_a_port_in_use_is_told_before_a_job_is_submitted(ray_cluster: str) -> None:
    topology = rel.Topology("in-use")
    topology.source(rel.sequence(1), name="numbers").sink(rel.count(), name="out")
    with socket.create_server(("127.0.0.1", 0)) as other, raises(ConfigError, "port-in-use", "Address"):
        rel.submit(topology, rel.JobConfig(web_port=other.getsockname()[1]))
    with pytest.raises(JobNotFoundError):
        rel.attach("in-use")


METRICS_PATIENCE = 60.0  # seconds until Ray's agent hands on what was counted; a few on an idle machine


def test_rays_prometheus_port_shows_every_metric(ray_cluster: str, text: Path) -> None:
    import ray

    go_on = threading.Event()
    topology = rel.Topology("measured")
    numbers = topology.source(rel.generate(lambda n: n, None, schema={"n": int}), name="numbers")
    timed = numbers.throttle(20_000).event_time("n", name="timed", unit="s")
    timed.map(lambda t: t.n, name="same", schema={"n": int}).sink(rel.count(), name="out")
    text.write_bytes(b"caf\xe9\nplain\n")  # one line that isn't UTF-8: repaired, and counted
    topology.source(rel.text(text), name="lines").sink(rel.count(), name="shown")
    job = rel.submit(topology, rel.JobConfig(pes={"out": 1}))
    try:
        node = next(node for node in ray.nodes() if node["Alive"])
        url = f"http://{node['NodeManagerAddress']}:{node['MetricsExportPort']}/metrics"
        missing, until = set(METRICS), time.monotonic() + METRICS_PATIENCE
        while missing and time.monotonic() < until:
            with urllib.request.urlopen(url, timeout=10) as answer:
                shown = answer.read().decode()
            lines = [line for line in shown.splitlines() if 'rel_job="measured"' in line]
            missing = set(METRICS) - {line.partition("{")[0].removeprefix("ray_") for line in lines}
            missing -= {"rayelastic_operator_errors_total", "rayelastic_link_retransmits_total"}  # nothing counted yet
            missing -= {"rayelastic_link_credit_waits_total", "rayelastic_link_blocked_seconds_total"}
            missing -= {
                "rayelastic_operator_tuples_answered_by_python_total",
                "rayelastic_operator_tuples_dropped_total",
            }
            missing -= {"rayelastic_pe_gil_wait_seconds_total", "rayelastic_operator_blocked_seconds_total"}
            missing -= {"rayelastic_job_checkpoints_abandoned_total", "rayelastic_job_restarts_total"}
            missing -= {"rayelastic_job_checkpoint_copied_bytes_total"}  # there is one host
            missing -= {"rayelastic_pe_adaptations_total", "rayelastic_pe_adaptations_back_total"}
            missing -= {"rayelastic_pe_trial_seconds_total"}  # a throttled job is left alone
            missing -= {name for name, metric in METRICS.items() if "region" in name and metric.kind is Kind.COUNTER}
            go_on.wait(0.2)
        assert not missing
        out = next(line for line in lines if "operator_tuples_in" in line and 'operator="out"' in line)
        assert float(out.rpartition(" ")[2]) > 0
    finally:
        job.cancel(drain=False)
        job.close()
