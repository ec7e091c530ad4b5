"""Appends a stream to a Delta table: `EpochSink` with a commit for each epoch.

The token of a commit is in application transactions of the log. They have the epoch, the run that made it and the run
that may write; one of its own remembers each run. Delta rejects a commit if another one since the version that its
writer has read has the same application. So a writer that has read the token, and then commits, has fenced all others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rayelastic.connectors.delta.tables import check_columns, columns_of, delta_schema, opened, place_of, raising
from rayelastic.connectors.files.bad_rows import LeftOut
from rayelastic.connectors.files.casts import cast_column
from rayelastic.connectors.files.locations import shown_location
from rayelastic.connectors.output.epochs import EpochSink, FencedError, Target, Token, Transactions
from rayelastic.errors import ErrorCode, SinkError, SinkLostError, StateError

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

    from rayelastic.connectors.delta.declaration import DeltaSink
    from rayelastic.connectors.sink import NewSink, SinkOperator
    from rayelastic.graph.records.schema import Schema


def delta_sink(new: NewSink, body: DeltaSink) -> SinkOperator:
    """Make a sink that appends to a table."""
    return new.by_epoch(EpochSink(TableTarget(body, new.schema), new.context))


class TableTarget(Target):
    """A table to append to.

    Args:
        body: The description of the sink.
        schema: The schema of its tuples.

    Raises:
        SinkError: An existing table has other columns or partitions.
        SinkLostError: Its store doesn't answer.
    """

    scheme = "delta:"
    kind = "table"

    def __init__(self, body: DeltaSink, schema: Schema) -> None:
        self.name = shown_location(body.table)
        self.left_out = LeftOut()
        self.partition_by = body.partition_by
        self._location = body.table
        self._columns = delta_schema(schema.to_arrow())
        self._id = ""
        self.open()

    @property
    def id(self) -> str:
        """Its id, which a recreated one doesn't share; empty: it doesn't exist yet."""
        return self._id

    def open(self) -> DeltaTable | None:
        """Return its newest version, and check it; None: it doesn't exist.

        Raises:
            SinkError: It has other columns or partitions.
        """
        with raising(self._location, "opened"):
            table = opened(self._location)
            if table is not None:
                check_columns(table, self._columns, self.partition_by, self._location)
                self._id = str(table.metadata().id)
                self.partition_by = tuple(table.metadata().partition_columns)
        return table

    def encode(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch with types of Delta.

        Raises:
            SinkError: A value isn't one of Delta.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        columns = []
        for one, column in zip(self._columns, batch.columns, strict=True):
            try:
                columns.append(cast_column(column, one.type))
            except (pa.ArrowException, ValueError) as error:
                raise self._unwritable(f"a value of {one.name!r}: {error}") from error
            is_text = one.name in self.partition_by and pa.types.is_string(one.type)
            if is_text and pc.any(pc.equal(columns[-1], "")).as_py():
                raise self._unwritable(
                    f"an empty text in {one.name!r}, by which it is partitioned: it would become null"
                )
        return pa.RecordBatch.from_arrays(columns, schema=self._columns)

    def append(self, table: DeltaTable | None, batches: Sequence[pa.RecordBatch], commit: Any) -> None:
        """Commit rows, based on a version of the table; None: create it.

        Raises:
            CommitFailedError: Another commit has the same applications.
            SinkError: The table doesn't hold the rows.
        """
        import pyarrow as pa
        from deltalake import write_deltalake

        columns = self._columns if table is None else columns_of(table)
        rows = pa.Table.from_batches([self._fitted(batch, columns) for batch in batches], columns)
        if table is not None:
            write_deltalake(table, rows, mode="append", commit_properties=commit)
            return
        uri, settings = place_of(self._location)
        by = list(self.partition_by) or None
        write_deltalake(uri, rows, mode="error", partition_by=by, commit_properties=commit, storage_options=settings)
        self.open()

    def transactions(self, identity: str, run: str) -> Transactions:
        """Return the commits of a sink and a run."""
        return Commits(self, identity, run)

    def run_of(self, run: str) -> str:
        """Return a run's id as a number of 60 bits."""
        return str(int(hashlib.sha256(run.encode()).hexdigest()[:15], 16))

    def lost(self, epoch: int) -> StateError:
        """Return the error of an application that is missing in the log."""
        return StateError(
            f"{self.shown} has lost the entry that says which rows of the checkpoint (epoch {epoch}) it has: somebody "
            "replaced its log, or it is older than delta.setTransactionRetentionDuration",
            hint="Compare its last rows with the stream. To continue without the rows in the checkpoint: "
            "rel.Snapshot(..., drop=['its name'])",
            code=ErrorCode.MISSING_OUTPUT,
        )

    def ended(self, fenced: FencedError) -> SinkLostError:
        """Return the error of a commit that was rejected."""
        return SinkLostError(f"a commit of {self.shown} was rejected: {fenced}", hint="Check who else writes to it")

    def raising(self) -> Any:
        """Raise deltalake's errors as the project's."""
        return raising(self._location, "written")

    def _unwritable(self, what: str) -> SinkError:
        return SinkError(
            f"{self.shown} can't hold {what}",
            hint="Map the field to another value or type before the sink",
            code=ErrorCode.UNWRITABLE_VALUE,
        )

    @staticmethod
    def _fitted(batch: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
        """Return a batch with the columns of the table; those that it lacks are null."""
        import pyarrow as pa

        made = [
            cast_column(batch.column(one.name), one.type)
            if one.name in batch.schema.names
            else pa.nulls(batch.num_rows, one.type)
            for one in columns
        ]
        return pa.RecordBatch.from_arrays(made, schema=columns)


class Commits(Transactions):
    """The commits of a sink and a run; see the head of the file.

    Args:
        table: The table.
        identity: The identity of the sink.
        run: The run that writes.
    """

    def __init__(self, table: TableTarget, identity: str, run: str) -> None:
        self._table = table
        self._identity = identity
        self._run = run
        self._last: Token | None = None  # that this process has read or written

    def fence(self) -> Token | None:
        """Return the token; the next `write` rejects commits of others."""
        self._last = self.token()
        return self._last

    def token(self) -> Token | None:
        """Return the token; None: there is none."""
        return self._token(self._table.open())

    def write(self, token: Token, batches: Sequence[pa.RecordBatch]) -> None:
        """Write rows and their token in one commit."""
        from deltalake import CommitProperties, Transaction
        from deltalake.exceptions import CommitFailedError, DeltaError

        newest = self._table.open()
        if self._token(newest) != self._last:
            raise FencedError("another process has written to the table")
        numbers = {"": token.epoch, "/by": int(token.by), "/run": int(token.run), f"/{token.run}": 1}
        entries = [Transaction(self._identity + name, number) for name, number in numbers.items()]
        commit = CommitProperties(app_transactions=entries)
        with self._table.raising():
            try:
                self._table.append(newest, batches, commit)
            except DeltaError as error:
                is_late = newest is None and self._table.open() is not None  # somebody else has created it
                if not is_late and not isinstance(error, CommitFailedError):
                    raise
                raise FencedError(str(error)) from error
        self._last = replace(token, runs=(self._run,))

    def _token(self, table: DeltaTable | None) -> Token | None:
        if table is None:
            return None

        def number(name: str) -> int | None:
            return table.transaction_version(self._identity + name)

        if (epoch := number("")) is None:
            return None
        runs = () if number(f"/{self._run}") is None else (self._run,)
        return Token(epoch, str(number("/by")), str(number("/run")), runs)
