"""A DataFrame from Spark into a PE: pushed into its data port, against `ray.data.from_spark`.

    python -m bench.micro.spark_bridge [--rows 5000000] [--rounds 5] [--tasks 2000]

Three fresh sessions, one after the other: one for each way (its first call, and its peak memory over some calls), and
one in which both are warm and take turns (rows/s, medians). `from_spark` is over when all blocks are in the object
store, where nobody has read them yet; the push is over when the PE has counted every row.

Besides, in a session of its own: many partitions of ten rows, where a task costs more than its rows, against Spark's
own `count` over the same DataFrame behind an identity by `mapInArrow`, before the first push. `--rows 0` or `--tasks 0`
leaves one of the two out.

Memory is the proportional set size of this process and all its descendants (JVMs, Spark's and Ray's workers, the object
store), above what the idle session had: pages that several share, such as the object store's, count once.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

import rayelastic as rel

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

WAYS = ("push", "store", "both")
PARTITIONS = 4
CORES = 2  # of the executor
SAMPLE_PERIOD = 0.2  # seconds between two looks at the memory
TASK_ROWS = 10
MOST_OF_COUNT = 2.0  # times what Spark's own count takes
TARGETS = {"rows_per_second": 1.2, "peak_memory": 0.5, "first_call": 2.0}  # of the push against from_spark


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tasks", type=int, default=2000)
    parser.add_argument("--part", choices=("push", "store", "both", "tasks"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part == "tasks":
        print(json.dumps(measure_tasks(given.tasks)))
    elif given.part:
        print(json.dumps(measure(given.part, given.rows, given.rounds)))
    else:
        compare(given.rows, given.rounds, given.tasks)


def compare(rows: int, rounds: int, tasks: int) -> None:
    if rows:
        found = {part: in_fresh_process(part, f"--rows={rows}", f"--rounds={rounds}") for part in WAYS}
        report(found["push"], found["store"], found["both"], rows)
    if tasks:
        report_tasks(in_fresh_process("tasks", f"--tasks={tasks}"), tasks)


def in_fresh_process(part: str, *options: str) -> dict[str, Any]:
    command = [sys.executable, "-m", __spec__.name, f"--part={part}", *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def measure(part: str, rows: int, rounds: int) -> dict[str, Any]:
    """What one fresh session gives: seconds of each call by way, first ones first, and the peak memory."""
    import ray

    ways: dict[str, Callable[[DataFrame], int]] = {"push": push, "store": into_object_store}
    chosen = list(ways) if part == "both" else [part]
    seconds: dict[str, list[float]] = {way: [] for way in chosen}
    with rel.spark.session("bench", executor_cores=CORES, address="local") as spark:
        frame = rows_of(spark, rows, PARTITIONS)
        with sampled_memory() as memory:
            for _ in range(rounds + 1):
                for way in chosen:
                    started = time.perf_counter()
                    taken = ways[way](frame)
                    seconds[way].append(time.perf_counter() - started)
                    assert taken == rows
                    print(f"{part}: {way} {seconds[way][-1]:.2f} s", file=sys.stderr, flush=True)
                    gc.collect()
    ray.shutdown()
    return {"seconds": seconds, "peak_bytes": memory["peak"] - memory["idle"]}


def measure_tasks(tasks: int) -> dict[str, Any]:
    """Seconds of each of Spark's counts and of the pushes, in the order in which they are done."""
    import ray

    def identity(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    seconds = []
    with rel.spark.session("bench", executor_cores=CORES, address="local") as spark:
        few, many = (rows_of(spark, count * TASK_ROWS, count) for count in (CORES, tasks))
        few.mapInArrow(identity, few.schema).count()  # Spark's workers are there
        for way in ("count", "push", "push", "count"):
            started = time.perf_counter()
            taken = many.mapInArrow(identity, many.schema).count() if way == "count" else push(many)
            seconds.append((way, time.perf_counter() - started))
            assert taken == tasks * TASK_ROWS
            print(f"tasks: {way} {seconds[-1][1]:.2f} s", file=sys.stderr, flush=True)
    ray.shutdown()
    return {"seconds": seconds}


def rows_of(spark: SparkSession, rows: int, partitions: int) -> DataFrame:
    return spark.range(0, rows, 1, partitions).selectExpr(
        "id", "cast(id as double) / 3 as price", "concat('row-', id) as name"
    )


def push(frame: DataFrame) -> int:
    topology = rel.Topology("bench")
    topology.source(rel.spark.source(frame), name="rows").sink(rel.count(), name="count")
    return int(rel.run(topology)["count"])


def into_object_store(frame: DataFrame) -> int:
    import ray
    from raydp.spark.dataset import release_spark_recoverable

    dataset = ray.data.from_spark(frame)
    taken = dataset.count()
    del dataset
    release_spark_recoverable(frame)  # or the next call finds the rows cached in Spark
    return int(taken)


@contextlib.contextmanager
def sampled_memory() -> Iterator[dict[str, int]]:
    """Bytes in use at the beginning (`idle`), and the most since (`peak`), of this process and its descendants."""
    found = {"idle": memory_in_use()}
    found["peak"] = found["idle"]
    ended = threading.Event()

    def sample() -> None:
        while not ended.wait(SAMPLE_PERIOD):
            found["peak"] = max(found["peak"], memory_in_use())

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    yield found
    ended.set()
    thread.join()


def memory_in_use() -> int:
    here = psutil.Process(os.getpid())
    return sum(proportional_set(process.pid) for process in [here, *here.children(recursive=True)])


def proportional_set(pid: int) -> int:
    with contextlib.suppress(OSError):  # it has ended
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def report(push: dict[str, Any], store: dict[str, Any], both: dict[str, Any], rows: int) -> None:
    def speed(way: str) -> float:
        return float(rows / statistics.median(both["seconds"][way][1:]))

    first_push, first_store = push["seconds"]["push"][0], store["seconds"]["store"][0]
    lines = [
        ("rows/s, warm", f"{speed('push'):,.0f}", f"{speed('store'):,.0f}", speed("push") / speed("store"), ">="),
        ("peak memory, MiB", f"{push['peak_bytes'] >> 20:,}", f"{store['peak_bytes'] >> 20:,}",
         push["peak_bytes"] / store["peak_bytes"], "<="),
        ("first call, s", f"{first_push:.2f}", f"{first_store:.2f}", first_store / first_push, ">="),
    ]  # fmt: skip
    print(f"{'':18}{'push':>14}{'from_spark':>14}{'ratio':>8}   target")
    for (what, ours, theirs, ratio, relation), target in zip(lines, TARGETS.values(), strict=True):
        print(f"{what:18}{ours:>14}{theirs:>14}{ratio:8.2f}   {relation} {target}")
    spread = {way: [round(s, 2) for s in both["seconds"][way]] for way in both["seconds"]}
    print(f"seconds of each call, in turns, the first one cold: {spread}")


def report_tasks(found: dict[str, Any], tasks: int) -> None:
    (_, own), *others = found["seconds"]
    print(f"{tasks:,} partitions of {TASK_ROWS} rows: Spark's own count {own:.2f} s, {own / tasks * 1e3:.1f} ms each")
    for name, (way, seconds) in zip(("the first push", "a push", "Spark's count behind them"), others, strict=True):
        target = f"   <= {MOST_OF_COUNT}" if way == "push" else ""
        print(f"{name:28}{seconds:8.2f} s, {seconds / tasks * 1e3:6.1f} ms each, {seconds / own:5.2f} of it{target}")


if __name__ == "__main__":
    main()
