"""Elements that don't answer for a while, and coordinators that die when all is done: nothing is lost by that."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import JobCancelledError, JobFailedError
from rayelastic.job import Job, LocalControl, prepare
from rayelastic.runtime.element.host import InProcessHandle, InProcessHost
from rayelastic.runtime.job import job_cluster
from rayelastic.runtime.job.coordinator import Coordinator
from rayelastic.runtime.journal import ChangeJournal
from rayelastic.runtime.remote import Call, Remote, perform
from rayelastic.runtime.values.specs import PESpec
from rayelastic.runtime.values.status import State
from tests.component.runtime.dying_coordinator import bury
from tests.file_store import FileStore
from tests.raising import raises

if TYPE_CHECKING:
    from rayelastic.runtime.element.api import ElementApi

PATIENCE = 60.0


class SilentHandle(InProcessHandle):
    """Doesn't answer for some calls; whether its process is there is known in another way."""

    silent = 0
    alive = True
    asked = threading.Semaphore(0)

    def within(self, timeout: float) -> ElementApi:
        def answer(call: Call) -> Any:
            if self.silent > 0:
                self.silent -= 1
                raise TimeoutError("no answer")
            return perform(self._element, call)

        return cast("ElementApi", Remote(answer))

    def is_alive(self) -> bool:
        self.asked.release()
        return self.alive


class SilentHost(InProcessHost):
    def start_pe(self, spec: PESpec) -> InProcessHandle:
        self._made[spec.pe] = SilentHandle(super().start_pe(spec)._element)
        return self._made[spec.pe]


def gated() -> tuple[rel.Topology, testing.Gate]:
    gate = testing.Gate()
    topology = rel.Topology("silent")
    rows = topology.source(testing.script([(1,), gate, (2,)], {"n": int}), name="rows")
    rows.sink(rel.list(), name="out")
    return topology, gate


def started(
    journal: Path | None = None,
) -> tuple[Job, Coordinator, SilentHost, testing.Gate]:
    topology, gate = gated()
    host = SilentHost()
    kept = None if journal is None else ChangeJournal(FileStore(journal))
    coordinator = Coordinator(prepare(topology), host, journal=kept)
    job = Job("silent", LocalControl(coordinator), topology)
    job._start()
    assert gate.wait_reached(PATIENCE)
    return job, coordinator, host, gate


def test_an_element_that_does_not_answer_but_lives_is_waited_for() -> None:
    job, _, host, gate = started()
    try:
        handle = cast("SilentHandle", host._made["pe0"])
        handle.silent = 3
        for _ in range(3):
            assert handle.asked.acquire(timeout=PATIENCE)
        assert job.status.state is State.RUNNING
        gate.open()
        assert [row.n for row in job.wait(PATIENCE)["out"]] == [1, 2]
    finally:
        job.close()


def test_an_element_that_does_not_answer_and_has_no_process_is_lost() -> None:
    job, _, host, gate = started()
    try:
        handle = cast("SilentHandle", host._made["pe0"])
        handle.alive = False
        handle.silent = 10**6
        with raises(JobFailedError, "pe-lost", "pe0 stopped answering; what was in it is lost"):
            job.wait(PATIENCE)
    finally:
        gate.open()
        job.close()


def test_the_next_coordinator_waits_for_an_element_that_is_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_cluster, "ADOPT_TIMEOUT", 10.0)  # so often is a silent one asked in 30 s
    job, first, host, gate = started(tmp_path / "journal")
    try:
        bury(first)
        second = Coordinator(first._job, host, journal=ChangeJournal(FileStore(tmp_path / "journal")))
        handle = cast("SilentHandle", host._made["pe0"])
        handle.silent = 2
        second.resume()
        assert second.status().state is State.RUNNING
        job = Job("silent", LocalControl(second), gated()[0])
        gate.open()
        assert [row.n for row in job.wait(PATIENCE)["out"]] == [1, 2]
    finally:
        gate.open()
        job.close()


@pytest.mark.parametrize("state", [State.FINISHED, State.CANCELLED])
def test_a_job_that_is_over_stays_so_when_its_coordinator_dies(state: State, tmp_path: Path) -> None:
    job, first, host, gate = started(tmp_path / "journal")
    if state is State.CANCELLED:
        job.cancel()
    gate.open()
    assert first.wait(PATIENCE).state is state
    first._journal.close()
    second = Coordinator(first._job, host, journal=ChangeJournal(FileStore(tmp_path / "journal")))
    second.resume()
    job = Job("silent", LocalControl(second), gated()[0])
    assert job.status.state is state
    if state is State.FINISHED:
        assert [row.n for row in job.wait(PATIENCE)["out"]] == [1, 2]
    else:
        with pytest.raises(JobCancelledError):
            job.wait(PATIENCE)
        assert second._journal.results == {}, "of a job that has finished alone what it left is noted"
    first.close()
