"""One local Ray for all tests of a file that ask for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rayelastic.on_ray.connect import ensure_ray

CPUS = 4  # more than a small machine has: actors count shares of them, and nothing here needs the speed


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[str]:
    """The address of this node in a Ray of its own, which ends with the tests of the file."""
    import ray

    yield ensure_ray("local", num_cpus=CPUS)
    ray.shutdown()
