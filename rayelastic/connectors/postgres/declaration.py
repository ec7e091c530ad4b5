"""A table of PostgreSQL as a sink: a value that describes it. The runtime writes the rows."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from typing import ClassVar

from rayelastic.connectors.description import OBJECTS, TREES, Sink
from rayelastic.connectors.secret import Secret, check_secret
from rayelastic.errors import ErrorCode, SinkError
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.shown import shown
from rayelastic.graph.spec.operator_spec import Lane


@dataclass(frozen=True, slots=True)
class PostgresSink(Sink):
    """Appends rows to a table of PostgreSQL, epoch by epoch."""

    unsupported: ClassVar[frozenset[DataType]] = OBJECTS | TREES
    conninfo: str | Secret = field(repr=False)  # may contain a password
    table: str
    password: Secret | None = None
    lane: Lane = field(default=Lane.BUILT_IN, repr=False)
    reason: str = field(default="Arrow batches to PostgreSQL", repr=False)

    def check(self, operator: str) -> None:
        """Raise SinkError if psycopg isn't installed, or an argument is invalid."""
        if importlib.util.find_spec("psycopg") is None:
            raise SinkError(
                "PostgreSQL needs psycopg, which isn't installed",
                operator=operator,
                hint="pip install 'rayelastic[postgres]'",
                code=ErrorCode.MISSING_PACKAGE,
            )
        check_secret("password", self.password, SinkError)
        for what, value in (("conninfo", self.conninfo), ("table", self.table)):
            argument: object = value
            if what == "conninfo" and isinstance(value, Secret):
                continue
            if not isinstance(argument, str) or (what == "table" and not argument.strip(".")):
                raise SinkError(
                    f"{what}={shown(argument)} is invalid",
                    operator=operator,
                    hint="Pass rel.postgres('postgresql://user@host/database', 'table')",
                    code=ErrorCode.WRONG_TYPE,
                )


def postgres(conninfo: str | Secret, table: str, *, password: Secret | None = None) -> PostgresSink:
    """Append the stream to a table of PostgreSQL, exactly once.

    Rows are first copied into a table of the sink's own. When a checkpoint is complete, one transaction moves its rows
    into the table and records the checkpoint's number. Without checkpoints this happens at the end. A job that restores
    a checkpoint deletes the rows that came after it, by the transaction that wrote them. Rows that somebody has changed
    since make that an error. A missing table is created; an existing one needs the columns of the stream, by name. A
    second table `rayelastic_moves` records which rows came with which checkpoint.

    Args:
        conninfo: A connection string of libpq: 'postgresql://user@host:5432/database' or 'host=... dbname=...', or a
            `rel.secret` of one.
        table: Its name, with a schema if needed.
        password: A `rel.secret`, which the processes that write read for each connection.

    >>> import rayelastic as rel
    >>> rel.postgres("postgresql://user@host/shop", "totals", password=rel.secret("PGPASSWORD"))
    PostgresSink(table='totals', password=Secret(variable='PGPASSWORD', file=''))
    """
    return PostgresSink(conninfo, table, password)
