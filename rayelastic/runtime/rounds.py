"""Rounds of calls: all elements of a job are called at once, so that a round takes as long as the slowest of them."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from rayelastic.errors import PELostError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MOST_CALLS = 128  # concurrent ones

T = TypeVar("T")
E_co = TypeVar("E_co", covariant=True)
H = TypeVar("H")


class Reachable(Protocol[E_co]):
    """A handle of a PE in any process; see PEHandle."""

    def within(self, timeout: float) -> E_co:
        """Return the PE; each call waits so many seconds for its answer."""
        ...


def ask_all(
    handles: Mapping[str, Reachable[E_co]], ask: Callable[[E_co], T], timeout: float, most: int = MOST_CALLS
) -> dict[str, T]:
    """Call all elements at once; return {element: its answer}.

    Args:
        handles: The elements, by id.
        ask: A call of a method.
        timeout: Seconds that each call may take.
        most: The most concurrent calls.

    Raises:
        Exception: That of the first element whose call failed, once all calls have ended.
    """
    return call_all(handles, lambda handle: ask(handle.within(timeout)), most)


def tell_all(handles: Mapping[str, Reachable[E_co]], tell: Callable[[E_co], object], timeout: float) -> None:
    """Call all elements at once, except for those that are lost or silent: their watchers report that.

    Raises:
        Exception: Any other of an element, once all calls have ended.
    """

    def call(element: Any) -> None:
        with suppress(PELostError, TimeoutError):
            tell(element)

    ask_all(handles, call, timeout)


def call_all(handles: Mapping[str, H], call: Callable[[H], T], most: int = MOST_CALLS) -> dict[str, T]:
    """Call a function with each handle, all at once; return {element: result}.

    Raises:
        Exception: That of the first element whose call failed, once all calls have ended.
    """
    answers, problems = outcomes(handles, call, most)
    for pe in handles:
        if pe in problems:
            raise problems[pe]
    return {pe: answers[pe] for pe in handles}


def outcomes(
    handles: Mapping[str, H], call: Callable[[H], T], most: int = MOST_CALLS
) -> tuple[dict[str, T], dict[str, BaseException]]:
    """Call a function with each handle, all at once; return {element: result} and {element: exception}.

    One after the other while the interpreter exits.
    """
    answers: dict[str, T] = {}
    problems: dict[str, BaseException] = {}
    waiting = deque(handles.items())

    def work() -> None:
        while True:
            try:
                pe, handle = waiting.popleft()
            except IndexError:
                return
            try:
                answers[pe] = call(handle)
            except BaseException as problem:  # raised by the caller of the round
                problems[pe] = problem

    if len(handles) < 2:
        work()
        return answers, problems
    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(most, len(handles)))]
    for number, thread in enumerate(threads):
        try:
            thread.start()
        except RuntimeError:  # from 3.12 on, an exiting interpreter starts no threads
            work()
            threads = threads[:number]
            break
    for thread in threads:
        thread.join()
    return answers, problems


class RepeatedQuestion(Generic[H, T]):
    """A question that all elements are asked again and again, as for their counters.

    One that doesn't answer in time is silent: it isn't asked again before that call has ended. So silent elements cost
    one round its patience, and later ones nothing.

    Args:
        ask: Calls a handle.
    """

    def __init__(self, ask: Callable[[H], T]) -> None:
        self._ask = ask
        self._changed = threading.Condition()
        self._open: set[H] = set()  # handles whose call hasn't ended
        self._silent: set[H] = set()  # of these, those that a round has waited for in vain

    def ask(
        self, handles: Mapping[str, H], answered: Callable[[str, H, T], None], patience: float | None
    ) -> frozenset[str]:
        """Ask all elements whose last call has ended; return those that are silent.

        Args:
            handles: The elements, by id.
            answered: Called with an element's id, its handle and its answer, in any thread, also after this returns.
            patience: Seconds that this lasts at most; None: until all have answered.
        """

        def call(pe: str, handle: H) -> None:
            try:
                with suppress(PELostError, TimeoutError):  # its watcher reports that
                    answered(pe, handle, self._ask(handle))
            finally:
                with self._changed:
                    self._open.discard(handle)
                    self._silent.discard(handle)
                    self._changed.notify_all()

        with self._changed:
            due = {pe: (pe, handle) for pe, handle in handles.items() if handle not in self._open}
            awaited = deque(handle for handle in handles.values() if handle not in self._silent)
            self._open.update(handle for _, handle in due.values())
        threading.Thread(target=outcomes, args=(due, lambda one: call(*one)), daemon=True).start()

        def all_have_answered() -> bool:
            while awaited and awaited[0] not in self._open:
                awaited.popleft()
            return not awaited

        with self._changed:
            self._changed.wait_for(all_have_answered, patience)
            self._silent.update(handle for handle in awaited if handle in self._open)
            return frozenset(pe for pe, handle in handles.items() if handle in self._open)
