"""The actor shells: calls and their errors, loss of a process, jobs found by name; no leftovers."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from rayelastic.errors import (
    JobExistsError,
    JobNotFoundError,
    LinkError,
    PELostError,
    RayUnreachableError,
    UnavailableError,
)
from rayelastic.on_ray import ray_host as ray_host_module
from rayelastic.on_ray import spares as spares_module
from rayelastic.on_ray.calls import answer
from rayelastic.on_ray.connect import ensure_ray
from rayelastic.on_ray.jobs import (
    RayControl,
    find_coordinator,
    list_jobs,
    start_coordinator,
)
from rayelastic.on_ray.ray_host import PlacementSettings, RayHandle, RayHost
from rayelastic.on_ray.spares import Spares
from rayelastic.runtime.remote import Call
from rayelastic.runtime.values.status import State
from tests.cluster.plain_objects import (
    COORDINATOR_PATH,
    PE_PATH,
    PlainJob,
    PlainSpec,
    coordinator_at,
    element_at,
)
from tests.raising import raises

pytestmark = pytest.mark.cluster
START = 60.0  # seconds; a worker process takes one, on a busy machine many more
NOTICED = 5.0  # seconds in which a killed process has to be noticed


def test_no_ray_at_the_address(no_ray: None) -> None:
    with raises(RayUnreachableError, "ray-unreachable", "127.0.0.1", "Ray"):
        ensure_ray("127.0.0.1:1")


@pytest.fixture
def handle(ray_cluster: str) -> Iterator[RayHandle]:
    made = RayHost(PlacementSettings(0.25, pe_class=PE_PATH)).start_pe(PlainSpec("pe0"))  # type: ignore[arg-type]
    yield made
    made.kill()


@pytest.fixture
def control(ray_cluster: str, request: pytest.FixtureRequest) -> Iterator[RayControl]:
    made = start_coordinator(PlainJob(request.node.name), pe_class=PE_PATH, coordinator_class=COORDINATOR_PATH)  # type: ignore[arg-type]
    yield made
    made.close()


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def wait_until_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + NOTICED
    while any(is_alive(pid) for pid in pids):
        assert time.monotonic() < deadline, "a process was left behind"


def call_until_lost(control: RayControl) -> None:
    """A kill takes a moment to arrive; calls are answered until then."""
    deadline = time.monotonic() + NOTICED
    while time.monotonic() < deadline:
        coordinator_at(control, START).status()


def ask_until_lost(handle: RayHandle) -> None:
    deadline = time.monotonic() + NOTICED
    while time.monotonic() < deadline:
        element_at(handle, START).about()


def test_calls_answers_and_errors(handle: RayHandle, ray_cluster: str) -> None:
    pe, host, pid = element_at(handle, START).about()
    assert (pe, host) == ("pe0", ray_cluster)
    assert pid != os.getpid()
    with raises(LinkError, "link-failed", "a->b") as caught:
        element_at(handle, START).fail()
    assert caught.value.link == "a->b"
    with pytest.raises(AttributeError, match="_private is not a public method"):
        answer(handle.actor.call.remote(Call("_private")), "it", "_private", START)
    with pytest.raises(TimeoutError, match="'pe0' didn't answer 'wait'"):
        element_at(handle, 0.1).wait(10.0)
    element_at(handle, START).set()  # other calls run while one waits
    handle.kill()
    with raises(PELostError, "pe-lost", "pe0"):
        ask_until_lost(handle)
    handle.kill()
    wait_until_gone([pid])


def test_element_that_cannot_be_made_says_why(ray_cluster: str) -> None:
    handle = RayHost(PlacementSettings(0.25, pe_class=PE_PATH)).start_pe(PlainSpec("broken"))  # type: ignore[arg-type]
    with raises(PELostError, "pe-lost"):
        element_at(handle, START).about()
    handle.kill()


def test_element_without_a_place_says_what_there_is(ray_cluster: str) -> None:
    handle = RayHost(PlacementSettings(64, pe_class=PE_PATH)).start_pe(PlainSpec("wide"))  # type: ignore[arg-type]
    with raises(UnavailableError, "no-room", "wide", "CPUs"):
        element_at(handle, 2.0).about()
    handle.kill(at_once=True)


def test_killed_process_is_noticed(control: RayControl) -> None:
    pids = coordinator_at(control, START).start()
    os.kill(pids["pe1"], signal.SIGKILL)
    killed = time.monotonic()
    reason = coordinator_at(control, START).wait_for_loss(START)
    assert time.monotonic() - killed < NOTICED
    assert "PE 'pe1' is gone" in reason
    assert coordinator_at(control, START).status().state is State.FAILED
    control.close()
    wait_until_gone(list(pids.values()))


def test_coordinator_that_dies_takes_its_elements_along(control: RayControl) -> None:
    import ray

    pids = coordinator_at(control, START).start()
    ray.kill(control._actor)
    with raises(PELostError, "pe-lost"):
        call_until_lost(control)
    wait_until_gone(list(pids.values()))


def test_a_process_that_is_made_ready_for_a_node_is_taken_there_and_one_that_has_died_is_not(
    ray_cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    for name in ("LOOK_TIMEOUT", "START_TIMEOUT"):  # which are taken is tested here, on machines of any speed
        monkeypatch.setattr(spares_module, name, START)
    here, host, made = socket.gethostname(), RayHost(PlacementSettings(0.25, pe_class=PE_PATH)), list[str]()

    def make(node: str) -> Any:
        made.append(node)
        return host._actor(None, node)

    host._spares = spares = Spares(make)
    handles = []
    try:
        spares.keep(1, here)
        spares.keep(1)  # there is one
        assert made == [here]
        handles.append(host.start_pe(PlainSpec("pe0", here)))  # type: ignore[arg-type]  # it may start still
        assert spares._waiting == []
        assert element_at(handles[0], START).about()[0] == "pe0"
        spares.keep(1)
        answer(spares._waiting[0][1].about.remote(), "a spare", "about", START)
        spares.keep(1, here)
        assert [node for node, _ in spares._waiting] == [here], "that is where it has started"
        assert made == [here, ""]
        ray.kill(spares._waiting[0][1])
        handles.append(host.start_pe(PlainSpec("pe1", here)))  # type: ignore[arg-type]
        assert spares._waiting == []
        assert element_at(handles[1], START).about()[0] == "pe1"
    finally:
        host.close()
        for handle in handles:
            handle.kill()


def ask_spare_until_lost(spare: RayHandle) -> NoReturn:
    while True:
        answer(spare.actor.about.remote(), "a spare", "about", START)


def die(spare: RayHandle) -> None:
    spare.kill(at_once=True)
    with pytest.raises(PELostError):
        ask_spare_until_lost(spare)


def pid_of(spare: RayHandle) -> int:
    return int(answer(spare.actor.__ray_call__.remote(lambda _: os.getpid()), "a spare", "getpid", START))


def get_stuck(spare: RayHandle) -> None:
    os.kill(pid_of(spare), signal.SIGSTOP)


class BadSpares(Spares):
    """Spares whose first one comes to harm behind its last answer, before it is told what to host."""

    harm: Callable[[RayHandle], None]
    harmed = 0

    def take(self, node: str) -> Any:
        spare = super().take(node)
        if spare is not None and not self.harmed:
            self.harmed += 1
            self.harm(RayHandle("the spare", spare))
        return spare


@pytest.mark.parametrize("harm", [die, get_stuck])
def test_a_spare_that_cannot_host_is_no_loss(
    harm: Callable[[RayHandle], None], ray_cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_host_module, "HOST_TIMEOUT", 1.0)
    host, handles = RayHost(PlacementSettings(0.25, pe_class=PE_PATH)), []
    host._spares = spares = BadSpares(lambda node: host._actor(None, node))
    spares.harm = harm
    try:
        spares.keep(1)
        pid = pid_of(RayHandle("the spare", spares._waiting[0][1]))
        handles.append(host.start_pe(PlainSpec("pe0")))  # type: ignore[arg-type]
        assert spares.harmed == 1
        assert element_at(handles[0], START).about()[0] == "pe0"
        wait_until_gone([pid])
    finally:
        host.close()
        for handle in handles:
            handle.kill()


ATTACH = """
import sys
from rayelastic.on_ray.jobs import find_coordinator, list_jobs
control = find_coordinator(sys.argv[1], address=sys.argv[2])
print(control.within(30).status().state.value, [job.name for job in list_jobs()])
control.close()
"""


def test_other_driver_finds_the_job_by_name_and_ends_it(control: RayControl, request: pytest.FixtureRequest) -> None:
    import ray

    pids = coordinator_at(control, START).start()
    name = request.node.name
    address = ray.get_runtime_context().gcs_address
    done = subprocess.run(
        [sys.executable, "-c", ATTACH, name, address], capture_output=True, text=True, timeout=START, check=False
    )
    assert done.stdout.split("\n")[0] == f"running ['{name}']", done.stderr
    wait_until_gone(list(pids.values()))
    with raises(JobNotFoundError, "unknown-job"):
        find_coordinator(name)
    assert list_jobs() == []


def test_name_of_a_running_job_is_taken_and_of_an_ended_one_is_free(control: RayControl) -> None:
    job = PlainJob(control._job)
    pids = coordinator_at(control, START).start()
    with raises(JobExistsError, "job-exists"):
        start_coordinator(job, coordinator_class=COORDINATOR_PATH)  # type: ignore[arg-type]
    os.kill(pids["pe0"], signal.SIGKILL)
    coordinator_at(control, START).wait_for_loss(START)
    start_coordinator(job, pe_class=PE_PATH, coordinator_class=COORDINATOR_PATH).close()  # type: ignore[arg-type]


def test_secret_is_not_shown() -> None:
    job = PlainJob("a", secret=b"s3cret")
    assert "s3cret" not in repr(job)
    assert pickle.loads(pickle.dumps(job)) == job
