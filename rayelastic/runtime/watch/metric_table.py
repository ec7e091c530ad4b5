"""Every metric of a job, and its values: the one table for Prometheus, Ray, `top`, the web UI, the dashboard, the docs.

A class of samples declares those that it counts; the others stand here. Must not know the transport. Totals only grow;
a metric without "total" in its name is a current value, or one over the time between two readings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from rayelastic.runtime.values.checkpoint_record import CheckpointCounters
from rayelastic.runtime.values.hot_key import hot_keys_of
from rayelastic.runtime.values.metrics import Alert, Kind, Metric, Panel, Scope, Unit, declared
from rayelastic.runtime.values.period import SHORTEST, job_period
from rayelastic.runtime.values.region_counters import RegionCounters
from rayelastic.runtime.values.status import FAILED, OperatorSample, PESample, latency_bound

if TYPE_CHECKING:
    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.runtime.values.status import JobMetrics

__all__ = ["METRICS", "OF_OPERATOR", "Kind", "Metric", "MetricsReader", "Reading"]


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


OF_OPERATOR = declared(OperatorSample, Scope.OPERATOR)
_OF_PE = declared(PESample, Scope.PE)
_OF_REGION = declared(RegionCounters, Scope.REGION)
_OF_JOB = declared(CheckpointCounters, Scope.JOB)


_QUANTILE = "histogram_quantile({}, sum by (rel_job, operator, le) (rate({{}}[1m])))"
_LATENCIES, _TIMES = "Latency from source to sink", "Checkpoints: time"  # panels


def _counter(scope: Scope, source: str, text: str, *panels: str | Panel, **settings: Any) -> Metric:
    drawn = tuple(Panel(one) if isinstance(one, str) else one for one in panels)
    return Metric(scope, source, text, panels=drawn, **settings)


def _gauge(*declaration: Any, **settings: Any) -> Metric:
    return _counter(*declaration, kind=Kind.GAUGE, **settings)


# fmt: off
_OF_LINK = (  # `source` is the key of a native counter
    _counter(Scope.LINK, "bytes_sent", "Bytes sent over a link.", "Link bytes", short="sent_bytes"),
    _counter(Scope.LINK, "bytes_received", "Bytes received over a link.", short="received_bytes"),
    _counter(Scope.LINK, "records_sent", "Tuples sent over a link.", short="sent_records"),
    _counter(Scope.LINK, "records_received", "Tuples received over a link.", short="received_records"),
    _gauge(Scope.LINK, "unconsumed_bytes", "Bytes sent, or received, whose credit isn't returned.",
           "Link credit in use", short="credit_used_bytes"),
    _counter(Scope.LINK, "credit_waits", "Times that its sender had tuples and no credit."),
    _counter(Scope.LINK, "blocked_seconds", "Time that its sender waited for credit or for the socket, seconds."),
    _counter(Scope.LINK, "retransmits", "TCP segments sent again; 0 within a node.", "Link retransmits"),
)
_RATE = _gauge(
    Scope.OPERATOR, "rate",
    "Tuples a second received since the previous reading, or the start; of a source: emitted.")
_COST_SHARE = _gauge(
    Scope.OPERATOR, "cost_share",
    "Its share of the CPU time of all operators of its PE since the previous reading, or the start, 0 to 1.",
    "Share of cost")
_QUEUE_FILL = _gauge(
    Scope.OPERATOR, "queue_fill", "Share of its queue that is full, 0 to 1; 0 without a queue.", "Queue fill")
_LATENCY = _counter(
    Scope.OPERATOR, "latency_marks",
    "Latency markers that took at most `le` seconds from a source to this sink. Each source sends ten a second.",
    Panel(_LATENCIES, "{{operator}} p50", _QUANTILE.format(0.5), Unit.SECONDS),
    Panel(_LATENCIES, "{{operator}} p99", _QUANTILE.format(0.99), Unit.SECONDS),
    more=("le",), alert=Alert(
        "LatencyHigh", "1 % of tuples took more than 10 s",
        "histogram_quantile(0.99, sum by (rel_job, operator, le) (rate({}[5m]))) > 10", "5m",
        "1 in 100 tuples takes more than 10 s to {{ $labels.operator }} of job {{ $labels.rel_job }}"))
_WATERMARK = _gauge(
    Scope.OPERATOR, "watermark",
    "Its watermark, seconds since 1970, of streams with an event time: `time()` minus it is how far it lags.",
    short="watermark_seconds")
_MODELS = _gauge(
    Scope.PE, "operators", "Operators under a threading model.", Panel("Threading models", "{{model}} on {{pe}}"),
    more=("model",))
_SILENT = _gauge(
    Scope.PE, "silent", "1 if it doesn't answer, and its other metrics are the last known ones; otherwise 0.",
    alert=Alert(
        "Silent", "a PE doesn't answer", "{} > 0", "1m",
        "{{ $labels.pe }} of job {{ $labels.rel_job }} doesn't answer: its host or its network may be overloaded"))
_REPLICAS = _gauge(Scope.REGION, "replicas", "Replicas of a region.", "Replicas")
_PIPELINES = _gauge(Scope.REGION, "pipelines", "Pipelines of each replica of a region.", "Pipelines")
_HOTTEST_KEY = _gauge(
    Scope.REGION, "hottest_key_share",
    "Share of its tuples that the most frequent key has, of a sample, 0 to 1; 0: no key has a tenth.")
_CHECKPOINT_SECONDS = _gauge(
    Scope.JOB, "checkpoint_seconds", "Time that the last complete checkpoint took, seconds.",
    Panel(_TIMES, "the last one took"))
_CHECKPOINT_PAUSED = _gauge(
    Scope.JOB, "checkpoint_paused_seconds", "Of that, time for which sources paused, seconds.",
    Panel(_TIMES, "sources paused"))
_CHECKPOINT_BYTES = _gauge(
    Scope.JOB, "checkpoint_bytes", "State that the last complete checkpoint wrote, bytes.",
    "Checkpoints: state written")
_CHECKPOINT_AGE = _gauge(
    Scope.JOB, "checkpoint_age_seconds",
    "Time since the last complete checkpoint, or since the start if there is none, seconds.",
    Panel(_TIMES, "since the last one"), alert=Alert(
        "CheckpointsTooOld", "a failure now would repeat more than 5 minutes of work", "{} > 300", "1m",
        "Job {{ $labels.rel_job }} has had no complete checkpoint for 5 minutes: "
        "a failure would repeat that much work"))
_COPY_AGE = _gauge(
    Scope.JOB, "checkpoint_second_copy_age_seconds",
    "Time since the last checkpoint that is on two nodes, or since the start if there is none, seconds.")
_EPOCH = _gauge(Scope.JOB, "epoch", "The routing epoch in force.", "Routing epoch")
_SECONDS = _gauge(Scope.JOB, "seconds", "Time since the start of the job, seconds.")
_ALL = (
    *OF_OPERATOR, _RATE, _COST_SHARE, _QUEUE_FILL, _LATENCY, _WATERMARK,
    *_OF_PE, _MODELS, _SILENT, *_OF_LINK,
    _REPLICAS, _PIPELINES, *_OF_REGION, _HOTTEST_KEY,
    *_OF_JOB, _CHECKPOINT_SECONDS, _CHECKPOINT_PAUSED, _CHECKPOINT_BYTES, _CHECKPOINT_AGE, _COPY_AGE, _EPOCH, _SECONDS,
)
# fmt: on
METRICS = {metric.name: metric for metric in _ALL}


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
        self._before: JobMetrics | None = None

    def read(self, now: JobMetrics, plan: ExecPlan | None = None) -> Iterator[Reading]:
        """Yield every value.

        Args:
            now: The counters.
            plan: The plan in force, for regions.
        """
        yield Reading(_SECONDS.name, (now.name,), now.seconds)
        if plan is not None:
            yield Reading(_EPOCH.name, (now.name,), plan.epoch)
            hot = hot_keys_of(pe.hot_keys for pe in now.pes)
            for planned in plan.regions:
                region = planned.region.name
                labels = (now.name, region)
                yield Reading(_REPLICAS.name, labels, planned.replicas)
                yield Reading(_PIPELINES.name, labels, len(planned.pipelines))
                yield Reading(_HOTTEST_KEY.name, labels, hot[region].share if region in hot else 0.0)
                yield from _values(_OF_REGION, labels, now.regions.get(region, RegionCounters()))
        yield from _of_checkpoints(now)
        for pe, period in zip(now.pes, job_period(self._before, now).pes, strict=True):
            yield Reading(_SILENT.name, (now.name, pe.pe), float(pe.pe in now.silent))
            yield from _of_pe(now.name, pe, period)
        self._before = now


def _of_pe(job: str, pe: PESample, period: PESample) -> Iterator[Reading]:
    """Yield the readings of a PE; `period`: what it counted since the previous ones, or its start."""
    yield from _values(_OF_PE, (job, pe.pe), pe)
    for model, count in Counter(operator.model for operator in pe.operators).items():
        yield Reading(_MODELS.name, (job, pe.pe, model), count)
    for link, counters in pe.links.items():
        for metric in _OF_LINK:
            yield Reading(metric.name, (job, pe.pe, link), counters[metric.source])
    cost = sum(one.cpu_seconds for one in period.operators)
    for operator, since in zip(pe.operators, period.operators, strict=True):
        labels = (job, pe.pe, operator.name)
        yield from _values(OF_OPERATOR, labels, operator)
        yield Reading(_QUEUE_FILL.name, labels, operator.queue_fill)
        yield from _latency(labels, operator)
        if operator.watermark is not None:
            yield Reading(_WATERMARK.name, labels, operator.watermark)
        tuples = since.tuples_in if operator.tuples_in else since.tuples_out
        yield Reading(_RATE.name, labels, tuples / max(period.seconds, SHORTEST))
        yield Reading(_COST_SHARE.name, labels, since.cpu_seconds / cost if cost > 0 else 0.0)


def _values(metrics: tuple[Metric, ...], labels: tuple[str, ...], sample: object) -> Iterator[Reading]:
    """Yield the values that a sample declares; of one by reason, each reason, and failures even if there are none."""
    for metric in metrics:
        value = getattr(sample, metric.source)
        if metric.more:
            for reason, count in ({FAILED: 0} | dict(value)).items():
                yield Reading(metric.name, (*labels, reason), count)
        else:
            yield Reading(metric.name, labels, value)


def _of_checkpoints(now: JobMetrics) -> Iterator[Reading]:
    """Yield the readings of checkpoints; of a job without any, only that there are none."""
    counted, labels = now.checkpoints, (now.name,)
    checkpoints = [record for record in counted.recent if not record.place]
    yield from _values(_OF_JOB, labels, counted)
    if not checkpoints:
        return
    yield Reading(_CHECKPOINT_SECONDS.name, labels, counted.seconds)
    yield Reading(_CHECKPOINT_PAUSED.name, labels, counted.paused)
    last = next((record for record in reversed(checkpoints) if not record.problem), None)
    yield Reading(_CHECKPOINT_BYTES.name, labels, last.bytes if last is not None else 0)
    yield Reading(_CHECKPOINT_AGE.name, labels, now.seconds - (last.at if last is not None else 0.0))
    if counted.one_copy or counted.copied_at:  # otherwise every node sees their location
        yield Reading(_COPY_AGE.name, labels, now.seconds - counted.copied_at)


def _latency(labels: tuple[str, str, str], operator: OperatorSample) -> Iterator[Reading]:
    """Yield the buckets of a latency, each with all values up to its bound, as in a histogram of Prometheus."""
    bounds = [f"{latency_bound(bucket):g}" for bucket in range(len(operator.latency) - 1)] + ["+Inf"]
    for bound, marks in zip(bounds, accumulate(operator.latency), strict=False):
        yield Reading(_LATENCY.name, (*labels, bound), marks)
