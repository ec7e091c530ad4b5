"""Other users of the host, and other programs of the cluster: what they can't read, replace or end."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

import rayelastic as rel
from rayelastic.errors import JobOwnerError, StateError
from rayelastic.on_ray import jobs
from rayelastic.on_ray.connect import NAMESPACE
from rayelastic.on_ray.private import adapter
from rayelastic.runtime.values.specs import user_name
from tests.neighbour import as_root, stranger
from tests.raising import raises

pytestmark = pytest.mark.cluster

DRIVER = """
import rayelastic as rel
from rayelastic.on_ray.cluster import logs_folder
topology = rel.Topology("private")
def shown(t):
    print("a secret row", flush=True)
    return t.value
topology.source(rel.sequence(2)).map(shown, schema={"n": int}, lane="python").sink(rel.count(), name="out")
print("counted", rel.submit(topology, address="local").wait()["out"], flush=True)
print("logs", logs_folder(), flush=True)
"""


@pytest.fixture
def open_home() -> Iterator[Path]:
    """A home folder that other users may enter, as many hosts have."""
    folder = Path(f"/tmp/rel-home-{os.getpid()}")
    folder.mkdir()
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@as_root
@pytest.mark.timeout(400)
def test_another_user_of_the_host_reads_neither_token_nor_logs(no_ray: None, open_home: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    environment |= {"HOME": str(open_home), "RAY_TMPDIR": str(open_home)}
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as driver:
        assert driver.stdout is not None
        found = dict(line.split() for line in driver.stdout if len(line.split()) == 2)
    assert found["counted"] == "2"
    logs = Path(found["logs"])
    assert any("a secret row" in path.read_text(errors="replace") for path in logs.iterdir() if path.is_file())
    for command in (
        ("cat", str(open_home / ".ray" / "auth_token")),
        ("ls", str(logs)),
        ("mv", str(logs), f"{logs}-replaced"),
        ("ls", str(logs.parent / "sockets")),
    ):
        assert "Permission denied" in stranger(*command).stderr, command


def endless(name: str) -> rel.Topology:
    topology = rel.Topology(name)
    topology.source(rel.generate(lambda n: n, None, schema={"n": int})).throttle(100).sink(rel.count(), name="out")
    return topology


class Planted:
    """Leaves a file behind where it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (os.mkdir, (self.path,))


def test_what_another_program_puts_into_rays_store_is_not_unpickled(ray_cluster: str, tmp_path: Path) -> None:
    import ray

    before = set(adapter.kv_keys("job:", NAMESPACE))
    job = rel.submit(endless("replaced"))
    (entry,) = set(adapter.kv_keys("job:", NAMESPACE)) - before
    adapter.kv_put(entry, cloudpickle.dumps(Planted(str(tmp_path / "planted"))), NAMESPACE)
    ray.kill(ray.get_actor(jobs.PREFIX + "replaced", namespace=NAMESPACE), no_restart=False)
    with raises(StateError, "changed-job", "was replaced"):
        job.wait(timeout=100)
    assert not (tmp_path / "planted").exists()
    job.close()


def test_a_job_of_another_user_is_changed_and_replaced_by_who_names_its_owner(
    ray_cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = user_name()
    job = rel.submit(endless("mine"))
    assert job.status.owner == me
    monkeypatch.setattr(jobs, "user_name", lambda: "a neighbour")
    for named in (None, "nobody there"):
        with raises(JobOwnerError, "foreign-job", f"was started by '{me}'"):
            rel.attach("mine", owner=named)
    seen = rel.job.view("mine")
    assert seen.plan().regions
    for change in (seen.cancel, seen.pause_elasticity, seen.close):
        with raises(JobOwnerError, "foreign-job"):
            change()
    rel.attach("mine", owner=me).cancel(drain=False)
    assert job._control.within(100).wait(90.0).state.is_final
    with raises(JobOwnerError, "foreign-job", "was started by"):
        rel.submit(endless("mine"))
    rel.attach("mine", owner=me).close()
    again = rel.submit(endless("mine"))
    monkeypatch.undo()
    again.close()


@as_root
def test_the_name_of_a_user_is_that_of_the_process() -> None:
    program = "import os; from rayelastic.runtime.values.specs import user_name; os.setuid(65534); print(user_name())"
    environment = os.environ | {"USER": "root", "LOGNAME": "root"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "nobody"
