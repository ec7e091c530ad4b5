"""Reads the certificates of `rel.TLS`, and reports errors in them before a job starts."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

from rayelastic.errors import ConfigError, ErrorCode

if TYPE_CHECKING:
    from rayelastic.plan.settings.tls import TLS


def server_context(tls: TLS) -> ssl.SSLContext:
    """Return the TLS settings of a port with these certificates: TLS 1.2 or newer.

    Raises:
        ConfigError: A file is missing, or has the wrong content.
    """
    for name, path in (("cert", tls.cert), ("key", tls.key), ("ca", tls.ca)):
        if path is not None and not Path(path).is_file():
            raise ConfigError(
                f"rel.TLS({name}={path!r}): there is no such file on {socket.gethostname()}",
                hint="Pass the path of a PEM file",
                code=ErrorCode.MISSING_FILE,
            )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(tls.cert, tls.key, password=lambda: b"")
    except (ssl.SSLError, OSError) as error:
        raise ConfigError(
            f"rel.TLS(cert={tls.cert!r}, key={tls.key!r}) can't be used: {error}",
            hint="Pass a certificate and the private key that belongs to it, as PEM, the key without a password",
            code=ErrorCode.BAD_CERTIFICATE,
        ) from error
    if tls.ca is not None:
        try:
            context.load_verify_locations(tls.ca)
        except (ssl.SSLError, OSError) as error:
            raise ConfigError(
                f"rel.TLS(ca={tls.ca!r}) can't be used: {error}",
                hint="Pass certificates of authorities, as PEM",
                code=ErrorCode.BAD_CERTIFICATE,
            ) from error
        context.verify_mode = ssl.CERT_REQUIRED
    return context
