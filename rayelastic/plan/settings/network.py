"""JobConfig(network=...): encryption and certificates of what crosses hosts, and how long a silent PE is waited for."""

from __future__ import annotations

from dataclasses import dataclass

from rayelastic.errors import ConfigError
from rayelastic.plan.settings.checks import check_flags, check_seconds
from rayelastic.plan.settings.tls import TLS

PATIENCE = 30.0  # seconds; Flink's heartbeats take 50, and lose a moment of work where here all state goes
LEAST_PATIENCE = 2.0  # seconds: four heartbeats of a link


@dataclass(frozen=True, slots=True)
class Network:
    """Encryption of traffic between hosts, certificates, and the timeout of a processing element (PE).

    Args:
        secure: Encrypt traffic between hosts by TLS 1.3: links, state that moves, rows from Spark and Ray Datasets.
            About half as fast where a link is the bottleneck. Certificates besides: `tls=rel.TLS(cert, key, ca,
            links=True)`.
        tls: Certificates for the web UI and for the port of Prometheus, see `rel.TLS`. None: plain HTTP.
        patience: Seconds after which a silent PE counts as lost, 2 or more. A PE whose process ends is lost at once.

    Raises:
        ConfigError: a value is out of range.

    >>> Network(secure=True).patience
    30.0
    >>> Network(patience=0)
    Traceback (most recent call last):
    rayelastic.errors.ConfigError: Network(patience=0). Give seconds, 2 or more [invalid-setting]
    """

    secure: bool = False
    tls: TLS | None = None
    patience: float = PATIENCE

    def __post_init__(self) -> None:
        check_flags(self, ["secure"])
        tls: object = self.tls
        if tls is not None and not isinstance(tls, TLS):
            raise ConfigError(f"Network(tls={tls!r})", hint="Give rel.TLS(cert, key, ca)")
        check_seconds(f"Network(patience={self.patience!r})", self.patience, LEAST_PATIENCE)
        if self.link_certificates is not None and not self.secure:
            raise ConfigError(
                "Network(tls=rel.TLS(links=True)) without secure=True: links aren't encrypted",
                hint="Give secure=True, too, or leave links out",
            )

    @property
    def link_certificates(self) -> TLS | None:
        """Certificates that both ends of a link show; None: the job's secret alone authenticates a connection.

        >>> print(Network(secure=True).link_certificates)
        None
        """
        return self.tls if self.tls is not None and self.tls.links else None
