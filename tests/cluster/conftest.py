"""One local Ray for the tests of a process, with Spark where they ask for it, until a test needs another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, TypeVar

import pytest

import rayelastic as rel
from rayelastic.on_ray.connect import ensure_ray
from rayelastic.on_ray.jobs import find_coordinator, list_jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CPUS = 4  # more than a small machine has: actors count shares of them, and nothing here needs the speed
CPUS_BESIDE_SPARK = 6  # two more, for its executor

SPARK = "tests/cluster/test_spark"  # how the names of the files that share one Spark begin
LONGEST = (SPARK, "tests/cluster/test_main_job", "tests/cluster/test_node_loss")

T = TypeVar("T")


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Send tests to processes by file; those that share Spark to one of them, so that it starts once."""
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

    class BySpark(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return SPARK if nodeid.startswith(SPARK) else str(super()._split_scope(nodeid))

    return BySpark(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files, so that the processes end together."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))


class Shared:
    """The Ray that tests share. It stops when a test asks for another one."""

    def __init__(self) -> None:
        self._running = ExitStack()
        self._start: object = None
        self._value: object = None

    def use(self, start: Callable[[], AbstractContextManager[T]]) -> T:
        """Return what `start` yielded. It is started if something else runs."""
        if start is not self._start:
            self.stop()
            self._value, self._start = self._running.enter_context(start()), start
        return self._value  # type: ignore[return-value]  # of the same `start`

    def stop(self) -> None:
        """Stop what runs."""
        self._start = None
        self._running.close()


@contextmanager
def ray_alone() -> Iterator[str]:
    """Start a local Ray and yield the address of this node."""
    import ray

    yield ensure_ray("local", num_cpus=CPUS)
    ray.shutdown()


@contextmanager
def spark_on_ray() -> Iterator[SparkSession]:
    """Start Spark on a local Ray. A task that fails because something was killed is tried a second time."""
    import ray

    ensure_ray("local", num_cpus=CPUS_BESIDE_SPARK)
    with rel.spark.session("tests", executor_cores=2, configs={"spark.task.maxFailures": "2"}) as session:
        yield session
    ray.shutdown()


@pytest.fixture(scope="session")
def shared() -> Iterator[Shared]:
    ray = Shared()
    yield ray
    ray.stop()


@pytest.fixture(scope="module", autouse=True)
def no_job_left() -> Iterator[None]:
    """Close the jobs that the tests of a file left, so that the next ones have the cluster to themselves."""
    import ray

    yield
    if ray.is_initialized():
        for status in list_jobs():
            find_coordinator(status.name).close()


@pytest.fixture
def ray_cluster(shared: Shared) -> str:
    """The address of this node in the local Ray of this process."""
    return shared.use(ray_alone)


@pytest.fixture
def spark(shared: Shared) -> SparkSession:
    """Spark on a local Ray of this process."""
    return shared.use(spark_on_ray)


@pytest.fixture
def no_ray(shared: Shared) -> None:
    """Stop the Ray of this process, for a test that starts its own, or none."""
    shared.stop()
