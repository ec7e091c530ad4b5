"""Ends a scheduler at once, though an operator may not return: a request without time-out, an endless loop.

Functions have a moment to return by themselves. Then GeneratorExit is raised in those that run Python code, as in
sources. A thread that waits in a library for ever can't be ended: it is left behind, and the operator is named.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from rayelastic.runtime.watch.event_log import tell

if TYPE_CHECKING:
    from rayelastic import _native
    from rayelastic.runtime.values.specs import PESpec

POLITE = 1.0  # seconds for functions to return
INSIST = 1.0  # seconds for them to unwind
LOOK = 0.2  # seconds between two checks of the running functions
BUSY = 0.5  # seconds of that time in a function after which it is the cause


def end_scheduler(
    spec: PESpec,
    scheduler: _native.Scheduler,
    natives: Mapping[str, _native.Operator],
    ids: Mapping[str, int],
    clock: Callable[[], float] = time.monotonic,
) -> tuple[str, ...]:
    """Stop a scheduler, and drop the tuples in flight; log a warning that names operators that don't return.

    Args:
        spec: The PE.
        scheduler: Its scheduler.
        natives: Its operators by name.
        ids: Their numbers in the scheduler.
        clock: Returns seconds, monotonic.

    Returns:
        The operators that don't return. Their threads, and all that they use, stay until they do.
    """
    if scheduler.stop_within(POLITE):
        return ()
    deadline = clock() + INSIST
    for native in natives.values():
        native.interrupt()
    before = _inside(scheduler, ids)
    while not scheduler.stop_within(LOOK):
        if clock() >= deadline:
            busy = [name for name, seconds in _inside(scheduler, ids).items() if seconds - before[name] > BUSY * INSIST]
            return _told(spec, tuple(name for name in natives if natives[name].is_inside or name in busy))
    return ()


def _told(spec: PESpec, left_behind: tuple[str, ...]) -> tuple[str, ...]:
    for name in left_behind:
        tell("operator doesn't return", job=spec.job, pe=spec.pe, level=logging.ERROR, operator=name)
        problem = f"job {spec.job!r}: operator {name!r} doesn't return"
        warnings.warn(f"{problem}; its thread is left behind until the process ends", RuntimeWarning, stacklevel=2)
    return left_behind


def _inside(scheduler: _native.Scheduler, ids: Mapping[str, int]) -> dict[str, float]:
    """Return for each operator the seconds that threads have been in its function."""
    counters = scheduler.sample().operators
    return {name: counters[number].inside_seconds for name, number in ids.items()}
