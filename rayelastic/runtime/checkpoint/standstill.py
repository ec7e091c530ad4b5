"""Brings a job to one moment of its streams: its sources are held, their tuples are processed, then all is held.

Elements may feed each other, as around a replicated region, so none is first. Tuples flow until each link has delivered
all its input; then all operators are held. A tuple may still be in flight, as from a timer, or be stuck because the
other end of a link was already held. Then all but the sources are released for a while. Knows elements by their
handles.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Protocol, TypeVar

from rayelastic.errors import ErrorCode, StateError
from rayelastic.runtime.checkpoint.protocol import is_empty
from rayelastic.runtime.rounds import ask_all, tell_all

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rayelastic.runtime.checkpoint.element import ElementCheckpoint
    from rayelastic.runtime.values.status import PEStatus

LOOK = 0.005  # seconds between two checks for tuples in flight
FIRST_TURN = 0.05  # seconds to hold all operators in; as many between two tries
MOST_TURN = 1.0
ANSWER_TIMEOUT = 10.0  # seconds for an answer beyond the time of the requested action


T = TypeVar("T")


class Element(Protocol):
    """A PE, as the taker of checkpoints knows it; see ElementApi. Calls may raise PELostError and TimeoutError."""

    @property
    def checkpoint(self) -> ElementCheckpoint:
        """Its part of checkpoints."""
        ...

    def status(self) -> PEStatus:
        """Return its state."""
        ...


class Handle(Protocol):
    """A PE in any process; see PEHandle."""

    @property
    def pe(self) -> str:
        """The id of the PE."""
        ...

    def within(self, timeout: float) -> Element:
        """Return the PE; each call waits so many seconds for its answer."""
        ...


class Standstill:
    """The elements of a job, held at one moment.

    Args:
        job: The job's name, for messages.
        handles: All elements, by id.
        patience: Seconds for tuples in flight to be processed.
    """

    def __init__(self, job: str, handles: Mapping[str, Handle], patience: float) -> None:
        self._busy = f"job '{job}' didn't process its queued tuples within {patience:g} s"
        self._handles = handles
        self._patience = patience

    def begin(self) -> None:
        """Hold all elements.

        Raises:
            StateError: Tuples in flight aren't processed in time, or can't be saved; the message names the operator.
        """
        until, turn, pause = time.monotonic() + self._patience, FIRST_TURN, threading.Event()
        self._ask(lambda element: element.checkpoint.hold_sources(), self._patience)
        while True:
            while not is_empty(self._ask(lambda element: element.checkpoint.flow(), ANSWER_TIMEOUT)):
                self._check(until, self._busy)
                pause.wait(LOOK)
            if not (busy := self._hold_all(turn)):
                return
            self._check(until, busy)
            pause.wait(turn)
            turn = min(2 * turn, MOST_TURN)

    def end(self, *, resume: bool) -> None:
        """Release everything, or end the sources where they are; see ElementCheckpoint.release."""
        tell_all(self._handles, lambda element: element.checkpoint.release(resume), ANSWER_TIMEOUT)

    def _hold_all(self, turn: float) -> str:
        """Try to hold all operators, and release them if that fails; return why it failed."""
        held = self._ask(lambda element: element.checkpoint.hold_all(turn), turn)
        busy = next((why for _, why in held.values() if why), "")
        if not busy and is_empty({pe: flow for pe, (flow, _) in held.items()}):
            return ""
        self._ask(lambda element: element.checkpoint.release_operators(), ANSWER_TIMEOUT)
        return busy or self._busy

    def _ask(self, ask: Callable[[Element], T], patience: float) -> dict[str, T]:
        return ask_all(self._handles, ask, patience + ANSWER_TIMEOUT)

    @staticmethod
    def _check(until: float, busy: str) -> None:
        if time.monotonic() > until:
            raise StateError(busy, hint="Retry when it is less busy", code=ErrorCode.JOB_BUSY)
