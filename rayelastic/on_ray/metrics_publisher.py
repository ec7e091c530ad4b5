"""Publishes a job's metrics through `ray.util.metrics`: Prometheus finds them at the port of the coordinator's node.

It also publishes the CPU use of the job on each machine for other jobs. Runs in a thread of the coordinator's process;
ends with the job. Ray puts `ray_` in front of each name.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from rayelastic.on_ray.store.node_use import NodeUse
from rayelastic.runtime.watch.metric_table import METRICS, Kind, MetricsReader

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    from rayelastic.runtime.job.coordinator import Coordinator
    from rayelastic.runtime.values.status import JobMetrics, PESample

PERIOD = 2.0  # seconds; Ray itself forwards metrics every few seconds
USE_PERIODS = 5  # periods in the mean that other jobs read

log = logging.getLogger(__name__)


class MetricsPublisher:
    """Publishes the metrics of a coordinator's job, once per period, until the job is final.

    Args:
        coordinator: The coordinator.
        job_id: The job's id.
    """

    def __init__(self, coordinator: Coordinator, job_id: str) -> None:
        self._coordinator = coordinator
        self._used, self._use = UsedCpus(), NodeUse(job_id)
        self._reader = MetricsReader()
        self._growth = Growth()
        self._carriers: dict[str, Any] = {}
        threading.Thread(target=self._run, name="metrics", daemon=True).start()

    def _run(self) -> None:
        over = False
        while not over:
            status = self._coordinator.wait(PERIOD)
            over = status.state.is_final
            try:
                metrics = self._coordinator.metrics()
                self._publish(metrics)
            except Exception:  # metrics never end a job
                log.exception("the metrics of this job are no longer published")
                over = True
            else:
                nodes = {one.pe: one.node for one in status.pes if not one.state.is_final}
                used = self._used.add(metrics.pes, nodes)
            with contextlib.suppress(
                Exception
            ):  # an error of Ray, whose store may be restarting: the next period tries again
                self._use.tell({} if over else used)

    def _publish(self, metrics: JobMetrics) -> None:
        for reading in self._reader.read(metrics, self._coordinator.plan()):
            metric = METRICS[reading.metric]
            carrier = self._carrier(reading.metric)
            tags = dict(zip(metric.labels, reading.labels, strict=True))
            if metric.kind is Kind.GAUGE:
                carrier.set(reading.value, tags=tags)
                continue
            if (grown := self._growth.of((reading.metric, reading.labels), reading.value)) > 0:
                carrier.inc(grown, tags=tags)

    def _carrier(self, name: str) -> Any:
        if name not in self._carriers:
            from ray.util import metrics

            metric = METRICS[name]
            made = metrics.Counter if metric.kind is Kind.COUNTER else metrics.Gauge
            plain = name.removesuffix("_total")  # which Ray, too, appends to a counter's name
            self._carriers[name] = made(plain, description=metric.text, tag_keys=metric.labels)
        return self._carriers[name]


class Growth:
    """By how much counters have grown between readings.

    >>> growth = Growth()
    >>> [growth.of("tuples of pe0", count) for count in (5.0, 8.0, 2.0, 3.0)]  # the PE was replaced after the second
    [5.0, 3.0, 2.0, 1.0]
    """

    def __init__(self) -> None:
        self._last: dict[Hashable, float] = {}

    def of(self, counter: Hashable, value: float) -> float:
        """Return the growth of a counter since its last reading; one that is lower now has begun again from 0."""
        before, self._last[counter] = self._last.get(counter, 0.0), value
        return value - before if value >= before else value


class UsedCpus:
    """The CPUs that the elements of a job use on each machine, as the mean of some periods.

    Args:
        clock: Returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = clock()
        self._counted: dict[str, float] = {}
        self._periods: deque[dict[str, float]] = deque(maxlen=USE_PERIODS)

    def add(self, samples: Iterable[PESample], nodes: Mapping[str, str]) -> dict[str, float]:
        """Add the elements' counters.

        Args:
            samples: The samples of all elements.
            nodes: {element: machine}, of running ones.

        Returns:
            {machine: CPUs}.
        """
        since, self._since = self._since, self._clock()
        seconds = max(self._since - since, 1e-9)
        before, self._counted = self._counted, {sample.pe: sample.cpu_seconds for sample in samples}
        used: dict[str, float] = {}
        for pe, counted in self._counted.items():
            if pe in nodes and pe in before:  # a restarted one counts from 0
                cpus = max(0.0, counted - before[pe]) / seconds
                used[nodes[pe]] = used.get(nodes[pe], 0.0) + cpus
        self._periods.append(used)
        machines = {node for period in self._periods for node in period}
        return {node: sum(one.get(node, 0.0) for one in self._periods) / len(self._periods) for node in machines}
