"""Which certificates a job shows, and whom it believes, at the ports that it opens for people and programs."""

from __future__ import annotations

from dataclasses import dataclass

from rayelastic.errors import ConfigError

__all__ = ["TLS"]


@dataclass(frozen=True, slots=True)
class TLS:
    """TLS with certificates for the page of a job (`JobConfig(web_port=)`) and its metrics (`metrics_port=`).

    Links between processing elements need none: see `JobConfig(secure=True)`.

    Args:
        cert: file with the certificate that the ports show, and those between it and its authority, as PEM.
        key: file with its private key, as PEM, without a password.
        ca: file with certificates of authorities, as PEM: who connects has to show a certificate of one of them (mutual
            TLS); None: nobody has to.
        host: the address at which the ports listen, one that the certificate names; other than a loopback address only
            with `ca`, as the port of Prometheus asks for no token.

    Raises:
        ConfigError: no file is named, or others could read the metrics.

    >>> TLS("host.pem", "host.key").host
    '127.0.0.1'
    >>> TLS("host.pem", "host.key", host="10.0.0.7")
    Traceback (most recent call last):
    rayelastic.errors.ConfigError: rel.TLS(host='10.0.0.7') without ca: whoever reaches it could read...
    """

    cert: str
    key: str
    ca: str | None = None
    host: str = "127.0.0.1"

    def __post_init__(self) -> None:
        for name, value in (("cert", self.cert), ("key", self.key), ("ca", self.ca)):
            if not (isinstance(value, str) and value) and not (name == "ca" and value is None):
                raise ConfigError(f"rel.TLS({name}={value!r}) is no file", way_out="Give the path of a PEM file")
        if self.ca is None and not _is_loopback(self.host):
            raise ConfigError(
                f"rel.TLS(host={self.host!r}) without ca: whoever reaches it could read the metrics",
                way_out="Name the authority of those who may by ca=, or leave host out",
            )


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")
