"""Work that Ctrl-C must not interrupt: it runs in a thread of its own, where no interrupt arrives."""

from __future__ import annotations

import contextvars
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 5.0  # seconds for which an interrupt waits for the work


def uninterrupted(work: Callable[[], None], name: str) -> None:
    """Run `work` in a thread and wait for it, so that an interrupt arrives before it, after it, or too late for it.

    Args:
        work: A function that sees the caller's context variables.
        name: The thread's name.

    Raises:
        KeyboardInterrupt: The interrupt, once the work is done; after 5 s in any case, if the work hangs.
        BaseException: The exception of the work.
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
