"""Rows in, rows out: one stream through an operator, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from rayelastic.connectors.memory.declaration import list as list_sink
from rayelastic.connectors.memory.declaration import rows as rows_source
from rayelastic.fluent.stream import Stream
from rayelastic.job import run
from rayelastic.plan.config import JobConfig
from rayelastic.plan.settings.checkpoint import Checkpoint
from rayelastic.runtime.values.snapshot import Snapshot
from rayelastic.topology import Topology

Declare = Callable[[Stream], Stream]

SOURCE = "rows"  # names of the source and sink around the operator under test
SINK = "collected"


def topology_of(declare: Declare, source: Any) -> Topology:
    """Return the operator under test between a source and a list."""
    topology = Topology("test")
    declare(topology.source(source, name=SOURCE)).sink(list_sink(), name=SINK)
    return topology


def collect(
    declare: Declare,
    rows: Iterable[Any],
    schema: Any,
    config: JobConfig | None = None,
    *,
    restore: Snapshot | Checkpoint | str | Path | None = None,
) -> list[tuple[Any, ...]]:
    """Return an operator's output for rows, in order.

    Args:
        declare: Receives the stream of the rows and returns the one to collect, with any number of operators between.
        rows: Tuples of the schema.
        schema: The schema of the rows, see Schema.of.
        config: The job's configuration; JobConfig() by default.
        restore: A snapshot to restore.

    Raises:
        DeclarationError: It is declared wrongly.
        JobFailedError: It raised.

    >>> import rayelastic as rel
    >>> collect(lambda s: s.key_by("k").aggregate(name="n", n=rel.count()), [("a",), ("b",), ("a",)], {"k": str})
    [('a', 2), ('b', 1)]
    """
    topology = topology_of(declare, rows_source([*rows], schema=schema))
    return [tuple(row) for row in run(topology, config, restore=restore)[SINK]]
