"""Where checkpoints are kept on the local disk of each node, if a job names no other place."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rayelastic.runtime.snapshot import SnapshotFolder

__all__ = ["discard_local", "enter", "keep_local", "local_folder"]


def local_folder(job_id: str) -> Path:
    """The folder of one run of a job."""
    return Path.home() / ".cache" / "rayelastic" / "checkpoints" / job_id


def enter(folder: SnapshotFolder, job_id: str) -> None:
    """Has an element of a run be able to write into the folder of a checkpoint, a savepoint or a snapshot.

    Raises:
        StateError: it can't be written, or the coordinator's node has another disk where all were to have the same.
    """
    if Path(folder.location).parent == local_folder(job_id):
        folder.make()  # each node has its share on its own disk
    else:
        folder.enter()


def discard_local(job_id: str) -> None:
    """Removes it: nobody can go back any more."""
    shutil.rmtree(local_folder(job_id), ignore_errors=True)


def keep_local(job_id: str, kept: Collection[str]) -> None:
    """Removes all checkpoints of it but some; what their sinks count on beside them stays.

    Args:
        job_id: of the run.
        kept: names of the folders of those that stay.
    """
    for one in local_folder(job_id).glob("[0-9]*"):
        if one.name not in kept:
            shutil.rmtree(one, ignore_errors=True)  # another element of this node may be at it
