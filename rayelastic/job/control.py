"""A coordinator as a job talks to it, in this process or in an actor."""

from __future__ import annotations

import atexit
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from rayelastic.errors import ErrorCode, PELostError, StateError, UnavailableError
from rayelastic.graph.edges.locations import shown_location
from rayelastic.runtime.snapshot import SnapshotFolder

if TYPE_CHECKING:
    from collections.abc import Callable

    from rayelastic.runtime.job.api import CoordinatorApi
    from rayelastic.runtime.job.coordinator import Coordinator
    from rayelastic.runtime.snapshot import Snapshot

__all__ = ["CONTROL_TIMEOUT", "Control", "LocalControl", "saved"]

CONTROL_TIMEOUT = 30.0  # seconds for a control call of which nothing else is said
NEXT_COORDINATOR = 3  # calls that wait so long each until the next one answers, which has kept a snapshot or removed it


class Control(Protocol):
    """A coordinator, in this process or in an actor."""

    def within(self, timeout: float) -> CoordinatorApi:
        """Return the coordinator itself, as far as the caller can tell.

        Args:
            timeout: seconds that each call of a method waits for its answer, which TimeoutError ends.
        """
        ...

    def close(self) -> None:
        """End the coordinator and everything that it started."""
        ...


class LocalControl:
    """A coordinator in this process."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        atexit.register(self.close)  # threads in native code mustn't outlive the interpreter

    def within(self, timeout: float) -> CoordinatorApi:  # noqa: ARG002  (nothing can be lost here)
        """Return the coordinator."""
        return self._coordinator

    def close(self) -> None:
        """End the coordinator and everything that it started."""
        atexit.unregister(self.close)
        self._coordinator.close()


def saved(control: Control, job: str, snapshot: Snapshot, save: Callable[[], object]) -> None:
    """Has a job be saved; if its coordinator dies meanwhile, finds out whether it was.

    Args:
        control: of the job.
        job: its name.
        snapshot: where to.
        save: asks the coordinator for it.

    Raises:
        StateError: it can't be saved, or the coordinator died before the snapshot was complete.
    """
    try:
        save()
    except (PELostError, UnavailableError) as error:
        answers = _answers(control)
        where, there = shown_location(str(snapshot.location)), None
        with suppress(StateError):  # this process may not see the place
            there = SnapshotFolder(snapshot).is_there()
        if answers and there:
            return
        what = {True: "a snapshot is there", False: "no snapshot was taken", None: "whether one is there isn't known"}
        then = "Ask again: the job goes on" if answers else "If the job still runs, ask again with another folder"
        raise StateError(
            f"the coordinator of job '{job}' died while it was saved in {where}: {what[there]}",
            hint=f"Restore it: it is complete. {then}" if there else then,
            code=ErrorCode.INTERRUPTED_SAVEPOINT,
        ) from error


def _answers(control: Control) -> bool:
    """Wait for the next coordinator; whether it answers."""
    for _ in range(NEXT_COORDINATOR):
        try:
            control.within(CONTROL_TIMEOUT).status()
        except PELostError:
            return False
        except TimeoutError:  # Ray still starts it
            continue
        return True
    return False
