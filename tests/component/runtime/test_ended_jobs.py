"""What a job answers once it has ended: what it knows, also twice and in several threads, else a typed error."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import rayelastic as rel
from rayelastic.errors import ChangeError, JobFailedError, PELostError, RayelasticError, StateError
from rayelastic.runtime.values.status import JobMetrics, JobStatus, State
from tests.raising import raises

pytestmark = pytest.mark.edges


def ended() -> rel.Job:
    topology = rel.Topology("ended")
    numbers = topology.source(rel.rows([(n % 3, n) for n in range(99)], {"key": int, "n": int}), name="numbers")
    numbers.key_by("key").aggregate(name="sums", total=rel.sum("n")).sink(rel.list(), name="out")
    job = rel.start(topology)
    job.wait()
    return job


@pytest.mark.parametrize(
    "ask",
    [
        lambda job: job.status.state.value,
        lambda job: job.metrics().operator("out").tuples_in,
        lambda job: job.plan().topology,
        lambda job: sorted(job.describe()),
        lambda job: list(job.adaptations(every_pass=True)),
        lambda job: len(job.wait()["out"]),
        lambda job: job._repr_html_(),
        lambda job: (job.pause(60), job.cancel(), job.close()),
    ],
)
def test_it_answers_what_it_knows_twice(ask: Callable[[rel.Job], Any]) -> None:
    job = ended()
    assert ask(job) == ask(job)


@pytest.mark.parametrize(
    ("error", "ask"),
    [
        (StateError, lambda job, folder: job.snapshot(folder)),
        (StateError, lambda job, folder: job.stop(folder)),
        (StateError, lambda job, folder: job.begin_stop(folder)),
        (StateError, lambda job, folder: job.state("sums").get(1)),
        (StateError, lambda job, folder: job.bottleneck()),
        (ChangeError, lambda job, folder: job.rescale("r1", 2)),
        (ChangeError, lambda job, folder: job.change(job.plan())),
        (ChangeError, lambda job, folder: job.leave("node")),
        (ChangeError, lambda job, folder: job.renew_secret()),
        (ChangeError, lambda job, folder: job.pause_elasticity()),
        (ChangeError, lambda job, folder: job.resume_elasticity()),
        (ChangeError, lambda job, folder: job.feed("numbers", None)),
    ],
)
def test_what_it_cant_do_any_more_is_an_error_that_says_so(
    error: type[RayelasticError], ask: Callable[[rel.Job, Path], Any], tmp_path: Path
) -> None:
    with raises(error, "job-not-running", "'ended'", "finished"):
        ask(ended(), tmp_path / "saved")
    assert not (tmp_path / "saved").exists()


@pytest.mark.parametrize("divisor", [1, 0])
def test_threads_that_wait_at_the_same_time_get_the_same(divisor: int) -> None:
    go_on, got = threading.Event(), list[Any]()
    topology = rel.Topology("waited")
    numbers = topology.source(rel.sequence(10), name="numbers")
    numbers.map(lambda t: go_on.wait() and t.value // divisor, name="whole", lane="python", schema={"value": int}).sink(
        rel.list(), name="out"
    )
    job = rel.start(topology)

    def wait() -> None:
        try:
            got.append(job.wait())
        except JobFailedError as error:
            got.append(str(error))

    threads = [threading.Thread(target=wait) for _ in range(4)]
    for thread in threads:
        thread.start()
    go_on.set()
    for thread in threads:
        thread.join(60)
    assert len(got) == 4
    assert all(one == got[0] for one in got)
    assert ("integer" in got[0]) is (divisor == 0)


def test_a_job_says_that_it_stopped_with_a_savepoint(tmp_path: Path) -> None:
    topology = rel.Topology("endless")
    topology.source(rel.sequence(10**12), name="numbers").sink(rel.count(), name="out")
    job = rel.start(topology)
    where = tmp_path / "saved"
    job.stop(where)
    assert job.status.savepoint == str(where)
    assert job.status.history == f"stopped with a savepoint in {where}"
    assert job.status.history in job._repr_html_()


class GoneOnceClosed:
    """The coordinator of a job on Ray: whoever is first to wait hears of the end and closes it; then it is gone."""

    def __init__(self) -> None:
        self.closed, self._both, self._first = threading.Event(), threading.Event(), threading.Lock()

    def within(self, timeout: float) -> Any:
        assert timeout > 0
        return self

    def wait(self, timeout: float) -> JobStatus:
        if self._first.acquire(blocking=False):
            assert self._both.wait(30)
            return JobStatus("remote", State.FINISHED)
        self._both.set()
        assert self.closed.wait(30)
        raise PELostError("gone")

    def metrics(self) -> JobMetrics:
        return JobMetrics("remote", 1.0, ())

    def adaptations(self, since: object) -> tuple[()]:
        return ()

    def describe(self) -> dict[str, Any]:
        return {}

    def results(self) -> dict[str, Any]:
        assert not self.closed.is_set()
        return {}

    def close(self) -> None:
        self.closed.set()


def test_a_thread_that_waits_while_another_closes_the_job_gets_the_result() -> None:
    job = rel.Job("remote", GoneOnceClosed())
    with ThreadPoolExecutor(2) as threads:
        first, second = (threads.submit(job.wait) for _ in range(2))
        assert first.result(60) is second.result(60)
