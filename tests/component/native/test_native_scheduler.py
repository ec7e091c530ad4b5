"""The scheduler as Python sees it: state asked for and in force, stopping, the token, the interpreter's exit."""

from __future__ import annotations

import gc
import itertools
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from rayelastic import _native
from rayelastic.compile.code.operator_code import Flags


class Value(NamedTuple):
    value: int


def endless(make: Any) -> _native.Operator:
    return _native.Operator.sequence_source("numbers", make.native(Value), 1 << 62)


def test_apply_answers_with_what_is_in_force(pipelines: Any, make: Any) -> None:
    seen = threading.Event()

    def look(tuples: list[Value]) -> list[Value]:
        seen.set()
        return tuples

    operator = make.python("look", look, Value, Value, Flags.ONE_TO_ONE)
    scheduler = pipelines.start(endless(make), operator, make.into([], Value), threads=1)
    assert seen.wait(30)
    assert scheduler.in_force().thread_count == 1
    for threads, model in ((2, "dynamic"), (1, "manual"), (3, "dedicated")):
        for _ in range(600):
            answer = scheduler.apply(threads, {1: model, 2: "manual"})
            if answer.thread_count == threads and answer.models == {0: "dedicated", 1: model, 2: "manual"}:
                break
        assert (answer.thread_count, answer.models[1]) == (threads, model)
    sample = scheduler.sample()
    assert [operator.name for operator in sample.operators] == ["numbers", "look", "list"]
    assert sample.operators[1].tuples_in > 0
    for value, name in ((sample, "thread_count"), (sample.operators[1], "tuples_in"), (answer, "models")):
        with pytest.raises(AttributeError):
            setattr(value, name, 1)
    assert not scheduler.wait(0)
    scheduler.stop()
    assert scheduler.wait(0)


def test_bad_declarations_are_value_errors(make: Any) -> None:
    schema = make.native(Value)
    scheduler = _native.Scheduler()
    with pytest.raises(ValueError, match="threading model is 'fast'"):
        scheduler.add(endless(make), "fast")
    first = scheduler.add(endless(make))
    with pytest.raises(ValueError):
        scheduler.connect(first, 7)
    with pytest.raises(ValueError, match="no such operator"):
        scheduler.begin_after(first, 7, 0, 1.0)
    with pytest.raises(ValueError, match="has no input port 0 to wait for"):
        scheduler.begin_after(first, first, 0, 1.0)
    with pytest.raises(ValueError, match="'b' has type 'complex'"):
        _native.Schema([("b", "complex", False, "l")])
    with pytest.raises(ValueError, match="'b'"):
        _native.Schema([("b", "int64", False, "g")])
    with pytest.raises(ValueError, match="'b' is declared twice"):
        _native.Schema([("b", "int64", False, "l")] * 2)
    with pytest.raises(ValueError, match="operator 'f'.*view"):
        _native.Operator.python("f", len, schema, schema, view="tables")
    with pytest.raises(ValueError, match="operator 'f'.*callable"):
        _native.Operator.python("f", 7, schema, schema)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="operator 'f'.*NamedTuple"):
        _native.Operator.python("f", len, schema, schema, int)
    with pytest.raises(ValueError, match="operator 'f'"):
        _native.Operator.compiled("f", 0, 0, schema, schema)


def test_stop_while_python_operators_wait_for_the_token(pipelines: Any, make: Any) -> None:
    inside, go = threading.Event(), threading.Event()

    def wait(tuples: list[Value]) -> list[Value]:
        inside.set()
        go.wait(30)
        return tuples

    operators = [make.python(f"wait{n}", wait, Value, Value, Flags.ONE_TO_ONE) for n in range(3)]
    scheduler = pipelines.start(endless(make), *operators, make.into([], Value), threads=4, model="dynamic")
    assert inside.wait(30)
    stopper = threading.Thread(target=scheduler.stop)
    stopper.start()
    go.set()
    stopper.join(30)
    assert not stopper.is_alive()
    assert scheduler.failure() is None


def test_a_source_that_waits_is_closed_by_stop(pipelines: Any, make: Any) -> None:
    waiting, cleaned = threading.Event(), threading.Event()

    def numbers() -> Iterator[tuple[int]]:
        try:
            yield (1,)
            while True:
                waiting.set()
                threading.Event().wait(0.01)  # what a client library does while nothing arrives
        finally:
            cleaned.set()

    got: list[Any] = []
    source = _native.Operator.python("client", numbers, None, make.native(Value), flags=Flags.SOURCE)
    scheduler = pipelines.start(source, make.into(got, Value))
    assert waiting.wait(30)
    scheduler.stop()
    assert cleaned.is_set()
    assert scheduler.failure() is None
    assert got == [(1,)]  # not kept back until the next one came


def test_a_source_that_waits_leaves_python_to_others(pipelines: Any, make: Any) -> None:
    release = threading.Event()

    def silent() -> Iterator[tuple[int]]:
        release.wait(60)
        yield from ()

    scheduler = _native.Scheduler()
    pipelines.schedulers.append(scheduler)
    got: list[Any] = []
    silent_source = _native.Operator.python("silent", silent, None, make.native(Value), flags=Flags.SOURCE)
    busy, quiet = scheduler.add(make.rows([(n,) for n in range(1000)], Value)), scheduler.add(silent_source)
    for origin in (busy, quiet):
        scheduler.connect(origin, scheduler.add(make.into(got, Value)))
    scheduler.start(2)
    for _ in itertools.takewhile(lambda _: len(got) < 1000, range(600)):
        scheduler.wait(0.1)
    assert len(got) == 1000
    release.set()
    assert scheduler.wait(30)


def test_a_source_that_raises_submits_what_came_before(pipelines: Any, make: Any) -> None:
    def numbers() -> Iterator[tuple[int]]:
        yield from ((n,) for n in range(10))
        raise OSError("connection lost")

    got: list[Any] = []
    source = _native.Operator.python("client", numbers, None, make.native(Value), flags=Flags.SOURCE)
    failure = pipelines.run(source, make.into(got, Value))
    assert failure is not None
    assert failure.operator == "client"
    assert type(failure.exception) is OSError
    assert got == [(n,) for n in range(10)]


def test_a_failure_whose_exception_leads_back_to_it_is_collected(make: Any) -> None:
    class LostError(Exception):
        pass

    def numbers() -> Iterator[tuple[int]]:
        yield from ()
        raise LostError("connection lost")

    scheduler = _native.Scheduler()
    scheduler.connect(
        scheduler.add(_native.Operator.python("client", numbers, None, make.native(Value), flags=Flags.SOURCE)),
        scheduler.add(make.into([], Value)),
    )
    scheduler.start(1)
    assert scheduler.wait(30)
    failure = scheduler.failure()
    assert failure is not None
    assert failure.exception is not None
    failure.exception.failure = failure  # type: ignore[attr-defined]
    lost = weakref.ref(failure.exception)
    scheduler.stop()
    del failure, scheduler
    gc.collect()
    assert lost() is None


def test_a_flat_map_as_final_call(pipelines: Any, make: Any) -> None:
    held: list[Value] = []

    def hold(tuples: list[Value]) -> list[Value]:
        if tuples:
            held.extend(tuples)
            return []
        return sorted(held, reverse=True)

    got: list[Any] = []
    operator = make.python("hold", hold, Value, Value, Flags.ON_FINISH)
    assert pipelines.run(make.rows([(n,) for n in range(1000)], Value), operator, make.into(got, Value)) is None
    assert got == [(n,) for n in reversed(range(1000))]


HALF_NATIVE = """
import sys, time
from typing import NamedTuple
from rayelastic import _native
from rayelastic.graph.records.schema import Schema
from rayelastic.runtime.operators.native_schema import native_schema

class Value(NamedTuple):
    value: int
"""


@pytest.mark.parametrize(
    "ending",
    [
        "pass",
        "sys.exit(0)",
        "del scheduler",
        "import gc; holder = [scheduler]; holder.append(holder); del scheduler, holder",
        "import os, signal; signal.raise_signal(signal.SIGINT)",
    ],
)
def test_the_interpreter_may_exit_at_any_time(ending: str) -> None:
    program = f"""{HALF_NATIVE}
import threading
ran = threading.Event()
def spin(tuples):
    ran.set()
    return tuples
schema = native_schema(Schema.of(Value))
scheduler = _native.Scheduler()
ids = [scheduler.add(_native.Operator.sequence_source("numbers", schema, 1 << 62))]
ids += [scheduler.add(_native.Operator.python(f"spin{{n}}", spin, schema, schema, Value), "dynamic") for n in range(4)]
ids += [scheduler.add(_native.Operator.count_sink("count", schema), "dynamic")]
for origin, target in zip(ids, ids[1:]):
    scheduler.connect(origin, target)
scheduler.start(3)
assert ran.wait(30)
{ending}
"""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == (0 if "SIGINT" not in ending else -2), done.stderr
    assert "Fatal" not in done.stderr


def test_user_code_that_hangs_does_not_hold_the_exit() -> None:
    program = f"""{HALF_NATIVE}
import os, threading
inside = threading.Event()
reader, writer = os.pipe()
def hang(tuples):
    inside.set()
    os.read(reader, 1)
    return tuples
schema = native_schema(Schema.of(Value))
scheduler = _native.Scheduler()
ids = [scheduler.add(_native.Operator.sequence_source("numbers", schema, 10)),
       scheduler.add(_native.Operator.python("hang", hang, schema, None, Value, flags=64))]
scheduler.connect(*ids)
scheduler.start(1)
assert inside.wait(30)
"""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "Fatal" not in done.stderr


@pytest.mark.bench
def test_half_native_half_python_on_two_threads(pipelines: Any, make: Any) -> None:
    """Python work under the token runs beside native work; the threads don't fight for the GIL."""

    def burn(tuples: list[Value]) -> list[Value]:
        for _ in tuples:
            sum(range(60))
        return tuples

    def seconds(threads: int) -> float:
        counts = make.native({"value": int, "n": int})
        operators = [make.python(f"burn{n}", burn, Value, Value, Flags.ONE_TO_ONE) for n in range(2)]
        aggregates = [
            _native.Operator.aggregate(
                "total", make.native(Value), counts, ["value"], [("count", "", "", 0, 0)], "final"
            )
        ]
        sink = _native.Operator.count_sink("count", counts)
        source = _native.Operator.sequence_source("numbers", make.native(Value), 60_000)
        started = time.perf_counter()
        assert pipelines.run(source, *operators, *aggregates, sink, threads=threads, model="dynamic") is None
        assert sink.count == 60_000
        return time.perf_counter() - started

    times = [(seconds(1), seconds(2)) for _ in range(5)]  # alternated: whatever else runs here slows both
    best = [min(column) for column in zip(*times, strict=True)]
    assert best[1] < 2 * best[0], best  # collapsed, if not
