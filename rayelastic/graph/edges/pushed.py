"""A source whose rows Spark or Ray tasks push from outside, as the processing element that hosts it sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rayelastic.graph.spec.operator_spec import Lane

if TYPE_CHECKING:
    from rayelastic.graph.records.schema import Schema

__all__ = ["IngestSource"]


@dataclass(frozen=True, slots=True)
class IngestSource:
    """Rows that somebody pushes into the data port.

    Args:
        schema: of the rows.
        reason: who pushes, in words.
        streams: whether rows come for ever, and whoever pushes forgets them once a checkpoint has them.
        time_ordered: Whether each partition goes on in event time where the one before ends.
    """

    schema: Schema
    reason: str
    streams: bool = False
    time_ordered: bool = False
    lane: Lane = Lane.BUILT_IN

    @property
    def is_endless(self) -> bool:
        """Whether rows come for ever."""
        return self.streams

    @property
    def has_splits(self) -> bool:
        """Whether each partition has a watermark of its own; those of micro-batches go on from each other."""
        return not self.streams

    @property
    def is_fed(self) -> bool:
        """Whether its rows are pushed by others, who may not be able to wait."""
        return True

    def check(self, operator: str) -> None:
        """Do nothing: whoever pushes was checked on the driver."""
