"""When checkpoints are taken, and what is counted of them."""

from __future__ import annotations

import pytest

from rayelastic.errors import StateError
from rayelastic.runtime.checkpoint.loop import CheckpointLoop
from rayelastic.runtime.checkpoint.saving import Taken
from rayelastic.runtime.values.checkpoint_record import CheckpointCounters
from rayelastic.runtime.values.status import State


class Taking:
    """Takes checkpoints, or fails to, as told."""

    def __init__(self) -> None:
        self.state = State.RUNNING
        self.counters = CheckpointCounters()
        self.problem: Exception | None = None
        self.taken: list[int] = []
        self.now = 0.0
        self.loop = CheckpointLoop("job", 2.0, self._take, lambda: self.state, self._counted, clock=lambda: self.now)

    def _take(self) -> Taken:
        self.now += 0.5
        if self.problem is not None:
            raise self.problem
        self.taken.append(len(self.taken) + 1)
        return Taken(self.taken[-1], 0.5, 0.2, 96, "totals", 0.4)

    def _counted(self, now: CheckpointCounters | None) -> CheckpointCounters:
        self.counters = now or self.counters
        return self.counters


def test_what_is_taken_is_counted() -> None:
    one = Taking()
    one.loop.take()
    one.loop.take()
    assert one.taken == [1, 2]
    records = one.counters.recent
    assert one.counters == CheckpointCounters(taken=2, last=2, seconds=0.5, paused=0.2, recent=records)
    assert [(record.number, record.bytes, record.slowest, record.problem) for record in records] == [
        (1, 96, "totals", ""),
        (2, 96, "totals", ""),
    ]


@pytest.mark.parametrize("problem", [StateError("full disk"), TimeoutError("slow"), OSError("gone")])
def test_one_that_is_abandoned_is_counted(problem: Exception) -> None:
    one = Taking()
    one.problem = problem
    one.loop.take()
    assert (one.counters.abandoned, one.counters.problem) == (1, f"{problem}")
    assert [(record.number, record.problem) for record in one.counters.recent] == [(0, f"{problem}")]
    one.problem = None
    one.loop.take()
    assert one.taken == [1]
    assert (one.counters.taken, one.counters.abandoned, one.counters.problem) == (1, 1, "")
    assert one.counters.abandoned_seconds == 0.5


@pytest.mark.parametrize("state", [State.CREATED, State.RECOVERING, State.FINISHED])
def test_none_is_taken_of_a_job_that_does_not_run(state: State) -> None:
    one = Taking()
    one.state = state
    one.loop.take()
    assert one.taken == []


def test_they_come_less_often_where_they_fail_or_sources_stand_still_for_long() -> None:
    one = Taking()
    assert one.loop.wait_before_next() == 1.0  # the first one soon
    one.loop.take()
    assert one.loop.wait_before_next() == 4.0  # 20 times the 0.2 s for which sources stood still
    one.problem = StateError("full disk")
    waits = []
    for _ in range(6):
        one.loop.take()
        waits.append(one.loop.wait_before_next())
    assert waits == [4.0, 8.0, 16.0, 32.0, 32.0, 32.0]
