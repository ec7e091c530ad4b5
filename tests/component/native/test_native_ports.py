"""Ports of Python operators under every threading model: what comes in and goes out where, firings, loops."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import pytest

from rayelastic import _native
from rayelastic.compile.code.operator_code import Flags
from rayelastic.graph.records.schema import Schema
from rayelastic.runtime.operators.functions import FunctionPort
from rayelastic.runtime.operators.native_schema import native_schema
from tests.component.native.conftest import PATIENCE, Pipelines, list_sink, rows_source

MODELS = ["manual", "dynamic", "dedicated"]
COUNT = 3000


class Number(NamedTuple):
    n: int


class Word(NamedTuple):
    word: str
    n: int


def ports(
    name: str,
    function: Any,
    inputs: Sequence[type],
    outputs: Sequence[type],
    demands: Any = (),
    keys: Any = (),
    **more: Any,
) -> _native.Operator:
    described = [
        FunctionPort(native_schema(Schema.of(kind)), kind, keys or (), demand)
        for kind, demand, keys in zip_longest(inputs, demands, keys)
    ]
    schemas = [native_schema(Schema.of(kind)) for kind in outputs]
    return _native.Operator.python_ports(name, function, described, schemas, **more)


def wired(
    pipelines: Pipelines,
    operators: dict[str, _native.Operator],
    edges: list[tuple[Any, ...]],
    model: str,
    threads: int,
    **options: Any,
) -> _native.Scheduler:
    scheduler = _native.Scheduler(**options)
    pipelines.schedulers.append(scheduler)
    ids = {name: scheduler.add(operator, model) for name, operator in operators.items()}
    for source, target, *at in edges:
        scheduler.connect(ids[source], ids[target], *at)
    scheduler.start(threads)
    assert scheduler.wait(PATIENCE), scheduler.sample()
    return scheduler


def numbers(count: int = COUNT) -> _native.Operator:
    return rows_source([(n,) for n in range(count)], Number, "numbers")


def words(count: int = COUNT) -> _native.Operator:
    return rows_source([(f"word number {n} of them", n) for n in range(count)], Word, "words")


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("model", MODELS)
def test_a_disjunctive_operator_hears_which_port_and_speaks_by_any(
    pipelines: Pipelines, model: str, threads: int
) -> None:
    def sort(port: int, run: list[Any]) -> tuple[list[Any], list[Any]] | None:
        if port < 0:
            return [], [("the end, after all of them", -1)]
        return [(t.n,) for t in run if t.n % 2], [(f"port {port} had an even number", t.n) for t in run if t.n % 2 == 0]

    odd: list[Any] = []
    even: list[Any] = []
    operators = {
        "numbers": numbers(),
        "words": words(),
        "sort": ports("sort", sort, [Number, Word], [Number, Word], flags=Flags.ON_FINISH),
        "odd": list_sink(odd, Number),
        "even": list_sink(even, Word),
    }
    edges = [("numbers", "sort"), ("words", "sort", 0, 1), ("sort", "odd"), ("sort", "even", 1)]
    scheduler = wired(pipelines, operators, edges, model, threads, queue_records=64, run_records=64)
    assert scheduler.failure() is None
    assert sorted(odd) == sorted([(n,) for n in range(1, COUNT, 2)] * 2)
    assert even.pop() == ("the end, after all of them", -1)
    for port in (0, 1):
        assert [w.n for w in even if w.word.startswith(f"port {port}")] == list(range(0, COUNT, 2))


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("model", MODELS)
def test_a_barrier_fires_when_all_ports_have_what_they_want(pipelines: Pipelines, model: str, threads: int) -> None:
    rests: list[tuple[int, int]] = []

    def zipped(firings: int, runs: list[list[Any]]) -> tuple[list[Any]]:
        if not firings:
            rests.append((len(runs[0]), len(runs[1])))
            return ([],)
        assert (len(runs[0]), len(runs[1])) == (firings, 2 * firings)
        pairs = zip(runs[0], runs[1][::2], runs[1][1::2], strict=True)
        return ([(f"{a.n} with {b.word} and {c.word}", a.n) for a, b, c in pairs],)

    got: list[Any] = []
    operators = {
        "numbers": numbers(),
        "words": words(),
        "zip": ports("zip", zipped, [Number, Word], [Word], demands=[("exact", 1), ("exact", 2)]),
        "out": list_sink(got, Word),
    }
    edges = [("numbers", "zip"), ("words", "zip", 0, 1), ("zip", "out")]
    scheduler = wired(pipelines, operators, edges, model, threads, queue_records=64, run_records=64)
    assert scheduler.failure() is None
    expected = [
        (f"{n} with word number {2 * n} of them and word number {2 * n + 1} of them", n) for n in range(COUNT // 2)
    ]
    assert got == expected
    assert sum(left for left, _ in rests) == COUNT - COUNT // 2


def test_a_loop_ends_when_nothing_goes_round_any_more(pipelines: Pipelines) -> None:
    def halve(port: int, run: list[Any]) -> tuple[list[Any], list[Any]]:
        return [(t.n // 2,) for t in run if t.n > 1], [(t.n,) for t in run if t.n <= 1]

    got: list[Any] = []
    operators = {
        "numbers": numbers(500),
        "halve": ports("halve", halve, [Number], [Number, Number]),
        "out": list_sink(got, Number),
    }
    edges = [("numbers", "halve"), ("halve", "halve", 0, 0, True), ("halve", "out", 1)]
    for model in MODELS:
        got.clear()
        scheduler = wired(pipelines, {**operators, "numbers": numbers(500)}, edges, model, 2)
        assert scheduler.failure() is None
        assert sorted(t.n for t in got) == [0] + [1] * 499


def test_keyed_states_are_shared_by_the_ports(pipelines: Pipelines) -> None:
    def pair(port: int, run: list[Any], states: list[dict[int, int]]) -> tuple[list[Any]]:
        made = []
        for t, state in zip(run, states, strict=True):
            state[port] = state.get(port, 0) + 1
            if len(state) == 2:
                made.append((t.n,))
        return (made,)

    got: list[Any] = []
    keyed = _native.KeyedState.objects(native_schema(Schema.of(Number)), ["n"], dict)
    operators = {
        "numbers": numbers(),
        "words": words(),
        "pair": ports("pair", pair, [Number, Word], [Number], state=keyed, keys=[["n"], ["n"]]),
        "out": list_sink(got, Number),
    }
    edges = [("numbers", "pair"), ("words", "pair", 0, 1), ("pair", "out")]
    scheduler = wired(pipelines, operators, edges, "dynamic", 2)
    assert scheduler.failure() is None
    assert sorted(t.n for t in got) == list(range(COUNT))
    assert keyed.size == COUNT


def test_a_failure_tells_the_port_and_shows_its_tuple(pipelines: Pipelines) -> None:
    def fail(port: int, run: list[Any]) -> None:
        for index, t in enumerate(run):
            if port == 1 and t.n == 70:
                error = ValueError("seventy")
                error.rel_index = index  # type: ignore[attr-defined]
                raise error

    operators = {
        "numbers": numbers(),
        "words": words(),
        "fail": ports("fail", fail, [Number, Word], [Number]),
        "out": list_sink([], Number),
    }
    edges = [("numbers", "fail"), ("words", "fail", 0, 1), ("fail", "out")]
    failure = wired(pipelines, operators, edges, "dynamic", 2).failure()
    assert failure is not None
    assert (failure.operator, failure.port, failure.record) == ("fail", 1, ("word number 70 of them", 70))
    assert isinstance(failure.exception, ValueError)


@pytest.mark.parametrize(
    ("function", "more", "problem"),
    [
        (3, {}, "callable"),
        (lambda port, run: None, {"demands": [("some", 1)]}, "'exact' or 'at least'"),
        (lambda port, run: None, {"flags": Flags.KEYED}, "ON_FINISH"),
    ],
)
def test_bad_ports_are_refused(function: Any, more: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=f"'bad'.*{problem}"):
        ports("bad", function, [Number, Word], [Number], **more)


def test_bad_edges_are_refused(pipelines: Pipelines) -> None:
    scheduler = _native.Scheduler()
    pipelines.schedulers.append(scheduler)
    origin = scheduler.add(numbers())
    target = scheduler.add(ports("two", lambda port, run: None, [Number, Word], []))
    with pytest.raises(ValueError, match="has no input port 2"):
        scheduler.connect(origin, target, 0, 2)
    with pytest.raises(ValueError, match="has no output port 1"):
        scheduler.connect(origin, target, 1, 0)
    with pytest.raises(ValueError, match="of another size"):
        scheduler.connect(origin, target, input_port=1)
    scheduler.connect(origin, target)
    assert scheduler.minimum_threads() == 3  # PLDI'17 section 4.2.3
    with pytest.raises(ValueError, match="input port 1"):
        scheduler.start()
