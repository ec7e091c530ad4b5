"""A DataFrame from Spark into a processing element: pushed into its data port, against `ray.data.from_spark`.

    python -m bench.micro.spark_bridge [--rows 5000000] [--rounds 5]

Three fresh sessions, one after the other: one for each way (its first call, and its peak memory over some calls), and
one in which both are warm and take turns (rows/s, medians). `from_spark` is over when all blocks are in the object
store, where nobody has read them yet; the push is over when the processing element has counted every row.

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
    from pyspark.sql import DataFrame

PARTITIONS = 4
CORES = 2  # of the executor
SAMPLE_PERIOD = 0.2  # seconds between two looks at the memory
TARGETS = {"rows_per_second": 1.2, "peak_memory": 0.5, "first_call": 2.0}  # of the push against from_spark


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--part", choices=("push", "store", "both"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        print(json.dumps(measure(given.part, given.rows, given.rounds)))
        return
    found = {part: in_fresh_process(part, given.rows, given.rounds) for part in ("push", "store", "both")}
    report(found["push"], found["store"], found["both"], given.rows)


def in_fresh_process(part: str, rows: int, rounds: int) -> dict[str, Any]:
    command = [sys.executable, "-m", __spec__.name, f"--part={part}", f"--rows={rows}", f"--rounds={rounds}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def measure(part: str, rows: int, rounds: int) -> dict[str, Any]:
    """What one fresh session gives: seconds of each call by way, first ones first, and the peak memory."""
    import ray

    ways: dict[str, Callable[[DataFrame], int]] = {"push": push, "store": into_object_store}
    chosen = list(ways) if part == "both" else [part]
    seconds: dict[str, list[float]] = {way: [] for way in chosen}
    with rel.spark.session("bench", executor_cores=CORES) as spark:
        frame = spark.range(0, rows, 1, PARTITIONS).selectExpr(
            "id", "cast(id as double) / 3 as price", "concat('row-', id) as name"
        )
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


def push(frame: DataFrame) -> int:
    topology = rel.Topology("bench")
    topology.source("rows", rel.spark.source(frame)).sink("count", rel.count())
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


if __name__ == "__main__":
    main()
