"""Work that Ctrl-C must not cut in two: it is done in a thread of its own, where no interrupt arrives."""

from __future__ import annotations

import contextvars
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["uninterrupted"]

PATIENCE = 5.0  # seconds for which an interrupt waits until the work is done


def uninterrupted(work: Callable[[], None], name: str) -> None:
    """Does `work` in a thread and waits for it, so that an interrupt comes before it, behind it, or too late for it.

    Args:
        work: what to do; it sees the caller's context variables.
        name: the thread's.

    Raises:
        KeyboardInterrupt: as it came, once the work is done; after 5 s all the same, if the work hangs.
        BaseException: what the work raised.
    """
    raised: list[BaseException] = []

    def done() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(done,), name=name, daemon=True)
    thread.start()
    try:
        thread.join()
    except BaseException:
        thread.join(PATIENCE)
        raise
    if raised:
        raise raised[0]
