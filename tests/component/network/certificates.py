"""Certificates of two authorities, for tests of those who show and ask for them."""

from __future__ import annotations

import subprocess
from pathlib import Path

CERTIFIED = (("port", "ours"), ("friend", "ours"), ("stranger", "theirs"))  # whom, and by which authority


def make_certificates(folder: Path) -> Path:
    """Writes NAME.pem and NAME.key of the authorities `ours` and `theirs`, and of whom they certify, into a folder."""

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True, timeout=30)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
    for name in sorted({authority for _, authority in CERTIFIED}):
        signs = ("-addext", "keyUsage=critical,keyCertSign")
        openssl("req", "-x509", *key, "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}", *signs)
    for name, authority in CERTIFIED:
        openssl(
            "req", "-x509", *key, "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}",
            "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE",
            "-CA", f"{authority}.pem", "-CAkey", f"{authority}.key",
        )  # fmt: skip
    return folder
