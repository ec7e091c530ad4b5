"""Decides whether checkpoint barriers can flow through a job's streams, or its sources have to be held.

Pure: knows the operators and the plan, nothing that runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayelastic.plan.config import Regions

if TYPE_CHECKING:
    from rayelastic.graph.spec.operator_spec import OperatorSpec
    from rayelastic.runtime.values.specs import JobSpec

__all__ = ["why_standstill"]


def why_standstill(job: JobSpec) -> str:
    """Return why the sources of a job are held while a checkpoint is taken; empty: barriers flow with the records.

    Args:
        job: The job.

    Returns:
        A sentence that names an operator, or nothing.
    """
    for spec in job.operators.values():
        if spec.loop_edges:
            return f"a loop leads back to '{spec.name}': what goes round in it can't be cut in two"
        if any(port.demand is not None for port in spec.inputs):
            return f"'{spec.name}' waits until each input has what it wants: no mark stands between two of its calls"
        if not spec.body.aligns:
            return f"'{spec.name}' is between the channels of a stage, where turns are under way"
    meeting = _where_streams_meet(job)
    for spec in job.operators.values():
        if meeting and (woken := _why_woken(spec)):
            return f"'{spec.name}' {woken}, and {meeting}"
    return ""


def _why_woken(spec: OperatorSpec) -> str:
    """Return what runs an operator between its tuples; empty: nothing."""
    if spec.body.concurrent is not None:
        return "waits for several calls at a time"
    return "is woken by the clock" if spec.body.uses_clock else ""


def _where_streams_meet(job: JobSpec) -> str:
    for spec in job.operators.values():
        if len(spec.edges) > 1:
            return f"several streams lead to '{spec.name}'"
    if job.config.regions not in (None, Regions.FIXED):
        return "regions may have several replicas"
    return ""
