"""What remains of a checkpoint that fails, and how often a job restarts from one."""

from __future__ import annotations

import pytest

import rayelastic as rel
from rayelastic.runtime.checkpoint.protocol import Kind, remains
from rayelastic.runtime.checkpoint.restarts import FIRST_PAUSE, Restarts
from rayelastic.runtime.values.failure import Failure

AWAY = Failure("connection refused", "out", outage=True)


@pytest.mark.parametrize(("kind", "resumed", "stays"), [
    (Kind.CHECKPOINT, True, True),  # the next coordinator may restore it
    (Kind.CHECKPOINT, False, True),
    (Kind.SAVEPOINT, True, False),  # its caller gets an error
    (Kind.SAVEPOINT, False, False),
    (Kind.STOP, True, False),
    (Kind.STOP, False, True),  # the next coordinator may end the job there
])  # fmt: skip
def test_what_may_be_recorded_as_complete_stays_while_somebody_may_rely_on_it(
    kind: Kind, resumed: bool, stays: bool
) -> None:
    assert remains(kind, resumed=resumed) is stays


def test_restarts_count_within_ten_minutes() -> None:
    restarts = Restarts(rel.Checkpoint(restarts=2))
    restarts.count(0.0)
    assert not restarts.is_too_often(1.0)
    restarts.count(1.0)
    assert restarts.is_too_often(599.0)
    assert not restarts.is_too_often(601.0)


def test_losses_without_a_checkpoint_between_are_in_vain() -> None:
    restarts = Restarts(rel.Checkpoint(restarts=6))
    assert [restarts.is_in_vain(taken) for taken in (0, 0, 1, 1, 1)] == [False, False, False, False, True]


def test_an_outage_lasts_until_a_checkpoint_is_complete() -> None:
    restarts = Restarts(rel.Checkpoint(outage_timeout=10.0))
    assert restarts.fails_outside(AWAY, 3, 0.0, 100.0)
    assert restarts.runs(4.0) == 4.0
    assert not restarts.fails_outside(AWAY, 3, 5.0, 105.0), "the same outage: no checkpoint was complete"
    outage = restarts.outage
    assert outage is not None
    assert (outage.since, outage.attempts, outage.pause) == (100.0, 1, FIRST_PAUSE)
    assert not restarts.is_over_budget(10.9)
    assert restarts.is_over_budget(11.0), "4 s before, 6 s now"
    assert restarts.runs(11.0) == 10.0
    assert restarts.fails_outside(AWAY, 4, 20.0, 120.0), "a checkpoint was complete"
    assert restarts.waited(20.0) == 0.0
