"""When checkpoints are taken, and what is counted of them."""

from __future__ import annotations

import pytest

import rayelastic as rel
from rayelastic.errors import StateError
from rayelastic.runtime.checkpoint.loop import CheckpointLoop
from rayelastic.runtime.checkpoint.protocol import Schedule
from rayelastic.runtime.values.checkpoint_record import CheckpointCounters, CheckpointRecord
from rayelastic.runtime.values.status import State

SCHEDULE = Schedule(rel.Checkpoint(every=2.0))


class Taking:
    """Takes checkpoints, or fails to, as told."""

    def __init__(self) -> None:
        self.state = State.RUNNING
        self.checkpoints = CheckpointCounters()
        self.problem: Exception | None = None
        self.taken: list[int] = []
        self.now = 0.0
        self.loop = CheckpointLoop("job", SCHEDULE, self._take, self)

    @property
    def seconds(self) -> float:
        return self.now

    def _take(self) -> CheckpointRecord:
        self.now += 0.5
        if self.problem is not None:
            raise self.problem
        self.taken.append(len(self.taken) + 1)
        return CheckpointRecord(self.taken[-1], 0.0, 0.5, 0.2, 96, "totals", 0.4)


def test_what_is_taken_is_counted() -> None:
    one = Taking()
    one.loop.take()
    one.loop.take()
    assert one.taken == [1, 2]
    records = one.checkpoints.recent
    assert one.checkpoints == CheckpointCounters(taken=2, last=2, seconds=0.5, paused=0.2, recent=records)
    assert [(record.number, record.bytes, record.slowest, record.problem) for record in records] == [
        (1, 96, "totals", ""),
        (2, 96, "totals", ""),
    ]


@pytest.mark.parametrize("problem", [StateError("full disk"), TimeoutError("slow"), OSError("gone")])
def test_one_that_is_abandoned_is_counted(problem: Exception) -> None:
    one = Taking()
    one.problem = problem
    one.loop.take()
    assert (one.checkpoints.abandoned, one.checkpoints.problem) == (1, f"{problem}")
    assert [(record.number, record.problem) for record in one.checkpoints.recent] == [(0, f"{problem}")]
    one.problem = None
    one.loop.take()
    assert one.taken == [1]
    assert (one.checkpoints.taken, one.checkpoints.abandoned, one.checkpoints.problem) == (1, 1, "")
    assert one.checkpoints.abandoned_seconds == 0.5


@pytest.mark.parametrize("state", [State.CREATED, State.RECOVERING, State.FINISHED])
def test_none_is_taken_of_a_job_that_does_not_run(state: State) -> None:
    one = Taking()
    one.state = state
    one.loop.take()
    assert one.taken == []


def test_they_come_less_often_where_they_fail_or_sources_stand_still_for_long() -> None:
    assert SCHEDULE.wait(CheckpointCounters(), 0) == 1.0  # the first one soon
    counters = CheckpointCounters(taken=1, paused=0.2)
    assert SCHEDULE.wait(counters, 0) == 4.0  # 20 times the 0.2 s for which sources stood still
    assert [SCHEDULE.wait(counters, failed) for failed in range(1, 7)] == [4.0, 8.0, 16.0, 32.0, 32.0, 32.0]


def test_a_requested_one_comes_at_once_unless_they_fail_or_sources_stand_still() -> None:
    assert SCHEDULE.wait(CheckpointCounters(), 0, asked=True) == 0.0
    assert SCHEDULE.wait(CheckpointCounters(taken=1, paused=0.2), 0, asked=True) == 0.4
    assert [SCHEDULE.wait(CheckpointCounters(), failed, asked=True) for failed in (1, 2, 9)] == [1.0, 3.0, 16.0]
