"""Ray for the peers' programs: on this machine alone, with as many partitions in a shuffle as cores."""

from __future__ import annotations

import os

import ray


def start() -> None:
    """Start Ray in this process, once."""
    ray.init(ignore_reinit_error=True, log_to_driver=False, include_dashboard=False)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.default_hash_shuffle_parallelism = os.cpu_count() or 1
