"""A process says that memory gets short before it is killed: how much there is, and which operators have most."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from rayelastic.runtime.watch.machine_load import GROUP, GROUPS, memory_in_use

MIB = 1 << 20
LIMIT = 800 * MIB
JOB = """
import sys
import rayelastic as rel
from rayelastic.runtime.watch.event_log import write_events
from rayelastic.runtime.watch.machine_load import memory_in_use

write_events("info", sys.stdout)
topology = rel.Topology("hoards")
numbers = topology.source(rel.sequence(1 << 60), name="numbers").map(lambda t: t.value % 200_000, name="repeated")
numbers.key_by("value").count(name="count").sink(rel.count(), name="out")
job = rel.start(topology)
while job.metrics().operator("count").state_keys < 200_000:
    job.pause(0.01)
ballast = []
while memory_in_use().share < 0.85:
    ballast.append(b"x" * (8 << 20))
for _ in range(2):  # one warning
    assert job.metrics().pes[0].memory_share > 0.8
job.cancel()
"""


def write(folder: Path, **files: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (folder / name.replace("__", ".")).write_text(f"{value}\n")


def group_file(folder: Path, text: str) -> Path:
    file = folder / "group"
    file.write_text(text)
    return file


def test_the_nearest_limit_of_nested_groups_counts(tmp_path: Path) -> None:
    host = psutil.virtual_memory().total
    file = group_file(tmp_path, "0::/jobs/pe\n")
    write(tmp_path / "jobs" / "pe", memory__max="max", memory__current=90, memory__stat="inactive_file 0")
    write(tmp_path / "jobs", memory__max=100, memory__current=120, memory__stat="anon 3\ninactive_file 21")
    write(tmp_path, memory__max=host, memory__current=120, memory__stat="inactive_file 0")
    found = memory_in_use(tmp_path, file)
    assert (found.used, found.limit, found.where) == (99, 100, "control group")


def test_groups_of_version_1_are_read(tmp_path: Path) -> None:
    file = group_file(tmp_path, "5:cpu:/\n4:memory:/pod\n0::/\n")
    files: dict[str, object] = {"memory__limit_in_bytes": 200, "memory__usage_in_bytes": 210}
    write(tmp_path / "memory" / "pod", **files, memory__stat="inactive_file 1\ntotal_inactive_file 12")
    found = memory_in_use(tmp_path, file)
    assert (found.used, found.limit) == (198, 200)


def test_a_host_without_groups_has_its_own_memory(tmp_path: Path) -> None:
    found = memory_in_use(tmp_path, group_file(tmp_path, "0::/gone\n"))
    assert (found.limit, found.where) == (psutil.virtual_memory().total, "host")
    assert 0 < found.share < 1


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group of this machine's kernel with a limit, which a process can enter."""
    version_1 = GROUPS / "memory"
    own = next((line.split(":", 2)[2] for line in GROUP.read_text().splitlines() if ":memory:" in line), "/")
    folder = (version_1 / own.lstrip("/") if version_1.exists() else GROUPS) / f"rayelastic-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"control groups can't be made here: {error}")
    try:
        limit = folder / ("memory.limit_in_bytes" if version_1.exists() else "memory.max")
        if not limit.exists():
            pytest.skip("control groups of this machine don't limit memory")
        limit.write_text(str(LIMIT))
        yield folder
    finally:
        folder.rmdir()


def test_a_job_warns_before_its_control_group_is_full(group: Path) -> None:
    command = f'echo $$ > {group}/cgroup.procs && exec "$@"'
    done = subprocess.run(
        ["sh", "-c", command, "sh", sys.executable, "-c", JOB], capture_output=True, text=True, check=False, timeout=90
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    warnings = [line for line in lines if line["event"] == "memory is short"]
    assert len(warnings) == 1, lines
    assert warnings[0]["used"].endswith(f"of the control group's {LIMIT:,} bytes")
    assert warnings[0]["states"]["count"] > 1e6
    assert warnings[0]["process"] > 0.5 * LIMIT
