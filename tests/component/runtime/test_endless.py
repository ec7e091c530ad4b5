"""Functions that never return: whatever ends a job ends it within seconds, and says which operator it was."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import rayelastic as rel
from rayelastic.errors import JobCancelledError, JobFailedError
from tests.raising import raises

pytestmark = pytest.mark.untraced

PATIENCE = 60.0
SECONDS = 10.0  # within which a job ends, on a busy machine
inside, release = threading.Event(), threading.Event()


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    inside.clear()
    release.clear()
    yield
    release.set()  # who was left behind comes back


def waits(t: Any) -> int:  # in a lock, as a request without time-out does in a socket
    inside.set()
    release.wait()
    return int(t.n)


def spins(t: Any) -> int:
    inside.set()
    while not release.is_set():
        pass
    return int(t.n)


def job_of(function: Callable[[Any], int], **config: Any) -> rel.Job:
    topology = rel.Topology("endless")
    numbers = topology.source(rel.sequence(1000), name="numbers")
    stream = numbers.map(lambda t: t.value, name="named", schema={"n": int}, lane="python")
    stream.map(function, name="endless", schema={"n": int}, lane="python").sink(rel.list(), name="out")
    job = rel.start(topology, rel.JobConfig(**config))
    assert inside.wait(PATIENCE)
    return job


def close(job: rel.Job) -> None:
    job.close()


def cancel(job: rel.Job) -> None:
    job.cancel(drain=False)
    with pytest.raises(JobCancelledError):
        job.wait(PATIENCE)


@pytest.mark.parametrize("end", [close, cancel])
@pytest.mark.parametrize("config", [{}, {"pes": {"numbers": 0, "endless": 1}}])
def test_a_function_that_waits_is_left_behind_and_named(end: Callable[[rel.Job], None], config: dict[str, Any]) -> None:
    job, since = job_of(waits, **config), time.monotonic()
    with pytest.warns(RuntimeWarning, match="job 'endless': operator 'endless' doesn't return") as told:
        end(job)
    assert time.monotonic() - since < SECONDS
    assert len([one for one in told if "doesn't return" in str(one.message)]) == 1


@pytest.mark.parametrize("end", [close, cancel])
def test_a_loop_without_end_is_interrupted(end: Callable[[rel.Job], None]) -> None:
    job, since = job_of(spins), time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        end(job)
    assert time.monotonic() - since < SECONDS
    assert not [thread for thread in threading.enumerate() if thread.name == "stop"]


def test_a_failure_elsewhere_is_told_though_a_function_waits() -> None:
    def given() -> Iterator[tuple[int]]:
        yield (0,)
        assert inside.wait(PATIENCE)
        yield (1,)

    topology = rel.Topology("endless")
    numbers = topology.source(rel.callable(given, schema={"n": int}), name="numbers")
    numbers.map(waits, name="endless", schema={"n": int}, lane="python").sink(rel.list(), name="out")
    numbers.map(lambda t: 1 // (1 - t.n), name="fails", schema={"n": int}, lane="compiled").sink(
        rel.list(), name="other"
    )
    job = rel.start(topology, rel.JobConfig(threads=rel.Threads(model="dedicated")))
    with (
        pytest.warns(RuntimeWarning, match="operator 'endless'"),
        raises(JobFailedError, "function-raised", "operator 'fails'", operator="fails"),
    ):
        job.wait(PATIENCE)


PROGRAM = """
import sys, threading
import rayelastic as rel

def spin(t):
    print("inside", flush=True)
    while True:
        pass

def wait(t):
    print("inside", flush=True)
    threading.Event().wait()

topology = rel.Topology("endless")
numbers = topology.source(rel.sequence(10), name="numbers")
numbers.map({function}, name="endless", schema={{"n": int}}, lane="python").sink(rel.list(), name="out")
{end}
"""
RUN = "rel.run(topology)"
EXIT = "rel.start(topology)\nsys.stdin.readline()\nsys.exit(3)"


@pytest.mark.parametrize("function", ["spin", "wait"])
@pytest.mark.parametrize("end", [RUN, EXIT], ids=["ctrl-c", "exit"])
def test_ctrl_c_and_exit_end_the_process(function: str, end: str) -> None:
    program = [sys.executable, "-c", PROGRAM.format(function=function, end=end)]
    pipe = subprocess.PIPE
    with subprocess.Popen(program, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "inside\n"
            if end == RUN:
                process.send_signal(signal.SIGINT)
                _, told = process.communicate(timeout=3 * SECONDS)
                assert "KeyboardInterrupt" in told
                assert process.returncode == -signal.SIGINT
            else:
                _, told = process.communicate("\n", timeout=3 * SECONDS)
                assert process.returncode == 3, told
        finally:
            process.kill()
    assert ("operator 'endless' doesn't return" in told) == (function == "wait")
