"""Another user of the host: real processes of uid 65534, which tests can start where they run as root."""

from __future__ import annotations

import os
import subprocess

import pytest

STRANGER = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")


def stranger(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a program of the system as the other user, with an empty environment."""
    return subprocess.run(
        command, user=STRANGER, group=STRANGER, extra_groups=[], env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}, cwd="/",
        capture_output=True, text=True, check=False,
    )  # fmt: skip
