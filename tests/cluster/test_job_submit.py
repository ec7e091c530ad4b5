"""`ray job submit` against a cluster with token authentication: it succeeds, stops in order, and leaves nothing."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyarrow.parquet as parquet
import pytest

ROOT = Path(__file__).resolve().parents[2]
START_TIMEOUT = 120.0  # seconds
JOB_TIMEOUT = 150.0  # seconds
pytestmark = [pytest.mark.cluster, pytest.mark.nightly]  # half a minute: two drivers, a dashboard, a job agent


def free_port() -> int:
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])


@dataclass(frozen=True, slots=True)
class Head:
    """A head node of its own, as `ray start --head` makes it."""

    environment: dict[str, str]
    dashboard: str

    def ray(self, *arguments: str, token: str | None = None) -> subprocess.CompletedProcess[str]:
        environment = {**self.environment, **({"RAY_AUTH_TOKEN": token} if token else {})}
        return subprocess.run(
            [sys.executable, "-m", "ray.scripts.scripts", *arguments], env=environment, cwd=ROOT, check=False,
            capture_output=True, text=True, timeout=JOB_TIMEOUT,
        )  # fmt: skip

    def submit(
        self, *options: str, command: Sequence[str], token: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        return self.ray("job", "submit", "--address", self.dashboard, *options, "--", *command, token=token)

    def left(self) -> list[str]:
        """Actors that still live, as the cluster says."""
        listed = self.ray("list", "actors", "--address", self.dashboard, "--filter", "state=ALIVE", "--format", "json")
        assert listed.returncode == 0, listed.stderr
        return [listed.stdout] if '"class_name"' in listed.stdout else []


@pytest.fixture(scope="module")
def head() -> Iterator[Head]:
    with tempfile.TemporaryDirectory(prefix="rj-") as folder:
        port, dashboard = free_port(), free_port()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        environment |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16), "RAY_TMPDIR": folder}
        made = Head(environment, f"http://127.0.0.1:{dashboard}")
        started = made.ray(
            "start", "--head", f"--port={port}", f"--dashboard-port={dashboard}", f"--temp-dir={folder}",
            f"--dashboard-agent-listen-port={free_port()}", f"--ray-client-server-port={free_port()}", "--num-cpus=4",
            "--node-ip-address=127.0.0.1", "--disable-usage-stats",
        )  # fmt: skip
        assert started.returncode == 0, started.stdout + started.stderr
        try:
            yield made
        finally:
            own = [one for one in psutil.process_iter() if _of(one, folder)]
            for process in own:
                process.kill()
            psutil.wait_procs(own, timeout=20)


def _of(process: psutil.Process, folder: str) -> bool:
    """Whether a process belongs to the Ray of a folder."""
    try:
        return process.environ().get("RAY_TMPDIR") == folder
    except psutil.Error:
        return False


def shared_memory() -> set[str]:
    return {path.name for path in Path("/dev/shm").iterdir()}


def nothing_is_left(head: Head, before: set[str]) -> None:
    waited, until = threading.Event(), time.monotonic() + 20
    while (left := head.left()) and time.monotonic() < until:
        waited.wait(0.5)
    assert not left
    assert not [name for name in shared_memory() - before if name.startswith("rayelastic")]


def test_a_job_succeeds_and_leaves_nothing(head: Head, tmp_path: Path) -> None:
    text, output, before = tmp_path / "text.txt", tmp_path / "counts", shared_memory()
    text.write_text("".join(f"word{n % 97} and a-longer-word-{n % 13}\n" for n in range(20_000)))
    variables = f'{{"env_vars": {{"INPUT": "{text}", "OUTPUT": "{output}", "PES": "2"}}}}'
    example = [sys.executable, "examples/word_count_job.py"]
    done = head.submit("--working-dir", ".", "--runtime-env-json", variables, command=example)
    assert "succeeded" in done.stdout, done.stdout + done.stderr
    table = parquet.read_table(output)
    counted = dict(zip(table["word"].to_pylist(), table["n"].to_pylist(), strict=True))
    assert counted == Counter(text.read_text().split())
    nothing_is_left(head, before)


def test_own_modules_variables_and_prints_reach_and_leave_the_processes(head: Head, tmp_path: Path) -> None:
    (tmp_path / "mylib.py").write_text(
        "import logging, os\n"
        "def enrich(t):\n"
        "    print('printed for', t.n)\n"
        "    logging.getLogger('mylib').warning('warned for %s', t.n)\n"
        "    logging.getLogger('mylib').info('no word for %s', t.n)\n"
        "    return t.n, os.environ.get('API_KEY', 'none')\n"
    )
    (tmp_path / "job.py").write_text(
        "import rayelastic as rel\n"
        "from mylib import enrich\n"
        "topology = rel.Topology('enriched')\n"
        "rows = topology.source(rel.rows([(7,)], {'n': int}), name='rows')\n"
        "rows.map(enrich, name='enrich', schema={'n': int, 'key': str}, lane='python').sink(rel.list(), name='out')\n"
        "print([tuple(t) for t in rel.submit(topology).wait()['out']])\n"
    )
    variables = '{"env_vars": {"API_KEY": "k1"}}'
    command = [sys.executable, "job.py"]
    done = head.submit("--working-dir", str(tmp_path), "--runtime-env-json", variables, command=command)
    assert "[(7, 'k1')]" in done.stdout, done.stdout + done.stderr
    shown = [line for line in done.stdout.splitlines() if "PEActor" in line]
    assert [line for line in shown if "printed for 7" in line]
    assert [line for line in shown if "warned for 7" in line]
    assert "no word for" not in done.stdout


def test_a_job_that_is_stopped_drains_and_leaves_nothing(head: Head, tmp_path: Path) -> None:
    script, counted, before = tmp_path / "endless.py", tmp_path / "counted.txt", shared_memory()
    script.write_text(
        "import json, pathlib\n"
        "import rayelastic as rel\n"
        "from rayelastic.errors import JobCancelledError\n"
        "topology = rel.Topology('endless')\n"
        "numbers = topology.source(rel.generate(lambda n: n, None, schema={'n': int}), name='numbers')\n"
        "numbers.map(lambda t: t.n, name='same', schema={'n': int}).sink(rel.count(), name='out')\n"
        "job = rel.submit(topology)\n"
        "job.drain_on_stop()\n"
        "print('it runs', flush=True)\n"
        "try:\n"
        "    job.wait()\n"
        "except JobCancelledError:\n"
        "    metrics = job.metrics()\n"
        "    counts = metrics.operator('numbers').tuples_out, metrics.operator('out').tuples_in\n"
        f"    pathlib.Path({str(counted)!r}).write_text(json.dumps(counts))\n"
    )
    submitted = head.submit("--no-wait", "--submission-id", "endless", command=[sys.executable, str(script)])
    assert submitted.returncode == 0, submitted.stdout + submitted.stderr
    waited, until = threading.Event(), time.monotonic() + JOB_TIMEOUT
    while "it runs" not in head.ray("job", "logs", "--address", head.dashboard, "endless").stdout:
        assert time.monotonic() < until
        waited.wait(0.5)
    stopped = head.ray("job", "stop", "--address", head.dashboard, "endless")
    assert stopped.returncode == 0, stopped.stdout + stopped.stderr
    while not counted.exists():
        assert time.monotonic() < until
        waited.wait(0.2)
    sent, arrived = json.loads(counted.read_text())
    assert sent == arrived > 0
    nothing_is_left(head, before)


def test_without_the_token_nothing_is_started(head: Head) -> None:
    refused = head.submit(command=["true"], token="f" * 32)
    assert refused.returncode != 0
    assert "401" in refused.stdout + refused.stderr or "oken" in refused.stdout + refused.stderr
