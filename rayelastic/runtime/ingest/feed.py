"""A source of a running job, as its client sees it: the address, and whether its rows are safe.

The job may recover while a client pushes. Its source then has another address, and needs again what no checkpoint has.
Must not know how the job is called.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rayelastic.connectors.pushed.frames import Epoch
    from rayelastic.runtime.values.specs import IngestAddress


class Secured(enum.Enum):
    """The state of a micro-batch's rows."""

    HELD = "held"  # a complete checkpoint has them, and sinks show what they had prepared for it
    NOT_YET = "not yet"
    GONE = "gone"  # the job has rolled back beyond them: push them again


class Feed(Protocol):
    """A fed source of a job."""

    @property
    def operator(self) -> str:
        """The name of the source."""
        ...

    def address(self) -> IngestAddress:
        """Return the address to push to; wait while the job recovers.

        Raises:
            SourceError: The job is over, or the push was cancelled.
        """
        ...

    def must_repeat(self, address: IngestAddress, reason: str) -> bool:
        """Return whether a push failed because the job recovers, so that it is to be repeated with the next address.

        Args:
            address: The address of the push.
            reason: The reason of the failure, which fails the job if it doesn't recover.
        """
        ...

    def secure(self, address: IngestAddress, epoch: Epoch, rows: Mapping[int, int]) -> bool:
        """Wait until a complete checkpoint has the rows of a micro-batch; False: they are to be pushed again.

        Args:
            address: The address that they were pushed to.
            epoch: The micro-batch.
            rows: The row count of each of its partitions.

        Raises:
            SourceError: The job is over, or other rows have arrived.
        """
        ...
