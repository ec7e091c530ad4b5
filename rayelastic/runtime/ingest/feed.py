"""A source of a running job, as whoever pushes its rows sees it: where to, and whether they are safe.

The job may go back to a checkpoint while somebody pushes. Its source is elsewhere then, and wants again what no
checkpoint has. Must not know how the job is asked.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rayelastic.runtime.ingest.frames import Epoch
    from rayelastic.runtime.values.specs import IngestAddress

__all__ = ["Feed", "Secured"]


class Secured(enum.Enum):
    """What has become of the rows of a micro-batch."""

    HELD = "held"  # a complete checkpoint has them, and sinks show what they had prepared for it
    NOT_YET = "not yet"
    GONE = "gone"  # the job has gone back behind them: push them again


class Feed(Protocol):
    """The source of a job that somebody feeds."""

    @property
    def operator(self) -> str:
        """The name of the source."""
        ...

    def address(self) -> IngestAddress:
        """Where to push to; waits while the job goes back.

        Raises:
            SourceError: the job is over, or the push was cancelled.
        """
        ...

    def goes_back(self, address: IngestAddress, reason: str) -> bool:
        """Tells whether a push failed because the job goes back, so that it is to be repeated with the next address.

        Args:
            address: where to it was.
            reason: of the failure, which is the job's if it doesn't go back.
        """
        ...

    def secure(self, address: IngestAddress, epoch: Epoch, rows: Mapping[int, int]) -> bool:
        """Wait until a complete checkpoint has the rows of a micro-batch; false: they are to be pushed again.

        Args:
            address: where they were pushed to.
            epoch: the micro-batch.
            rows: the row count of each of its partitions.

        Raises:
            SourceError: the job is over, or other rows have arrived.
        """
        ...
