"""Sources that live outside the processing elements: pushed from this process, a thread for each."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from rayelastic.errors import RayelasticError
from rayelastic.job.control import CONTROL_TIMEOUT

if TYPE_CHECKING:
    from rayelastic.job.control import Control
    from rayelastic.runtime.ingest.external_source import ExternalSource

__all__ = ["Feeds"]


class Feeds:
    """What this process pushes into one job.

    Args:
        control: the job's coordinator.
    """

    def __init__(self, control: Control) -> None:
        self._control = control
        self._sources: dict[str, ExternalSource] = {}

    def begin(self, operator: str, source: ExternalSource) -> None:
        """Begins to push the rows of a source; returns at once."""
        self._sources[operator] = source
        threading.Thread(target=self._push, args=(operator, source), name=f"feed-{operator}", daemon=True).start()

    def cancel(self) -> None:
        """Has all sources stop."""
        for source in self._sources.values():
            source.cancel()

    def _push(self, operator: str, source: ExternalSource) -> None:
        """Has a source push its rows, and tells the coordinator how that ended."""
        coordinator = self._control.within(CONTROL_TIMEOUT)
        try:
            address = coordinator.ingest_address(operator)
            rows = source.push(address, operator)
            coordinator.finish_source(operator, rows)
        except Exception as error:  # whatever the source raises is the job's failure
            try:
                coordinator.fail_source(operator, str(error))
            except RayelasticError:
                return  # the coordinator is gone: the job has ended already
