"""Samples of the native scheduler, for tests that play one; a counter that isn't named is 0."""

from types import SimpleNamespace
from typing import Any

OPERATOR = {
    "name": "", "model": "manual", "final": False, "tuples_in": 0, "tuples_out": 0, "queued": 0, "queue_capacity": 0,
    "cpu_seconds": 0.0, "inside_seconds": 0.0, "waited_seconds": 0.0, "blocked_seconds": 0.0,
}  # fmt: skip
SCHEDULER = {
    "thread_count": 1, "stuck": 0, "scheduler_seconds": 0.0, "idle_seconds": 0.0, "thread_seconds": 0.0,
    "blocked_seconds": 0.0, "engine_cpu_seconds": 0.0, "gil_wait_seconds": 0.0,
}  # fmt: skip


def native_sample(*operators: dict[str, Any], **counters: float) -> Any:
    """Return a `_native.Sample` of operators with these counters."""
    return SimpleNamespace(**SCHEDULER | counters, operators=[SimpleNamespace(**OPERATOR | one) for one in operators])
