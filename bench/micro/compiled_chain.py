"""What compiled functions cost per tuple: a chain of 10 maps, and splitting sentences, beside CPython.

Runs of 256 records go through the functions one after the other, by plain C calls over buffers that stay in cache: what
the scheduler does under manual threading, without the scheduler. Needs gcc. Targets: under 1 ns per tuple and operator;
about 100 ns to split a sentence of 10 words.

    python -m bench.micro.compiled_chain [--records 5000000] [--sentences 200000]
"""

from __future__ import annotations

import argparse
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

from rayelastic.compile import Compiler, OperatorCode
from rayelastic.compile.loader import load_image, register_symbols
from rayelastic.graph.operator_spec import FunctionRequest, Lane, OperatorKind
from rayelastic.graph.schema import Schema

RUN_RECORDS = 256
CHAIN = 10
REPEATS = 5

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
    return (t.a * 3 + 1, t.b * 0.5 + 1.0)


def words(t: Any) -> Any:
    for w in t.line.split():
        yield Word(w, 1)


def best_of(measured: Callable[[], Any]) -> float:
    """Processor seconds of the fastest of some repetitions: neighbours on the machine count less than by the clock."""
    seconds = []
    for _ in range(REPEATS):
        started = time.thread_time()
        measured()
        seconds.append(time.thread_time() - started)
    return min(seconds)


def built_driver(folder: Path) -> ctypes.CDLL:
    """The C loops around the functions."""
    source, library = folder / "driver.c", folder / "driver.so"
    source.write_text(DRIVER)
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.chain.restype = loaded.spread.restype = ctypes.c_int64
    return loaded


def compiled(function: Callable[..., Any], kind: OperatorKind, schema: Schema) -> OperatorCode:
    """The function in the compiled lane."""
    return Compiler().compile(FunctionRequest(function.__name__, kind, function, schema, lane=Lane.COMPILED))


def chain_of_maps(driver: ctypes.CDLL, count: int) -> tuple[float, float]:
    """Nanoseconds per tuple and operator: compiled, CPython."""
    schema = Schema.of(Point)
    code = compiled(step, OperatorKind.MAP, schema)
    assert code.machine is not None
    _, address = load_image(code.machine)
    points = np.zeros(count, dtype=schema.to_numpy())
    points["a"], points["b"] = np.arange(count), np.arange(count)
    even, odd = np.zeros(RUN_RECORDS, dtype=points.dtype), np.zeros(RUN_RECORDS, dtype=points.dtype)
    functions = (ctypes.c_void_p * CHAIN)(*[address] * CHAIN)
    pointers = [ctypes.c_void_p(buffer.ctypes.data) for buffer in (points, even, odd)]

    def run() -> None:
        done = driver.chain(functions, CHAIN, pointers[0], ctypes.c_int64(count), ctypes.c_int64(16), *pointers[1:])
        assert done == CHAIN * count

    seconds = best_of(run)
    few = [Point(i, float(i)) for i in range(20_000)]

    def python() -> None:
        for t in few:
            item = t
            for _ in range(CHAIN):
                item = Point(*step(item))

    return seconds / count / CHAIN * 1e9, best_of(python) / len(few) / CHAIN * 1e9


def split_sentences(driver: ctypes.CDLL, count: int) -> tuple[float, float]:
    """Nanoseconds per sentence of 10 words: compiled into word records, CPython into tuples."""
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

    few = sentences[:20_000]

    def python() -> None:
        for sentence in few:
            for w in sentence.split():
                Word(w, 1)

    return best_of(run) / count * 1e9, best_of(python) / len(few) * 1e9


def main() -> None:
    """Measures and prints one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=5_000_000)
    parser.add_argument("--sentences", type=int, default=200_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        driver = built_driver(Path(folder))
        rows = [
            (f"map, per tuple and operator, chain of {CHAIN}", *chain_of_maps(driver, options.records)),
            ("split a sentence of 10 words into records", *split_sentences(driver, options.sentences)),
        ]
    print(f"{'ns':44} {'compiled':>10} {'CPython':>10} {'factor':>8}")
    for name, ours, theirs in rows:
        print(f"{name:44} {ours:10.2f} {theirs:10.1f} {theirs / ours:8.0f}")


if __name__ == "__main__":
    main()
