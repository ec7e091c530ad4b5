"""The same as rayelastic.py in the python lane."""

from collections.abc import Callable

import pyarrow as pa

from bench.peers.works.word_count.rayelastic import job, result

__all__ = ["prepare", "result"]


def prepare(path: str) -> Callable[[], pa.Table]:
    return job(path, "python")
