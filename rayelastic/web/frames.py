"""The activity of a job between two readings, as a table of numbers, a row an operator, and values of the whole job.

The table is float32 and goes to browsers as it is, so that thousands of operators cost next to nothing. Must not know
who keeps it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rayelastic.graph.spec.ports import operator_of
from rayelastic.runtime.values.operator_table import NUMBERS, OperatorTable
from rayelastic.runtime.values.period import SHORTEST, job_period
from rayelastic.runtime.values.status import latency_bound
from rayelastic.runtime.watch.metric_table import OF_OPERATOR

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.runtime.values.status import JobMetrics, PESample

COUNTED = tuple(metric for metric in OF_OPERATOR if metric.page)  # of an operator, summed over all PEs that host it
SUMMED = tuple(metric.source for metric in COUNTED if metric.source in (NUMBERS.names or ()))
# Rates in tuples/s; shares 0..1 of the PE where they are highest. The watermark, in seconds since 1970, is the sum of
# two columns, because float32 is too coarse; -inf: there is none.
COLUMNS = (
    *(metric.source for metric in COUNTED),
    "rate_in", "rate_out", "busy", "waited", "blocked", "cost", "fill", "p99", "model", "hosts",
    "watermark", "watermark_rest",
)  # fmt: skip
SERIES = (
    "throughput", "p50", "p99", "threads", "queues", "queued", "replicas", "state_bytes", "cpu",
    "to_move", "held",
)  # fmt: skip
AT = {name: number for number, name in enumerate(COLUMNS)}
RATED = ("tuples_in", "tuples_out", "inside_seconds", "waited_seconds", "blocked_seconds", "cpu_seconds")
MOST_KNOWN = 256  # lists of operators whose rows are kept: those of as many PEs


@dataclass(frozen=True, slots=True)
class Frame:
    """A job at one moment.

    Args:
        seconds: since its start.
        operators: a row for each operator of the plan, with COLUMNS; float32.
        series: {name of SERIES: value}. None: unknown, as the latency of a job whose sinks got no marks.
        pes: a dict for each PE. It has threads, memory in bytes, seconds a second waiting for the GIL.
        links: a dict for each link. It has bytes/s, and the share of time that its sender was blocked on output.
        regions: a dict for each region whose replicas have changed or are changing. It has what moved, and what moves.
        verdict: whether the job keeps up with its sources, or what limits it. None: unknown.
    """

    seconds: float
    operators: NDArray[np.float32]
    series: Mapping[str, float | None]
    pes: tuple[Mapping[str, Any], ...] = ()
    links: tuple[Mapping[str, Any], ...] = field(default=())
    regions: tuple[Mapping[str, Any], ...] = ()
    verdict: Mapping[str, Any] | None = None


class Rows:
    """Which operators have which rows of a job's tables; the same whatever plan is in force.

    Args:
        plan: any of its plans.
    """

    def __init__(self, plan: ExecPlan) -> None:
        self.operators = tuple(name for planned in plan.regions for name in planned.region.operators)
        self.places = {name: row for row, name in enumerate(self.operators)}
        fed = {operator_of(end) for _, end in plan.edges}
        self.sources = [row for name, row in self.places.items() if name not in fed]
        self._known: dict[tuple[str, ...], NDArray[np.intp]] = {}

    def of(self, names: tuple[str, ...]) -> NDArray[np.intp]:
        """Return the rows of operators; -1 of those that the job doesn't have."""
        if names not in self._known:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[names] = np.array([self.places.get(name, -1) for name in names], dtype=np.intp)
        return self._known[names]


def frame_between(before: JobMetrics | None, now: JobMetrics, plan: ExecPlan, rows: Rows) -> Frame:
    """Make the frame of two readings.

    Args:
        before: the earlier one; None: there is none, so that all rates are 0.
        now: the later one.
        plan: in force.
        rows: of its operators.
    """
    table = np.zeros((len(rows.operators), len(COLUMNS)), dtype=np.float64)
    period = job_period(before, now) if before is not None else None
    marks: list[tuple[int, ...]] = []
    for pe in now.pes:
        _add(table, rows, pe)
    for since in period.pes if period is not None else ():
        marks += _add_rates(table, rows, since)
    table[:, AT["watermark"] :] = _halves(now, rows)
    cost = table[:, AT["cost"]].sum()
    cpu = float(cost)
    if cost > 0:
        table[:, AT["cost"]] /= cost
    series = {
        "throughput": float(table[rows.sources, AT["rate_out"]].sum()) if before is not None else None,
        "p50": _quantile(marks, 0.5),
        "p99": _quantile(marks, 0.99),
        "threads": float(sum(pe.threads for pe in now.pes)),
        "queues": float((np.delete(table[:, AT["model"]], rows.sources) > 0).sum()),  # a source has none
        "queued": float(table[:, AT["queued"]].sum()),
        **replica_series(plan),
        "state_bytes": float(table[:, AT["state_bytes"]].sum()),
        "cpu": cpu if before is not None else None,
        "to_move": float(sum(one.to_move for one in now.regions.values())) if now.regions else None,
        "held": float(sum(one.held for one in now.regions.values())) if now.regions else None,
    }
    pes = tuple(_of_pe(pe, period is not None) | {"silent": pe.pe in now.silent} for pe in (period or now).pes)
    links = tuple(one for pe in period.pes for one in _links(pe)) if period is not None else ()
    moves = tuple({"region": name} | asdict(counted) for name, counted in now.regions.items())
    return Frame(now.seconds, table.astype(np.float32), series, pes, links, moves)


def replica_series(plan: ExecPlan) -> dict[str, float | None]:
    """Return the replicas of the most replicated region; None: no region can be replicated."""
    replicas = [one.replicas for one in plan.regions if one.region.kind.is_replicable]
    return {"replicas": float(max(replicas)) if replicas else None}


def _add(table: NDArray[np.float64], rows_of_job: Rows, now: PESample) -> None:
    """Add the current values of one PE to the table."""
    counted = OperatorTable.of(now.operators)
    rows = rows_of_job.of(counted.names)
    known = rows >= 0
    rows, value = rows[known], counted.numbers[known]
    fill = np.minimum(1.0, value["queued"] / np.maximum(value["queue_capacity"], 1)) * (value["queue_capacity"] > 0)
    table[rows, AT["fill"]] = np.maximum(table[rows, AT["fill"]], fill)
    table[rows, AT["hosts"]] += 1
    for name in SUMMED:
        table[rows, AT[name]] += value[name]
    table[rows, AT["model"]] = value["model"]
    for row, fields in counted.more.items():
        if (place := rows_of_job.places.get(counted.names[row])) is not None:
            table[place, AT["dropped"]] += sum(fields.get("dropped", {}).values())


def _add_rates(table: NDArray[np.float64], rows_of_job: Rows, period: PESample) -> list[tuple[int, ...]]:
    """Add the rates and shares of one PE to the table; return the latency marks of its sinks."""
    counted, seconds = OperatorTable.of(period.operators), max(period.seconds, SHORTEST)
    rows = rows_of_job.of(counted.names)
    known = rows >= 0
    rows, rate = rows[known], {name: counted.numbers[name][known] / seconds for name in RATED}
    table[rows, AT["rate_in"]] += rate["tuples_in"]
    table[rows, AT["rate_out"]] += rate["tuples_out"]
    table[rows, AT["cost"]] += rate["cpu_seconds"]
    inside, waited = rate["inside_seconds"], rate["waited_seconds"]
    shares = {"busy": inside - waited, "waited": waited, "blocked": rate["blocked_seconds"]}
    for name, share in shares.items():
        table[rows, AT[name]] = np.maximum(table[rows, AT[name]], share.clip(0, 1))
    marks = []
    for row, fields in counted.more.items():
        place, latency = rows_of_job.places.get(counted.names[row]), fields.get("latency", ())
        if place is not None and any(latency):
            marks.append(latency)
            table[place, AT["p99"]] = max(table[place, AT["p99"]], _quantile([latency], 0.99) or 0.0)
    return marks


def _halves(now: JobMetrics, rows: Rows) -> NDArray[np.float64]:
    """Return the least watermark of each operator over all PEs: what float32 holds of it, and the rest."""
    least = np.full(len(rows.operators), np.inf)
    for pe in now.pes:
        counted = OperatorTable.of(pe.operators)
        found, watermarks = rows.of(counted.names), counted.column("watermark")
        known = (found >= 0) & ~np.isnan(watermarks)
        np.minimum.at(least, found[known], watermarks[known])
    whole = np.where(np.isinf(least), -np.inf, least.astype(np.float32).astype(np.float64))
    return np.stack([whole, np.where(np.isinf(least), 0.0, least - whole)], axis=1)


def _quantile(marks: list[tuple[int, ...]], quantile: float) -> float | None:
    """Return the seconds that so many of the marks stayed below; of the last, open bucket its lower bound."""
    summed = [sum(column) for column in zip(*marks, strict=True)] if marks else []
    seen, wanted = 0, quantile * sum(summed)
    for bucket, count in enumerate(summed):
        seen += count
        if count and seen >= wanted:
            return latency_bound(min(bucket, len(summed) - 2))
    return None


def _of_pe(now: PESample, is_period: bool) -> dict[str, Any]:
    gil = round(now.gil_wait_seconds / max(now.seconds, SHORTEST), 3) if is_period else 0.0
    return {"pe": now.pe, "threads": now.threads, "stuck": now.threads_stuck, "rss": now.rss_bytes, "gil": gil}


def _links(period: PESample) -> Iterator[dict[str, Any]]:
    seconds = max(period.seconds, SHORTEST)
    for name, counters in period.links.items():
        yield {
            "link": name,
            "pe": period.pe,
            "sent": round(counters["bytes_sent"] / seconds),
            "received": round(counters["bytes_received"] / seconds),
            "blocked": round(counters["blocked_seconds"] / seconds, 3),
        }
