"""The location of checkpoints on the local disk of each node, if a job sets no other one."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path

__all__ = ["discard_local", "is_local", "keep_local", "local_folder"]


def local_folder(job_id: str) -> Path:
    """Return the folder of one run of a job."""
    return Path.home() / ".cache" / "rayelastic" / "checkpoints" / job_id


def is_local(location: str, job_id: str) -> bool:
    """Return whether each node has its own share of a checkpoint of one run.

    >>> is_local(f"{local_folder('7f')}/00000001", "7f"), is_local("/mnt/saved/00000001", "7f")
    (True, False)
    """
    return Path(location).parent == local_folder(job_id)


def discard_local(job_id: str) -> None:
    """Remove a run's checkpoints, when it can't be restored any more."""
    shutil.rmtree(local_folder(job_id), ignore_errors=True)


def keep_local(job_id: str, kept: Collection[str]) -> None:
    """Remove a run's checkpoints except some; the rows of sinks beside them stay.

    Args:
        job_id: The run's id.
        kept: Names of the folders that stay.
    """
    for folder in local_folder(job_id).glob("[0-9]*"):
        if folder.name not in kept:
            shutil.rmtree(folder, ignore_errors=True)  # another element of this node may be removing it
