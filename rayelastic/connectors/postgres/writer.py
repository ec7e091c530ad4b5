"""Writes a stream to a table of PostgreSQL, epoch by epoch: rows and epoch in one transaction.

A sink has an identity that outlives its processes: that of its run, stored in checkpoints. Its rows are staged in a
table of that name, by part: a part ends when a checkpoint is taken. `rayelastic_sinks` has the current writer of the
identity, so that an abandoned writer that still runs can't stage any more. `rayelastic_moves` has the transaction that
moved parts into the user's table. The `xmin` of rows identifies those after a checkpoint.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rayelastic.connectors.output.record import BlobStore, Output, SinkContext
from rayelastic.connectors.postgres.types import column_type
from rayelastic.connectors.secret import read_as, without_secrets
from rayelastic.connectors.sink import NewSink, SinkOperator
from rayelastic.errors import ErrorCode, SinkError, SinkLostError, SinkTakenError, StateError
from rayelastic.graph.records.shown import counted

if TYPE_CHECKING:
    import psycopg
    import pyarrow as pa

    from rayelastic.connectors.postgres.declaration import PostgresSink
    from rayelastic.graph.records.schema import Schema

LOCATION = "postgres:"  # the prefix of the identity in an output's location
CONNECT_TIMEOUT = 10  # seconds
LEDGER_LOCK = 0x72656C  # taken while the tables are created, by one writer at a time

LEDGER = """
CREATE TABLE IF NOT EXISTS rayelastic_sinks (
    sink text PRIMARY KEY, writer text NOT NULL, job text NOT NULL, parts bigint NOT NULL, runs text[] NOT NULL
);
CREATE TABLE IF NOT EXISTS rayelastic_moves (
    sink text, parts bigint, epoch bigint NOT NULL, rows bigint NOT NULL, transaction xid NOT NULL,
    PRIMARY KEY (sink, parts)
)
"""


def postgres_sink(new: NewSink, body: PostgresSink) -> SinkOperator:
    """Make a sink that writes to a table."""
    return new.owned(PostgresTable(body, new.schema, new.context))


class PostgresTable:
    """Writes batches to one table.

    Its methods except `commit` are called by one thread at a time.

    Args:
        sink: The description of the table.
        schema: The schema of the rows.
        context: The writer, and the run that it continues.

    Raises:
        SinkLostError: The server can't be reached.
        SinkTakenError: This run restores a checkpoint, and another one has already continued from it.
        StateError: The table isn't what the earlier run left.
    """

    def __init__(self, sink: PostgresSink, schema: Schema, context: SinkContext) -> None:
        from psycopg import sql

        before = context.outputs.get(context.sink)
        if before is not None and not before.location.startswith(LOCATION):
            before = None  # the sink of that name wrote to another location
        self._sink = sink
        self._schema = schema
        self._job = context.job
        self._run = hashlib.sha256(f"{context.run}/{context.sink}".encode()).hexdigest()[:16]
        self._before = before = before or Output(LOCATION + self._run, 0, lineage=context.run)
        self._lineage = before.lineage
        self._identity = before.location.removeprefix(LOCATION)
        self._writer = f"{self._run}-{secrets.token_hex(8)}"
        self._table = sql.Identifier(*sink.table.split("."))
        self._staged = sql.Identifier(f"rayelastic_staged_{self._identity}")
        self._columns = sql.SQL(", ").join(map(sql.Identifier, schema.names))
        self._rows = before.rows
        self._part = before.end
        self._copy: contextlib.ExitStack | None = None
        self._lines: Any = None
        self._lock = threading.Lock()  # guards the fields below
        self._prepared: dict[int, int] = {}  # {epoch: parts}
        self._closed = self._complete = False
        self._is_owner = False  # since it has taken the identity
        self._staging: psycopg.Connection[Any] | None = None
        with self._raising():
            self._moving = self._connected(autocommit=True)
            try:
                self._check()
            except BaseException:
                self._moving.close()
                raise

    def begin(self) -> str:
        """Take the identity and roll the table back to the checkpoint.

        Returns:
            A description of what it removed; empty: nothing.

        Raises:
            SinkError: The table lacks the columns.
            SinkTakenError: This run restores a checkpoint, and another one has already continued from it.
            StateError: The table isn't what the earlier run left.
        """
        with self._raising():
            with self._moving.transaction():  # all or nothing: if it fails, the current writer continues
                self._make()
                rows = self._take_up()
            self._is_owner = True
            self._staging = self._connected(autocommit=False)
            self._move(self._before.end, self._before.epoch)
        return f"{counted(rows, 'row')} of table {self._sink.table!r}" if rows else ""

    def write(self, batch: pa.RecordBatch) -> None:
        """Stage a batch, in the transaction of its part.

        Raises:
            SinkError: The server rejects a row.
            SinkLostError: The server is gone.
        """
        assert self._staging is not None
        with self._raising():
            if self._copy is None:
                from psycopg import sql

                copy = sql.SQL("COPY {} ({}, rayelastic_part) FROM STDIN").format(self._staged, self._columns)
                self._copy = contextlib.ExitStack()
                cursor = self._copy.enter_context(self._staging.cursor())
                self._lines = self._copy.enter_context(cursor.copy(copy))
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                self._lines.write_row((*row, self._part))
            self._rows += batch.num_rows

    def prepare(self, epoch: int, store: BlobStore) -> Output:  # noqa: ARG002  (the rows are on the server)
        """End the part, which is durable from now on; of a closed table, all rows are.

        Raises:
            SinkTakenError: Another process has replaced this one.
            SinkLostError: The server is gone.
        """
        if not self._complete:
            self._end_part()
            with self._lock:
                self._prepared[epoch] = self._part
        return self._output(epoch)

    def commit(self, epoch: int) -> None:
        """Move what was prepared for an epoch and those before into the table; safe to repeat, from any thread.

        Raises:
            SinkError: The server is gone, or rejects them; the next commit moves them too.
        """
        with self._lock:
            due = [number for number in self._prepared if number <= epoch]
            if not due or self._closed:
                return
            with self._raising():
                self._move_prepared(due)

    def close(self) -> str:
        """Move the rest; return the name of the table."""
        self._end_part()
        with self._lock, self._raising():
            self._move_prepared(list(self._prepared))
            self._move(self._part, 0)
            with self._moving.transaction():
                self._do("DROP TABLE {staged}")
            self._disconnect()
            self._complete = True
        return self._sink.table

    def abandon(self) -> None:
        """Close the connections; rows that aren't prepared are lost."""
        with self._lock:
            self._disconnect()

    def output(self, rows: int, store: BlobStore) -> Output:  # noqa: ARG002  (the rows are on the server)
        """End the part for a stopped job, which moves the rest when it is closed."""
        self._end_part()
        self._prepared[0] = self._part
        return self._output(0)

    # -- implementation -------------------------------------------------------------------------------------------

    def _output(self, epoch: int) -> Output:
        return Output(LOCATION + self._identity, self._rows, epoch, self._lineage, self._part)

    def _connected(self, *, autocommit: bool, writes: bool = True) -> psycopg.Connection[Any]:
        import psycopg

        return psycopg.connect(
            read_as(SinkError, self._sink.conninfo),
            password=read_as(SinkError, self._sink.password),
            connect_timeout=CONNECT_TIMEOUT,
            autocommit=autocommit,
            application_name=f"rayelastic-{self._identity}-{self._writer}" if writes else "rayelastic",
        )

    def _disconnect(self) -> None:
        self._closed = True
        for connection in (self._staging, self._moving):
            if connection is not None:
                connection.close()

    def _do(self, statement: str, values: Sequence[object] = ()) -> psycopg.Cursor[Any]:
        from psycopg import sql

        made = sql.SQL(statement).format(table=self._table, staged=self._staged, columns=self._columns)
        return self._moving.execute(made, values)

    def _end_others(self) -> None:
        """End the connections of earlier writers that may still run, as their transactions would block this one."""
        self._moving.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE starts_with(application_name, %s) AND application_name <> %s",
            (f"rayelastic-{self._identity}-", f"rayelastic-{self._identity}-{self._writer}"),
        )

    def _check(self) -> None:
        """Raise StateError unless all rows up to the checkpoint are there, and no others instead of them."""
        self._check_not_taken()
        before, held = self._before, 0
        if self._exists("rayelastic_moves"):
            held += self._sum(
                "SELECT sum(rows) FROM rayelastic_moves WHERE sink = %s AND parts <= %s", (self._identity, before.end)
            )
        if self._exists(f"rayelastic_staged_{self._identity}"):
            held += self._sum("SELECT count(*) FROM {staged} WHERE rayelastic_part < %s", (before.end,))
        if held != before.rows:
            raise StateError(
                f"the restored state needs {counted(before.rows, 'row')} of it in {self._sink.table!r}, of which "
                f"{held} are there",
                hint="Restore into the database that it wrote to. If a run restored from an earlier savepoint has "
                "removed rows, restore a later savepoint of that run",
                code=ErrorCode.MISSING_OUTPUT,
            )

    def _exists(self, table: str) -> bool:
        return self._sum("SELECT count(to_regclass(%s))", (table,)) > 0

    def _sum(self, statement: str, values: Sequence[object]) -> int:
        found = self._do(statement, values).fetchone()
        return int(found[0]) if found is not None and found[0] is not None else 0

    def _make(self) -> None:
        """Create missing tables, and take the identity: no other writer stages from now on."""
        from psycopg import sql

        columns = sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(field.name), sql.SQL(column_type(field)))
            for field in self._schema.fields
        )
        self._do("SELECT pg_advisory_xact_lock(%s)", (LEDGER_LOCK,))
        self._moving.execute(LEDGER)
        self._check_not_taken()
        self._end_others()
        self._moving.execute(sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(self._table, columns))
        self._do("CREATE TABLE IF NOT EXISTS {staged} AS SELECT {columns} FROM {table} WITH NO DATA")
        self._do(
            "ALTER TABLE {staged} ADD COLUMN IF NOT EXISTS rayelastic_part bigint, "
            "ADD COLUMN IF NOT EXISTS rayelastic_number bigserial"
        )
        self._part = self._sum(
            "INSERT INTO rayelastic_sinks VALUES (%s, %s, %s, %s, ARRAY[%s]) ON CONFLICT (sink) DO UPDATE "
            "SET writer = EXCLUDED.writer, job = EXCLUDED.job, "
            "runs = array(SELECT DISTINCT unnest(rayelastic_sinks.runs || EXCLUDED.runs)), "
            "parts = greatest(rayelastic_sinks.parts, EXCLUDED.parts) RETURNING parts",
            (self._identity, self._writer, self._job, self._before.end, self._run),
        )

    def _take_up(self) -> int:
        """Roll the table back to a checkpoint, or to when the job was stopped; return the number of removed rows."""
        before = self._before
        behind = self._do(
            "DELETE FROM rayelastic_moves WHERE sink = %s AND parts > %s RETURNING transaction::text, rows",
            (self._identity, before.end),
        ).fetchall()
        for transaction, rows in behind:
            taken = self._do("DELETE FROM {table} WHERE xmin = %s::xid", (transaction,)).rowcount
            if taken != rows:
                raise StateError(
                    f"{rows} rows that came into {self._sink.table!r} behind the checkpoint are to come again, of "
                    f"which {taken} are there as they were",
                    hint="Somebody has changed the table: put it right, and drop the sink from the snapshot",
                    code=ErrorCode.MISSING_OUTPUT,
                )
        self._do("DELETE FROM {staged} WHERE rayelastic_part >= %s", (before.end,))
        self._check()  # the previous run has ended since the first check
        return sum(rows for _, rows in behind)

    def _moved(self) -> int:
        """Return the number of parts in the table."""
        found = self._do("SELECT max(parts) FROM rayelastic_moves WHERE sink = %s", (self._identity,)).fetchone()
        return int(found[0]) if found and found[0] is not None else 0

    def _move_prepared(self, epochs: Sequence[int]) -> None:
        """Move what was prepared for some epochs, each by itself, because any of them may be restored."""
        if self._moving.closed:  # the connection was lost, and the server may be back
            self._moving = self._connected(autocommit=True)
        for epoch in sorted(epochs, key=self._prepared.__getitem__):
            self._move(self._prepared[epoch], epoch)
            del self._prepared[epoch]

    def _move(self, parts: int, epoch: int) -> None:
        """Move the parts before a number into the table: rows and epoch in one transaction."""
        with self._moving.transaction():
            self._hold_identity(self._moving)
            if self._moved() >= parts:
                return
            rows = self._do(
                "INSERT INTO {table} ({columns}) SELECT {columns} FROM {staged} "
                "WHERE rayelastic_part < %s ORDER BY rayelastic_number",
                (parts,),
            ).rowcount
            self._do("DELETE FROM {staged} WHERE rayelastic_part < %s", (parts,))
            self._do(
                "INSERT INTO rayelastic_moves VALUES (%s, %s, %s, %s, pg_current_xact_id()::xid)",
                (self._identity, parts, epoch, rows),
            )

    def _end_part(self) -> None:
        with self._raising():
            if self._copy is not None:
                copy, self._copy, self._lines = self._copy, None, None
                copy.close()
            assert self._staging is not None
            with self._staging.transaction():
                self._hold_identity(self._staging)
                self._part += 1
                self._staging.execute(  # no later writer uses this number for another part
                    "UPDATE rayelastic_sinks SET parts = %s WHERE sink = %s", (self._part, self._identity)
                )
            self._staging.commit()

    def _hold_identity(self, connection: psycopg.Connection[Any]) -> None:
        """Lock the identity until the transaction ends; raise SinkTakenError if another writer has taken it."""
        found = connection.execute(
            "SELECT writer, job FROM rayelastic_sinks WHERE sink = %s FOR UPDATE", (self._identity,)
        ).fetchone()
        if found is None or found[0] != self._writer:
            raise self._taken("another process" if found is None else f"job {found[1]!r}")

    def _check_not_taken(self) -> None:
        """Raise SinkTakenError if another run took the identity from this one, or they would alternate for ever."""
        if not self._exists("rayelastic_sinks"):
            return
        found = self._do("SELECT writer, job, runs FROM rayelastic_sinks WHERE sink = %s", (self._identity,)).fetchone()
        if found is not None and found[0].partition("-")[0] != self._run and self._run in found[2]:
            raise self._taken(f"job {found[1]!r}")

    def _taken(self, by: str) -> SinkTakenError:
        return SinkTakenError(
            f"{by} writes to {self._sink.table!r} instead of this run: it restored this run's savepoint",
            hint="This run writes nothing more. Use another table for a job beside it",
        )

    def _taken_by_another(self) -> SinkTakenError | None:
        """Return the error to raise if another writer ended a lost connection; None: it didn't."""
        import psycopg

        if not self._is_owner:
            return None
        with contextlib.suppress(psycopg.Error), self._connected(autocommit=True, writes=False) as fresh:
            try:
                with fresh.transaction():
                    fresh.execute(
                        "SELECT pg_advisory_xact_lock(%s)", (LEDGER_LOCK,)
                    )  # the writer that takes it holds it meanwhile
                    self._hold_identity(fresh)
            except SinkTakenError as taken:
                return taken
        return None

    @contextlib.contextmanager
    def _raising(self) -> Iterator[None]:
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            lost, text = isinstance(error, psycopg.OperationalError), without_secrets(f"{error}".strip().rstrip("."))
            if lost and (taken := self._taken_by_another()) is not None:
                raise taken from error
            raise (SinkLostError if lost else SinkError)(
                f"table {self._sink.table!r} of PostgreSQL can't be written: {text}",
                hint="Check server, rights and columns",
            ) from (error if text in str(error) else None)
