"""The python and vectorised lanes under every threading model: conservation, order, failures, references."""

from __future__ import annotations

import gc
import sys
import traceback
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rayelastic import _native
from rayelastic.compile.code.operator_code import Flags
from rayelastic.compile.lanes.python_lane import per_run
from rayelastic.graph.spec.requests import FunctionKind

MODELS = ["manual", "dynamic", "dedicated"]
THREADS = [1, 2, 4]
COUNT = 4000


class Value(NamedTuple):
    value: int


class Word(NamedTuple):
    word: str
    n: int


def sequence(make: Any, count: int = COUNT) -> _native.Operator:
    return _native.Operator.sequence_source("numbers", make.native(Value), count)


def words_of(tuples: list[Value]) -> list[tuple[str, int]]:
    return [(f"{t.value} and so on, past twelve bytes", k) for t in tuples for k in range(t.value % 4)]


def expected_words(count: int) -> list[Word]:
    return [Word(*pair) for pair in words_of([Value(n) for n in range(count)])]


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("model", MODELS)
def test_nothing_is_lost_doubled_or_reordered(pipelines: Any, make: Any, model: str, threads: int) -> None:
    got: list[Any] = []
    failure = pipelines.run(
        sequence(make),
        make.python("words", words_of, Value, Word),
        make.python("odd", lambda ts: [t.n % 2 for t in ts], Word, Word, Flags.FILTER),
        make.python("upper", lambda ts: [(t.word.upper(), -t.n) for t in ts], Word, Word, Flags.ONE_TO_ONE),
        make.into(got, Word),
        threads=threads,
        model=model,
        queue_records=64,
    )
    assert failure is None
    assert got == [Word(w.word.upper(), -w.n) for w in expected_words(COUNT) if w.n % 2]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("view", ["numpy", "arrow"])
def test_vectorised_map_filter_and_flat_map(pipelines: Any, make: Any, view: str, model: str) -> None:
    class Pair(NamedTuple):
        value: int
        half: float

    def halves(run: Any) -> Any:
        if view == "numpy":
            return {"value": run["value"] * 2, "half": run["value"] / 2}
        value = run.column("value")
        return pa.record_batch({"value": pc.multiply(value, 2), "half": pc.divide(pc.cast(value, pa.float64()), 2.0)})

    def keep(run: Any) -> Any:
        return run["value"] % 3 == 0 if view == "numpy" else pc.equal(pc.bit_wise_and(run.column("value"), 3), 0)

    def twice(run: Any) -> Any:
        if view == "numpy":
            return np.repeat(run, 2)
        return run.take(pa.array(np.repeat(np.arange(run.num_rows), 2)))

    got: list[Any] = []
    failure = pipelines.run(
        sequence(make),
        make.python("halves", halves, Value, Pair, Flags.ONE_TO_ONE, view=view),
        make.python("keep", keep, Pair, Pair, Flags.FILTER, view=view),
        make.python("twice", twice, Pair, Pair, view=view),
        make.into(got, Pair),
        threads=2,
        model=model,
    )
    assert failure is None
    chosen = [2 * n for n in range(COUNT) if (2 * n % 3 == 0 if view == "numpy" else 2 * n % 4 == 0)]
    assert got == [Pair(n, n / 4) for n in chosen for _ in range(2)]


def test_text_goes_through_numpy_and_is_made_in_arrow(pipelines: Any, make: Any) -> None:
    got: list[Any] = []
    failure = pipelines.run(
        sequence(make, 500),
        make.python("words", words_of, Value, Word),
        make.python("reverse", lambda run: run[::-1], Word, Word, view="numpy"),
        make.python("upper", _upper, Word, Word, Flags.ONE_TO_ONE, view="arrow"),
        make.into(got, Word),
    )
    assert failure is None
    assert sorted(got) == sorted(Word(w.word.upper(), w.n) for w in expected_words(500))


def _upper(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.set_column(0, "word", pc.utf8_upper(batch.column("word")))


def test_text_made_up_in_numpy_is_refused(pipelines: Any, make: Any) -> None:
    def forge(run: Any) -> Any:
        made = np.zeros(len(run), run.dtype)
        made.view("u1")[:] = 255
        return made

    failure = pipelines.run(
        sequence(make, 9),
        make.python("words", words_of, Value, Word),
        make.python("forge", forge, Word, Word, Flags.ONE_TO_ONE, view="numpy"),
        make.into([], Word),
    )
    assert failure is not None
    assert "return new text as a column of str or bytes" in failure.message


def test_an_array_that_is_kept_stays_as_it_was(pipelines: Any, make: Any) -> None:
    kept: list[Any] = []

    def keep(run: Any) -> Any:
        kept.append(run)
        return run

    assert (
        pipelines.run(sequence(make), make.python("keep", keep, Value, Value, view="numpy"), make.into([], Value))
        is None
    )
    assert np.concatenate(kept)["value"].tolist() == list(range(COUNT))


@pytest.mark.parametrize(
    ("view", "function", "message"),
    [
        ("tuples", lambda ts: ts[:-1], "tuples in"),
        ("tuples", lambda ts: 7, "expected a list, got int"),
        ("numpy", lambda run: run["value"] / 2, "expected int64, got float64; convert it with .astype"),
        ("numpy", lambda run: run["value"][:-1], "values where"),
        ("numpy", lambda run: {"other": run["value"]}, "field 'value' is missing"),
        ("arrow", lambda batch: batch.slice(1), "rows out"),
        ("arrow", lambda batch: 7, "__arrow_c_array__"),
        ("arrow", lambda batch: batch.rename_columns(["other"]), "value"),
    ],
)
def test_a_result_that_does_not_fit_is_named(pipelines: Any, make: Any, view: str, function: Any, message: str) -> None:
    operator = make.python("wrong", function, Value, Value, Flags.ONE_TO_ONE, view=view)
    failure = pipelines.run(sequence(make), operator, make.into([], Value))
    assert failure is not None
    assert failure.operator == "wrong"
    assert message in failure.message


@pytest.mark.parametrize("model", MODELS)
def test_an_exception_carries_tuple_and_traceback(pipelines: Any, make: Any, model: str) -> None:
    def inverse(t: Value) -> tuple[int]:
        return (100 // (t.value - 1234),)

    operator = make.python("inverse", per_run(inverse, FunctionKind.MAP, keyed=False), Value, Value, Flags.ONE_TO_ONE)
    failure = pipelines.run(sequence(make), operator, make.into([], Value), model=model, threads=2)
    assert failure is not None
    assert failure.operator == "inverse"
    assert failure.record == (1234,)
    exception = failure.exception
    assert type(exception) is ZeroDivisionError
    assert failure.message.startswith("ZeroDivisionError: ")
    lines = "".join(traceback.format_exception(exception))
    assert "100 // (t.value - 1234)" in lines
    assert __file__ in lines


def test_a_sink_that_raises_stops_the_job(pipelines: Any, make: Any) -> None:
    def refuse(tuples: list[Any]) -> None:
        raise RuntimeError("disk full")

    sink = _native.Operator.python("full", refuse, make.native(Value), None, flags=Flags.SINK)
    failure = pipelines.run(sequence(make), sink)
    assert failure is not None
    assert str(failure.exception) == "disk full"
    assert failure.index is None


def test_arrow_sink_gets_batches_and_its_exception_is_kept(pipelines: Any, make: Any) -> None:
    batches: list[pa.RecordBatch] = []
    assert (
        pipelines.run(sequence(make), _native.Operator.arrow_sink("out", make.native(Value), batches.append, 1000))
        is None
    )
    assert [batch.num_rows for batch in batches] == [1000] * 4
    assert pa.Table.from_batches(batches).column("value").to_pylist() == list(range(COUNT))

    failure = pipelines.run(
        sequence(make), _native.Operator.arrow_sink("out", make.native(Value), lambda batch: 1 // 0, 1000)
    )
    assert failure is not None
    assert type(failure.exception) is ZeroDivisionError


def test_a_full_feeder_waits_and_bad_batches_are_named(pipelines: Any, make: Any) -> None:
    schema = make.native(Word)
    feeder = _native.ArrowFeeder(schema, 1 << 12)
    got: list[Any] = []
    scheduler = pipelines.start(_native.Operator.arrow_source("in", schema, feeder), make.into(got, Word))
    for start in range(0, COUNT, 100):
        rows = range(start, start + 100)
        batch = pa.record_batch({"word": [f"word {n} that is long" for n in rows], "n": list(rows)})
        assert feeder.push(batch)
    with pytest.raises(Exception, match="word"):
        feeder.push(pa.record_batch({"n": [1]}))
    with pytest.raises(TypeError, match="__arrow_c_array__"):
        feeder.push([1])
    feeder.finish()
    assert scheduler.wait(60)
    assert scheduler.failure() is None
    assert got == [Word(f"word {n} that is long", n) for n in range(COUNT)]
    assert feeder.push(pa.record_batch({"word": ["late"], "n": [1]})) is False


def test_no_reference_is_left_behind(pipelines: Any, make: Any) -> None:
    def once() -> None:
        function = per_run(lambda t: (t.value, t.value), FunctionKind.FLAT_MAP, keyed=False)
        got: list[Any] = []
        scheduler = _native.Scheduler()
        ids = [
            scheduler.add(operator)
            for operator in (
                make.rows([(n,) for n in range(300)], Value),
                make.python("twice", function, Value, Value),
                make.python("array", lambda run: run, Value, Value, view="numpy"),
                make.python("batch", lambda run: run, Value, Value, view="arrow"),
                make.into(got, Value),
            )
        ]
        for origin, target in zip(ids, ids[1:], strict=False):
            scheduler.connect(origin, target)
        scheduler.start(2)
        assert scheduler.wait(60)
        scheduler.stop()
        assert len(got) == 600

    once()
    gc.collect()
    types_before, blocks_before = sys.getrefcount(Value), sys.getallocatedblocks()
    objects_before = len(gc.get_objects())
    for _ in range(30):
        once()
    gc.collect()
    assert abs(sys.getrefcount(Value) - types_before) <= 2
    assert len(gc.get_objects()) - objects_before < 100
    assert sys.getallocatedblocks() - blocks_before < 1500
