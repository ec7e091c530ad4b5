"""A source whose rows Spark or Ray tasks push from outside, as its PE sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rayelastic.connectors.description import Source
from rayelastic.graph.spec.operator_spec import Lane

if TYPE_CHECKING:
    from rayelastic.graph.records.schema import Schema


@dataclass(frozen=True, slots=True)
class IngestSource(Source[Any]):
    """Rows that a client pushes into the data port.

    Args:
        schema: The schema of the rows.
        reason: The client, for `explain()`.
        streams: Whether it is unbounded, and the client drops rows once a checkpoint has them.
        time_ordered: Whether the event times of a partition follow those of the one before.
    """

    kind: ClassVar[str] = "rows that are pushed"

    schema: Schema
    reason: str
    streams: bool = False
    time_ordered: bool = False
    lane: Lane = Lane.BUILT_IN

    @property
    def is_endless(self) -> bool:
        """Whether it is unbounded."""
        return self.streams

    @property
    def has_splits(self) -> bool:
        """Whether each partition has its own watermark; the times of micro-batches follow each other."""
        return not self.streams

    @property
    def is_fed(self) -> bool:
        """Whether a client pushes its rows, which may not be able to wait."""
        return True
