"""Jobs and results in notebooks: `_repr_html_`, and `job.watch()`, which updates in place.

A watch reads the job in a thread of its own, so nothing blocks the kernel; it ends with the job, or by `stop`.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from rayelastic.errors import ConfigError, SetupError
from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.plan_svg import OperatorNote, plan_svg
from rayelastic.plan.plan_text import counted, short
from rayelastic.runtime.values.period import job_period
from rayelastic.runtime.values.status import JobMetrics, JobStatus

ROWS = 10  # of a result that are shown
PERIOD = 1.0  # seconds between two pictures
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of a job, for its picture.

    Args:
        name: of the job, running or over.
        status: of it.
        metrics: of it.
        plan: in force.
    """

    name: str
    status: JobStatus
    metrics: JobMetrics
    plan: ExecPlan


def job_html(reading: Reading, before: JobMetrics | None = None) -> str:
    """Draw a job.

    Args:
        reading: what to draw.
        before: earlier metrics; `None`: totals instead of rates.
    """
    status, now, plan = reading.status, reading.metrics, reading.plan
    period = job_period(before, now)
    whole = sum(one.cpu_seconds for pe in period.pes for one in pe.operators) or 1.0
    notes = {}
    for name in dict.fromkeys(one.name for pe in now.pes for one in pe.operators):
        one, since = now.operator(name), period.operator(name)
        tuples = since.tuples_in if one.tuples_in else since.tuples_out
        rate = short(tuples) if before is None else f"{short(tuples / period.seconds)}/s"
        late = since.latency_quantile(0.99)
        queued = one.model != "manual" and one.queue_capacity > 0
        notes[name] = OperatorNote(
            one.lane,
            one.model,
            rate + (f", p99 {late * 1000:.3g} ms" if late is not None else ""),
            one.queue_fill if queued else None,
            since.cpu_seconds / whole,
        )
    heads = {pe.pe: f"{counted(pe.threads, 'thread')}, {pe.rss_bytes / MIB:.0f} MiB" for pe in now.pes}
    failure = f"<p>{escape(status.failure.reason)}</p>" if status.failure is not None else ""
    history = f", {escape(status.history)}" if status.history else ""
    head = f"<b>{escape(reading.name)}</b> {status.state.value}, {now.seconds:.1f} s{history}"
    return f'<div style="overflow:auto">{head}{failure}<br/>{plan_svg(plan, notes, heads)}</div>'


def result_html(values: Mapping[str, Any], seconds: float) -> str:
    """Show the output of each sink: the first rows, or one line."""
    parts = [f"<p>{seconds:.2f} s</p>"]
    for name, value in values.items():
        parts.append(f"<b>{escape(name)}</b> {_value_html(value)}")
    return "".join(parts)


def _value_html(value: Any) -> str:
    if isinstance(value, list):
        fields = getattr(type(value[0]), "_fields", None) if value else None
        return _table(fields, [tuple(row) if fields else (row,) for row in value[:ROWS]], len(value))
    if hasattr(value, "column_names") and hasattr(value, "slice"):  # a pyarrow.Table
        rows = [tuple(row.values()) for row in value.slice(0, ROWS).to_pylist()]
        return _table(value.column_names, rows, value.num_rows)
    return f"<code>{escape(repr(value))}</code>"


def _table(names: Any, rows: list[tuple[Any, ...]], count: int) -> str:
    head = "".join(f"<th>{escape(str(name))}</th>" for name in names or ())
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"{counted(count, 'row')}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


class Watch:
    """A picture of a job that updates in place until the job ends.

    Args:
        read: reads the job as it is now.
        show: shows HTML for the first time, and returns the function that replaces it.
        period: seconds between two pictures.
    """

    def __init__(
        self, read: Callable[[], Reading], show: Callable[[str], Callable[[str], None]], period: float
    ) -> None:
        if not 0 < period < math.inf:
            raise ConfigError(f"job.watch(period={period!r})", hint="Give seconds, more than 0")
        self._read = read
        self._period = period
        self._stopped = threading.Event()
        first = read()
        self._before = first.metrics
        self._update = show(job_html(first))
        self._thread = threading.Thread(target=self._run, name=f"watch-{first.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the watch with a last picture; the job continues."""
        self._stopped.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        over = False
        while not over:
            stopped = self._stopped.wait(self._period)
            try:
                now = self._read()
            except Exception:  # the job was closed, or its cluster is gone: wait() reports how
                return
            over = stopped or now.status.state.is_final
            self._update(job_html(now, self._before))
            self._before = now.metrics


def in_notebook(html: str) -> Callable[[str], None]:
    """Show HTML in the notebook's current cell; return a function that replaces it.

    Raises:
        SetupError: this isn't a notebook.
    """
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if not hasattr(shell, "kernel"):  # a terminal has no cell whose picture could be replaced
        raise SetupError(
            "job.watch() needs a notebook",
            hint="In a terminal use `rayelastic top JOB` for a job on Ray; in a browser JobConfig(web_port=0)",
        )
    from IPython.display import HTML, display

    handle = display(HTML(html), display_id=True)

    def update(html: str) -> None:
        handle.update(HTML(html))

    return update
