"""Which certificates a job shows, and whom it believes: at its ports for people and programs, and on its links."""

from __future__ import annotations

from dataclasses import dataclass

from rayelastic.errors import ConfigError


@dataclass(frozen=True, slots=True)
class TLS:
    """TLS with certificates for the web UI of a job (`JobConfig(web_port=)`) and its metrics (`metrics_port=`).

    `rel.Network(secure=True)` encrypts traffic between hosts without certificates. With `links=True` both ends show
    these certificates as well.

    Args:
        cert: File with the certificate that the ports show, and those between it and its authority, as PEM.
        key: File with its private key, as PEM, without a password.
        ca: File with certificates of authorities, as PEM. Clients have to show a certificate of one of them (mutual
            TLS). None: clients need none.
        host: The address at which the ports listen, one that the certificate names. An address that isn't loopback
            needs `ca`, as the port of Prometheus asks for no token.
        links: Both ends of a connection between hosts show a certificate of `ca`, and prove that they know the job's
            secret. It applies to links, state that moves, rows from Spark and Ray Datasets. Needs
            `rel.Network(secure=True)`. The files are at the same paths on every node and for the driver. Each
            connection reads them anew. A certificate with `extendedKeyUsage` has both `serverAuth` and `clientAuth`.

    Raises:
        ConfigError: a file isn't named, others could read the metrics, or links without an authority.

    >>> TLS("host.pem", "host.key").host
    '127.0.0.1'
    >>> TLS("host.pem", "host.key", host="10.0.0.7")
    Traceback (most recent call last):
    rayelastic.errors.ConfigError: rel.TLS(host='10.0.0.7') without ca: others could read the metrics. N...
    >>> TLS("host.pem", "host.key", links=True)
    Traceback (most recent call last):
    rayelastic.errors.ConfigError: rel.TLS(links=True) without ca: links need an authority. Name th...
    """

    cert: str
    key: str
    ca: str | None = None
    host: str = "127.0.0.1"
    links: bool = False

    def __post_init__(self) -> None:
        for name, value in (("cert", self.cert), ("key", self.key), ("ca", self.ca)):
            if not (isinstance(value, str) and value) and not (name == "ca" and value is None):
                raise ConfigError(f"rel.TLS({name}={value!r}) isn't a file", hint="Pass the path of a PEM file")
        if self.ca is None and not _is_loopback(self.host):
            raise ConfigError(
                f"rel.TLS(host={self.host!r}) without ca: others could read the metrics",
                hint="Name the authority of the clients by ca=, or leave host out",
            )
        if not isinstance(self.links, bool):
            raise ConfigError(f"rel.TLS(links={self.links!r})", hint="Pass True or False")
        if self.links and self.ca is None:
            raise ConfigError(
                "rel.TLS(links=True) without ca: links need an authority",
                hint="Name the authority of the nodes by ca=",
            )


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")
