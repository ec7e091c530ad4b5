"""What compiled functions cost: a chain of maps by plain C calls and through the whole engine, and splitting sentences.

    python -m bench.micro.map_chain [records=5000000] [maps=10] [sentences=200000] [rounds=5]

By plain calls, runs of 256 records go through the machine code one map after the other, over buffers that stay in
cache: what manual threading does, without the scheduler. Through the engine, `rel.run` takes the same records through
the maps and through none, and the difference is what the maps cost, with the scheduler's hops in it. Processor time.
Needs gcc.
"""

from __future__ import annotations

import ctypes
import random
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
from rayelastic.compile import Compiler, OperatorCode
from rayelastic.compile.cache.loader import load_image, register_symbols
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import FunctionRequest, Lane, OperatorKind

RUN_RECORDS = 256
FEW = 20_000  # records that CPython gets

DRIVER = """
#include <stdint.h>
typedef int64_t (*process)(const void *, int64_t, void *, int64_t, void *, void *);

static int64_t flushed;
int rel_flush(void *context, int64_t n) { (void)context; flushed += n; return 0; }

int64_t chain(process *functions, int count, const char *records, int64_t n, int64_t stride, char *even, char *odd) {
  int64_t done = 0;
  for (int64_t at = 0; at < n; at += 256) {
    const int64_t size = n - at < 256 ? n - at : 256;
    const void *in = records + at * stride;
    for (int i = 0; i < count; ++i) {
      void *out = i % 2 ? odd : even;
      done += functions[i](in, size, out, size, 0, 0);
      in = out;
    }
  }
  return done;
}

int64_t spread(process function, const char *records, int64_t n, int64_t stride, char *out, int64_t capacity) {
  flushed = 0;
  int64_t left = 0;
  for (int64_t at = 0; at < n; at += 256) {
    left += function(records + at * stride, n - at < 256 ? n - at : 256, out, capacity, 0, (void *)1);
  }
  return left + flushed;
}
"""


class Point(NamedTuple):
    a: int
    b: float


class Word(NamedTuple):
    word: str
    times: int


def step(t: Any) -> Any:
    return Point(t.a * 3 + 1, t.b * 0.5 + 1.0)


def words(t: Any) -> Any:
    for w in t.line.split():
        yield Word(w, 1)


def processor_time(work: Callable[[], Any]) -> float:
    """Seconds of the whole process: neighbours on the machine count less than by the clock."""
    started = time.process_time()
    work()
    return time.process_time() - started


def built_driver(folder: Path) -> ctypes.CDLL:
    """The C loops around the functions."""
    source, library = folder / "driver.c", folder / "driver.so"
    source.write_text(DRIVER)
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.chain.restype = loaded.spread.restype = ctypes.c_int64
    return loaded


def compiled(function: Callable[..., Any], kind: OperatorKind, schema: Schema) -> OperatorCode:
    """Return the function in the compiled lane."""
    return Compiler().compile(FunctionRequest(function.__name__, kind, function, schema, lane=Lane.COMPILED))


def plain_chain(driver: ctypes.CDLL, count: int, maps: int) -> Callable[[], float]:
    """What measures ns per record and map of plain calls of the machine code."""
    schema = Schema.of(Point)
    code = compiled(step, OperatorKind.MAP, schema)
    assert code.machine is not None
    _, address = load_image(code.machine)
    points = np.zeros(count, dtype=schema.to_numpy())
    points["a"], points["b"] = np.arange(count), np.arange(count)
    even, odd = np.zeros(RUN_RECORDS, dtype=points.dtype), np.zeros(RUN_RECORDS, dtype=points.dtype)
    functions = (ctypes.c_void_p * maps)(*[address] * maps)
    buffers = (points, even, odd)

    def run() -> None:
        pointers = [ctypes.c_void_p(buffer.ctypes.data) for buffer in buffers]
        done = driver.chain(functions, maps, pointers[0], ctypes.c_int64(count), ctypes.c_int64(16), *pointers[1:])
        assert done == maps * count

    return lambda: processor_time(run) / count / maps * 1e9


def engine_chain(count: int, maps: int) -> Callable[[], float]:
    """What measures ns per record and map of `rel.run`."""
    numbers = np.arange(count)
    table = pa.table({"a": numbers, "b": numbers.astype(np.float64)})
    config = rel.JobConfig(threads=rel.Threads(count=1, model="manual"))

    def topology(length: int) -> rel.Topology:
        made = rel.Topology(f"chain_of_{length}")
        stream = made.source(rel.arrow(table, Point), name="points")
        for number in range(length):
            stream = stream.map(step, name=f"map{number}", schema=Point, lane="compiled")
        stream.sink(rel.count(), name="out")
        return made

    none, all_maps = topology(0), topology(maps)

    def run(chosen: rel.Topology) -> None:
        assert rel.run(chosen, config)["out"] == count

    for chosen in (none, all_maps):  # the first time compiles
        run(chosen)

    def measure() -> float:
        return (processor_time(lambda: run(all_maps)) - processor_time(lambda: run(none))) / count / maps * 1e9

    return measure


def python_chain(maps: int) -> float:
    """Return the same in CPython."""
    few = [Point(i, float(i)) for i in range(FEW)]

    def run() -> None:
        for t in few:
            item = t
            for _ in range(maps):
                item = step(item)

    return processor_time(run) / FEW / maps * 1e9


def splitting(driver: ctypes.CDLL, count: int) -> tuple[Callable[[], float], Callable[[], float]]:
    """What measure ns per sentence of 10 words: compiled into word records, CPython into tuples."""
    chosen = random.Random(1)
    vocabulary = [
        "".join(chosen.choices("etaoinshrdlu", k=chosen.choice([2, 3, 3, 4, 4, 5, 6, 7, 8, 13]))) for _ in range(50_000)
    ]
    sentences = [" ".join(chosen.choices(vocabulary, k=10)) for _ in range(count)]
    text = "".join(sentences).encode()
    block = ctypes.create_string_buffer(text, len(text))
    records, at = bytearray(), ctypes.addressof(block)
    for sentence in sentences:
        raw = sentence.encode()
        records += struct.pack("<I4sQ", len(raw), raw[:4], at)
        at += len(raw)
    code = compiled(words, OperatorKind.FLAT_MAP, Schema.of({"line": str}))
    assert code.machine is not None
    register_symbols({"rel_flush": ctypes.cast(driver.rel_flush, ctypes.c_void_p).value or 0})
    _, address = load_image(code.machine)
    source = np.frombuffer(records, dtype=np.uint8)
    out = np.zeros(RUN_RECORDS * 24, dtype=np.uint8)
    arguments = [
        ctypes.c_void_p(address),
        ctypes.c_void_p(source.ctypes.data),
        ctypes.c_int64(count),
        ctypes.c_int64(16),
    ]
    arguments += [ctypes.c_void_p(out.ctypes.data), ctypes.c_int64(RUN_RECORDS)]

    def run() -> None:
        assert driver.spread(*arguments) == 10 * count

    few = sentences[:FEW]

    def python() -> None:
        for sentence in few:
            for w in sentence.split():
                Word(w, 1)

    kept = (block, records, source, out)

    def measure() -> float:
        assert kept
        return processor_time(run) / count * 1e9

    return measure, lambda: processor_time(python) / len(few) * 1e9


def rounds_of(count: int, ours: Callable[[], float], limit: Callable[[], float]) -> tuple[list[float], list[float]]:
    """Both sides in turns."""
    pairs = [(limit(), ours()) for _ in range(count)]
    return [pair[1] for pair in pairs], [pair[0] for pair in pairs]


def main() -> None:
    options = {
        name: int(value)
        for name, value in settings({"records": 5_000_000, "maps": 10, "sentences": 200_000, "rounds": 5}).items()
    }
    maps, rounds = options["maps"], options["rounds"]
    unit = "ns/tuple"
    with tempfile.TemporaryDirectory() as folder:
        driver = built_driver(Path(folder))
        plain, engine = plain_chain(driver, options["records"], maps), engine_chain(options["records"], maps)
        what = f"compiled map, chain of {maps}"
        Row("compiled.engine", f"{what}, in the engine", unit, *rounds_of(rounds, engine, plain), "plain calls").print()
        calls = rounds_of(rounds, plain, lambda: python_chain(maps))
        Row("compiled.calls", f"{what}, plain calls", unit, *calls, "CPython").print()
        split, python = splitting(driver, options["sentences"])
        what = "compiled split of a sentence of 10 words"
        Row("compiled.split", what, "ns/sentence", *rounds_of(rounds, split, python), "CPython").print()


if __name__ == "__main__":
    main()
