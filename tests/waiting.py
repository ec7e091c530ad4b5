"""Waits for what a running job does. A look every few milliseconds leaves the CPU to the job."""

from __future__ import annotations

import time
from collections.abc import Callable

from rayelastic.job import Job

PATIENCE = 100.0  # seconds; less than a test may take
LOOK = 0.005  # seconds


def wait_until(job: Job, condition: Callable[[], object], look: float = LOOK, patience: float = PATIENCE) -> None:
    """Return once a condition holds; fail if the job ends before, or if that takes too long."""
    until = time.monotonic() + patience
    while not condition():
        if job.status.state.is_final:
            assert condition(), job.status
            return
        assert time.monotonic() < until, "\n".join(map(str, job.adaptations(every_pass=True))) or job.status
        job.pause(look)


def wait_until_received(job: Job, operator: str, tuples: int) -> None:
    """Return once an operator has received so many tuples."""
    wait_until(job, lambda: job.metrics().operator(operator).tuples_in >= tuples)


def wait_until_emitted(job: Job, operator: str, tuples: int) -> None:
    """Return once an operator has emitted so many tuples."""
    wait_until(job, lambda: job.metrics().operator(operator).tuples_out >= tuples)


def wait_until_taken(job: Job, checkpoints: int) -> None:
    """Return once a job has taken so many checkpoints."""
    wait_until(job, lambda: job.status.checkpoints.taken >= checkpoints)
