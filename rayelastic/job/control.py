"""The interface of a job to its coordinator, in this process or in an actor."""

from __future__ import annotations

import atexit
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from rayelastic.connectors.files.locations import shown_location
from rayelastic.errors import ErrorCode, PELostError, StateError, UnavailableError
from rayelastic.runtime.checkpoint.files import SnapshotFolder

if TYPE_CHECKING:
    from collections.abc import Callable

    from rayelastic.runtime.job.api import CoordinatorApi
    from rayelastic.runtime.job.coordinator import Coordinator
    from rayelastic.runtime.values.snapshot import Snapshot

CONTROL_TIMEOUT = 30.0  # seconds for any other control call
NEXT_COORDINATOR = 3  # calls that wait so long each for the next coordinator, which ends or removes the snapshot


class Control(Protocol):
    """A coordinator, in this process or in an actor."""

    def within(self, timeout: float) -> CoordinatorApi:
        """Return the coordinator, or a proxy of it.

        Args:
            timeout: Seconds that each call of a method waits for its answer, before it raises TimeoutError.
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
    """Save a job; if its coordinator dies meanwhile, find out whether it was saved.

    Args:
        control: The job's control.
        job: Its name.
        snapshot: The destination.
        save: Calls the coordinator.

    Raises:
        StateError: It can't be saved, or the coordinator died before the snapshot was complete.
    """
    try:
        save()
    except (PELostError, UnavailableError) as error:
        answers = _answers(control)
        where, there = shown_location(str(snapshot.location)), None
        with suppress(StateError):  # the location may be invisible to this process
            there = SnapshotFolder(snapshot).has()
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
    """Wait for the next coordinator; return whether it answers."""
    for _ in range(NEXT_COORDINATOR):
        try:
            control.within(CONTROL_TIMEOUT).status()
        except PELostError:
            return False
        except TimeoutError:  # Ray is still starting it
            continue
        return True
    return False
