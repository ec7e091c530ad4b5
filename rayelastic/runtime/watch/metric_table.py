"""Every metric by its name, and its values from a job's counters: the one table for Prometheus, Ray and the docs.

Must not know the transport. Totals only grow; a metric without "total" in its name is a current value, or one over the
time between two readings.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from rayelastic.runtime.values.hot_key import hot_keys_of
from rayelastic.runtime.values.status import FAILED, RegionCounters, latency_bound

if TYPE_CHECKING:
    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.runtime.values.status import JobMetrics, OperatorSample, PESample

__all__ = ["METRICS", "Kind", "Metric", "MetricsReader", "Reading"]

JOB = "rel_job"  # not "job": Prometheus reserves that name for its target, and would rename ours to "exported_job"
_OPERATOR = (JOB, "pe", "operator")
_PE = (JOB, "pe")
_DROPPED = (JOB, "pe", "operator", "reason")
_LATENCY = (JOB, "pe", "operator", "le")
_LINK = (JOB, "pe", "link")
_REGION = (JOB, "region")


class Kind(enum.Enum):
    """The behaviour of a metric."""

    COUNTER = "counter"  # only grows while its job runs
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Args:
        name: Its name in Prometheus; Ray adds `ray_` in front.
        kind: Counter or gauge.
        text: Its description, with its unit.
        labels: The labels of its values.
    """

    name: str
    kind: Kind
    text: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """One value of a metric.

    Args:
        metric: The metric's name.
        labels: One value for each of the metric's labels.
        value: The value in the metric's unit.
    """

    metric: str
    labels: tuple[str, ...]
    value: float


def _counter(name: str, text: str, labels: tuple[str, ...]) -> Metric:
    return Metric(f"rayelastic_{name}_total", Kind.COUNTER, text, labels)


def _gauge(name: str, text: str, labels: tuple[str, ...]) -> Metric:
    return Metric(f"rayelastic_{name}", Kind.GAUGE, text, labels)


_ALL = (
    _counter("operator_tuples_in", "Tuples received.", _OPERATOR),
    _counter("operator_tuples_out", "Tuples emitted.", _OPERATOR),
    _gauge("operator_rate", "Tuples a second received since the previous reading; of a source: emitted.", _OPERATOR),
    _gauge(
        "operator_cost_share",
        "Its share of the CPU time of all operators of its PE since the previous reading, 0 to 1.",
        _OPERATOR,
    ),
    _counter("operator_cpu_seconds", "CPU time inside its function, seconds.", _OPERATOR),
    _counter("operator_inside_seconds", "Time of threads inside its function, running or waiting, seconds.", _OPERATOR),
    _counter(
        "operator_waited_seconds",
        "Time of threads asleep inside its function, seconds.",
        _OPERATOR,
    ),
    _counter("operator_blocked_seconds", "Time of threads blocked on its output, seconds.", _OPERATOR),
    _gauge("operator_queued", "Tuples in its queue.", _OPERATOR),
    _gauge("operator_queue_fill", "Share of its queue that is full, 0 to 1; 0 without a queue.", _OPERATOR),
    _counter(
        "latency_marks",
        "Latency markers that took at most `le` seconds from a source to this sink. Each source sends ten a second.",
        _LATENCY,
    ),
    _gauge(
        "operator_watermark_seconds",
        "Its watermark, seconds since 1970, of streams with an event time: `time()` minus it is how far it lags.",
        _OPERATOR,
    ),
    _gauge("operator_state_keys", "Keys with state.", _OPERATOR),
    _gauge("operator_state_bytes", "Memory of that state, bytes; without the Python objects in it.", _OPERATOR),
    _counter("operator_errors", "Calls of its function that raised; the first one ends the job.", _OPERATOR),
    _counter(
        "operator_tuples_answered_by_python",
        "Tuples that its compiled function left to the Python function.",
        _OPERATOR,
    ),
    _counter(
        "operator_lines_repaired",
        "Lines that a text source read with bytes that aren't UTF-8, which became U+FFFD.",
        _OPERATOR,
    ),
    _counter(
        "operator_tuples_dropped",
        "Tuples dropped, by reason: an output port without a sink, such as `late`; `failed` (on_error='skip'); "
        "`bad_row` (on_bad_row='skip').",
        _DROPPED,
    ),
    _gauge("operator_channels", "Channels in use by an elastic or parallel stage; 0 for others.", _OPERATOR),
    _gauge("pe_threads", "Scheduler threads in force.", _PE),
    _gauge("pe_threads_stuck", "Scheduler threads that don't return from user code.", _PE),
    _gauge("pe_operators", "Operators under a threading model.", (*_PE, "model")),
    _gauge("pe_rss_bytes", "Memory of its process, bytes; `rel.run` has all PEs in one process.", _PE),
    _counter("pe_cpu_seconds", "CPU time of its native threads, seconds.", _PE),
    _counter("pe_gil_wait_seconds", "Time of threads that waited for the GIL, seconds.", _PE),
    _counter("link_sent_bytes", "Bytes sent over a link.", _LINK),
    _counter("link_received_bytes", "Bytes received over a link.", _LINK),
    _counter("link_sent_records", "Tuples sent over a link.", _LINK),
    _counter("link_received_records", "Tuples received over a link.", _LINK),
    _gauge("link_credit_used_bytes", "Bytes sent, or received, whose credit isn't returned.", _LINK),
    _counter("link_credit_waits", "Times that its sender had tuples and no credit.", _LINK),
    _counter("link_blocked_seconds", "Time that its sender waited for credit or for the socket, seconds.", _LINK),
    _counter("link_retransmits", "TCP segments sent again; 0 within a node.", _LINK),
    _gauge("region_replicas", "Replicas of a region.", _REGION),
    _gauge("region_pipelines", "Pipelines of each replica of a region.", _REGION),
    _counter("region_changes", "Changes of its replicas while the job ran.", _REGION),
    _counter("region_changes_undone", "Changes of its replicas that failed and were undone.", _REGION),
    _counter("region_moved_keys", "Keys whose state moved to another replica.", _REGION),
    _counter("region_moved_bytes", "Bytes of state that moved to another replica.", _REGION),
    _counter("region_held_seconds", "Time that moving keys waited for their state, seconds.", _REGION),
    _gauge("region_longest_hold_seconds", "The longest that moving keys have waited so far, seconds.", _REGION),
    _gauge(
        "region_hottest_key_share",
        "Share of its tuples that the most frequent key has, of a sample, 0 to 1; 0: no key has a tenth.",
        _REGION,
    ),
    _gauge("region_partitions_to_move", "Partitions of keys that the change under way has yet to move.", _REGION),
    _counter("job_checkpoints", "Complete checkpoints.", (JOB,)),
    _counter("job_checkpoints_abandoned", "Checkpoints that were abandoned; the job continued.", (JOB,)),
    _counter("job_restarts", "Recoveries, from a checkpoint or from the start.", (JOB,)),
    _gauge("job_checkpoint_seconds", "Time that the last complete checkpoint took, seconds.", (JOB,)),
    _gauge("job_checkpoint_paused_seconds", "Of that, time for which sources paused, seconds.", (JOB,)),
    _gauge("job_checkpoint_bytes", "State that the last complete checkpoint wrote, bytes.", (JOB,)),
    _gauge(
        "job_checkpoint_age_seconds",
        "Time since the last complete checkpoint, or since the start if there is none, seconds.",
        (JOB,),
    ),
    _gauge("job_epoch", "The routing epoch in force.", (JOB,)),
    _gauge("job_seconds", "Time since the start of the job, seconds.", (JOB,)),
)
METRICS = {metric.name: metric for metric in _ALL}

_OF_OPERATOR = {
    "rayelastic_operator_tuples_in_total": "tuples_in",
    "rayelastic_operator_tuples_out_total": "tuples_out",
    "rayelastic_operator_cpu_seconds_total": "cpu_seconds",
    "rayelastic_operator_inside_seconds_total": "inside_seconds",
    "rayelastic_operator_waited_seconds_total": "waited_seconds",
    "rayelastic_operator_blocked_seconds_total": "blocked_seconds",
    "rayelastic_operator_queued": "queued",
    "rayelastic_operator_queue_fill": "queue_fill",
    "rayelastic_operator_state_keys": "state_keys",
    "rayelastic_operator_state_bytes": "state_bytes",
    "rayelastic_operator_errors_total": "errors",
    "rayelastic_operator_tuples_answered_by_python_total": "answered_by_python",
    "rayelastic_operator_lines_repaired_total": "lines_repaired",
    "rayelastic_operator_channels": "channels",
}
_OF_REGION = {
    "rayelastic_region_changes_total": "changes",
    "rayelastic_region_changes_undone_total": "undone",
    "rayelastic_region_moved_keys_total": "moved_keys",
    "rayelastic_region_moved_bytes_total": "moved_bytes",
    "rayelastic_region_held_seconds_total": "held_seconds",
    "rayelastic_region_longest_hold_seconds": "longest_hold",
    "rayelastic_region_partitions_to_move": "to_move",
}
_OF_PE = {
    "rayelastic_pe_threads": "threads",
    "rayelastic_pe_threads_stuck": "threads_stuck",
    "rayelastic_pe_rss_bytes": "rss_bytes",
    "rayelastic_pe_cpu_seconds_total": "cpu_seconds",
    "rayelastic_pe_gil_wait_seconds_total": "token_wait_seconds",
}
_OF_LINK = {
    "rayelastic_link_sent_bytes_total": "bytes_sent",
    "rayelastic_link_received_bytes_total": "bytes_received",
    "rayelastic_link_sent_records_total": "records_sent",
    "rayelastic_link_received_records_total": "records_received",
    "rayelastic_link_credit_used_bytes": "unconsumed_bytes",
    "rayelastic_link_credit_waits_total": "credit_waits",
    "rayelastic_link_blocked_seconds_total": "blocked_seconds",
    "rayelastic_link_retransmits_total": "retransmits",
}


class MetricsReader:
    """Makes readings of a job's counters; keeps the last ones, for the rates.

    >>> from rayelastic.runtime.values.status import JobMetrics, OperatorSample, PESample
    >>> reader = MetricsReader()
    >>> def after(seconds, tuples):
    ...     operator = OperatorSample("count", "dynamic", tuples, 0, 5, queue_capacity=10)
    ...     return JobMetrics("words", seconds, (PESample("pe0", seconds, 2, 0.0, (operator,)),))
    >>> _ = list(reader.read(after(1.0, 100)))
    >>> {r.metric: r.value for r in reader.read(after(2.0, 300))}["rayelastic_operator_rate"]
    200.0
    """

    def __init__(self) -> None:
        self._before: dict[str, PESample] = {}

    def read(self, now: JobMetrics, plan: ExecPlan | None = None) -> Iterator[Reading]:
        """Yield every value.

        Args:
            now: The counters.
            plan: The plan in force, for regions.
        """
        yield Reading("rayelastic_job_seconds", (now.name,), now.seconds)
        if plan is not None:
            yield Reading("rayelastic_job_epoch", (now.name,), plan.epoch)
            hot = hot_keys_of(pe.hot_keys for pe in now.pes)
            for planned in plan.regions:
                labels = (now.name, planned.region.name)
                yield Reading("rayelastic_region_replicas", labels, planned.replicas)
                yield Reading("rayelastic_region_pipelines", labels, len(planned.pipelines))
                share = hot[planned.region.name].share if planned.region.name in hot else 0.0
                yield Reading("rayelastic_region_hottest_key_share", labels, share)
                counters = now.regions.get(planned.region.name, RegionCounters())
                for name, counter in _OF_REGION.items():
                    yield Reading(name, labels, getattr(counters, counter))
        yield from _of_checkpoints(now)
        for pe in now.pes:
            yield from self._of_pe(now.name, pe)
        self._before = {pe.pe: pe for pe in now.pes}

    def _of_pe(self, job: str, pe: PESample) -> Iterator[Reading]:
        for name, counter in _OF_PE.items():
            yield Reading(name, (job, pe.pe), getattr(pe, counter))
        for model, count in Counter(operator.model for operator in pe.operators).items():
            yield Reading("rayelastic_pe_operators", (job, pe.pe, model), count)
        for link, counters in pe.links.items():
            for name, counter in _OF_LINK.items():
                yield Reading(name, (job, pe.pe, link), counters[counter])
        before = self._before.get(pe.pe)
        seconds = pe.seconds - before.seconds if before is not None else 0.0
        earlier = {operator.name: operator for operator in before.operators} if before is not None else {}
        costs = {
            o.name: o.cpu_seconds - (earlier[o.name].cpu_seconds if o.name in earlier else 0) for o in pe.operators
        }
        cost = sum(costs.values())
        for operator in pe.operators:
            labels = (job, pe.pe, operator.name)
            for name, counter in _OF_OPERATOR.items():
                yield Reading(name, labels, getattr(operator, counter))
            yield from _latency(labels, operator)
            if operator.watermark is not None:
                yield Reading("rayelastic_operator_watermark_seconds", labels, operator.watermark)
            for reason, count in ({FAILED: 0} | dict(operator.dropped)).items():
                yield Reading("rayelastic_operator_tuples_dropped_total", (*labels, reason), count)
            then = earlier.get(operator.name)
            rate = (_moved(operator) - _moved(then)) / seconds if then is not None and seconds > 0 else 0.0
            yield Reading("rayelastic_operator_rate", labels, rate)
            yield Reading("rayelastic_operator_cost_share", labels, costs[operator.name] / cost if cost > 0 else 0.0)


def _of_checkpoints(now: JobMetrics) -> Iterator[Reading]:
    """Yield the readings of checkpoints; of a job without any, only that there are none."""
    counted, labels = now.checkpoints, (now.name,)
    checkpoints = [record for record in counted.recent if not record.place]
    yield Reading("rayelastic_job_checkpoints_total", labels, counted.taken)
    yield Reading("rayelastic_job_checkpoints_abandoned_total", labels, counted.abandoned)
    yield Reading("rayelastic_job_restarts_total", labels, counted.restarts)
    if not checkpoints:
        return
    yield Reading("rayelastic_job_checkpoint_seconds", labels, counted.seconds)
    yield Reading("rayelastic_job_checkpoint_paused_seconds", labels, counted.paused)
    last = next((record for record in reversed(checkpoints) if not record.problem), None)
    yield Reading("rayelastic_job_checkpoint_bytes", labels, last.bytes if last is not None else 0)
    age = now.seconds - (last.at if last is not None else 0.0)
    yield Reading("rayelastic_job_checkpoint_age_seconds", labels, age)


def _latency(labels: tuple[str, str, str], operator: OperatorSample) -> Iterator[Reading]:
    """Yield the buckets of a latency, each with all values up to its bound, as in a histogram of Prometheus."""
    bounds = [f"{latency_bound(bucket):g}" for bucket in range(len(operator.latency) - 1)] + ["+Inf"]
    for bound, marks in zip(bounds, accumulate(operator.latency), strict=False):
        yield Reading("rayelastic_latency_marks_total", (*labels, bound), marks)


def _moved(operator: OperatorSample) -> int:
    """Return the tuples that it received; of a source, those that it emitted."""
    return operator.tuples_in or operator.tuples_out
