"""A user's Python function over the lines of a log in the compiled lane: lines a second on one core, beside CPython.

    python -m bench.micro.log_filter [lines=2000000] [rounds=5]

The lines of ../shared/data/OpenSSH_2k.log are repeated and lie in memory as records. By plain calls, the machine code
takes runs of 256 of them. Through the engine, `rel.run` reads them from an Arrow table, filters, and counts. Results
are compared with CPython's line by line. Needs gcc.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import rayelastic as rel
from bench.harness import Row, alternated, processor_time, settings
from bench.micro.machine_code import RUN_RECORDS, VIEW_BYTES, address_of, driver, text_of, views_of
from rayelastic.compile.cache.loader import engine_symbols, register_symbols
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.requests import FunctionKind

LOG = Path(__file__).resolve().parents[3] / "shared" / "data" / "OpenSSH_2k.log"


class Line(NamedTuple):
    line: str


FAILED = re.compile(r"Failed password for (?:invalid user )?(\w+) from ([\d.]+)")


def is_break_in(t: Line) -> bool:
    """Failed passwords of users that don't exist, from other ports than 22."""
    rest = t.line[16:]
    at = rest.find("]: ")
    if at < 0:
        return False
    message = rest[at + 3 :]
    if not message.startswith("Failed password for invalid user "):
        return False
    return message.endswith(" ssh2") and not message.endswith(" port 22 ssh2")


def by_pattern(t: Line) -> bool:
    """Return the same kind of question by a regular expression."""
    m = FAILED.search(t.line)
    return m is not None and m.group(1) != "root"


def fields_of(t: Line) -> bool:
    """Return a parse into fields: host, process number, and the address."""
    parts = t.line.split(" ", 5)
    if len(parts) < 6 or parts[3] != "LabSZ":
        return False
    name, _, rest = parts[4].partition("[")
    if name != "sshd":
        return False
    number = int(rest.removesuffix("]:"))
    return number % 2 == 0 and "from " in parts[5]


FUNCTIONS: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    ("filter", "find, slice, startswith", is_break_in),
    ("fields", "split, partition, int", fields_of),
    ("pattern", "regular expression", by_pattern),
)


def main() -> None:
    options = settings(lines=2_000_000, rounds=5)
    lines = LOG.read_bytes().splitlines()
    repeats = max(1, options["lines"] // len(lines))
    texts = [line.decode() for line in lines]
    records, block = views_of(lines, repeats)
    table = pa.table({"line": pa.array(texts * repeats, pa.string_view())})
    register_symbols(engine_symbols())
    loops = driver()
    for key, what, function in FUNCTIONS:
        measure(key, what, function, loops, records, texts, table, options["rounds"])
    assert block


def measure(
    key: str,
    what: str,
    function: Callable[..., Any],
    loops: ctypes.CDLL,
    records: Any,
    texts: list[str],
    table: pa.Table,
    rounds: int,
) -> None:
    """Rows of one function, after its result was compared with CPython's."""
    total = table.num_rows
    repeats = total // len(texts)
    process = ctypes.c_void_p(address_of(function, FunctionKind.FILTER, Schema.of(Line)))
    wanted = [text for text in texts if function(Line(text))]
    passed = np.zeros(max(1, len(wanted)) * repeats * VIEW_BYTES, dtype=np.uint8)
    run = np.zeros(RUN_RECORDS * VIEW_BYTES, dtype=np.uint8)

    def call(out: Any) -> int:
        arrays = (ctypes.c_void_p(array.ctypes.data) for array in (records, run))
        first, second = arrays
        rows: int = loops.passes(process, first, ctypes.c_int64(total), ctypes.c_int64(VIEW_BYTES), second, None, out)
        return rows

    assert call(ctypes.c_void_p(passed.ctypes.data)) == len(wanted) * repeats
    first_views = passed.reshape(-1, VIEW_BYTES)[: len(wanted)]
    assert [text_of(bytes(view)) for view in first_views] == wanted, "compiled code keeps other lines than CPython"
    whole, empty = (rel.Topology(f"log_{key}{name}") for name in ("", "_source"))
    lines = whole.source(rel.arrow(table, Line), name="lines")
    lines.filter(function, name=key, lane="compiled").sink(rel.count(), name="out")
    empty.source(rel.arrow(table, Line), name="lines").sink(rel.count(), name="out")
    config = rel.JobConfig(threads=rel.Threads(count=1, model="manual"))
    assert rel.run(whole, config)["out"] == len(wanted) * repeats
    few = [Line(text) for text in texts]

    def rate(count: int, work: Callable[[], object]) -> Callable[[], float]:
        return lambda: count / processor_time(work) / 1e6

    found = alternated(
        rounds,
        {
            "ours": rate(total, lambda: call(None)),
            "CPython": rate(len(few), lambda: [t for t in few if function(t)]),
            "source": rate(total, lambda: rel.run(empty, config)),
            "engine": rate(total, lambda: rel.run(whole, config)),
        },
    )
    unit, reading = "M lines/s", "  the same in the engine, reading included"
    Row(f"log.{key}", f"filter of log lines by {what}", unit, found["ours"], found["CPython"], "CPython").print()
    Row(f"log.{key}.engine", reading, unit, found["engine"], found["source"], "source").print()


if __name__ == "__main__":
    main()
