"""What a tuple costs in each lane that runs Python, and whether Python work beside native work slows it down.

    python -m bench.micro.token_lanes [--tuples 400000] [--repeats 3]

Each figure of a lane is processor time of source -> operator -> count, the best of several runs, less the best without
the operator. Two threads against one are compared by the clock, so on a busy machine that line says nothing.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from rayelastic import _native
from rayelastic.compile.code import Flags
from rayelastic.compile.python_lane import per_run
from rayelastic.graph.operator_spec import OperatorKind
from rayelastic.graph.schema import Schema
from rayelastic.runtime.native_schema import native_schema


class Number(NamedTuple):
    value: int


class Pair(NamedTuple):
    value: int
    text: str


NUMBER, PAIR = native_schema(Schema.of(Number)), native_schema(Schema.of(Pair))


def seconds(
    tuples: int, *operators: _native.Operator, last: _native.Schema, threads: int = 1, clock: Callable[[], float]
) -> float:
    """Time of one pipeline, from start to the last tuple."""
    sink = _native.Operator.count_sink("count", last)
    scheduler = _native.Scheduler()
    model = "manual" if threads == 1 else "dynamic"
    ids = [scheduler.add(_native.Operator.sequence_source("numbers", NUMBER, tuples))]
    ids += [scheduler.add(operator, model) for operator in (*operators, sink)]
    for origin, target in itertools.pairwise(ids):
        scheduler.connect(origin, target)
    started = clock()
    scheduler.start(threads)
    scheduler.wait()
    elapsed = clock() - started
    failure = scheduler.failure()
    assert failure is None, failure
    assert sink.count == tuples, (sink.count, tuples)
    scheduler.stop()
    return elapsed


def python(function: Callable[..., Any], view: str, into: _native.Schema = NUMBER) -> _native.Operator:
    """A map of `Number` in a view."""
    return _native.Operator.python(view, function, NUMBER, into, Number, view=view, flags=Flags.ONE_TO_ONE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tuples", type=int, default=400_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    tuples: int = options.tuples

    def best(
        make: Callable[[], list[_native.Operator]],
        last: _native.Schema = NUMBER,
        threads: int = 1,
        clock: Callable[[], float] = time.process_time,
    ) -> float:
        runs = (seconds(tuples, *make(), last=last, threads=threads, clock=clock) for _ in range(options.repeats))
        return min(runs) / tuples * 1e9

    each = per_run(lambda t: (t.value + 1,), OperatorKind.MAP, keyed=False)
    text = per_run(lambda t: (t.value, "a text of more than twelve bytes"), OperatorKind.MAP, keyed=False)
    cases: dict[str, tuple[Callable[[], list[_native.Operator]], _native.Schema]] = {
        "tuples, list handed through": (lambda: [python(lambda ts: ts, "tuples")], NUMBER),
        "tuples, lambda t: (t.value + 1,)": (lambda: [python(each, "tuples")], NUMBER),
        "tuples, one int and one text out": (lambda: [python(text, "tuples", PAIR)], PAIR),
        "numpy, t['value'] + 1": (lambda: [python(lambda run: run["value"] + 1, "numpy")], NUMBER),
        "numpy, in place": (lambda: [python(_in_place, "numpy")], NUMBER),
        "arrow, add(value, 1)": (lambda: [python(_arrow, "arrow")], NUMBER),
    }
    base = best(list)
    print(f"{'source and count alone':36} {base:8.1f} ns/tuple")
    for name, (make, last) in cases.items():
        print(f"{name:36} {best(make, last) - base:8.1f} ns/tuple")

    totals = native_schema(Schema.of({"value": int, "n": int}))

    def halves() -> list[_native.Operator]:
        count = _native.Operator.aggregate("total", NUMBER, totals, ["value"], [("count", "")], "update")
        return [python(each, "tuples"), count]

    one, two = (best(halves, totals, threads, time.perf_counter) for threads in (1, 2))
    print(f"Python map and native keyed count: {one:.0f} ns/tuple on one thread, {two:.0f} on two ({one / two:.2f}x)")


def _in_place(run: Any) -> Any:
    run["value"] += 1
    return run


def _arrow(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"value": pc.add(batch.column("value"), 1)})


if __name__ == "__main__":
    main()
