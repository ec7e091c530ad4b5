"""A job's metrics through `ray.util.metrics`: Prometheus finds them at the port of the coordinator's node.

Runs in a thread of the coordinator's process; ends with the job. Ray puts `ray_` in front of each name.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

from rayelastic.runtime.watch.metric_table import METRICS, Kind, MetricsReader

if TYPE_CHECKING:
    from rayelastic.runtime.job.coordinator import Coordinator

PERIOD = 2.0  # seconds; Ray itself hands metrics on every few seconds

log = logging.getLogger(__name__)


class MetricsPublisher:
    """Publishes the metrics of a coordinator's job, once a period, until the job is final.

    Args:
        coordinator: who knows them.
    """

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._reader = MetricsReader()
        self._published: dict[tuple[str, tuple[str, ...]], float] = {}
        self._carriers: dict[str, Any] = {}
        threading.Thread(target=self._run, name="metrics", daemon=True).start()

    def _run(self) -> None:
        over = False
        while not over:
            over = self._coordinator.wait(PERIOD).state.is_final
            try:
                self._publish()
            except Exception:  # metrics never end a job
                log.exception("the metrics of this job are no longer published")
                return

    def _publish(self) -> None:
        for reading in self._reader.read(self._coordinator.metrics(), self._coordinator.plan()):
            metric = METRICS[reading.metric]
            carrier = self._carrier(reading.metric)
            tags = dict(zip(metric.labels, reading.labels, strict=True))
            if metric.kind is Kind.GAUGE:
                carrier.set(reading.value, tags=tags)
                continue
            key = (reading.metric, reading.labels)
            grown = reading.value - self._published.get(key, 0.0)
            if grown > 0:
                carrier.inc(grown, tags=tags)
                self._published[key] = reading.value

    def _carrier(self, name: str) -> Any:
        if name not in self._carriers:
            from ray.util import metrics

            metric = METRICS[name]
            made = metrics.Counter if metric.kind is Kind.COUNTER else metrics.Gauge
            plain = name.removesuffix("_total")  # which Ray, too, puts behind a counter's name
            self._carriers[name] = made(plain, description=metric.text, tag_keys=metric.labels)
        return self._carriers[name]
