"""Runs a stream of rows through operators under several threading models and numbers of threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

import rayelastic as rel

CONFIGS = {
    "manual": rel.JobConfig(threads=rel.Threads(model="manual")),
    "dynamic, 1 thread": rel.JobConfig(threads=rel.Threads(count=1, model="dynamic")),
    "dynamic, 2 threads": rel.JobConfig(threads=rel.Threads(count=2, model="dynamic")),
    "dynamic, 8 threads, small queues": rel.JobConfig(
        threads=rel.Threads(count=8, model="dynamic", queue_records=8, run_records=4)
    ),
    "2 PEs": rel.JobConfig(pes=2),
}


def table_of(schema: type, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """The rows as an Arrow table, so that a native source reads them."""
    described = rel.Schema.of(schema).to_arrow()
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(described.names)
    arrays = [pa.array(column, f.type) for column, f in zip(columns, described, strict=True)]
    return pa.table(arrays, schema=described)


def results(
    schema: type,
    rows: Sequence[tuple[Any, ...]],
    declare: Callable[[rel.Stream], rel.Stream],
    config: rel.JobConfig | None = None,
) -> list[tuple[Any, ...]]:
    """What `declare` gives for the rows, in order."""
    topology = rel.Topology("test")
    declare(topology.source(rel.arrow(table_of(schema, rows), schema), name="rows")).sink(rel.list(), name="out")
    return [tuple(t) for t in rel.run(topology, config)["out"]]
