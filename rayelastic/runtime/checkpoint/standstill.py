"""Brings a job to one moment of its streams: its sources are held, their tuples are processed, then all is held.

Elements may feed each other, as around a replicated region, so none is first. Tuples flow until each link has delivered
all its input; then all operators are held. A tuple may still be in flight, as from a timer, or be stuck because the
other end of a link was already held. Then all but the sources are released for a while. Knows elements by their
handles.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from rayelastic.errors import ErrorCode, PELostError, StateError

if TYPE_CHECKING:
    from rayelastic.runtime.element.api import ElementApi
    from rayelastic.runtime.element.host import PEHandle

__all__ = ["Flow", "Standstill", "ask_all", "is_empty"]

Flow = Mapping[str, tuple[int, int]]  # {link: (put into it here, received from it here)}
LOOK = 0.005  # seconds between two checks for tuples in flight
FIRST_TURN = 0.05  # seconds to hold all operators in; as many between two tries
MOST_TURN = 1.0
MOST_CALLS = 16  # concurrent ones
ANSWER_TIMEOUT = 10.0  # seconds for an answer beyond the time of the requested action
RELEASE_TIMEOUT = 10.0  # seconds for a PE to continue, or to end

T = TypeVar("T")


class Standstill:
    """The elements of a job, held at one moment.

    Args:
        job: The job's name, for messages.
        handles: All elements, by id.
        patience: Seconds for tuples in flight to be processed.
    """

    def __init__(self, job: str, handles: Mapping[str, PEHandle], patience: float) -> None:
        self._job = job
        self._handles = dict(handles)
        self._patience = patience

    def begin(self) -> None:
        """Hold all elements.

        Raises:
            StateError: Tuples in flight aren't processed in time, or can't be saved; the message names the operator.
        """
        until, turn = time.monotonic() + self._patience, FIRST_TURN
        self.each(lambda element: element.hold_sources(), self._patience)
        while True:
            self._await_empty_links(until)
            busy = self._hold_all(turn)
            if not busy:
                return
            if time.monotonic() > until:
                raise StateError(busy, hint="Retry when it is less busy", code=ErrorCode.JOB_BUSY)
            threading.Event().wait(turn)
            turn = min(2 * turn, MOST_TURN)

    def _hold_all(self, turn: float) -> str:
        """Try to hold all operators, and release them if that fails; return why it failed."""
        held = self.each(lambda element: element.hold_all(turn), turn)
        busy = next((why for _, why in held.values() if why), "")
        if not busy and is_empty({pe: flow for pe, (flow, _) in held.items()}):
            return ""
        self.each(lambda element: element.let_go_on(), RELEASE_TIMEOUT)
        return busy or f"job '{self._job}' didn't process its queued tuples within {self._patience:g} s"

    def each(self, ask: Callable[[ElementApi], T], patience: float) -> dict[str, T]:
        """Call all elements at once; return {element: its answer}.

        Args:
            ask: A call of a method.
            patience: Seconds that it may take.
        """
        return ask_all(self._handles, ask, patience)

    def end(self, go_on: bool) -> None:
        """Release everything, or end the sources where they are; see ElementApi.release."""
        for handle in self._handles.values():
            with suppress(PELostError, TimeoutError):  # its watcher reports a loss
                handle.within(RELEASE_TIMEOUT).release(go_on)

    def _await_empty_links(self, until: float) -> None:
        nobody = threading.Event()
        while not is_empty(self.each(lambda element: element.flow(), ANSWER_TIMEOUT)):
            if time.monotonic() > until:
                raise StateError(
                    f"job '{self._job}' didn't process its queued tuples within {self._patience:g} s",
                    hint="Retry when it is less busy",
                    code=ErrorCode.JOB_BUSY,
                )
            nobody.wait(LOOK)


def ask_all(
    handles: Mapping[str, PEHandle], ask: Callable[[ElementApi], T], patience: float, most: int = MOST_CALLS
) -> dict[str, T]:
    """Call all elements at once; return {element: its answer}.

    Args:
        handles: The elements, by id.
        ask: A call of a method.
        patience: Seconds that it may take.
        most: The most concurrent calls.
    """
    with ThreadPoolExecutor(min(most, len(handles))) as calls:
        asked = {
            pe: calls.submit(lambda handle=handle: ask(handle.within(patience + ANSWER_TIMEOUT)))  # type: ignore[misc]
            for pe, handle in handles.items()
        }
        return {pe: answer.result() for pe, answer in asked.items()}


def is_empty(flows: Mapping[str, Flow]) -> bool:
    """Return whether no tuple is in flight between elements.

    A link with only one known end is from or to an element that has left, and transports nothing any more.

    Args:
        flows: {element: its links}.

    >>> is_empty({"pe0": {"a->b": (5, 0)}, "pe1": {"a->b": (0, 5)}})
    True
    >>> is_empty({"pe0": {"a->b": (5, 0)}, "pe1": {"a->b": (0, 4)}})
    False
    >>> is_empty({"pe0": {"a->b": (5, 0), "c->c": (3, 2)}})
    False
    """
    ends: dict[str, list[tuple[int, int]]] = {}
    for flow in flows.values():
        for link, counts in flow.items():
            ends.setdefault(link, []).append(counts)
    return all(
        sum(put for put, _ in both) == sum(given for _, given in both)
        for both in ends.values()
        if len(both) > 1 or all(both[0])
    )
