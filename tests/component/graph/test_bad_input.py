"""Bad input through the public surface: each a typed error before any PE is made (reliability R7).

Together with tests/unit/graph/test_bad_declarations.py these are more than 200; `test_there_are_two_hundred` counts.
"""

# ruff: noqa: E501, PTH123, S307, SIM115, T201  (a table of cases, one a line, of what nobody should write)

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import rayelastic as rel
from rayelastic.errors import DeclarationError
from rayelastic.fluent.stream import Stream
from rayelastic.runtime.element.host import InProcessHost
from tests.unit.graph.test_bad_declarations import BAD as BAD_DECLARATIONS


class Row(NamedTuple):
    n: int
    word: str


class Memory(NamedTuple):
    seen: int = 0


class Nested(NamedTuple):
    inner: Any = ()


class Sets(NamedTuple):
    some: set[int]


class Blank:
    def invoke(self, t: Any) -> Any:
        return t


@rel.operator(outputs=Row)
class Pass:
    def invoke(self, t: Any) -> Any:
        return t


@rel.operator(inputs={"left": None, "right": None}, outputs={"n": int})
class Two:
    def invoke(self, port: str, t: Any) -> Any:
        return t


@rel.operator(inputs={"number": {"value": float}}, outputs={"value": float})
class Numbers:
    def invoke(self, t: Any) -> Any:
        return t


@rel.operator(outputs={"n": int}, state=Memory)
class Keyed:
    def invoke(self, t: Any, s: Any) -> Any:
        return t.n


def same(t: Row) -> Row:
    return t


def imports(t: Row) -> int:
    import json

    return len(json.dumps(t.n))


def misspells(t: Any) -> Any:
    yield Row(t.m, t.word)


def unannotated(t: Any) -> Any:
    yield t.n


def assigns(t: Any) -> int:
    t.n = 3
    return 1


def vector(run: np.ndarray) -> np.ndarray:
    return run


def vector_state(run: np.ndarray, s: Any) -> np.ndarray:
    return run


def bad_state(t: Any, s: Any) -> int:
    s.sen += 1
    return 1


def flat(**settings: Any) -> rel.JobConfig:
    return rel.JobConfig(**settings)


def done(s: Stream) -> None:
    s.sink(rel.list(), name="out")


Declare = Callable[[rel.Topology, Stream], object]

# (what is declared, the error, the operator that it names, the code)
BAD: dict[str, tuple[Declare, str, str | None, str]] = {
    "no PE": (lambda t, s: rel.JobConfig(pes=0), "ConfigError", None, "invalid-setting"),
    "half a PE": (lambda t, s: rel.JobConfig(pes=0.5), "ConfigError", None, "invalid-setting"),
    "PEs as text": (lambda t, s: rel.JobConfig(pes="2"), "ConfigError", None, "invalid-setting"),
    "a truth as PEs": (lambda t, s: rel.JobConfig(pes=True), "ConfigError", None, "invalid-setting"),
    "no threads": (lambda t, s: rel.JobConfig(threads=0), "ConfigError", None, "invalid-setting"),
    "negative threads": (lambda t, s: rel.JobConfig(threads=-1), "ConfigError", None, "invalid-setting"),
    "threads as text": (lambda t, s: rel.JobConfig(threads="all"), "ConfigError", None, "invalid-setting"),
    "more threads than the most": (lambda t, s: rel.JobConfig(threads=rel.Threads(count=4, max=2)), "ConfigError", None, "invalid-setting"),
    "no most threads": (lambda t, s: rel.JobConfig(threads=rel.Threads(max=0)), "ConfigError", None, "invalid-setting"),
    "a queue of nothing": (lambda t, s: rel.JobConfig(threads=rel.Threads(queue_records=0)), "ConfigError", None, "invalid-setting"),
    "a queue of no bytes": (lambda t, s: rel.JobConfig(threads=rel.Threads(queue_bytes=0)), "ConfigError", None, "invalid-setting"),
    "a run of nothing": (lambda t, s: rel.JobConfig(threads=rel.Threads(run_records=0)), "ConfigError", None, "invalid-setting"),
    "a run of no bytes": (lambda t, s: rel.JobConfig(threads=rel.Threads(run_bytes=-5)), "ConfigError", None, "invalid-setting"),
    "a run that is a float": (lambda t, s: rel.JobConfig(threads=rel.Threads(run_records=2.0)), "ConfigError", None, "invalid-setting"),
    "runs longer than queues": (lambda t, s: rel.JobConfig(threads=rel.Threads(queue_records=8, run_records=64)), "ConfigError", None, "invalid-setting"),
    "unknown threading model": (lambda t, s: rel.JobConfig(threads=rel.Threads(model="parallel")), "ConfigError", None, "invalid-setting"),
    "unknown model of an operator": (lambda t, s: rel.JobConfig(threads=rel.Threads(model={"m": "fast"})), "ConfigError", "m", "invalid-setting"),
    "a number as threading model": (lambda t, s: rel.JobConfig(threads=rel.Threads(model=2)), "ConfigError", None, "invalid-setting"),
    "unknown elasticity": (lambda t, s: rel.JobConfig(elasticity="very"), "ConfigError", None, "invalid-setting"),
    "elasticity as truth": (lambda t, s: rel.JobConfig(elasticity=True), "ConfigError", None, "invalid-setting"),
    "unknown regions": (lambda t, s: rel.JobConfig(regions="some"), "ConfigError", None, "invalid-setting"),
    "replicas as a number": (lambda t, s: rel.JobConfig(replicas=2), "ConfigError", None, "invalid-setting"),
    "no replicas": (lambda t, s: rel.JobConfig(replicas={"m": (0, 2)}), "ConfigError", "m", "invalid-setting"),
    "fewer at most than at least": (lambda t, s: rel.JobConfig(replicas={"m": (3, 2)}), "ConfigError", "m", "invalid-setting"),
    "more replicas than partitions": (lambda t, s: rel.JobConfig(replicas={"m": (1, 9999)}), "ConfigError", "m", "invalid-setting"),
    "bounds that contradict": (lambda t, s: rel.JobConfig(replicas={"m": (1, 8)}, elasticity=rel.Elasticity(max_replicas=4)), "ConfigError", "m", "invalid-setting"),
    "bounds of what stays": (lambda t, s: rel.JobConfig(replicas={"m": 2}, regions="fixed"), "ConfigError", None, "invalid-setting"),
    "bounds of an unknown operator": (lambda t, s: (done(s), rel.run(t, rel.JobConfig(replicas={"nobody": 2}, regions="elastic"))), "ConfigError", "nobody", "unknown-operator"),
    "replicas of a source": (lambda t, s: (done(s), rel.run(t, rel.JobConfig(replicas={"rows": 2}, regions="elastic"))), "ConfigError", "rows", "invalid-setting"),
    "two bounds of one region": (lambda t, s: (s.map(same, name="a").map(same, name="b").sink(rel.list(), name="out"), rel.run(t, rel.JobConfig(replicas={"a": 2, "b": 3}, regions="elastic"))), "ConfigError", "b", "invalid-setting"),
    "more replicas than processes": (lambda t, s: (s.map(same, name="a").sink(rel.list(), name="out"), rel.run(t, rel.JobConfig(replicas={"a": 3}, elasticity=rel.Elasticity(max_processes=2), regions="elastic"))), "ConfigError", None, "invalid-setting"),
    "no latency": (lambda t, s: rel.Latency(p99=0), "ConfigError", None, "invalid-setting"),
    "a latency as text": (lambda t, s: rel.Latency(p99="1s"), "ConfigError", None, "invalid-setting"),
    "a goal that is a number": (lambda t, s: rel.JobConfig(goal=0.2), "ConfigError", None, "invalid-setting"),
    "a goal that nobody follows": (lambda t, s: rel.JobConfig(goal=rel.Latency(0.2), regions="manual"), "ConfigError", None, "invalid-setting"),
    "a goal in a job that stays as it is": (lambda t, s: (done(s), rel.run(t, rel.JobConfig(goal=rel.Latency(0.2)))), "ConfigError", None, "invalid-setting"),
    "a goal that replicas can't reach": (lambda t, s: (done(s), rel.run(t, rel.JobConfig(goal=rel.Latency(0.2), regions="elastic"))), "ConfigError", "out", "invalid-setting"),
    "too short a period": (lambda t, s: rel.JobConfig(elasticity=rel.Elasticity(thread_period=0.001)), "ConfigError", None, "invalid-setting"),
    "an endless period": (lambda t, s: rel.JobConfig(elasticity=rel.Elasticity(thread_period=float("inf"))), "ConfigError", None, "invalid-setting"),
    "a period that is no number": (lambda t, s: rel.JobConfig(elasticity=rel.Elasticity(thread_period=float("nan"))), "ConfigError", None, "invalid-setting"),
    "a period as text": (lambda t, s: rel.JobConfig(elasticity=rel.Elasticity(thread_period="1s")), "ConfigError", None, "invalid-setting"),
    "negative cpus": (lambda t, s: rel.JobConfig(threads=rel.Threads(ray_cpus=-1)), "ConfigError", None, "invalid-setting"),
    "cpus that are no number": (lambda t, s: rel.JobConfig(threads=rel.Threads(ray_cpus=float("nan"))), "ConfigError", None, "invalid-setting"),
    "cpus as text": (lambda t, s: rel.JobConfig(threads=rel.Threads(ray_cpus="all")), "ConfigError", None, "invalid-setting"),
    "a setting of the flat form": (lambda t, s: flat(region_period=2, max_threads=4), "ConfigError", None, "invalid-setting"),
    "an unknown setting": (lambda t, s: flat(thread=2), "ConfigError", None, "invalid-setting"),
    "pins as a list": (lambda t, s: rel.JobConfig(pes=["m"]), "ConfigError", None, "invalid-setting"),
    "a pin to a fraction": (lambda t, s: rel.JobConfig(pes={"m": 1.5}), "ConfigError", "m", "invalid-setting"),
    "a negative pin": (lambda t, s: rel.JobConfig(pes={"m": -1}), "ConfigError", "m", "invalid-setting"),
    "a pin to a bad name": (lambda t, s: rel.JobConfig(pes={"m": "a b"}), "ConfigError", "m", "invalid-setting"),
    "a pin of a number": (lambda t, s: rel.JobConfig(pes={3: 1}), "ConfigError", None, "invalid-setting"),
    "a journal that is no path": (lambda t, s: rel.JobConfig(elasticity=rel.Elasticity(journal=3)), "ConfigError", None, "invalid-setting"),
    "more elements than regions": (lambda t, s: (done(s), rel.run(t, rel.JobConfig(pes=50))), "ConfigError", None, "out-of-range"),
    "a pin of an unknown operator": (lambda t, s: (done(s), rel.run(t, rel.JobConfig(pes={"nobody": 1}))), "ConfigError", "nobody", "unknown-operator"),
    "a model of an unknown operator": (lambda t, s: (done(s), rel.run(t, rel.JobConfig(threads=rel.Threads(model={"nobody": "manual"})))), "ConfigError", "nobody", "unknown-operator"),
    "a config that is a dict": (lambda t, s: (done(s), rel.run(t, {"threads": 2})), "ConfigError", None, "wrong-type"),
    "a topology that is a stream": (lambda t, s: rel.run(s), "GraphError", None, "not-a-topology"),
    "a topology that is text": (lambda t, s: rel.run("word_count"), "GraphError", None, "not-a-topology"),
    "no sink": (lambda t, s: rel.run(t), "GraphError", "rows", "no-sink"),
    "a stream that ends nowhere": (lambda t, s: (done(s), s.map(same, name="lost"), rel.run(t)), "GraphError", "lost", "no-sink"),
    "an empty topology": (lambda t, s: rel.run(rel.Topology("empty")), "GraphError", None, "no-source"),
    "a nameless topology": (lambda t, s: rel.Topology(""), "GraphError", None, "bad-name"),
    "a topology named by a number": (lambda t, s: rel.Topology(7), "GraphError", None, "bad-name"),
    "a topology named with a slash": (lambda t, s: rel.Topology("a/b"), "GraphError", None, "bad-name"),
    "json compiled": (lambda t, s: s.map(lambda t: __import__("json").dumps(t.n), name="m", schema=str, lane="compiled"), "LaneError", "m", "not-compiled"),
    "a dict compiled": (lambda t, s: s.map(lambda t: {}[t.n], name="m", schema=int, lane="compiled"), "LaneError", "m", "not-compiled"),
    "a set of floats compiled": (lambda t, s: s.filter(lambda t: 0.5 in {t.n / 2}, name="m", lane="compiled"), "LaneError", "m", "not-compiled"),
    "an import compiled": (lambda t, s: s.map(imports, name="m", schema=int, lane="compiled"), "LaneError", "m", "not-compiled"),
    "open compiled": (lambda t, s: s.map(lambda t: open(t.word).read(), name="m", schema=str, lane="compiled"), "LaneError", "m", "not-compiled"),
    "print compiled": (lambda t, s: s.map(lambda t: print(t), name="m", schema=int, lane="compiled"), "LaneError", "m", "not-compiled"),
    "eval compiled": (lambda t, s: s.map(lambda t: eval(t.word), name="m", schema=int, lane="compiled"), "LaneError", "m", "not-compiled"),
    "a builtin compiled": (lambda t, s: s.map(len, name="m", schema=int, lane="compiled"), "LaneError", "m", "not-compiled"),
    "a misspelt field": (lambda t, s: s.map(lambda t: t.nn, name="m"), "SchemaError", "m", "unknown-field"),
    "a misspelt field in a filter": (lambda t, s: s.filter(lambda t: t.wrd == "a", name="m"), "SchemaError", "m", "unknown-field"),
    "a misspelt field, compiled": (lambda t, s: s.map(lambda t: t.N + 1, name="m", lane="compiled"), "SchemaError", "m", "unknown-field"),
    "a misspelt field in a flat_map": (lambda t, s: s.flat_map(misspells, name="m"), "SchemaError", "m", "unknown-field"),
    "text and number": (lambda t, s: s.map(lambda t: t.word + t.n, name="m", schema=str, lane="compiled"), "LaneError", "m", "not-compiled"),
    "a field that is assigned": (lambda t, s: s.map(assigns, name="m", schema=int, lane="compiled"), "LaneError", "m", "not-compiled"),
    "python without schema": (lambda t, s: s.map(lambda t: t.n, name="m", lane="python"), "SchemaError", "m", "no-schema"),
    "python flat_map without schema": (lambda t, s: s.flat_map(unannotated, name="m", lane="python"), "SchemaError", "m", "no-schema"),
    "not compiled and no schema": (lambda t, s: s.map(lambda t: __import__("json").dumps(t.n), name="m"), "SchemaError", "m", "no-schema"),
    "vectorised without annotation": (lambda t, s: s.map(lambda t: t, name="m", schema=Row, lane="vectorised"), "LaneError", "m", "not-vectorised"),
    "vectorised with state": (lambda t, s: s.key_by("word").map(vector_state, name="m", state=Memory, schema=Row, lane="vectorised"), "LaneError", "m", "not-vectorised"),
    "compiled although annotated": (lambda t, s: s.map(vector, name="m", schema=Row, lane="compiled"), "LaneError", "m", "unsupported-lane"),
    "compiled with a list as state": (lambda t, s: s.key_by("word").map(lambda t, s: t.n, name="m", state=list, schema=int, lane="compiled"), "LaneError", "m", "not-compiled"),
    "state of nested values, compiled": (lambda t, s: s.key_by("word").map(lambda t, s: t.n, name="m", state=Nested, schema=int, lane="compiled"), "LaneError", "m", "not-compiled"),
    "a state field that isn't there": (lambda t, s: s.key_by("word").map(bad_state, name="m", state=Memory, schema=int, lane="compiled"), "SchemaError", "m", "unknown-field"),
    "the wrong number of fields": (lambda t, s: s.map(lambda t: (t.n, t.n, t.n), name="m", schema=Row, lane="compiled"), "LaneError", "m", "not-compiled"),
    "the wrong types of fields": (lambda t, s: s.map(lambda t: (t.word, t.word), name="m", schema=Row, lane="compiled"), "LaneError", "m", "not-compiled"),
    "a lane that is a number": (lambda t, s: s.map(same, name="m", lane=3), "LaneError", "m", "unknown-choice"),
    "a lane in capitals": (lambda t, s: s.map(same, name="m", lane="PYTHON"), "LaneError", "m", "unknown-choice"),
    "a snapshot at no place": (lambda t, s: rel.Snapshot(""), "ConfigError", None, "bad-location"),
    "a snapshot at a number": (lambda t, s: rel.Snapshot(5), "ConfigError", None, "bad-location"),
    "a snapshot with a short key": (lambda t, s: rel.Snapshot("x", key=b"short"), "ConfigError", None, "bad-signing-key"),
    "a snapshot with a text as key": (lambda t, s: rel.Snapshot("x", key="x" * 32), "ConfigError", None, "bad-signing-key"),
    "restored from nowhere": (lambda t, s: (done(s), rel.run(t, restore="/nowhere/at/all")), "DamagedError", None, "damaged-state"),
    "restored from a file": (lambda t, s: (done(s), rel.run(t, restore=__file__)), "UnreadableError", None, "unreadable-state"),
    "restored from a scheme that isn't": (lambda t, s: (done(s), rel.run(t, restore="nosuch://x/y")), "UnreadableError", None, "unreadable-state"),
    "restored from an empty place": (lambda t, s: (done(s), rel.run(t, restore="")), "ConfigError", None, "bad-location"),
    "applied is no operator": (lambda t, s: s.apply(object(), name="a"), "GraphError", "a", "not-an-operator"),
    "applied is a class": (lambda t, s: s.apply(Pass, name="a"), "GraphError", "a", "not-an-operator"),
    "applied is a function": (lambda t, s: s.apply(same, name="a"), "GraphError", "a", "not-an-operator"),
    "a port that isn't there": (lambda t, s: t.apply(Pass(), name="a", left=s, right=s), "GraphError", "a", "unknown-port"),
    "a port to which nothing is given": (lambda t, s: t.apply(Two(), name="a", left=s), "GraphError", "a", "unconnected-port"),
    "a port that gets no stream": (lambda t, s: t.apply(Two(), name="a", left=s, right=3), "GraphError", "a", "not-a-stream"),
    "an operator class without invoke": (lambda t, s: rel.operator(type("Empty", (), {})), "GraphError", "Empty", "missing-method"),
    "an operator that is a function": (lambda t, s: rel.operator(same), "GraphError", "same", "not-an-operator"),
    "a port of the wrong schema": (lambda t, s: s.apply(Numbers(), name="a"), "SchemaError", "a", "unknown-field"),
    "exactly none": (lambda t, s: rel.exactly(0), "GraphError", None, "out-of-range"),
    "exactly a fraction": (lambda t, s: rel.exactly(1.5), "GraphError", None, "out-of-range"),
    "at least minus one": (lambda t, s: rel.at_least(-1), "GraphError", None, "out-of-range"),
    "at least text": (lambda t, s: rel.at_least("two"), "GraphError", None, "out-of-range"),
    "a port with a bad name": (lambda t, s: rel.operator(inputs={"not a name": {"n": int}}, outputs={"n": int})(Blank), "GraphError", "Blank", "bad-name"),
    "outputs that are no schema": (lambda t, s: rel.operator(inputs={"n": int}, outputs=7)(Blank), "SchemaError", "Blank", "wrong-type"),
    "inputs that are no schema": (lambda t, s: rel.operator(inputs=7, outputs={"n": int})(Blank), "SchemaError", "Blank", "wrong-type"),
    "state that can't be made": (lambda t, s: rel.operator(state=3)(Blank), "GraphError", "Blank", "wrong-type"),
    "state of a stream without keys": (lambda t, s: s.apply(Keyed(), name="a"), "GraphError", "a", "no-key"),
    "a schema that is a number": (lambda t, s: rel.Schema.of(3), "SchemaError", None, "wrong-type"),
    "a schema with an unnamed field": (lambda t, s: rel.Schema.of({"": int}), "SchemaError", None, "bad-field-name"),
    "a schema of objects": (lambda t, s: rel.Schema.of({"x": object}), "SchemaError", None, "unsupported-type"),
    "a schema of sets": (lambda t, s: rel.Schema.of({"x": set[int]}), "SchemaError", None, "unsupported-type"),
    "a schema of two types": (lambda t, s: rel.Schema.of({"x": int | str}), "SchemaError", None, "unsupported-type"),
    "a NamedTuple of sets": (lambda t, s: rel.Schema.of(Sets), "SchemaError", None, "unsupported-type"),
    "a truth as queue": (lambda t, s: rel.JobConfig(threads=rel.Threads(queue_records=True)), "ConfigError", None, "invalid-setting"),
    "run bytes as text": (lambda t, s: rel.JobConfig(threads=rel.Threads(run_bytes="16k")), "ConfigError", None, "invalid-setting"),
    "half a most thread": (lambda t, s: rel.JobConfig(threads=rel.Threads(max=1.5)), "ConfigError", None, "invalid-setting"),
    "a topology named with a newline": (lambda t, s: rel.Topology("a\nb"), "GraphError", None, "bad-name"),
    "a snapshot at nothing": (lambda t, s: rel.Snapshot(None), "ConfigError", None, "bad-location"),
    "exactly a truth": (lambda t, s: rel.exactly(True), "GraphError", None, "out-of-range"),
    "a count of an unknown field": (lambda t, s: s.key_by("word").aggregate(name="a", n=rel.count("zz")), "SchemaError", "a", "unknown-field"),
    "a quantile of a text": (lambda t, s: s.aggregate(name="a", q=rel.quantile("word", 0.5)), "SchemaError", "a", "wrong-field-type"),
    "a top of too many": (lambda t, s: s.aggregate(name="a", q=rel.top_k("n", 10**6)), "GraphError", None, "out-of-range"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InProcessHost, "start_pe", lambda *_: pytest.fail("a PE was made"))
    declare, kind, operator, code = BAD[case]
    topology = rel.Topology("bad")
    stream = topology.source(rel.rows([Row(1, "a")]), name="rows")
    with pytest.raises(DeclarationError) as caught:
        declare(topology, stream)
    assert type(caught.value).__name__ == kind
    assert caught.value.operator == operator
    assert getattr(caught.value, "code", "") == code
    assert caught.value.hint


def test_there_are_two_hundred() -> None:
    assert len(BAD) + len(BAD_DECLARATIONS) >= 200
