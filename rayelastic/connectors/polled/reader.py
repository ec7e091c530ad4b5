"""Polls a user's source for rows, partition by partition, and tracks which of them were emitted.

A feeder buffers rows between the polling thread and the native source. For a partition, a checkpoint has the last
position between two polls before the first row that wasn't emitted. It also has the number of rows emitted after that
position. So a user's object needs no other positions. Knows neither threads of the scheduler nor snapshots.
"""

from __future__ import annotations

import copy
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rayelastic.connectors.problem import Problem
from rayelastic.connectors.source import SourceOperator, batch_of, native_feeder
from rayelastic.errors import ErrorCode, SourceError, StateError
from rayelastic.graph.records.shown import counted

if TYPE_CHECKING:
    from rayelastic import _native
    from rayelastic._native import ArrowFeeder
    from rayelastic.connectors.inputs import Input
    from rayelastic.connectors.polled.declaration import Partition, PolledSource
    from rayelastic.graph.spec.operator_spec import OperatorSpec

MOST_WAITING = 1000  # polls that are kept before emitted ones are removed
LOOK = 1.0  # seconds between two listings of the partitions


@dataclass(slots=True)
class _At:
    """The position of a partition, as far as its rows were emitted.

    Args:
        position: The position before the next recorded rows; None: its start.
        given: Emitted rows after it.
        ended: All were emitted, and there are no more.
    """

    position: Any = None
    given: int = 0
    ended: bool = False


@dataclass(slots=True)
class _Polled:
    """Rows that wait to be emitted.

    Args:
        partition: Their partition.
        left: Their number.
        behind: The partition's position after them.
        last: Whether it ends there.
    """

    partition: str
    left: int
    behind: Any
    last: bool = False


def polled_source(spec: OperatorSpec, schema: _native.Schema, body: PolledSource[Any]) -> SourceOperator:
    """Make a source that polls the user's object in a thread of its own."""
    native, feeder = native_feeder(spec, schema)
    problem = Problem()
    poller = Poller(spec.name, body, feeder, problem.text)
    return SourceOperator(
        native,
        feed=poller.feed,
        seek=poller.seek,
        position=poller.position,
        watch=poller.watch,
        stop=poller.stop,
        problem=problem,
    )


class Poller:
    """One source.

    Args:
        name: The operator's name.
        body: Its description.
        feeder: Receives batches.
        text_of: Returns the text of an error of the user's code, with which the source fails.
    """

    def __init__(
        self, name: str, body: PolledSource[Any], feeder: ArrowFeeder, text_of: Callable[[Exception], str] = str
    ) -> None:
        self._text_of = text_of
        self._name = name
        self._body = body
        self._schema = body.schema.to_arrow()
        self._feeder = feeder
        self._stopped = threading.Event()
        self._lock = threading.Lock()  # guards the fields below
        self._at: dict[str, _At] = {}
        self._waiting: deque[_Polled] = deque()
        self._given = 0
        self._given_now: Callable[[], int] = lambda: 0
        self._split_told: int | None = None  # the split of the feeder's last rows

    def seek(self, _: int, saved: Input | None) -> int:
        """Begin at the saved positions of the partitions; return 0, because no row is emitted twice.

        Raises:
            StateError: The saved data isn't a position.
        """
        if saved is None or saved.position is None:
            return 0
        try:
            self._at = {name: _At(at, int(given), bool(ended)) for name, (at, given, ended) in saved.position.items()}
        except (AttributeError, TypeError, ValueError):
            raise StateError(
                "its position in the snapshot is damaged", operator=self._name, code=ErrorCode.DAMAGED_POSITION
            ) from None
        return 0

    def position(self, given: int) -> dict[str, tuple[Any, int, bool]]:
        """Return the position of each partition after so many emitted rows in this run, for JSON."""
        with self._lock:
            left = max(0, given - self._given)
            while self._waiting and (left or not self._waiting[0].left):
                first = self._waiting[0]
                count = min(left, first.left)
                at = self._at[first.partition]
                at.given += count
                first.left -= count
                left -= count
                if first.left:
                    break
                at.position, at.given, at.ended = first.behind, 0, first.last
                self._waiting.popleft()
            self._given = max(self._given, given - left)
            return {name: (at.position, at.given, at.ended) for name, at in self._at.items()}

    def watch(self, given: Callable[[], int], _: str) -> None:
        """Register a callback that returns the rows emitted in this run, so that older positions can be discarded."""
        self._given_now = given

    def stop(self) -> None:
        """Make it end soon."""
        self._stopped.set()

    def feed(self) -> None:
        """Poll until all partitions have ended or it is stopped. An error of the user's code fails the source."""
        parts: dict[str, Partition] = {}
        try:
            self._run(parts)
        except Exception as error:  # whatever the user's code raises
            self._feeder.fail(self._text_of(error))
        finally:
            for name in list(parts):
                _close(parts.pop(name))

    # -- implementation -------------------------------------------------------------------------------------------

    def _run(self, parts: dict[str, Partition]) -> None:
        looked = -LOOK
        while not self._stopped.is_set():
            if not parts or time.monotonic() >= looked + LOOK:
                self._open_new(parts)
                looked = time.monotonic()
                if not parts:
                    self._feeder.finish()
                    return
            if len(self._waiting) >= MOST_WAITING:
                self.position(self._given_now())
            rows = 0
            for name in list(parts):
                count = self._poll(name, parts)
                if count is None:
                    return
                rows += count
            if not rows and parts:
                self._stopped.wait(self._body.idle)

    def _open_new(self, parts: dict[str, Partition]) -> None:
        for name in self._body.source.partitions():
            if not isinstance(name, str):
                raise SourceError(
                    f"partitions() returned {name!r}, which isn't a text",
                    hint="Return a text for each",
                    code=ErrorCode.BAD_RETURN,
                )
            with self._lock:
                at = self._at.setdefault(name, _At())
            if name in parts or at.ended or self._has_last(name):
                continue
            part = parts[name] = self._body.source.open(name, copy.deepcopy(at.position))
            self._feeder.mark_split(self._split(name), "open")
            self._skip(name, part, at)

    def _split(self, name: str) -> int:
        """Return the number of a partition; the same after a restore, since positions keep their order."""
        return list(self._at).index(name)

    def _has_last(self, name: str) -> bool:
        with self._lock:
            return any(poll.partition == name and poll.last for poll in self._waiting)

    def _skip(self, name: str, part: Partition, at: _At) -> None:
        """Skip the rows that were emitted after the position at which it was opened."""
        left = at.given
        while left and not self._stopped.is_set():
            batch = self._batch(part)
            if batch is None:
                raise SourceError(
                    f"partition {name!r} ended {counted(left, 'row')} before its last position, from {at.position!r}",
                    hint="Return the same rows for the same position",
                    code=ErrorCode.CHANGED_INPUT,
                )
            if batch.num_rows > left:
                self._give(name, part, batch.slice(left))
                return
            left -= batch.num_rows
            if not batch.num_rows:
                self._stopped.wait(self._body.idle)
            with self._lock:
                at.position, at.given = _position(part, name), left

    def _poll(self, name: str, parts: dict[str, Partition]) -> int | None:
        """Poll one partition; return its number of rows, or None if the source is to end."""
        part = parts[name]
        batch = self._batch(part)
        if batch is None:
            with self._lock:
                self._waiting.append(_Polled(name, 0, _position(part, name), last=True))
            self._feeder.mark_split(self._split(name), "end")
            _close(parts.pop(name))
            return 0
        rows: int = batch.num_rows
        return rows if not rows or self._give(name, part, batch) else None

    def _give(self, name: str, part: Partition, batch: pa.RecordBatch) -> bool:
        with self._lock:  # before the push, because the source may emit them at once
            self._waiting.append(_Polled(name, batch.num_rows, _position(part, name)))
        if (split := self._split(name)) != self._split_told:
            self._split_told = split
            self._feeder.mark_split(split, "now")
        return self._feeder.push(batch)

    def _batch(self, part: Partition) -> pa.RecordBatch | None:
        rows = part.poll()
        if rows is None:
            return None
        if isinstance(rows, pa.RecordBatch):
            return rows.select(self._schema.names).cast(self._schema)
        if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
            raise SourceError(
                f"poll() returned {type(rows).__name__}",
                hint="Pass a list of tuples, or None at the end",
                code=ErrorCode.BAD_RETURN,
            )
        return batch_of(rows, self._schema, "poll() returned")


def _position(part: Partition, name: str) -> Any:
    """Return a copy of a position, because the next poll may change the user's object."""
    try:
        return json.loads(json.dumps(part.position))
    except (TypeError, ValueError) as error:
        raise SourceError(
            f"the position of partition {name!r} can't be saved: {error}",
            hint="Keep numbers, texts, lists and dictionaries of them in it",
            code=ErrorCode.NOT_SAVEABLE,
        ) from None


def _close(part: object) -> None:
    close = getattr(part, "close", None)
    if close is not None:
        close()
