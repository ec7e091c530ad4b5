"""A user's Python function over the lines of a log in the compiled lane: lines a second on one core, beside CPython.

    python -m bench.micro.log_filter [lines=2000000] [rounds=5]

The lines of ../shared/data/OpenSSH_2k.log are repeated and lie in memory as records. By plain calls, the machine code
takes runs of 256 of them. Through the engine, `rel.run` reads them from an Arrow table, filters, and counts. Results
are compared with CPython's line by line. Needs gcc.
"""

from __future__ import annotations

import ctypes
import re
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import rayelastic as rel
from bench.harness import Row, settings
from rayelastic.compile import Compiler
from rayelastic.compile.cache.loader import engine_symbols, load_image, register_symbols
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import FunctionRequest, Lane, OperatorKind

LOG = Path(__file__).resolve().parents[3] / "shared" / "data" / "OpenSSH_2k.log"
RUN_RECORDS = 256
RECORD_BYTES = 16

DRIVER = """
#include <stdint.h>
#include <string.h>
typedef int64_t (*process)(const void *, int64_t, void *, int64_t, void *, void *);

int64_t passes(process function, const char *records, int64_t n, char *out) {
  char kept[256 * 16];
  int64_t done = 0;
  for (int64_t at = 0; at < n; at += 256) {
    const int64_t made = function(records + at * 16, n - at < 256 ? n - at : 256, kept, 256, 0, 0);
    if (made < 0) return made;
    if (out) memcpy(out + done * 16, kept, (size_t)made * 16);
    done += made;
  }
  return done;
}
"""


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


def records_of(lines: list[bytes], repeats: int) -> tuple[Any, Any]:
    """String views of the lines, repeated, and the memory that they point into."""
    text = b"".join(lines) + bytes(8)
    block = ctypes.create_string_buffer(text, len(text))
    views, at = bytearray(), ctypes.addressof(block)
    for line in lines:
        if len(line) <= 12:
            views += struct.pack("<I12s", len(line), line)
        else:
            views += struct.pack("<I4sQ", len(line), line[:4], at)
        at += len(line)
    return np.tile(np.frombuffer(bytes(views), dtype=np.uint8), repeats), block


def processor_time(work: Callable[[], Any]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def main() -> None:
    options = settings({"lines": 2_000_000, "rounds": 5})
    count, rounds = int(options["lines"]), int(options["rounds"])
    lines = LOG.read_bytes().splitlines()
    repeats = max(1, count // len(lines))
    texts = [line.decode() for line in lines]
    total = repeats * len(lines)
    records, block = records_of(lines, repeats)
    table = pa.table({"line": pa.array(texts * repeats, pa.string_view())})
    register_symbols(engine_symbols())
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "driver.c", Path(folder) / "driver.so"
        source.write_text(DRIVER)
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
        passes = ctypes.CDLL(str(library)).passes
        passes.restype = ctypes.c_int64
        for key, function in (("filter", is_break_in), ("fields", fields_of), ("pattern", by_pattern)):
            measure(key, function, passes, records, total, texts, table, rounds)
    assert block


def measure(
    key: str,
    function: Callable[..., Any],
    passes: Any,
    records: Any,
    total: int,
    texts: list[str],
    table: pa.Table,
    rounds: int,
) -> None:
    """Rows of one function, after its result was compared with CPython's."""
    schema = Schema.of(Line)
    request = FunctionRequest(function.__name__, OperatorKind.FILTER, function, schema, lane=Lane.COMPILED)
    code = Compiler().compile(request)
    assert code.machine is not None
    _, address = load_image(code.machine)
    wanted = [text for text in texts if function(Line(text))]
    repeats = total // len(texts)
    kept = np.zeros(max(1, len(wanted)) * repeats * RECORD_BYTES, dtype=np.uint8)
    process, start = ctypes.c_void_p(address), ctypes.c_void_p(records.ctypes.data)

    def call(out: Any) -> int:
        made: int = passes(process, start, ctypes.c_int64(total), out)
        return made

    assert call(ctypes.c_void_p(kept.ctypes.data)) == len(wanted) * repeats
    given = kept.reshape(-1, RECORD_BYTES)[: len(wanted)]
    assert [text_of(bytes(view)) for view in given] == wanted, "compiled code keeps other lines than CPython"
    topology = rel.Topology(f"log_{key}")
    topology.source(rel.arrow(table, Line), name="lines").filter(function, name=key, lane="compiled").sink(
        rel.count(), name="out"
    )
    config = rel.JobConfig(threads=rel.Threads(count=1, model="manual"))
    assert rel.run(topology, config)["out"] == len(wanted) * repeats
    empty = rel.Topology(f"log_{key}_source")
    empty.source(rel.arrow(table, Line), name="lines").sink(rel.count(), name="out")

    few = [Line(text) for text in texts]
    ours, limit, engine, plain = [], [], [], []
    for _ in range(rounds):
        seconds = processor_time(lambda: call(None))
        python = processor_time(lambda: [t for t in few if function(t)])
        source_only = processor_time(lambda: rel.run(empty, config))
        whole = processor_time(lambda: rel.run(topology, config))
        ours.append(total / seconds / 1e6)
        limit.append(len(few) / python / 1e6)
        engine.append(total / whole / 1e6)
        plain.append(total / source_only / 1e6)
    what = {"filter": "find, slice, startswith", "fields": "split, partition, int", "pattern": "regular expression"}[
        key
    ]
    Row(f"log.{key}", f"filter of log lines by {what}", "M lines/s", ours, limit, "CPython").print()
    Row(f"log.{key}.engine", "  the same in the engine, reading included", "M lines/s", engine, plain, "source").print()


def text_of(view: bytes) -> str:
    """Return the text of a string view."""
    (size,) = struct.unpack_from("<I", view)
    if size <= 12:
        return view[4 : 4 + size].decode()
    return ctypes.string_at(struct.unpack_from("<Q", view, 8)[0], size).decode()


if __name__ == "__main__":
    main()
