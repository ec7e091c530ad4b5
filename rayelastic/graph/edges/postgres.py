"""A table of PostgreSQL as the end of a stream: a value that says where rows go. The runtime has what writes them."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from typing import ClassVar

from rayelastic.errors import SinkError
from rayelastic.graph.edges.sinks import OBJECTS, TREES
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.shown import shown
from rayelastic.graph.spec.operator_spec import Lane

__all__ = ["PostgresSink", "postgres"]


@dataclass(frozen=True, slots=True)
class PostgresSink:
    """Appends rows to a table of PostgreSQL, epoch by epoch."""

    refuses: ClassVar[frozenset[DataType]] = OBJECTS | TREES
    conninfo: str = field(repr=False)  # may have a password
    table: str
    lane: Lane = Lane.BUILT_IN
    reason: str = "Arrow batches to PostgreSQL"

    def check(self, operator: str) -> None:
        """Raise SinkError if psycopg isn't there, or what was given names no table."""
        if importlib.util.find_spec("psycopg") is None:
            raise SinkError(
                "PostgreSQL needs psycopg, which isn't installed",
                operator=operator,
                hint="pip install 'rayelastic[postgres]'",
            )
        for what, value in (("conninfo", self.conninfo), ("table", self.table)):
            given: object = value
            if not isinstance(given, str) or (what == "table" and not given.strip(".")):
                raise SinkError(
                    f"{what}={shown(given)}",
                    operator=operator,
                    hint="Give rel.postgres('postgresql://user@host/database', 'table')",
                )


def postgres(conninfo: str, table: str) -> PostgresSink:
    """Append the stream to a table of PostgreSQL, each row once, whatever is lost when.

    Rows are copied into a table of the sink's own first. When a checkpoint is complete those that it counts on go into
    the table, in one transaction with the number of the checkpoint; without checkpoints all of them at the end. A job
    that goes back takes out what came after its checkpoint: by the transaction that wrote it, so rows that somebody
    has changed since make that an error. The table is made if it is missing; one that is there needs the columns of
    the stream, by name. Beside it there is a table `rayelastic_moves`, which tells what came when.

    Args:
        conninfo: where, as libpq has it: 'postgresql://user@host:5432/database' or 'host=... dbname=...'. A password
            is better given by a password file (~/.pgpass) of the processes that write.
        table: its name, with a schema in front if need be.

    >>> import rayelastic as rel
    >>> rel.postgres("postgresql://user:secret@host/shop", "totals")
    PostgresSink(table='totals', lane=<Lane.BUILT_IN: 'built-in'>, reason='Arrow batches to PostgreSQL')
    """
    return PostgresSink(conninfo, table)
