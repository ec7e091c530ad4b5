"""Where checkpoints are kept on the local disk of each node, if a job names no other place."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path

__all__ = ["discard_local", "is_local", "keep_local", "local_folder"]


def local_folder(job_id: str) -> Path:
    """Return the folder of one run of a job."""
    return Path.home() / ".cache" / "rayelastic" / "checkpoints" / job_id


def is_local(location: str, job_id: str) -> bool:
    """Tells whether each node has its own share of a checkpoint of one run.

    >>> is_local(f"{local_folder('7f')}/00000001", "7f"), is_local("/mnt/saved/00000001", "7f")
    (True, False)
    """
    return Path(location).parent == local_folder(job_id)


def discard_local(job_id: str) -> None:
    """Remove it: nobody can go back any more."""
    shutil.rmtree(local_folder(job_id), ignore_errors=True)


def keep_local(job_id: str, kept: Collection[str]) -> None:
    """Remove all checkpoints of it but some; what their sinks count on beside them stays.

    Args:
        job_id: of the run.
        kept: names of the folders of those that stay.
    """
    for one in local_folder(job_id).glob("[0-9]*"):
        if one.name not in kept:
            shutil.rmtree(one, ignore_errors=True)  # another element of this node may be at it
