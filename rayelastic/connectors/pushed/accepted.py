"""The rows that a fed source has accepted, by partition, and how many of them it has emitted.

The feeder is a queue: the emitted rows are the first accepted ones. So a number of rows determines the position of each
partition, which is the source's position in a checkpoint: (query, epoch, partition, rows). After a restore, repeated
rows count as accepted. Must not know connections, Spark, Ray or the native scheduler.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rayelastic.connectors.pushed.frames import Epoch
from rayelastic.errors import ErrorCode, SourceError, StateError
from rayelastic.graph.records.shown import counted

KEPT_EPOCHS = 2  # of a query: the current one, and the one before, whose last tasks may still be repeated
KEPT_CHECKSUMS = 4  # of the last batches of a partition, in a position: they detect a repeat with other rows


@dataclass(slots=True)
class Partition:
    """The state of one partition; `lock` is held while a batch of it is pushed, so that repeats wait for each other.

    Args:
        rows: Accepted rows.
        given: The number of them that the source has emitted.
        checksums: Checksums of accepted batches: {first row: (rows, CRC-32)}.
        ended: Its number of rows, once that is known.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    rows: int = 0
    given: int = 0
    checksums: dict[int, tuple[int, int]] = field(default_factory=dict)
    ended: int | None = None


class Accepted:
    """The partitions of one source.

    Args:
        source: The source's name, for messages.

    >>> accepted = Accepted("rows")
    >>> part = accepted.partition(Epoch("q", 3), 0)
    >>> part.rows = 100
    >>> accepted.log(part, 100)
    >>> before = accepted.position(60)
    >>> later = Accepted("rows")
    >>> later.restore(before)
    >>> later.partition(Epoch("q", 3), 0).rows
    60
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._lock = threading.Lock()  # guards the fields below
        self._partitions: dict[tuple[Epoch, int], Partition] = {}
        self._latest: dict[str, int] = {}  # by query: the highest epoch so far
        self._complete: dict[str, int] = {}  # by query: the last epoch with all of its rows
        self._log: deque[tuple[Partition, int]] = deque()  # rows that the source hasn't emitted, in the feeder's order
        self._logged = self._given = 0  # rows, in this run
        self._finished = False

    def partition(self, epoch: Epoch, number: int) -> Partition:
        """Return the partition of a number, of the latest epoch or a new one; a new one if it is unknown.

        Raises:
            SourceError: The epoch is over, or comes too late: the rows before it are lost.
        """
        with self._lock:
            self._enter(epoch)
            return self._partitions.setdefault((epoch, number), Partition())

    def log(self, partition: Partition, rows: int) -> None:
        """Record that the feeder is about to receive rows of a partition, after all that were recorded before."""
        with self._lock:
            self._log.append((partition, rows))
            self._logged += rows

    def end(self, epoch: Epoch, rows: Mapping[int, int]) -> None:
        """Record that an epoch, or all of a source that is pushed once, is complete.

        Args:
            epoch: The epoch.
            rows: The row count of each partition, as its last successful task reported it.

        Raises:
            SourceError: A partition is missing or has another count.
        """
        with self._lock:
            for number, expected in rows.items():
                partition = self._partitions.get((epoch, number))
                if partition is None or partition.ended != expected:
                    have = partition.ended or 0 if partition is not None else 0
                    raise self._error(
                        f"partition {number} should have {counted(expected, 'row')}, but {have} were completed here", ""
                    )
            if not epoch.query:
                self._finished = True
                return
            self._enter(epoch)
            self._complete[epoch.query] = max(epoch.number, self._complete.get(epoch.query, 0))

    def waiting(self, given: int) -> int:
        """Return the number of accepted rows that aren't emitted yet.

        Args:
            given: Rows that the source has emitted, in this run.
        """
        with self._lock:
            self._advance(given)
            return self._logged - given

    @property
    def has_open_epoch(self) -> bool:
        """Whether a micro-batch has begun and isn't complete."""
        with self._lock:
            return any(number > self._complete.get(query, -1) for query, number in self._latest.items() if query)

    @property
    def finished(self) -> bool:
        """Whether all rows of a source that is pushed once have arrived."""
        return self._finished

    @property
    def partitions_ended(self) -> int:
        """Return the number of complete partitions, of those that are still known."""
        with self._lock:
            return sum(partition.ended is not None for partition in self._partitions.values())

    # --- for checkpoints ------------------------------------------------------------------------------------------

    def position(self, given: int) -> dict[str, Any]:
        """Return the position of each partition, for JSON.

        Args:
            given: Rows that the source has emitted in this run, no fewer than the last time.
        """
        with self._lock:
            self._advance(given)
            # If not all rows of an epoch are emitted, the client pushes the rest again.
            complete = {
                query: number if self._is_given(Epoch(query, number)) else number - 1
                for query, number in self._complete.items()
            }
            return {
                "finished": self._finished and not self._log,
                "complete": complete,
                "partitions": [
                    [
                        epoch.query,
                        epoch.number,
                        number,
                        partition.given,
                        partition.ended == partition.given,
                        _checksums(partition),
                    ]
                    for (epoch, number), partition in self._partitions.items()
                ],
            }

    def restore(self, position: Any) -> None:
        """Restore a position, before any row has arrived.

        Raises:
            StateError: It isn't a position.
        """
        try:
            self._finished = bool(position["finished"])
            self._complete = {str(query): int(number) for query, number in position["complete"].items()}
            self._latest = {query: max(0, number) for query, number in self._complete.items()}
            for query, epoch, number, rows, ended, checksums in position["partitions"]:
                partition = Partition(rows=rows, given=rows, ended=rows if ended else None)
                partition.checksums = {first: (count, crc) for first, count, crc in checksums}
                self._partitions[Epoch(query, epoch), number] = partition
                self._latest[query] = max(epoch, self._latest.get(query, 0))
        except (LookupError, TypeError, ValueError, AttributeError):
            raise StateError(
                "its position in the snapshot is damaged", operator=self._source, code=ErrorCode.DAMAGED_POSITION
            ) from None

    # -- implementation -------------------------------------------------------------------------------------------

    def _advance(self, given: int) -> None:
        left = max(0, given - self._given)
        while left and self._log:
            partition, rows = self._log[0]
            count = min(left, rows)
            partition.given += count
            left -= count
            if count < rows:
                self._log[0] = (partition, rows - count)
            else:
                self._log.popleft()
        self._given = max(self._given, given - left)

    def _is_given(self, epoch: Epoch) -> bool:
        return all(partition.given == partition.rows for (of, _), partition in self._partitions.items() if of == epoch)

    def _enter(self, current: Epoch) -> None:
        """Begin an epoch; drop the state of those that Spark can't replay any more."""
        latest = self._latest.get(current.query, 0)
        oldest = max(latest, current.number) - KEPT_EPOCHS + 1
        if current.number < oldest:
            raise self._error(
                f"epoch {current.number} of its query comes again after epoch {latest}",
                "The checkpoint is older than this job: start the job anew, or take the query's own checkpoint",
            )
        if current.number <= latest:
            return
        complete = self._complete.get(current.query)
        if complete is not None and current.number > complete + 1:
            raise self._error(
                f"epoch {current.number} of its query comes after epoch {complete}: those between are in no checkpoint "
                "of the job that is whole",
                "Have the query read again from a checkpoint of its own that is as old, with a job that starts anew",
            )
        self._latest[current.query] = current.number
        old = [key for key in self._partitions if key[0].query == current.query and key[0].number < oldest]
        for key in old:
            del self._partitions[key]

    def _error(self, problem: str, hint: str) -> SourceError:
        return SourceError(problem, operator=self._source, hint=hint, code=ErrorCode.REJECTED_PUSH)


def _checksums(partition: Partition) -> list[tuple[int, int, int]]:
    """Return the checksums of the last batches that were emitted completely, in the order of their rows."""
    whole = [
        (first, rows, crc)
        for first, (rows, crc) in list(partition.checksums.items())  # a copy, because its connection keeps adding
        if first + rows <= partition.given
    ]
    return sorted(whole)[-KEPT_CHECKSUMS:]
