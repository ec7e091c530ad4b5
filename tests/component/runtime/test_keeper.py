"""A coordinator ends by itself once nobody needs it, and not once it has been closed."""

from __future__ import annotations

import threading

from rayelastic.runtime.job.keeper import Keeper
from rayelastic.runtime.values.status import State

PATIENCE = 30.0  # seconds


def test_it_ends_when_nobody_needs_it() -> None:
    ended = threading.Event()
    Keeper(lambda: State.FAILED, lambda: True, ended.set, linger=0.0, look=0.001).start()
    assert ended.wait(PATIENCE)


def test_one_that_is_closed_looks_no_more() -> None:
    needed, looks, ends = threading.Event(), threading.Semaphore(0), []

    def has_gone() -> bool:
        looks.release()
        return not needed.is_set()

    needed.set()
    keeper = Keeper(lambda: State.FINISHED, has_gone, lambda: ends.append(1), linger=0.0, look=0.001)
    before = set(threading.enumerate())
    keeper.start()
    thread = next(thread for thread in threading.enumerate() if thread not in before)
    assert looks.acquire(timeout=PATIENCE)
    keeper.asked("close")
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert ends == []
