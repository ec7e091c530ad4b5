"""One line that says how far a running job is: tuples a second, for each operator.

On a terminal the line is rewritten in place; elsewhere a new line comes every few seconds.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from typing import TYPE_CHECKING, Self, TextIO

from rayelastic.plan.plan_text import counted, short
from rayelastic.runtime.watch.dropped import OF_TIME, REASONS

if TYPE_CHECKING:
    from rayelastic.job import Job
    from rayelastic.runtime.values.status import JobMetrics

MOST = 8  # operators that a line names
TERMINAL_PERIOD = 0.5  # seconds
FILE_PERIOD = 5.0  # seconds


def progress_line(before: JobMetrics | None, now: JobMetrics) -> str:
    """Return the line for two successive readings: total and current rate of each operator."""
    if not any(one.tuples_in or one.tuples_out for pe in now.pes for one in pe.operators):
        return f"{now.seconds:5.1f} s  waiting for the first tuples"
    operators = now.operators()
    earlier = {} if before is None else before.operators()
    began = 0.0 if before is None else before.seconds
    shown = {one.name for one in sorted(operators.values(), key=lambda one: -one.cpu_seconds)[:MOST]}
    parts = []
    for name in (name for name in operators if name in shown):
        count, then = (max(one.tuples_in, one.tuples_out) if one else 0 for one in (operators[name], earlier.get(name)))
        known = now.seconds > began and (before is None or name in earlier)
        rate = max(0, count - then) / (now.seconds - began) if known else 0.0
        parts.append(f"{name} {short(count)} ({short(rate)}/s)")
    more = f"  and {len(operators) - len(shown)} cheaper ones" if len(shown) < len(operators) else ""
    return f"{now.seconds:5.1f} s  " + "  ".join(parts) + more


def summary_line(now: JobMetrics) -> str:
    """Return the line for the end: total and average rate of each operator; of many, the most expensive ones."""
    operators = list(now.operators().values())
    shown = operators if len(operators) <= MOST else sorted(operators, key=lambda one: -one.cpu_seconds)[:MOST]
    parts = []
    for one in shown:
        count = max(one.tuples_in, one.tuples_out)
        parts.append(f"{one.name} {short(count)} ({short(count / max(now.seconds, 1e-9))}/s on average)")
    more = f"  and {len(operators) - len(shown)} cheaper ones" if len(shown) < len(operators) else ""
    return f"{now.seconds:5.1f} s  " + "  ".join(parts) + more


def remarks(now: JobMetrics, *, ended: bool = False) -> list[str]:
    """Return a line for silent PEs, and for each kind of tuples that were dropped, left to Python, or repaired.

    Args:
        now: the counters.
        ended: leave late tuples out, which `warn_late` has logged, and silent PEs.
    """
    lines = []
    if now.silent and not ended:
        lines.append(f"no answer from {', '.join(now.silent)}: the last counters are shown")
    for name, operator in now.operators().items():
        for reason, count in operator.dropped.items():
            if ended and reason in OF_TIME:
                continue
            lines.append(
                f"{name}: {counted(count, 'tuple')} {REASONS.get(reason, f'dropped: nobody takes {reason!r}')}"
            )
        if operator.answered_by_python:
            lines.append(f"{name}: {counted(operator.answered_by_python, 'tuple')} left to Python by compiled code")
        if operator.lines_repaired:
            lines.append(
                f"{name}: {counted(operator.lines_repaired, 'line')} with bytes that aren't UTF-8, "
                "which became U+FFFD: set encoding="
            )
    return lines


class Progress:
    """Show the progress of a job while a `with` block lasts.

    Args:
        job: the running job.
        stream: where to write; standard error by default.
    """

    def __init__(self, job: Job, stream: TextIO = sys.stderr) -> None:
        self._job = job
        self._stream = stream
        self._in_place = stream.isatty()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._show, name="progress", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(timeout=5.0)
        if self._in_place:
            self._stream.write("\n")
            self._stream.flush()

    def _show(self) -> None:
        before: JobMetrics | None = None
        next_line = time.monotonic()
        while not self._done.wait(TERMINAL_PERIOD):
            try:
                now = self._job.metrics()
            except Exception:  # the job has ended; wait() reports how
                return
            if self._in_place:
                line = progress_line(before, now)
                before = now
                width = shutil.get_terminal_size().columns - 1
                self._stream.write("\r" + line[:width].ljust(width))
                self._stream.flush()
            elif time.monotonic() >= next_line:
                self._stream.write(progress_line(before, now) + "\n")
                before = now  # the rate is that since the last line
                self._stream.flush()
                next_line = time.monotonic() + FILE_PERIOD
