"""`@rel.operator` end to end: ports, barriers, state, lanes, the end of the input; in one and in several PEs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import rayelastic as rel
from rayelastic.errors import GraphError, JobCancelledError, JobFailedError, LaneError, SchemaError
from tests.raising import raises


class Number(NamedTuple):
    n: int


class Word(NamedTuple):
    word: str
    n: int


class Seen(NamedTuple):
    left: int = 0
    right: int = 0


CONFIGS = [
    rel.JobConfig(threads=rel.Threads(count=threads, model=model, queue_records=256))
    for threads in (1, 2, 8)
    for model in ("manual", "dynamic", "dedicated")
] + [rel.JobConfig(pes=3, threads=2)]
COUNT = 3000


def numbers(topology: rel.Topology, count: int = COUNT, name: str = "numbers") -> Any:
    return topology.source(rel.arrow(pa.table({"n": pa.array(range(count), pa.int64())}), Number), name=name)


def words(topology: rel.Topology, count: int = COUNT) -> Any:
    texts = [f"the word number {n}" for n in range(count)]
    return topology.source(
        rel.arrow(pa.table({"word": texts, "n": pa.array(range(count), pa.int64())}), Word), name="words"
    )


@rel.operator(inputs={"number": Number, "word": Word}, outputs={"even": Number, "odd": Word})
class Sorted:
    """Takes two streams as they come, gives two."""

    def __init__(self, mark: str) -> None:
        self.mark = mark
        self.started: list[str] = []

    def initialize(self) -> None:
        self.started.append(self.mark)

    def invoke(self, port: str, t: Any) -> Iterator[Any]:
        if t.n % 2:
            yield rel.to("odd", Word(f"{port}{self.mark} of some length", t.n))
        else:
            yield Number(t.n)

    def shutdown(self) -> Iterator[Any]:
        yield rel.to("odd", Word("".join(self.started), -1))


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_several_ports_in_and_out(config: rel.JobConfig) -> None:
    topology = rel.Topology("sorted")
    made = topology.apply(Sorted("!"), name="sorted", number=numbers(topology), word=words(topology))
    made.even.sink(rel.list(), name="even")
    made["odd"].sink(rel.list(), name="odd")
    result = rel.run(topology, config)
    assert sorted(t.n for t in result["even"]) == sorted([*range(0, COUNT, 2)] * 2)
    assert result["odd"][-1] == Word("!", -1)
    for port in ("number", "word"):
        assert [t.n for t in result["odd"] if t.word.startswith(f"{port}!")] == list(range(1, COUNT, 2))


@rel.operator(
    inputs={"one": rel.exactly(1, Number), "two": rel.exactly(2, Word)}, outputs={"out": Word}, stateless=True
)
class Line:
    def invoke(self, one: list[Number], two: list[Word]) -> Iterator[Word]:
        assert (len(one), len(two)) == (1, 2)
        yield Word(f"{two[0].word}, {two[1].word}", one[0].n)

    def drain(self, one: list[Number], two: list[Word]) -> Iterator[Word]:
        for t in (*one, *two):
            yield Word("left", t.n)  # type: ignore[attr-defined]


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_a_barrier_is_a_declaration(config: rel.JobConfig) -> None:
    topology = rel.Topology("barrier")
    numbers(topology).apply(Line(), name="line", two=words(topology)).sink(rel.list(), name="out")
    got = rel.run(topology, config)["out"]
    lines = [t for t in got if t.word != "left"]
    assert lines == [Word(f"the word number {2 * n}, the word number {2 * n + 1}", n) for n in range(COUNT // 2)]
    assert sorted(t.n for t in got if t.word == "left") == list(range(COUNT // 2, COUNT))


@rel.operator(inputs={"a": rel.at_least(5), "b": rel.exactly(1)}, outputs={"n": int})
class Taken:
    def invoke(self, a: list[Any], b: list[Any]) -> Iterator[Any]:
        assert len(a) >= 5
        assert len(b) == 1
        yield (len(a),)

    def drain(self, a: list[Any], b: list[Any]) -> Iterator[Any]:
        yield (len(a),)


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_at_least_so_many(config: rel.JobConfig) -> None:
    topology = rel.Topology("at_least")
    topology.apply(Taken(), name="taken", a=numbers(topology), b=words(topology, 40)).sink(rel.list(), name="out")
    assert sum(t.n for t in rel.run(topology, config)["out"]) == COUNT


@rel.operator(inputs={"left": Number, "right": Word}, outputs=Seen, state=Seen)
class Counts:
    def invoke(self, port: str, t: Any, s: Any) -> Iterator[Seen]:
        setattr(s, port, getattr(s, port) + 1)
        yield Seen(s.left, s.right)


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_state_of_keys_is_the_runtimes(config: rel.JobConfig) -> None:
    topology = rel.Topology("counts")
    left = numbers(topology).key_by("n")
    right = words(topology).key_by("n")
    topology.apply(Counts(), name="counts", left=left, right=right).sink(rel.list(), name="out")
    got = rel.run(topology, config)["out"]
    assert len(got) == 2 * COUNT
    assert sum(t == Seen(1, 1) for t in got) == COUNT
    kinds = {region.region.operators: region.region.kind.value for region in topology.plan().regions}
    assert kinds[("counts",)] == "data-parallel"


@rel.operator(outputs=Number, stateless=True)
class Twice:
    @staticmethod
    def invoke(t: Any) -> Iterator[Any]:
        yield Number(t.n)
        yield Number(2 * t.n)


@rel.operator(outputs=Seen, state=Seen, lane="compiled")
class Running:
    @staticmethod
    def invoke(t: Any, s: Any) -> Iterator[Any]:
        s.left += t.n
        s.right += 1
        yield Seen(s.left, s.right)


def test_a_static_invoke_is_compiled() -> None:
    topology = rel.Topology("compiled")
    twice = numbers(topology).apply(Twice(), name="twice")
    twice.key_by("n").apply(Running(), name="running").sink(rel.list(), name="out")
    assert {name: spec.lane for name, spec in topology.operators.items() if name in ("twice", "running")} == {
        "twice": rel.Lane.COMPILED,
        "running": rel.Lane.COMPILED,
    }
    got = rel.run(topology, rel.JobConfig(threads=rel.Threads(count=2, model="dynamic")))["out"]
    assert len(got) == 2 * COUNT
    assert sum(t.right == 2 for t in got) == COUNT // 2


@rel.operator(inputs={"a": Number, "b": Number}, outputs={"small": Number, "large": Number}, stateless=True)
class ArrowSplit:
    def invoke(self, port: str, run: pa.RecordBatch) -> dict[str, pa.RecordBatch]:
        assert port in ("a", "b")
        small = pc.less(run.column("n"), 100)
        return {"small": run.filter(small), "large": run.filter(pc.invert(small))}


@rel.operator(inputs={"a": Number, "b": Number}, outputs={"small": Number, "large": Number}, stateless=True)
class NumpySplit:
    def invoke(self, port: str, run: np.ndarray) -> dict[str, np.ndarray]:
        return {"small": run[run["n"] < 100], "large": run[run["n"] >= 100]}


@rel.operator(inputs={"a": Number, "b": Number}, outputs={"small": Number, "large": Number}, stateless=True)
class PandasSplit:
    def invoke(self, port: str, run: pd.DataFrame) -> dict[str, pd.DataFrame]:
        return {"small": run[run.n < 100], "large": run[run.n >= 100]}


@pytest.mark.parametrize("kind", [ArrowSplit, NumpySplit, PandasSplit])
def test_ports_of_whole_runs(kind: type) -> None:
    topology = rel.Topology("runs")
    made = topology.apply(kind(), name="split", a=numbers(topology), b=numbers(topology, 500, "more"))
    assert topology.operators["split"].lane is rel.Lane.VECTORISED
    made.small.sink(rel.list(), name="small")
    made.large.sink(rel.count(), name="large")
    result = rel.run(topology, rel.JobConfig(threads=rel.Threads(count=2, model="dynamic")))
    assert sorted(t.n for t in result["small"]) == sorted([*range(100)] * 2)
    assert result["large"] == COUNT + 500 - 200


@rel.operator(inputs={"a": rel.exactly(3, Number), "b": rel.exactly(1, Number)}, outputs={"sum": int})
class Sums:
    def invoke(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a["n"].reshape(-1, 3).sum(axis=1) - b["n"]

    def shutdown(self) -> np.ndarray:
        return np.array([-1])


def test_a_barrier_of_whole_runs() -> None:
    topology = rel.Topology("runs")
    topology.apply(Sums(), name="sums", a=numbers(topology), b=numbers(topology, 1000, "more")).sink(
        rel.list(), name="out"
    )
    got = [t.sum for t in rel.run(topology, rel.JobConfig(threads=rel.Threads(count=2, model="dynamic")))["out"]]
    assert got == [*(9 * n + 3 - n for n in range(1000)), -1]


class Log:
    lines: list[str] = []


@rel.operator(outputs={})
class Ends:
    def initialize(self) -> None:
        Log.lines.append("initialize")

    def invoke(self, t: Number) -> None:
        if t.n == 700:
            raise ValueError("seven hundred")

    def shutdown(self) -> None:
        Log.lines.append("shutdown")


def test_shutdown_also_comes_when_the_job_fails() -> None:
    Log.lines.clear()
    topology = rel.Topology("ends")
    numbers(topology).apply(Ends(), name="ends")
    with raises(JobFailedError, "function-raised", "ValueError") as caught:
        rel.run(topology)
    assert caught.value.operator == "ends"
    assert caught.value.failing_tuple == "Number(n=700)"
    assert Log.lines == ["initialize", "shutdown"]


def test_shutdown_comes_once_at_the_end_or_at_a_stop() -> None:
    Log.lines.clear()
    topology = rel.Topology("ends")
    numbers(topology, 100).apply(Ends(), name="ends")
    rel.run(topology)
    assert Log.lines == ["initialize", "shutdown"]
    endless = rel.Topology("endless")
    endless.source(rel.generate(lambda n: Number(n % 100), None, schema=Number), name="numbers").apply(
        Ends(), name="ends"
    )
    job = rel.start(endless)
    job.cancel(drain=False)
    with pytest.raises(JobCancelledError):
        job.wait()
    job.close()
    assert Log.lines == ["initialize", "shutdown"] * 2


@rel.operator(outputs={})
class Failing:
    def initialize(self) -> None:
        raise OSError("no such device")

    def invoke(self, t: Any) -> None: ...


@rel.operator(outputs=Number)
class Wrong:
    def invoke(self, t: Any) -> Iterator[Any]:
        yield rel.to("lat", t)


def test_errors_of_the_users_methods_name_the_operator() -> None:
    topology = rel.Topology("failing")
    numbers(topology).apply(Failing(), name="failing")
    with raises(JobFailedError, "function-raised", "no such device") as caught:
        rel.run(topology)
    assert caught.value.operator == "failing"
    topology = rel.Topology("wrong")
    numbers(topology).apply(Wrong(), name="wrong").sink(rel.count(), name="out")
    with raises(JobFailedError, "function-raised", "lat"):
        rel.run(topology)


@rel.operator(inputs=Number)
class Told:
    def output_schemas(self, inputs: dict[str, rel.Schema]) -> dict[str, object]:
        return {"out": {f"{name}_twice": int for name in inputs["in"].names}}

    def invoke(self, t: Any) -> Iterator[Any]:
        yield tuple(2 * value for value in t)


def test_a_schema_may_be_told_when_streams_are_known() -> None:
    topology = rel.Topology("told")
    numbers(topology, 3).apply(Told(), name="told").sink(rel.list(), name="out")
    assert [t.n_twice for t in rel.run(topology)["out"]] == [0, 2, 4]


@pytest.mark.parametrize(
    ("declare", "code", "values"),
    [
        (lambda t: t.apply(Sorted, name="x"), "not-an-operator", "Sorted(...)"),
        (lambda t: t.apply(3, name="x"), "not-an-operator", "3"),
        (lambda t: t.apply(Sorted("!"), name="x", number=numbers(t)), "unconnected-port", "'word'"),
        (lambda t: t.apply(Twice(), name="x", out=numbers(t)), "unknown-port", "'out'"),
        (lambda t: t.apply(Sorted("!"), name="x", number=3, word=4), "not-a-stream", "number=3"),
        (
            lambda t: t.apply(Sorted("!"), name="x", number=numbers(t), word=numbers(t, 1, "b")),
            "unknown-field",
            "'word'",
        ),
        (lambda t: numbers(t).apply(Line(), name="x", one=numbers(t, 1, "b")), "duplicate-stream", "'one'"),
        (lambda t: numbers(t).apply(Running(), name="x"), "no-key", "'in'"),
        (
            lambda t: t.apply(Counts(), name="x", left=numbers(t).key_by("n"), right=words(t).key_by("word")),
            "key-mismatch",
            "'right' has word: string",
        ),
        (lambda t: numbers(t).apply(Sorted("!"), name="x", word=words(t)).evn, "unknown-port", "'evn'"),
        (
            lambda t: (
                numbers(t).apply(Sorted("!"), name="x", word=words(t)).odd.sink(rel.count(), name="o"),
                t.validate(),
            ),
            "no-sink",
            "'even'",
        ),
        (
            lambda t: numbers(rel.Topology("other")).apply(Sorted("!"), name="x", word=words(t)),
            "other-topology",
            "'bad'",
        ),
    ],
)
def test_what_doesnt_fit_when_streams_meet_ports(declare: Any, code: str, values: str) -> None:
    with raises((GraphError, SchemaError), code, values, operator="x"):
        declare(rel.Topology("bad"))


def test_what_cant_be_compiled_says_why() -> None:
    topology = rel.Topology("lanes")

    @rel.operator(outputs=Number, lane="compiled")
    class WithSelf:
        def invoke(self, t: Any) -> Iterator[Any]:
            yield t

    with raises(LaneError, "not-compiled", operator="x"):
        numbers(topology).apply(WithSelf(), name="x")

    @rel.operator(outputs=Number, lane="vectorised")
    class WithoutAnnotation:
        def invoke(self, t: Any) -> Any:
            return t

    with raises(LaneError, "not-vectorised", operator="x"):
        numbers(topology, name="more").apply(WithoutAnnotation(), name="x")
