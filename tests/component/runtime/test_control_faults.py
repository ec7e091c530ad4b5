"""Calls of the coordinator are lost, their answers are, whom they go to dies, or who made them (R1, R2); at random.

Checkpoints are taken and replicas come and go meanwhile. Who reads the sink finds each tuple once, in order, with the
state that its key had to have; once nothing goes wrong any more, replicas come and go again, and the job ends. Which
call goes wrong depends on the seed, and on how threads meet.
"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import rayelastic as rel
from rayelastic.errors import ChangeError
from rayelastic.job import prepare
from rayelastic.runtime.element.host import InProcessHost
from rayelastic.runtime.job.coordinator import Coordinator
from rayelastic.runtime.values.status import State
from tests.component.rescale.rescaling import Feed, check, topology_of
from tests.component.runtime.faulty_control import PATIENCE, FaultyJob, Paced, World
from tests.raising import raises

CHANGES = 6
RATES = (0.03, 0.1)  # of calls that go wrong
KEYS, ROWS = 50, 60_000
IN_THE_GATE, NIGHTLY = 5, 500


def survives(seed: int, folder: Path) -> None:
    others = set(threading.enumerate())
    world, feed = World(seed, RATES[seed % len(RATES)]), Paced(KEYS, ROWS)
    faulty = FaultyJob(world, feed, folder)
    try:
        world.armed = True
        for _ in range(CHANGES):
            faulty.rescales(world.dice.randint(1, 3))
            faulty.does(lambda: faulty.job.pause(0.1))
        faulty.rests()
        faulty.changes_still()
        feed.fast.set()
        status = faulty.job.status
        assert not status.state.is_final or status.state is State.FINISHED, status
        check(list(faulty.job.wait(PATIENCE)["out"]), feed)
    finally:
        feed.fast.set()
        faulty.close()
    assert set(threading.enumerate()) <= others, "the next test would hear of these"


@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # how threads of the dead end
@pytest.mark.parametrize(
    "seed", [*range(IN_THE_GATE), *(pytest.param(n, marks=pytest.mark.nightly) for n in range(IN_THE_GATE, NIGHTLY))]
)
def test_nothing_is_lost_or_doubled_whatever_becomes_of_calls(seed: int, tmp_path: Path) -> None:
    survives(seed, tmp_path)


def test_replicas_stay_while_a_job_goes_back(tmp_path: Path) -> None:
    """Between two attempts some of its new elements don't run yet: whoever asks then is told to ask again."""
    feed = Feed(KEYS)
    config = rel.JobConfig(regions="manual", checkpoint=rel.Checkpoint(tmp_path))
    coordinator = Coordinator(prepare(topology_of(feed, "compiled"), config), InProcessHost())
    coordinator.start()
    try:
        coordinator._life.recovers()
        with raises(ChangeError, "job-not-running") as told:
            coordinator.rescale("r1", 2)
        assert "Retry when it runs" in str(told.value)
        coordinator._life.runs_again()
        assert coordinator.rescale("r1", 2).region("r1").replicas == 2
    finally:
        feed.enough.set()
        coordinator.cancel(drain=False)
        coordinator.close()
