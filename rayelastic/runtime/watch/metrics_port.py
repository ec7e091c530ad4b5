"""A job's metrics as Prometheus text over HTTP, for `rel.run(..., metrics_port=)`: every scrape reads fresh counters.

Binds to the loopback address, as it asks nobody for a token (reliability rule D1); to another one only where those who
ask have to show a certificate.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from rayelastic.errors import ConfigError
from rayelastic.runtime.watch.metric_table import METRICS, Kind, MetricsReader

if TYPE_CHECKING:
    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.plan.tls import TLS
    from rayelastic.runtime.values.status import JobMetrics

HOST = "127.0.0.1"
HIGHEST_PORT = 65535


class MetricsPort:
    """Answers scrapes until it is closed.

    Args:
        port: to listen at; 0: a free one.
        metrics: gives the counters.
        plan: gives the plan in force.
        tls: the certificates that it shows, and where it listens; None: it speaks plain HTTP.

    Raises:
        ConfigError: it is no port, or taken.
    """

    def __init__(
        self, port: int, metrics: Callable[[], JobMetrics], plan: Callable[[], ExecPlan], tls: TLS | None = None
    ) -> None:
        _check_port(port)
        from prometheus_client import CollectorRegistry, start_http_server

        registry = CollectorRegistry()
        registry.register(_Collector(metrics, plan))
        try:
            if tls is None:
                self._server, self._thread = start_http_server(port, HOST, registry)
            else:
                self._server, self._thread = start_http_server(
                    port,
                    tls.host,
                    registry,
                    certfile=tls.cert,
                    keyfile=tls.key,
                    client_cafile=tls.ca,
                    client_auth_required=tls.ca is not None,
                )
        except OSError as error:
            raise ConfigError(
                f"metrics_port={port} can't be opened: {error}", way_out="Give another one, or 0 for a free one"
            ) from error
        self.port: int = self._server.server_port

    def close(self) -> None:
        """Ends it; safe to repeat."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _check_port(port: object) -> None:
    if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port <= HIGHEST_PORT:
        raise ConfigError(f"metrics_port={port!r}", way_out="Give a port number, or 0 for a free one")


class _Collector:
    """What Prometheus' client asks for at each scrape."""

    def __init__(self, metrics: Callable[[], JobMetrics], plan: Callable[[], ExecPlan]) -> None:
        self._metrics = metrics
        self._plan = plan
        self._reader = MetricsReader()
        self._lock = threading.Lock()  # scrapes come on threads of their own

    def describe(self) -> list[Any]:
        return []  # or registering would scrape, before the job has started

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        families: dict[str, Any] = {}
        for name, metric in METRICS.items():
            family = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
            families[name] = family(name, metric.text, labels=metric.labels)
        with self._lock:
            for reading in self._reader.read(self._metrics(), self._plan()):
                families[reading.metric].add_metric(reading.labels, reading.value)
        yield from families.values()
