"""Where checkpoints are kept on the local disk of each node, if a job names no other place."""

from __future__ import annotations

import shutil
from pathlib import Path

__all__ = ["discard_local", "local_folder"]


def local_folder(job_id: str) -> Path:
    """The folder of one run of a job."""
    return Path.home() / ".cache" / "rayelastic" / "checkpoints" / job_id


def discard_local(job_id: str) -> None:
    """Removes it: nobody can go back any more."""
    shutil.rmtree(local_folder(job_id), ignore_errors=True)
