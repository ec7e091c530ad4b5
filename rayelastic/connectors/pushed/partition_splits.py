"""Announces in band which partition of a fed source the next rows belong to: each is a split with its own watermark."""

from __future__ import annotations

from typing import Protocol

_OTHERS = 0  # the split that stands for partitions that haven't begun; that of partition p is p + 1


class Marked(Protocol):
    """The receiver of marks between rows: the native `ArrowFeeder`."""

    def mark_split(self, split: int, change: str) -> None:
        """Set the state of a split: 'open', 'waits', 'now' (has the rows that follow), or 'end'."""
        ...


class PartitionSplits:
    """Announces a fed source's partitions to downstream operators. Its methods are called one at a time.

    Args:
        feeder: The source's feeder.
        time_ordered: Whether a partition is later than those of lower numbers.
    """

    def __init__(self, feeder: Marked, *, time_ordered: bool) -> None:
        self._feeder = feeder
        self._time_ordered = time_ordered
        self._begun: set[int] = set()
        self._now: int | None = None
        self._holds: bool | None = None  # whether those that haven't begun block the watermark
        if not time_ordered:
            self._hold(True)

    def begin(self, partition: int, *, has_ended: bool) -> None:
        """Announce that a partition begins, or is repeated."""
        self._begun.add(partition)
        if not has_ended:
            self._feeder.mark_split(partition + 1, "open")
        self._hold(not self._time_ordered or len(self._begun) <= max(self._begun))

    def continue_with(self, partition: int) -> None:
        """Announce that the rows that follow are of a partition."""
        if partition != self._now:
            self._now = partition
            self._feeder.mark_split(partition + 1, "now")

    def end(self, partition: int) -> None:
        """Announce that a partition has no more rows; safe to repeat."""
        self._feeder.mark_split(partition + 1, "end")
        self._now = None if self._now == partition else self._now

    def finish(self) -> None:
        """Announce that no more partitions come."""
        self._hold(False)

    def _hold(self, holds: bool) -> None:
        if holds is not self._holds:
            self._holds = holds
            self._feeder.mark_split(_OTHERS, "waits" if holds else "end")
