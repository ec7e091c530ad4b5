"""`rayelastic top JOB`: the live state of a job in a terminal, or as lines of text. It draws with rich.

A value (`View`) holds what is shown, drawn to the width and height of the terminal. The most expensive operators come
first; the rest is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rayelastic.plan.plan_text import counted, kind_text, short
from rayelastic.progress import remarks
from rayelastic.runtime.values.metrics import Unit
from rayelastic.runtime.values.period import SHORTEST, job_period
from rayelastic.runtime.values.status import JobMetrics, JobStatus, OperatorSample, PESample
from rayelastic.runtime.watch.bottleneck import Bottleneck, find_bottleneck
from rayelastic.runtime.watch.metric_table import OF_OPERATOR

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from rayelastic.job import Job
    from rayelastic.plan.exec_plan import ExecPlan, RegionPlan
    from rayelastic.runtime.values.adaptation import Adaptation
    from rayelastic.runtime.values.region_adaptation import RegionAdaptation

PERIOD = 1.0  # seconds between two pictures
WIDE = 120  # columns from which on everything is shown
MIB = 1 << 20
ADAPTATIONS = 3  # the last ones shown on a high terminal
WIDEST = 10_000  # columns: more than any table has
HIGH = 40  # lines from which on a terminal is high
BAR = 8  # characters of a bar
COUNTED = tuple(metric for metric in OF_OPERATOR if metric.top)  # columns of a wide terminal
WRITTEN: Mapping[Unit, Callable[[float], str]] = {
    Unit.COUNT: "{:,.0f}".format,
    Unit.SECONDS: "{:,.1f} s".format,
    Unit.BYTES: lambda size: f"{size / MIB:,.1f} MiB",
    Unit.SHARE: "{:.0%}".format,
}


@dataclass(frozen=True, slots=True)
class Row:
    """One operator on one PE, between two readings.

    Args:
        pe: where it runs.
        operator: its counters now.
        rate_in: tuples/s that it received.
        rate_out: tuples/s that it emitted.
        cost: its share of the CPU time of all operators of the job, 0..1.
        blocked: share of the time that threads were blocked on its output.
    """

    pe: str
    operator: OperatorSample
    rate_in: float
    rate_out: float
    cost: float
    blocked: float


@dataclass(frozen=True, slots=True)
class View:
    """A reading of a job.

    Args:
        status: of the job.
        metrics: its counters now.
        plan: in force.
        rows: its operators, the most expensive first.
        gil: {PE: seconds a second that its threads waited for the GIL}.
        bottleneck: what limits it; `None` before the second reading, and of a job that has ended.
        adaptations: the last changes, oldest first.
    """

    status: JobStatus
    metrics: JobMetrics
    plan: ExecPlan
    rows: tuple[Row, ...]
    gil: dict[str, float]
    bottleneck: Bottleneck | None
    adaptations: tuple[Adaptation | RegionAdaptation, ...]


def view(job: Job, before: JobMetrics | None) -> View:
    """Read a job.

    Args:
        job: running or over.
        before: the reading before; `None` for the first.
    """
    status, now, plan = job.status, job.metrics(), job.plan()
    passes = tuple(job.adaptations(every_pass=True))
    period = job_period(before, now)
    return View(
        status=status,
        metrics=now,
        plan=plan,
        rows=tuple(sorted(_rows(now, period), key=lambda row: -row.cost)),
        gil={pe.pe: pe.gil_wait_seconds / max(pe.seconds, SHORTEST) for pe in period.pes},
        bottleneck=find_bottleneck(before, now, plan, passes)
        if before is not None and not status.state.is_final
        else None,
        adaptations=tuple(one for one in passes if one.changed)[-ADAPTATIONS:],
    )


def _rows(now: JobMetrics, period: JobMetrics) -> Iterator[Row]:
    whole = sum(one.cpu_seconds for pe in period.pes for one in pe.operators) or 1.0
    for pe, later in zip(now.pes, period.pes, strict=True):
        seconds = max(later.seconds, SHORTEST)
        for operator, since in zip(pe.operators, later.operators, strict=True):
            yield Row(
                pe=pe.pe,
                operator=operator,
                rate_in=since.tuples_in / seconds,
                rate_out=since.tuples_out / seconds,
                cost=since.cpu_seconds / whole,
                blocked=min(1.0, since.blocked_seconds / seconds),
            )


def picture(seen: View, width: int, height: int) -> RenderableType:
    """Draw a view.

    Args:
        seen: what to draw.
        width: columns.
        height: lines; the rest is counted.
    """
    from rich.console import Console, Group
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

    wide = width >= WIDE
    status = seen.status
    head = f"{status.name}  {status.state.value}  {seen.metrics.seconds:.0f} s  {counted(len(seen.metrics.pes), 'PE')}"
    head += f"  {status.history}" if status.history else ""
    lines: list[RenderableType] = [_line(Text(head, style="bold"), width)]
    lines += [_line(_pe_line(pe, seen.gil.get(pe.pe, 0.0)), width) for pe in seen.metrics.pes[: max(1, height // 6)]]
    last: list[RenderableType] = []
    if seen.bottleneck is not None:
        last.append(_line(Text(f"bottleneck: {seen.bottleneck}", style="yellow"), width, lines=2 if wide else 3))
    shown = seen.adaptations if height >= HIGH else seen.adaptations[-1:]
    last += [_line(Text(f"adapted: {one}"), width) for one in shown]
    links = [(pe.pe, name, counters) for pe in seen.metrics.pes for name, counters in pe.links.items()]
    if wide:
        last += [_line(_link_line(*link), width) for link in links[: height // 8]]
    last += [_line(Text(line, style="yellow"), width) for line in remarks(seen.metrics)[: max(1, height // 8)]]
    if status.failure is not None:
        last.append(_line(Text(f"failed: {status.failure.reason}", style="red"), width, lines=2))

    table = Table(box=None, padding=(0, 1), pad_edge=False)
    table.add_column("operator", no_wrap=True, overflow="ellipsis", min_width=10)
    for name in (["PE"] if wide else []) + ["model"] + (["lane"] if wide else []):
        table.add_column(name, no_wrap=True)
    for name in ("in/s", "out/s"):
        table.add_column(name, justify="right", no_wrap=True, min_width=6)
    for name in ("cost", "queue"):
        table.add_column(name, no_wrap=True, min_width=BAR + 5 if wide else 4, justify="left" if wide else "right")
    table.add_column("blocked", justify="right", no_wrap=True)
    for name in [*(metric.top for metric in COUNTED), "p99"] if wide else []:
        table.add_column(name, justify="right", no_wrap=True)
    room = max(1, height - len(lines) - sum(_height(line, width) for line in last) - 3)
    rows = seen.rows if len(seen.rows) <= room else seen.rows[: max(1, room - 1)]
    for row in rows:
        table.add_row(*_cells(row, wide))
    if Measurement.get(unbounded := Console(width=WIDEST), unbounded.options, table).maximum > width:
        table.width, table.columns[0].ratio = width, 1  # names are cut, no number is
    if len(rows) < len(seen.rows):
        last.insert(0, Text(f"and {len(seen.rows) - len(rows)} cheaper ones"))
    graph = [_line(Text(line, style="dim"), width) for line in _graph_lines(seen.plan, room - len(seen.rows), width)]
    return Group(*lines, *graph, table, *last)


def _graph_lines(plan: ExecPlan, room: int, width: int) -> list[str]:
    """Return the regions of a plan, one a line, where there is room; else one line of all operators; else nothing."""
    if room < 1:
        return []
    chains = [" > ".join(planned.region.operators) for planned in plan.regions]
    if len(chains) > room or width < WIDE:
        return [f"graph  {'  |  '.join(chains)}"]
    kinds = [f"{one.region.name}  {kind_text(one.region)}, {_shape(one)}" for one in plan.regions]
    return [f"{kind}: {chain}" for kind, chain in zip(kinds, chains, strict=True)]


def _shape(planned: RegionPlan) -> str:
    return f"{counted(len(planned.pipelines), 'pipeline')} x {counted(planned.replicas, 'replica')}"


def _cells(row: Row, wide: bool) -> list[str]:
    operator = row.operator

    def share(value: float) -> str:
        return f"{_bar(value)} {value:4.0%}" if wide else f"{value:.0%}"

    cells = [operator.name, *([row.pe] if wide else []), operator.model, *([operator.lane] if wide else [])]
    cells += [short(row.rate_in), short(row.rate_out), share(row.cost)]
    cells += [share(operator.queue_fill) if operator.queue_capacity else "-", f"{row.blocked:.0%}"]
    if not wide:
        return cells
    late = operator.latency_quantile(0.99)
    counters = [WRITTEN[metric.unit](metric.of(operator)) for metric in COUNTED]
    return [*cells, *counters, f"{late * 1000:.3g} ms" if late is not None else "-"]


def _bar(share: float) -> str:
    filled = round(min(1.0, share) * BAR)
    return "#" * filled + "." * (BAR - filled)


def _pe_line(pe: PESample, gil: float) -> Any:
    from rich.text import Text

    stuck = f" ({pe.threads_stuck} stuck)" if pe.threads_stuck else ""
    models = {model: sum(one.model == model for one in pe.operators) for model in ("manual", "dynamic", "dedicated")}
    queues = ", ".join(f"{count} {model}" for model, count in models.items() if count)
    return Text(
        f"{pe.pe}  threads {pe.threads}{stuck}  {queues}  {pe.rss_bytes / MIB:.0f} MiB  waits for the GIL {gil:.0%}"
    )


def _link_line(pe: str, name: str, counters: dict[str, Any]) -> Any:
    from rich.text import Text

    sent, received = counters["bytes_sent"] / MIB, counters["bytes_received"] / MIB
    credit = counters["unconsumed_bytes"] / MIB
    again = counters["retransmits"]
    return Text(
        f"link {name} at {pe}: sent {sent:.1f} MiB, received {received:.1f} MiB, credit used {credit:.2f} MiB, "
        f"{again} sent again"
    )


def _line(text: Any, width: int, lines: int = 1) -> Any:
    """Cut a text to so many lines."""
    text.truncate(width * lines - 1, overflow="ellipsis")
    return text


def _height(line: Any, width: int) -> int:
    return max(1, -(-len(line.plain) // width))


def top(job: Job, console: Console) -> None:
    """Show a job until it ends, or until Ctrl-C, after which the job continues.

    Args:
        job: the job.
        console: where to; not a terminal: a picture a period, one below the other.
    """
    from rich.live import Live

    before: JobMetrics | None = None
    with Live(console=console, screen=console.is_terminal, auto_refresh=False) as live:
        while True:
            seen = view(job, before)
            before = seen.metrics
            drawn = picture(seen, console.width, console.height)
            if console.is_terminal:
                live.update(drawn, refresh=True)
            else:
                console.print(drawn)
            if seen.status.state.is_final:
                break
            job.pause(PERIOD)
    if console.is_terminal:
        console.print(drawn)  # what was seen last stays when the screen goes
