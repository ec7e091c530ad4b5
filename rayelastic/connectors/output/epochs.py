"""Writes a stream epoch by epoch to a place that commits rows and a token together: exactly once.

A checkpoint stores the rows since the last one (write-ahead), and one commit writes them once it is complete. The
commit has a token that says which epoch they are. A sink has an identity that outlives its processes: that of its first
run, stored in checkpoints. A process that restores a checkpoint first fences the one before. Then it reads which epoch
the place has, and decides what is to be written. Knows neither Kafka nor tables.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from rayelastic.connectors.output.record import Blob, BlobStore, Output, SinkContext
from rayelastic.errors import ErrorCode, SinkError, SinkLostError, SinkTakenError, StateError

if TYPE_CHECKING:
    import pyarrow as pa

    from rayelastic.connectors.files.bad_rows import Dropped

__all__ = ["MOST_RUNS", "EpochSink", "FencedError", "Target", "Token", "Transactions"]

ATTEMPTS = 3  # a process that was replaced may fence its successor once more, and writes nothing
MOST_RUNS = 50  # that a token remembers: the brokers of Kafka limit its text to 4 KiB


class FencedError(Exception):
    """A commit was rejected: another writer of the same identity has committed, or it was ended from outside."""


@dataclass(frozen=True, slots=True)
class Token:
    """What the place says of its last commit.

    Args:
        epoch: The epoch whose rows are in it, with all before.
        by: The run that made that epoch.
        run: The run that may write.
        runs: The runs that have been allowed to, in order, this one included.
    """

    epoch: int
    by: str
    run: str
    runs: tuple[str, ...] = ()

    def to_text(self) -> str:
        """Return its text."""
        return json.dumps(asdict(self))

    @staticmethod
    def of(epoch: int, text: str) -> Token:
        """Read a token."""
        held = json.loads(text)
        return Token(epoch, str(held["by"]), str(held["run"]), tuple(held["runs"]))


class Transactions(ABC):
    """Commits of one identity, one at a time."""

    @abstractmethod
    def fence(self) -> Token | None:
        """Reject commits of earlier writers from now on, at the latest with the next `write`; return the token.

        Raises:
            SinkLostError: The place doesn't answer.
        """

    @abstractmethod
    def token(self) -> Token | None:
        """Return the token; None: there is none.

        Raises:
            SinkLostError: The place doesn't answer, or a commit isn't decided yet.
        """

    @abstractmethod
    def write(self, token: Token, batches: Sequence[pa.RecordBatch]) -> None:
        """Write rows and their token in one commit. After an error it is unknown whether it is written.

        Raises:
            FencedError: The token isn't the last one that these transactions have read or written.
            SinkLostError: The place doesn't answer.
        """

    def close(self) -> None:  # noqa: B027  (most hold nothing)
        """Write no more."""


class Target(ABC):
    """A place that commits rows and a token together.

    Attributes:
        scheme: The prefix of an identity in an output's location.
        kind: What it is, for messages.
        unit: What its rows are.
        refresh: Seconds after which a token is written again, because the place forgets old ones.
        name: Its name, as the user wrote it.
        left_out: Counts rows that can't be written, if they are dropped.
    """

    scheme: ClassVar[str]
    kind: ClassVar[str]
    unit: ClassVar[str] = "rows"
    refresh: ClassVar[float] = math.inf
    name: str
    left_out: Dropped

    @property
    @abstractmethod
    def id(self) -> str:
        """Its id, which a recreated one doesn't share; empty: it doesn't exist yet."""

    @abstractmethod
    def encode(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch as it is written; raise SinkError for a row that can't be."""

    @abstractmethod
    def transactions(self, identity: str, run: str) -> Transactions:
        """Return the transactions of a sink and a run."""

    @abstractmethod
    def lost(self, epoch: int) -> StateError:
        """Return the error of a token that is missing, and the checkpoint's epoch."""

    @abstractmethod
    def ended(self, fenced: FencedError) -> SinkLostError:
        """Return the error of a commit that was rejected, though no other run writes."""

    def run_of(self, run: str) -> str:
        """Return a run's id as tokens have it."""
        return run

    def close(self) -> None:  # noqa: B027  (most hold nothing)
        """End the connections."""

    @property
    def shown(self) -> str:
        """Kind and name."""
        return f"{self.kind} {self.name!r}"


@dataclass(frozen=True, slots=True)
class Epoch:
    """The rows of an epoch.

    Args:
        number: Its number.
        by: The run that made it.
        batches: As the target encodes them.
    """

    number: int
    by: str
    batches: tuple[pa.RecordBatch, ...]

    @property
    def rows(self) -> int:
        """Their number."""
        return sum(batch.num_rows for batch in self.batches)

    def to_bytes(self) -> bytes:
        """Return them as an Arrow IPC stream."""
        import pyarrow as pa

        into = io.BytesIO()
        with pa.ipc.new_stream(into, self.batches[0].schema) as stream:
            for batch in self.batches:
                stream.write_batch(batch)
        return into.getvalue()


@dataclass(frozen=True, slots=True)
class Written:
    """What a checkpoint says of a target.

    Args:
        name: The target's name.
        id: Its id, which a recreated one doesn't share.
        run: The run that took the checkpoint.
        epoch: The epoch that was in it.
        by: The run that made it.
        epochs: The epochs whose rows are in the checkpoint, a blob each.
    """

    name: str
    id: str
    run: str
    epoch: int
    by: str
    epochs: tuple[int, ...] = ()


class EpochSink:
    """Writes each epoch in one commit, once its checkpoint is complete.

    Its methods except `commit` are called by one thread at a time.

    Args:
        target: The place; it is closed with the sink.
        context: The writer, and the run that it continues.

    Raises:
        SinkLostError: The target doesn't answer.
        SinkTakenError: Another run has continued from the same checkpoint.
        StateError: The target isn't what the earlier run left.
    """

    def __init__(self, target: Target, context: SinkContext) -> None:
        before = context.outputs.get(context.sink)
        if before is not None and not before.location.startswith(target.scheme):
            before = None  # the sink of that name wrote to another location
        self._target = target
        self.left_out = target.left_out
        self._run = target.run_of(context.run)
        self._blobs, self._keep = context.blobs, context.keep
        own = hashlib.sha256(f"{context.run}/{context.sink}".encode()).hexdigest()[:16]
        self._location = before.location if before is not None else target.scheme + own
        self._lineage = before.lineage if before is not None else context.run
        self._rows = before.rows if before is not None else 0
        self._epoch = before.epoch if before is not None else 0
        self._transactions = target.transactions(f"rayelastic-{self._location.removeprefix(target.scheme)}", self._run)
        self._current: list[pa.RecordBatch] = []
        self._showing = threading.Lock()  # held while a commit is written
        self._lock = threading.Lock()  # guards the fields below
        self._complete = self._epoch  # the newest complete checkpoint
        self._closed = False
        self._token: Token | None = None  # the last one that was written by this process
        self._written_at = 0.0  # when that was
        self._problem: SinkError | None = None  # of the last commit, if it failed
        self._files: dict[int, tuple[BlobStore, tuple[str, ...]]] = {}  # {epoch: blobs of its checkpoint}
        self._kept: list[int] = []  # complete checkpoints that can be restored
        try:
            self._before = self._written_before(before)
            self._pending = self._restored(before, context)
            with contextlib.suppress(SinkLostError):  # a commit is open: `begin` ends it
                self._check(self._transactions.token())
        except BaseException:
            self.abandon()
            raise

    def begin(self) -> str:
        """Fence other writers, and write what the restored checkpoint has and the target lacks.

        Returns:
            An empty text: it removes nothing.

        Raises:
            SinkError: See the constructor.
            StateError: See the constructor.
        """
        with self._showing:
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    self._take_over()
                    break
                except FencedError as fenced:
                    if attempt == ATTEMPTS:
                        raise SinkLostError(
                            f"another process writes to {self._target.shown} at the same moment", hint="Retry"
                        ) from fenced
        return ""

    def write(self, batch: pa.RecordBatch) -> None:
        """Add a batch to the epoch.

        Raises:
            SinkError: A tuple can't be written.
        """
        encoded = self._target.encode(batch)
        if encoded.num_rows:
            self._current.append(encoded)
        self._rows += batch.num_rows

    def prepare(self, epoch: int, store: BlobStore) -> Output:
        """Store the rows that aren't in the target, in the checkpoint.

        Raises:
            SinkTakenError: Another run writes to it instead.
            SinkLostError: It doesn't answer.
        """
        if self._problem is not None:
            with self._showing:
                self._show()  # or checkpoints would store more and more rows
        return self.save(epoch, store)

    def save(self, epoch: int, store: BlobStore) -> Output:
        """Store them in a savepoint of a job that stops, whether the target answers or not."""
        with self._lock:
            if self._current:
                self._pending.append(Epoch(epoch, self._run, tuple(self._current)))
                self._current = []
            pending, token = list(self._pending), self._token
            self._epoch = epoch
        assert token is not None
        blobs = []
        for number, waiting in enumerate(pending):
            name = f"{self._blobs}-{epoch:06}-{number}.rows"
            blobs.append(Blob(name, store.write(name, waiting.to_bytes()), waiting.rows))
        with self._lock:
            self._files[epoch] = store, tuple(blob.name for blob in blobs)
        numbers = tuple(waiting.number for waiting in pending)
        state = Written(self._target.name, self._target.id, self._run, token.epoch, token.by, numbers)
        return Output(
            self._location, self._rows, epoch, self._lineage, blobs=tuple(blobs), state=json.dumps(asdict(state))
        )

    def commit(self, epoch: int) -> None:
        """Write what was prepared for an epoch and those before; safe to repeat, from any thread.

        Raises:
            SinkError: It can't be written now; the next commit writes it, too.
        """
        with self._showing:
            with self._lock:
                if self._closed:
                    return
                self._complete = max(self._complete, epoch)
            self._show()
        self._remove_files(epoch)

    def close(self) -> str:
        """Write the rest; return the target's name.

        Raises:
            SinkLostError: It doesn't answer. The last checkpoint or the savepoint has the rest.
        """
        with self._showing:
            with self._lock:
                if self._closed:
                    return self._target.name
                if self._current:
                    self._pending.append(Epoch(self._epoch + 1, self._run, tuple(self._current)))
                    self._current = []
                self._complete = max([self._complete, *(waiting.number for waiting in self._pending)])
            try:
                self._show()
            except SinkLostError as error:
                target = self._target
                left = sum(waiting.rows for waiting in self._pending)
                raise SinkLostError(
                    f"{error.problem}. {left:,} {target.unit} aren't in {target.shown}, but in the savepoint",
                    hint=f"Restore it when the {target.kind} can be written",
                ) from error
        self.abandon()
        return self._target.name

    def abandon(self) -> None:
        """Write nothing more. Safe to repeat."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._transactions.close()
        self._target.close()

    def output(self, rows: int, store: BlobStore) -> Output:  # noqa: ARG002  (it counts them itself)
        """Prepare under the next number."""
        return self.prepare(self._epoch + 1, store)

    # -- what a checkpoint has ------------------------------------------------------------------------------------

    def _written_before(self, before: Output | None) -> Written | None:
        """Return what the restored checkpoint says of the target.

        Raises:
            StateError: It is of another one.
        """
        if before is None:
            return None
        try:
            held = json.loads(before.state)
            written = Written(**{**held, "epochs": tuple(held["epochs"])})
        except (KeyError, TypeError, ValueError):
            raise StateError("its state in the snapshot is damaged", code=ErrorCode.DAMAGED_POSITION) from None
        target, again = self._target, "drop the sink from the snapshot: rel.Snapshot(..., drop=['its name'])"
        if written.name != target.name:
            raise StateError(
                f"the checkpoint is of {target.kind} {written.name!r}, and it writes to {target.name!r} now",
                hint=f"Name that {target.kind}, or {again}",
                code=ErrorCode.MISSING_OUTPUT,
            )
        if written.id != target.id:
            raise StateError(
                f"{target.shown} was deleted{' and created again' if target.id else ''} since the checkpoint",
                hint=f"To write to the new {target.kind}, {again}",
                code=ErrorCode.MISSING_OUTPUT,
            )
        return written

    def _restored(self, before: Output | None, context: SinkContext) -> list[Epoch]:
        """Return the epochs of the restored checkpoint.

        Raises:
            StateError: Their rows are missing.
        """
        if before is None or self._before is None or not before.blobs:
            return []
        import pyarrow as pa

        if context.store is None:
            raise StateError(
                f"its {self._target.unit} are in a checkpoint that is missing",
                hint="Restore the job from the checkpoint itself",
                code=ErrorCode.MISSING_OUTPUT,
            )
        epochs = []
        files = [(blob.name, blob.digest) for blob in before.blobs]
        for number, data in zip(self._before.epochs, context.store.chunks(files), strict=True):
            with pa.ipc.open_stream(data) as stream:
                epochs.append(Epoch(number, self._before.run, tuple(stream)))
        if context.own:
            self._files[before.epoch] = context.store, tuple(blob.name for blob in before.blobs)
            self._kept.append(before.epoch)
        return epochs

    def _remove_files(self, epoch: int) -> None:
        """Remove the blobs of checkpoints that can't be restored any more, once one is complete."""
        with self._lock:
            if epoch not in self._files or epoch in self._kept:
                return
            self._kept = [*self._kept, epoch][-self._keep :]
            at = self._files[epoch][0].location
            outdated = [number for number in self._files if number < epoch and number not in self._kept]
            removed = [self._files.pop(number) for number in outdated]
        for store, names in removed:
            if store.location == at:  # others belong to a savepoint, which must stay
                for name in names:
                    store.delete(name)

    # -- what the target has --------------------------------------------------------------------------------------

    def _check(self, token: Token | None) -> None:
        """Raise unless the target is what the restored checkpoint, or a new sink, can continue.

        Raises:
            SinkTakenError: Another run writes to it.
            StateError: It has other rows after the checkpoint, or has lost its token.
        """
        before = self._before
        if token is None:
            if before is not None:
                raise self._target.lost(self._epoch)
            return
        if token.run != self._run and self._run in token.runs:
            raise self._taken("another run")
        expected = {(0, self._run)}
        if before is not None:
            expected = {(before.epoch, before.by), *((number, before.run) for number in before.epochs)}
        if (token.epoch, token.by) not in expected:
            unit = self._target.unit
            raise StateError(
                f"{self._target.shown} has {unit} up to epoch {token.epoch}, and the checkpoint is of epoch "
                f"{self._epoch}: they can't be removed, and would come again",
                hint=f"Restore the newest checkpoint. To write all {unit} after this one again: "
                "rel.Snapshot(..., drop=['its name'])",
                code=ErrorCode.OUTPUT_AHEAD,
            )

    def _take_over(self) -> None:
        """Fence other writers, and write what the checkpoint has and the target lacks, with a token of this run."""
        before = self._transactions.fence()
        self._check(before)
        self._forget(before)
        epoch, by = (0, self._run) if before is None else (before.epoch, before.by)
        if self._pending:
            epoch, by = self._pending[-1].number, self._pending[-1].by
        runs = tuple(run for run in (before.runs if before is not None else ()) if run != self._run)[-MOST_RUNS:]
        due = [batch for waiting in self._pending for batch in waiting.batches]
        self._write(Token(epoch, by, self._run, (*runs, self._run)), due)
        with self._lock:
            self._pending = []

    def _forget(self, token: Token | None) -> None:
        """Drop the epochs that the target has."""
        with self._lock:
            self._pending = [one for one in self._pending if token is None or one.number > token.epoch]

    def _show(self) -> None:
        """Write the epochs of complete checkpoints.

        Raises:
            SinkError: They can't be written now.
            SinkTakenError: Another run writes to it instead.
        """
        if isinstance(self._problem, SinkTakenError):
            raise self._problem
        for attempt in range(1, ATTEMPTS + 1):
            try:
                self._show_due()
                self._problem = None
                return
            except FencedError as fenced:
                self._problem = self._after_fence(fenced)
                if attempt == ATTEMPTS or isinstance(self._problem, SinkTakenError):
                    raise self._problem from fenced
            except SinkError as error:
                self._problem = error
                raise

    def _show_due(self) -> None:
        assert self._token is not None
        if self._problem is not None:  # whether the last commit is in the target is unknown
            token = self._transactions.fence()
            if token is None or token.run != self._run:
                raise self._taken("another run")
            self._forget(token)
            self._token = token
        with self._lock:
            due = [waiting for waiting in self._pending if waiting.number <= self._complete]
        if due:
            token = replace(self._token, epoch=due[-1].number, by=self._run)
            self._write(token, [batch for waiting in due for batch in waiting.batches])
            self._forget(token)
        elif time.monotonic() > self._written_at + self._target.refresh:
            self._write(self._token, [])

    def _write(self, token: Token, batches: Iterable[pa.RecordBatch]) -> None:
        self._transactions.write(token, list(batches))
        with self._lock:
            self._token = token
        self._written_at = time.monotonic()

    def _after_fence(self, fenced: FencedError) -> SinkError:
        """Return the error of a commit that was rejected."""
        try:
            token = self._transactions.token()
        except SinkError as error:
            return error
        if token is None or token.run != self._run:
            return self._taken("another run")
        return self._target.ended(fenced)

    def _taken(self, by: str) -> SinkTakenError:
        return SinkTakenError(
            f"{by} writes to {self._target.shown} instead of this one: it restored a checkpoint of this run",
            hint=f"This run writes nothing more. Use another {self._target.kind} for a job beside it",
        )
