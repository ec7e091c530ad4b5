"""A job that has taken some rows, and whose stream hasn't ended."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import rayelastic as rel
from rayelastic import testing

PATIENCE = 60.0  # seconds


@contextlib.contextmanager
def behind_gate(
    rows: Sequence[Any], declare: Callable[[rel.Stream], None], config: rel.JobConfig | None = None
) -> Iterator[rel.Job]:
    """The job 'gated': its source 'rows' has given all rows and waits at a gate, until the block ends.

    Args:
        rows: named tuples of one class.
        declare: what becomes of the stream of them.
        config: of the job.
    """
    gate, topology = testing.Gate(), rel.Topology("gated")
    declare(topology.source(testing.script([*rows, gate], type(rows[0])), name="rows"))
    job = rel.start(topology, config)
    try:
        assert gate.wait_reached(PATIENCE)
        yield job
    finally:
        gate.open()
        job.close()
