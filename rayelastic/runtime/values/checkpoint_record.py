"""The checkpoints of a job, counted, and the record of each: immutable values that cross processes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rayelastic.runtime.values.metrics import Alert, Panel, described, metric

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rayelastic.runtime.values.snapshot import Part

OUTCOMES = "Checkpoints: complete, aborted, restored"  # a panel of the dashboard
MOST_RECORDS = 20  # kept for a job: the last ones


@dataclass(frozen=True, slots=True)
class Copied:
    """The second copies of a checkpoint.

    Args:
        nodes: {node with a share of it: the node with the second copy, or empty}; empty: every node sees its location.
        bytes: Bytes that were copied for it.
        problem: Why a share has one copy only; empty: all have two, or need none.
    """

    nodes: Mapping[str, str] = field(default_factory=dict)
    bytes: int = 0
    problem: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether each share has a second copy."""
        return bool(self.nodes) and not self.problem


@dataclass(frozen=True, slots=True)
class CheckpointRecord:
    """A checkpoint or savepoint of a job, complete or not.

    Args:
        number: Its number; 0: it was aborted before it had one.
        at: Seconds since the start of the job, under any coordinator, when it ended.
        seconds: Its duration.
        paused: The part of that for which sources were held.
        bytes: Bytes of state that were written, compressed. State that hasn't changed isn't written again, and rows of
            sinks don't count.
        slowest: The operator whose state was written last: the barrier reached it late, or its state was large.
        slowest_seconds: From the start of the checkpoint until its state was written.
        held: The operator that was held longest while its state was written; empty: all were copied while they ran.
        held_seconds: How long it was held.
        place: The location of a savepoint; empty: a checkpoint.
        problem: Why it was aborted; empty: it is complete.
        copied: Its second copies on other nodes.
    """

    number: int
    at: float
    seconds: float
    paused: float = 0.0
    bytes: int = 0
    slowest: str = ""
    slowest_seconds: float = 0.0
    held: str = ""
    held_seconds: float = 0.0
    place: str = ""
    problem: str = ""
    copied: Copied = field(default_factory=Copied)

    @staticmethod
    def of_parts(number: int, seconds: float, paused: float, parts: Sequence[Part]) -> CheckpointRecord:
        """Make the record of a complete one of which the PEs have written these parts."""
        costs = [(ended, name, size) for part in parts for name, (size, ended) in part.costs.items()]
        ended, slowest, _ = max(costs, default=(0.0, "", 0))
        longest, held = max(((one, name) for part in parts for name, one in part.held.items()), default=(0.0, ""))
        size = sum(size for _, _, size in costs)
        return CheckpointRecord(number, 0.0, seconds, paused, size, slowest, ended, held, longest)

    @property
    def is_savepoint(self) -> bool:
        """Whether it is a complete savepoint."""
        return bool(self.place) and not self.problem


@described
@dataclass(frozen=True, slots=True)
class CheckpointCounters:
    """The checkpoints of a job, and its restarts from them.

    Args:
        abandoned_seconds: The duration of aborted ones, in all.
        last: The number of the last complete one; 0: none yet.
        seconds: The duration of the last complete one.
        paused: The part of that for which the longest held sources were held. They are held until their barriers were
            sent. If `standstill` has a reason, it is until all tuples in flight had been processed and saved.
        problem: Why there are none, or why the last one was aborted; empty if all is well.
        standstill: Why all sources are held until their tuples are processed; empty if barriers flow with the records.
        called_again: Sources that are functions: a restart calls them from their beginning, and skips what they emitted
            before. They have to emit the same again.
        one_copy: Why the last complete one has no second copy on another node; a lost node would lose it. Empty: it has
            one, or every node sees its location.
        copied_at: Seconds since the start of the job when the newest one with two copies was complete; 0: none was.
        recent: The last ones, including aborted ones and savepoints; oldest first.
    """

    taken: int = metric("Complete checkpoints.", short="checkpoints", panel=Panel(OUTCOMES, "complete", "{}"))
    abandoned: int = metric(
        "Checkpoints that were aborted; the job continued.", short="checkpoints_abandoned",
        panel=Panel(OUTCOMES, "aborted", "{}"), alert=Alert(
            "CheckpointsAbandoned", "checkpoints are aborted again and again", "increase({}[15m]) > 2", "",
            "Checkpoints of job {{ $labels.rel_job }} are aborted again and again; "
            "job.status.checkpoints.problem says why"))  # fmt: skip
    abandoned_seconds: float = 0.0
    last: int = 0
    seconds: float = 0.0
    paused: float = 0.0
    restarts: int = metric(
        "Recoveries, from a checkpoint or from the start.", panel=Panel(OUTCOMES, "recoveries", "{}"), alert=Alert(
            "Recovered", "the job recovered from a failure", "increase({}[15m]) > 0", "",
            "Job {{ $labels.rel_job }} lost a process or node and restored its last checkpoint"))  # fmt: skip
    copied_bytes: int = metric(
        "Bytes of checkpoints that were copied to a second node.", short="checkpoint_copied_bytes")  # fmt: skip
    problem: str = ""
    one_copy: str = ""
    copied_at: float = 0.0
    standstill: str = ""
    called_again: tuple[str, ...] = ()
    recent: tuple[CheckpointRecord, ...] = ()

    def with_record(self, record: CheckpointRecord) -> CheckpointCounters:
        """Add a record to the last ones.

        >>> CheckpointCounters().with_record(CheckpointRecord(1, 2.0, 0.5)).recent[0].number
        1
        """
        return replace(self, recent=(*self.recent, record)[-MOST_RECORDS:])

    def completed(self, record: CheckpointRecord) -> CheckpointCounters:
        """Count a complete checkpoint."""
        seconds, paused = record.seconds, record.paused
        return replace(
            self.with_record(record),
            taken=self.taken + 1,
            last=record.number,
            seconds=seconds,
            paused=paused,
            problem="",
            copied_bytes=self.copied_bytes + record.copied.bytes,
            one_copy=record.copied.problem,
            copied_at=record.at if record.copied.is_complete else self.copied_at,
        )

    def aborted(self, record: CheckpointRecord) -> CheckpointCounters:
        """Count an aborted one."""
        return replace(
            self.with_record(record),
            abandoned=self.abandoned + 1,
            abandoned_seconds=self.abandoned_seconds + record.seconds,
            problem=record.problem,
        )
