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
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import rayelastic as rel
from bench.harness import compared, processor_time, settings
from bench.micro.machine_code import RUN_RECORDS, VIEW_BYTES, address_of, driver, views_of
from rayelastic.compile.cache.loader import register_symbols
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.requests import FunctionKind

FEW = 20_000  # records that CPython gets


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


def plain_chain(loops: ctypes.CDLL, count: int, maps: int) -> Callable[[], float]:
    """What measures ns per record and map of plain calls of the machine code."""
    points = np.zeros(count, dtype=Schema.of(Point).to_numpy())
    points["a"], points["b"] = np.arange(count), np.arange(count)
    even, odd = np.zeros(RUN_RECORDS, dtype=points.dtype), np.zeros(RUN_RECORDS, dtype=points.dtype)
    functions = (ctypes.c_void_p * maps)(*[address_of(step, FunctionKind.MAP, Schema.of(Point))] * maps)
    buffers = (points, even, odd)

    def run() -> None:
        pointers = [ctypes.c_void_p(buffer.ctypes.data) for buffer in buffers]
        done = loops.chain(functions, maps, pointers[0], ctypes.c_int64(count), ctypes.c_int64(16), *pointers[1:])
        assert done == maps * count

    return lambda: processor_time(run) / count / maps * 1e9


def engine_chain(count: int, maps: int) -> Callable[[], float]:
    """What measures ns per record and map of `rel.run`."""
    numbers = np.arange(count)
    table = pa.table({"a": numbers, "b": numbers.astype(np.float64)})
    config = rel.JobConfig(threads=rel.Threads(count=1, model="manual"))

    def job(length: int) -> Callable[[], None]:
        topology = rel.Topology(f"chain_of_{length}")
        stream = topology.source(rel.arrow(table, Point), name="points")
        for number in range(length):
            stream = stream.map(step, name=f"map{number}", schema=Point, lane="compiled")
        stream.sink(rel.count(), name="out")

        def run() -> None:
            assert rel.run(topology, config)["out"] == count

        run()  # compiles
        return run

    none, all_maps = job(0), job(maps)
    return lambda: (processor_time(all_maps) - processor_time(none)) / count / maps * 1e9


def python_chain(maps: int) -> float:
    """Return the same in CPython."""
    few = [Point(i, float(i)) for i in range(FEW)]

    def run() -> None:
        for t in few:
            item = t
            for _ in range(maps):
                item = step(item)

    return processor_time(run) / FEW / maps * 1e9


def splitting(loops: ctypes.CDLL, count: int) -> tuple[Callable[[], float], Callable[[], float]]:
    """What measure ns per sentence of 10 words: compiled into word records, CPython into tuples."""
    chosen = random.Random(1)
    vocabulary = [
        "".join(chosen.choices("etaoinshrdlu", k=chosen.choice([2, 3, 3, 4, 4, 5, 6, 7, 8, 13]))) for _ in range(50_000)
    ]
    sentences = [" ".join(chosen.choices(vocabulary, k=10)) for _ in range(count)]
    records, block = views_of([sentence.encode() for sentence in sentences])
    register_symbols({"rel_flush": ctypes.cast(loops.rel_flush, ctypes.c_void_p).value or 0})
    address = ctypes.c_void_p(address_of(words, FunctionKind.FLAT_MAP, Schema.of({"line": str})))
    out = np.zeros(RUN_RECORDS * 24, dtype=np.uint8)
    context = ctypes.c_void_p(1)

    def run() -> None:
        assert block
        source, target = ctypes.c_void_p(records.ctypes.data), ctypes.c_void_p(out.ctypes.data)
        stride = ctypes.c_int64(VIEW_BYTES)
        assert loops.passes(address, source, ctypes.c_int64(count), stride, target, context, None) == 10 * count

    few = sentences[:FEW]

    def python() -> None:
        for sentence in few:
            for w in sentence.split():
                Word(w, 1)

    return lambda: processor_time(run) / count * 1e9, lambda: processor_time(python) / len(few) * 1e9


def main() -> None:
    options = settings(records=5_000_000, maps=10, sentences=200_000, rounds=5)
    maps, rounds, loops = options["maps"], options["rounds"], driver()
    plain, engine = plain_chain(loops, options["records"], maps), engine_chain(options["records"], maps)
    what, unit = f"compiled map, chain of {maps}", "ns/tuple"
    compared("compiled.engine", f"{what}, in the engine", unit, rounds, engine, plain, "plain calls").print()
    python = "CPython"
    compared("compiled.calls", f"{what}, plain calls", unit, rounds, plain, lambda: python_chain(maps), python).print()
    what = "compiled split of a sentence of 10 words"
    compared("compiled.split", what, "ns/sentence", rounds, *splitting(loops, options["sentences"]), python).print()


if __name__ == "__main__":
    main()
