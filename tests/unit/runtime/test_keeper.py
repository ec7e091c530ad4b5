"""When a coordinator isn't needed any more."""

from __future__ import annotations

import pytest

from rayelastic.runtime.job.keeper import Keeper
from rayelastic.runtime.values.status import State
from rayelastic.testing import FakeClock


@pytest.mark.parametrize(
    ("state", "asked", "gone", "seconds", "needed"),
    [
        (State.CREATED, "status", False, 1e6, True),
        (State.CREATED, "status", True, 0, False),
        (State.CREATED, "start", True, 1e6, True),
        (State.RUNNING, "start", True, 1e6, True),
        (State.FINISHED, "wait", False, 1e6, True),
        (State.FINISHED, "wait", True, 99, True),
        (State.FINISHED, "wait", True, 100, False),
        (State.FAILED, "wait", True, 100, False),
    ],
)
def test_a_coordinator_is_needed_until_nobody_can_ask(
    state: State, asked: str, gone: bool, seconds: float, needed: bool
) -> None:
    clock = FakeClock()
    keeper = Keeper(lambda: state, lambda: gone, lambda: None, linger=100, look=1e9, clock=clock)
    clock.advance(50)
    keeper.asked(asked)
    clock.advance(seconds)
    assert keeper.is_needed() is needed


def test_who_has_been_closed_ends_nothing_any_more() -> None:
    ended: list[bool] = []
    keeper = Keeper(lambda: State.FINISHED, lambda: True, lambda: ended.append(True), linger=0, look=0)
    keeper.asked("close")
    keeper._run()
    assert not ended
