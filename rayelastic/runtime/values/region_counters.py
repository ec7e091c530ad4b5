"""The plan changes of one region of a job, counted."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rayelastic.runtime.values.metrics import Alert, Panel, described, gauge, metric


@described
@dataclass(frozen=True, slots=True)
class RegionCounters:
    """The plan changes of one region since the job's start.

    Args:
        held: The partitions among `to_move` whose keys wait now for their state to arrive.
    """

    changes: int = metric(
        "Changes of its replicas while the job ran.", panel=Panel("Changes of replicas", expr="increase({}[5m])")
    )
    undone: int = metric(
        "Changes of its replicas that failed and were undone.", short="changes_undone", alert=Alert(
            "ChangeUndone", "a change of replicas was undone", "increase({}[15m]) > 0", "",
            "A change of region {{ $labels.region }} of job {{ $labels.rel_job }} was undone"))  # fmt: skip
    moved_keys: int = metric("Keys whose state moved to another replica.")
    moved_bytes: int = metric("Bytes of state that moved to another replica.", panel="State moved")
    held_seconds: float = metric(
        "Time that moving keys waited for their state, from the first router that held them to the last one that knew "
        "their new owner, seconds."
    )
    longest_hold: float = gauge(
        "The longest that moving keys have waited so far, seconds.",
        short="longest_hold_seconds",
        panel=Panel("Moving keys held", "{{region}}: longest"),
    )
    to_move: int = gauge("Partitions of keys that the change under way has yet to move.", short="partitions_to_move")
    held: int = 0

    def with_change(self, *, undone: bool = False) -> RegionCounters:
        """Count a change."""
        return replace(self, changes=self.changes + (not undone), undone=self.undone + undone)

    def moving(self, to_move: int, held: int) -> RegionCounters:
        """Set the number of partitions that the current change has yet to migrate, and that are held."""
        return replace(self, to_move=to_move, held=held)

    def with_move(self, keys: int, size: int, seconds: float) -> RegionCounters:
        """Count a batch of partitions.

        >>> moved = RegionCounters().with_move(10, 400, 0.5).with_move(5, 200, 0.25)
        >>> moved.moved_keys, moved.moved_bytes, moved.held_seconds, moved.longest_hold
        (15, 600, 0.75, 0.5)
        """
        return replace(
            self,
            moved_keys=self.moved_keys + keys,
            moved_bytes=self.moved_bytes + size,
            held_seconds=self.held_seconds + seconds,
            longest_hold=max(self.longest_hold, seconds),
        )
