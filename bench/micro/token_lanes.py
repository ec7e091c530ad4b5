"""What a tuple costs in each lane that runs Python, and whether Python work beside native work slows it down.

    python -m bench.micro.token_lanes [tuples=400000] [rounds=5]

A lane's figure is processor time of source -> operator -> count, less that without the operator, beside the same
function called in a plain Python loop on runs of as many records. Two threads against one are compared by the clock, so
on a busy machine that row says nothing.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.harness import compared, settings
from rayelastic import _native
from rayelastic.compile.code.operator_code import Flags
from rayelastic.compile.lanes.python_lane import per_run
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.requests import FunctionKind
from rayelastic.runtime.operators.native_schema import native_schema

RUN_RECORDS = 256  # the engine's longest run
PLAIN_SECONDS = 0.1


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
    """Return a map of `Number` in a view."""
    return _native.Operator.python(view, function, NUMBER, into, Number, view=view, flags=Flags.ONE_TO_ONE)


def plain(function: Callable[[Any], Any], argument: Any) -> float:
    """ns a tuple of the same function called by nobody but Python, over and over on one run."""
    calls = 0
    started = time.process_time()
    while (took := time.process_time() - started) < PLAIN_SECONDS:
        for _ in range(10):
            function(argument)
        calls += 10
    return took / calls / RUN_RECORDS * 1e9


def main() -> None:
    options = settings(tuples=400_000, rounds=5)
    tuples, rounds = int(options["tuples"]), int(options["rounds"])

    def cost(make: Callable[[], list[_native.Operator]], last: _native.Schema = NUMBER) -> float:
        return seconds(tuples, *make(), last=last, clock=time.process_time) / tuples * 1e9

    run = np.zeros(RUN_RECORDS, dtype=Schema.of(Number).to_numpy())
    few = [Number(value) for value in range(RUN_RECORDS)]
    batch = pa.record_batch({"value": pa.array(range(RUN_RECORDS), pa.int64())})
    each = per_run(_next, FunctionKind.MAP, keyed=False)
    text = per_run(_with_text, FunctionKind.MAP, keyed=False)
    cases: list[tuple[str, str, Callable[[], list[_native.Operator]], _native.Schema, Callable[[], float]]] = [
        ("tuples", "list handed through", lambda: [python(_same, "tuples")], NUMBER, lambda: plain(_same, few)),
        ("tuples.map", "t: (t.value + 1,)", lambda: [python(each, "tuples")], NUMBER, lambda: plain(_each(_next), few)),
        ("tuples.text", "one int and one text out", lambda: [python(text, "tuples", PAIR)], PAIR,
         lambda: plain(_each(_with_text), few)),
        ("numpy", "numpy, t['value'] + 1", lambda: [python(_plus_one, "numpy")], NUMBER, lambda: plain(_plus_one, run)),
        ("numpy.in_place", "numpy, in place", lambda: [python(_in_place, "numpy")], NUMBER,
         lambda: plain(_in_place, run)),
        ("arrow", "arrow, add(value, 1)", lambda: [python(_arrow, "arrow")], NUMBER, lambda: plain(_arrow, batch)),
    ]  # fmt: skip
    for key, what, make, last, limit in cases:
        ours = partial(lambda make, last: cost(make, last) - cost(list), make, last)
        what = f"token lane: {what}"
        compared(f"token.{key}", what, "ns/tuple", rounds, ours, limit, "the function in a plain loop").print()

    totals = native_schema(Schema.of({"value": int, "n": int}))

    def halves() -> list[_native.Operator]:
        count = _native.Operator.aggregate("total", NUMBER, totals, ["value"], [("count", "", "", 0, 0)], "update")
        return [python(each, "tuples"), count]

    def by(threads: int) -> float:
        return seconds(tuples, *halves(), last=totals, threads=threads, clock=time.perf_counter) / tuples * 1e9

    what = "Python map and native keyed count, two threads"
    one, two = partial(by, 1), partial(by, 2)
    compared("token.beside_native", what, "ns/tuple", rounds, two, one, "the same on one thread").print()


def _same(run: Any) -> Any:
    return run


def _next(t: Any) -> Any:
    return (t.value + 1,)


def _with_text(t: Any) -> Any:
    return (t.value, "a text of more than twelve bytes")


def _each(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda run: [function(t) for t in run]


def _plus_one(run: Any) -> Any:
    return run["value"] + 1


def _in_place(run: Any) -> Any:
    run["value"] += 1
    return run


def _arrow(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"value": pc.add(batch.column("value"), 1)})


if __name__ == "__main__":
    main()
