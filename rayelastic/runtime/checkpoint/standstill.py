"""Brings a job to one moment of its streams: its sources are held, what they sent is processed, then all is held.

Elements may feed each other, as in front of and behind a replicated region: so nobody is first. Everything flows until
each link has given on what was put into it; then all operators are held. If something was still on its way, as behind
a timer, or couldn't leave its element because the other end of a link was held already, they are let go on for a while,
but for the sources. Knows elements by their handles.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from rayelastic.errors import PELostError, StateError

if TYPE_CHECKING:
    from rayelastic.runtime.element.api import ElementApi
    from rayelastic.runtime.element.host import PEHandle

__all__ = ["Flow", "Standstill", "ask_all", "is_empty"]

Flow = Mapping[str, tuple[int, int]]  # {link: (put into it here, given on here)}
LOOK = 0.005  # seconds between two looks at what is on its way
FIRST_TURN = 0.05  # seconds to hold all operators in; as many between two tries
MOST_TURN = 1.0
MOST_CALLS = 16  # at once
ANSWER_TIMEOUT = 10.0  # seconds for an answer beyond the time that what is asked for may take
RELEASE_TIMEOUT = 10.0  # seconds for a processing element to go on, or to end

T = TypeVar("T")


class Standstill:
    """The elements of a job, as they are held at one moment.

    Args:
        job: its name, for messages.
        handles: of all elements, by id.
        patience: seconds for what is under way to be processed.
    """

    def __init__(self, job: str, handles: Mapping[str, PEHandle], patience: float) -> None:
        self._job = job
        self._handles = dict(handles)
        self._patience = patience

    def begin(self) -> None:
        """Holds all elements.

        Raises:
            StateError: what is under way isn't processed in time, or can't be saved; names the operator.
        """
        until, turn = time.monotonic() + self._patience, FIRST_TURN
        self.each(lambda element: element.hold_sources(), self._patience)
        while True:
            self._await_empty_links(until)
            busy = self._hold_all(turn)
            if not busy:
                return
            if time.monotonic() > until:
                raise StateError(busy, hint="Try again when it is less busy")
            threading.Event().wait(turn)
            turn = min(2 * turn, MOST_TURN)

    def _hold_all(self, turn: float) -> str:
        """Try to hold all operators, and let them go on if that isn't to be; return what was busy then."""
        held = self.each(lambda element: element.hold_all(turn), turn)
        busy = next((why for _, why in held.values() if why), "")
        if not busy and is_empty({pe: flow for pe, (flow, _) in held.items()}):
            return ""
        self.each(lambda element: element.let_go_on(), RELEASE_TIMEOUT)
        return busy or f"what is under way in job '{self._job}' wasn't processed within {self._patience:g} s"

    def each(self, ask: Callable[[ElementApi], T], patience: float) -> dict[str, T]:
        """Ask all elements at once; {element: its answer}.

        Args:
            ask: a call of a method.
            patience: seconds that it may take.
        """
        return ask_all(self._handles, ask, patience)

    def end(self, go_on: bool) -> None:
        """Lets everything go, or has the sources end where they are; see ElementApi.release."""
        for handle in self._handles.values():
            with suppress(PELostError, TimeoutError):  # its watcher reports a loss
                handle.within(RELEASE_TIMEOUT).release(go_on)

    def _await_empty_links(self, until: float) -> None:
        nobody = threading.Event()
        while not is_empty(self.each(lambda element: element.flow(), ANSWER_TIMEOUT)):
            if time.monotonic() > until:
                raise StateError(
                    f"what is under way in job '{self._job}' wasn't processed within {self._patience:g} s",
                    hint="Try again when it is less busy",
                )
            nobody.wait(LOOK)


def ask_all(
    handles: Mapping[str, PEHandle], ask: Callable[[ElementApi], T], patience: float, most: int = MOST_CALLS
) -> dict[str, T]:
    """Ask all elements at once; {element: its answer}.

    Args:
        handles: of the elements, by id.
        ask: a call of a method.
        patience: seconds that it may take.
        most: calls at the same time.
    """
    with ThreadPoolExecutor(min(most, len(handles))) as calls:
        asked = {
            pe: calls.submit(lambda handle=handle: ask(handle.within(patience + ANSWER_TIMEOUT)))  # type: ignore[misc]
            for pe, handle in handles.items()
        }
        return {pe: answer.result() for pe, answer in asked.items()}


def is_empty(flows: Mapping[str, Flow]) -> bool:
    """Tells whether nothing is on its way between elements.

    A link of which only one knows one end is to one that has left, or from one: nothing comes there any more.

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
