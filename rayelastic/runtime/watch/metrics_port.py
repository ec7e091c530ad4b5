"""A job's metrics as Prometheus text over HTTP, for `rel.run(..., metrics_port=)`: every scrape reads fresh counters.

It binds to the loopback address, because it has no authentication (reliability rule D1). It binds to another one only
if clients have to show a certificate.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from rayelastic.errors import ConfigError, ErrorCode
from rayelastic.runtime.port.certificates import server_context
from rayelastic.runtime.watch.metric_table import METRICS, Kind, MetricsReader

if TYPE_CHECKING:
    import ssl

    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.plan.settings.tls import TLS
    from rayelastic.runtime.values.status import JobMetrics

HOST = "127.0.0.1"
HIGHEST_PORT = 65535
MOST_CONNECTIONS = 16  # at once; a Prometheus has one
DEADLINE = 10.0  # seconds for a connection; a scrape of a large job takes one


class MetricsPort:
    """Answers scrapes until it is closed.

    Args:
        port: The port to listen on; 0: a free one.
        metrics: Returns the counters.
        plan: Returns the plan in force.
        tls: The certificates that it shows, and the address to listen on; None: plain HTTP.

    Raises:
        ConfigError: It isn't a port, or is taken.
    """

    def __init__(
        self, port: int, metrics: Callable[[], JobMetrics], plan: Callable[[], ExecPlan], tls: TLS | None = None
    ) -> None:
        _check_port(port)
        from prometheus_client import CollectorRegistry, make_wsgi_app

        registry = CollectorRegistry()
        registry.register(_Collector(metrics, plan))
        try:
            self._server = _Server(
                HOST if tls is None else tls.host, port, None if tls is None else server_context(tls)
            )
        except OSError as error:
            raise ConfigError(
                f"metrics_port={port} can't be opened: {error}",
                hint="Give another one, or 0 for a free one",
                code=ErrorCode.PORT_IN_USE,
            ) from error
        self._server.set_app(make_wsgi_app(registry))
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics-port", daemon=True)
        self._thread.start()
        self.port: int = self._server.server_port

    def close(self) -> None:
        """End it; safe to repeat."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(WSGIRequestHandler):
    """Logs no requests on stderr, because strangers could fill it."""

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingMixIn, WSGIServer):
    """Answers each connection in a thread, with a limit on connections and on their time.

    It has no authentication. A connection beyond the limit ends the oldest one, so that incomplete requests don't block
    scrapes.

    Args:
        host: The address to listen on.
        port: The port.
        context: The settings of TLS; None: plain HTTP. A handshake runs in the thread of its connection.
    """

    daemon_threads = True
    request_queue_size = 128  # connections that wait to be accepted, which have no descriptor yet

    def __init__(self, host: str, port: int, context: ssl.SSLContext | None) -> None:
        self._context = context
        self._lock = threading.Lock()  # guards the fields below
        self._open: dict[int, tuple[float, socket.socket]] = {}  # by descriptor: until when, oldest first
        self.address_family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        super().__init__((host, port), _Handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept the next connection, and end the oldest one if there are too many."""
        connection, address = super().get_request()
        with self._lock:
            if len(self._open) >= MOST_CONNECTIONS:
                _end(self._open.pop(next(iter(self._open)))[1])
            self._open[connection.fileno()] = (time.monotonic() + DEADLINE, connection)
        return connection, address

    def service_actions(self) -> None:
        """End connections whose time is over; called twice a second."""
        with self._lock:
            for descriptor in [number for number, (until, _) in self._open.items() if until < time.monotonic()]:
                _end(self._open.pop(descriptor)[1])

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Answer, over TLS if it is configured."""
        if self._context is None:
            super().finish_request(request, client_address)
            return
        descriptor = request.fileno()
        with self._context.wrap_socket(request, server_side=True, do_handshake_on_connect=False) as secured:
            with self._lock:
                if descriptor not in self._open:  # ended before it was wrapped, which nothing but this thread noticed
                    return
                self._open[descriptor] = (self._open[descriptor][0], secured)
            try:
                secured.do_handshake()
                super().finish_request(secured, client_address)
            finally:
                with self._lock:
                    self._open.pop(descriptor, None)

    def shutdown_request(self, request: Any) -> None:
        """Forget a connection, and close it."""
        with self._lock:
            self._open.pop(request.fileno(), None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Do nothing: the client handles a broken connection."""


def _end(connection: socket.socket) -> None:
    with suppress(OSError):  # its thread sees the end, and forgets it
        connection.shutdown(socket.SHUT_RDWR)


def _check_port(port: object) -> None:
    if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port <= HIGHEST_PORT:
        raise ConfigError(f"metrics_port={port!r}", hint="Give a port number, or 0 for a free one")


class _Collector:
    """Collects the metrics for Prometheus' client at each scrape."""

    def __init__(self, metrics: Callable[[], JobMetrics], plan: Callable[[], ExecPlan]) -> None:
        self._metrics = metrics
        self._plan = plan
        self._reader = MetricsReader()
        self._lock = threading.Lock()  # each scrape has its own thread

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
