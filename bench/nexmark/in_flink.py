"""Flink beside: fetches its jars by Maven, compiles the program of `flink/`, writes its columns, runs a query.

Flink runs in one JVM with one slot: object reuse, mini-batches, state on the heap, its best form of each query
(`ROW_NUMBER` of windows). Its sources read the same columns from memory, again and again, with ids and times that go
on: a JVM needs seconds to compile. Only times differ: Flink's event times have milliseconds.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bench.nexmark.events import AUCTIONS, CYCLE, PEOPLE, Events
from tools.maven import copy_jars

ROOT = Path(__file__).resolve().parents[2]
VERSION = "2.3.0"
NAMES = (
    "clients", "streaming-java", "runtime", "table-api-java-bridge", "table-planner-loader", "table-runtime",
    "connector-datagen", "connector-files",
)  # fmt: skip
JARS = ROOT / "build" / "programs" / f"flink-{VERSION}"
QUERIES = ("q0", "q1", "q2", "q3", "q4", "q5", "q7", "q8", "q11")
WARM_UP, MEASURED = 8, 10  # seconds
LONGEST = 180  # seconds of one run
OPENED = ("lang", "util", "util.concurrent", "util.concurrent.atomic", "nio", "time", "net", "io", "text")
JVM = ("-Xms4g", "-Xmx4g", "-XX:+UseParallelGC")


def missing() -> str:
    """Return what Flink needs and isn't there; empty: nothing."""
    if not shutil.which("java") or not shutil.which("javac"):
        return "Java (a JDK)"
    return "" if list(JARS.glob("flink-table-runtime-*.jar")) else "Flink"


def fetch() -> str:
    """Fetch the jars and compile the program; return what is missing still, empty: nothing."""
    if missing() == "Flink" and shutil.which("mvn"):
        copy_jars(JARS, [("org.apache.flink", f"flink-{name}", VERSION) for name in NAMES])
    if missing():
        return missing()
    source, classes = Path(__file__).with_name("flink") / "Nexmark.java", _classes()
    if not (classes / "Nexmark.class").exists() or (classes / "Nexmark.class").stat().st_mtime < source.stat().st_mtime:
        subprocess.run(["javac", "-nowarn", "-cp", f"{JARS}/*", "-d", str(classes), str(source)], check=True)
    return ""


def run(query: str, folder: Path, *, bounded: bool = False) -> dict[str, Any]:
    """Run a query.

    Args:
        query: Its name.
        folder: Of `write_columns`.
        bounded: Whether to run one cycle to its end.

    Returns:
        rows read, seconds and CPU seconds; bounded: the rows of the result.
    """
    opened = (f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in OPENED)
    command = ["java", *JVM, *opened, "-cp", f"{JARS}/*:{_classes()}", "Nexmark", query, str(folder)]
    command += [str(WARM_UP), str(MEASURED), *(["bounded"] if bounded else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LONGEST)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise RuntimeError(f"Flink, {query}: {done.stderr[-2000:] or done.stdout[-2000:]}")
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def write_columns(events: Events, folder: Path) -> None:
    """Write the columns as raw files: numbers of 8 bytes, times in milliseconds, texts and their offsets."""
    folder.mkdir(parents=True, exist_ok=True)
    cycles = events.count // CYCLE
    span = cycles * (_millis(events.people["date_time"][1]) - _millis(events.people["date_time"][0]))
    people, auctions = cycles * PEOPLE, cycles * AUCTIONS
    laps = {
        "date_time": span, "people.id": people, "auctions.id": auctions, "auctions.seller": people,
        "bids.auction": auctions, "bids.bidder": people,
    }  # fmt: skip
    for name in ("people", "auctions", "bids"):
        table = getattr(events, name)
        for column in table.schema.names:
            _write(table[column].combine_chunks(), folder / f"{name}.{column}")
    (folder / "laps").write_text("".join(f"{key} {value}\n" for key, value in laps.items()), encoding="utf-8")


def _write(column: Any, path: Path) -> None:
    if pa.types.is_timestamp(column.type):
        column = pc.floor_temporal(column, unit="millisecond").cast(pa.timestamp("ms")).cast(pa.int64())
    if pa.types.is_string(column.type):
        column = pa.array(column.to_pylist(), pa.string()) if column.offset else column
        _, offsets, letters = column.buffers()
        Path(f"{path}.offsets").write_bytes(memoryview(offsets)[: 4 * (len(column) + 1)])
        path.write_bytes(memoryview(letters))
    else:
        path.write_bytes(memoryview(column.buffers()[1])[: 8 * len(column)])


def _millis(time: Any) -> int:
    return int(time.cast(pa.int64()).as_py()) // 1000


def _classes() -> Path:
    return JARS.with_name(f"{JARS.name}-classes")
