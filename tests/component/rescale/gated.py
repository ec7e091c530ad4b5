"""Rows of a source that stops at gates, and a job that is changed while it stands at each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rayelastic as rel
from rayelastic import testing
from rayelastic.job import Job
from rayelastic.testing.collect import SINK

PATIENCE = 60.0  # seconds


def gated(rows: Sequence[Any], cuts: Sequence[int], schema: object) -> tuple[Any, list[testing.Gate]]:
    """Return a source that stops after each of some numbers of rows, and the gates where it stops."""
    gates = [testing.Gate() for _ in cuts]
    script: list[Any] = []
    for before, cut, gate in zip([0, *cuts], cuts, gates, strict=False):
        script += [*rows[before:cut], gate]
    return testing.script([*script, *rows[cuts[-1] :]], schema), gates


def rows_under_changes(
    topology: rel.Topology, config: rel.JobConfig, gates: Sequence[testing.Gate], change: Callable[[Job], object]
) -> list[tuple[Any, ...]]:
    """Run a topology of such a source, change the job at each gate, and return what arrived."""
    job = rel.start(topology, config)
    try:
        for gate in gates:
            assert gate.wait_reached(PATIENCE), job.status
            change(job)
            gate.open()
        return [tuple(t) for t in job.wait(PATIENCE)[SINK]]
    finally:
        for gate in gates:
            gate.open()
        job.close()
