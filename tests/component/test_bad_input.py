"""Bad input through the public surface: each a typed error before any processing element is made (reliability R7).

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
from rayelastic.graph.fluent.stream import Stream
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

# (what is declared, the error, the operator that it names, what the message says)
BAD: dict[str, tuple[Declare, str, str | None, str]] = {
    "no processing element": (lambda t, s: rel.JobConfig(pes=0), "ConfigError", None, "JobConfig(pes=0): too small. Give a whole number, 1 or more"),
    "half a processing element": (lambda t, s: rel.JobConfig(pes=0.5), "ConfigError", None, "JobConfig(pes=0.5): no whole number. Give a whole number, 1 or more"),
    "processing elements as text": (lambda t, s: rel.JobConfig(pes="2"), "ConfigError", None, "JobConfig(pes='2'): neither a number nor {operator: number or name"),
    "a truth as processing elements": (lambda t, s: rel.JobConfig(pes=True), "ConfigError", None, "JobConfig(pes=True): no whole number. Give a whole number, 1 or more"),
    "no threads": (lambda t, s: rel.JobConfig(threads=0), "ConfigError", None, "JobConfig(threads=0): too small. Give a whole number, 1 or more"),
    "negative threads": (lambda t, s: rel.JobConfig(threads=-1), "ConfigError", None, "JobConfig(threads=-1): too small. Give a whole number, 1 or more"),
    "threads as text": (lambda t, s: rel.JobConfig(threads="all"), "ConfigError", None, "JobConfig(threads='all'): no whole number. Give a whole number, 1 or m"),
    "more threads than the most": (lambda t, s: rel.JobConfig(threads=rel.Threads(count=4, max=2)), "ConfigError", None, "Threads(count=4) is more than max=2. Set one of them only"),
    "no most threads": (lambda t, s: rel.JobConfig(threads=rel.Threads(max=0)), "ConfigError", None, "Threads(max=0): too small. Give a whole number, 1 or more"),
    "a queue of nothing": (lambda t, s: rel.JobConfig(threads=rel.Threads(queue_records=0)), "ConfigError", None, "Threads(queue_records=0): too small. Give a whole number, 1 or more"),
    "a queue of no bytes": (lambda t, s: rel.JobConfig(threads=rel.Threads(queue_bytes=0)), "ConfigError", None, "Threads(queue_bytes=0): too small. Give a whole number, 1 or more"),
    "a run of nothing": (lambda t, s: rel.JobConfig(threads=rel.Threads(run_records=0)), "ConfigError", None, "Threads(run_records=0): too small. Give a whole number, 1 or more"),
    "a run of no bytes": (lambda t, s: rel.JobConfig(threads=rel.Threads(run_bytes=-5)), "ConfigError", None, "Threads(run_bytes=-5): too small. Give a whole number, 1 or more"),
    "a run that is a float": (lambda t, s: rel.JobConfig(threads=rel.Threads(run_records=2.0)), "ConfigError", None, "Threads(run_records=2.0): no whole number. Give a whole number, 1 or"),
    "runs longer than queues": (lambda t, s: rel.JobConfig(threads=rel.Threads(queue_records=8, run_records=64)), "ConfigError", None, "Threads(run_records=64) is more than queue_records=8. A queue has to"),
    "unknown threading model": (lambda t, s: rel.JobConfig(threads=rel.Threads(model="parallel")), "ConfigError", None, "Threads(model='parallel'). Choose 'manual', 'dynamic' or 'dedicated'"),
    "unknown model of an operator": (lambda t, s: rel.JobConfig(threads=rel.Threads(model={"m": "fast"})), "ConfigError", "m", "Threads(model='fast'). Choose 'manual', 'dynamic' or 'dedicated'"),
    "a number as threading model": (lambda t, s: rel.JobConfig(threads=rel.Threads(model=2)), "ConfigError", None, "Threads(model=2). Choose 'manual', 'dynami"),
    "unknown elasticity": (lambda t, s: rel.JobConfig(elasticity="very"), "ConfigError", None, "JobConfig(elasticity='very'). Choose 'multi-level', 'paper' or 'off'"),
    "elasticity as truth": (lambda t, s: rel.JobConfig(elasticity=True), "ConfigError", None, "JobConfig(elasticity=True). Choose 'multi-level', 'paper' or 'off'"),
    "unknown regions": (lambda t, s: rel.JobConfig(regions="some"), "ConfigError", None, "JobConfig(regions='some'). Choose 'fixed', 'manual', 'advise', 'paper"),
    "replicas as a number": (lambda t, s: rel.JobConfig(replicas=2), "ConfigError", None, "JobConfig(replicas=2). Give {operator: (fewest, most)}"),
    "no replicas": (lambda t, s: rel.JobConfig(replicas={"m": (0, 2)}), "ConfigError", "m", "JobConfig(replicas={'m': (0, 2)}). Give the fewest and the most, such"),
    "fewer at most than at least": (lambda t, s: rel.JobConfig(replicas={"m": (3, 2)}), "ConfigError", "m", "JobConfig(replicas={'m': (3, 2)}). Give the fewest and the most, such"),
    "more replicas than partitions": (lambda t, s: rel.JobConfig(replicas={"m": (1, 999)}), "ConfigError", "m", "JobConfig(replicas=...): 999 replicas are more than the 271 part"),
    "bounds that contradict": (lambda t, s: rel.JobConfig(replicas={"m": (1, 8)}, elasticity=rel.Elasticity(max_replicas=4)), "ConfigError", "m", "JobConfig(replicas=...) is (1, 8), and Elasticity(max_replicas=4"),
    "bounds of what stays": (lambda t, s: rel.JobConfig(replicas={"m": 2}, regions="fixed"), "ConfigError", None, "JobConfig(regions='fixed') with max_processes, max_replicas, replicas o"),
    "bounds of an unknown operator": (lambda t, s: (done(s), rel.run(t, rel.JobConfig(replicas={"nobody": 2}, regions="elastic"))), "ConfigError", "nobody", "JobConfig(replicas=...) names it, but topology 'bad' has no such oper"),
    "replicas of a source": (lambda t, s: (done(s), rel.run(t, rel.JobConfig(replicas={"rows": 2}, regions="elastic"))), "ConfigError", "rows", "JobConfig(replicas=...) is about its region r0, which keeps one replic"),
    "two bounds of one region": (lambda t, s: (s.map(same, name="a").map(same, name="b").sink(rel.list(), name="out"), rel.run(t, rel.JobConfig(replicas={"a": 2, "b": 3}, regions="elastic"))), "ConfigError", "b", "JobConfig(replicas=...) says (3, 3) of its region r1, and (2, 2) by an"),
    "more replicas than processes": (lambda t, s: (s.map(same, name="a").sink(rel.list(), name="out"), rel.run(t, rel.JobConfig(replicas={"a": 3}, elasticity=rel.Elasticity(max_processes=2), regions="elastic"))), "ConfigError", None, "JobConfig(replicas=...) asks for 3 processes at least, and max_process"),
    "no latency": (lambda t, s: rel.Latency(p99=0), "ConfigError", None, "Latency(p99=0). Give seconds, 0.001 or more"),
    "a latency as text": (lambda t, s: rel.Latency(p99="1s"), "ConfigError", None, "Latency(p99='1s'). Give seconds, 0.001 or more"),
    "a goal that is a number": (lambda t, s: rel.JobConfig(goal=0.2), "ConfigError", None, "JobConfig(goal=0.2). Give rel.Latency(p99=seconds)"),
    "a goal that nobody follows": (lambda t, s: rel.JobConfig(goal=rel.Latency(0.2), regions="manual"), "ConfigError", None, "JobConfig(regions='manual') ignores goal=Latency(p99=0.2). Give regi"),
    "a goal in a job that stays as it is": (lambda t, s: (done(s), rel.run(t, rel.JobConfig(goal=rel.Latency(0.2)))), "ConfigError", None, "JobConfig(regions='fixed') ignores goal=Latency(p99=0.2). Give region"),
    "a goal that replicas can't reach": (lambda t, s: (done(s), rel.run(t, rel.JobConfig(goal=rel.Latency(0.2), regions="elastic"))), "ConfigError", "out", "JobConfig(goal=Latency(p99=0.2)) is reached by more replicas, and no r"),
    "too short a period": (lambda t, s: rel.JobConfig(elasticity=rel.Elasticity(thread_period=0.001)), "ConfigError", None, "Elasticity(thread_period=0.001). Give seconds, 0.1 or more"),
    "an endless period": (lambda t, s: rel.JobConfig(elasticity=rel.Elasticity(thread_period=float("inf"))), "ConfigError", None, "Elasticity(thread_period=inf). Give seconds, 0.1 or more"),
    "a period that is no number": (lambda t, s: rel.JobConfig(elasticity=rel.Elasticity(thread_period=float("nan"))), "ConfigError", None, "Elasticity(thread_period=nan). Give seconds, 0.1 or more"),
    "a period as text": (lambda t, s: rel.JobConfig(elasticity=rel.Elasticity(thread_period="1s")), "ConfigError", None, "Elasticity(thread_period='1s'). Give seconds, 0.1 or more"),
    "negative cpus": (lambda t, s: rel.JobConfig(threads=rel.Threads(ray_cpus=-1)), "ConfigError", None, "Threads(ray_cpus=-1). Give a number of CPUs, such as 1 or 0.25"),
    "cpus that are no number": (lambda t, s: rel.JobConfig(threads=rel.Threads(ray_cpus=float("nan"))), "ConfigError", None, "Threads(ray_cpus=nan). Give a number of CPUs, such as 1 or 0.25"),
    "cpus as text": (lambda t, s: rel.JobConfig(threads=rel.Threads(ray_cpus="all")), "ConfigError", None, "Threads(ray_cpus='all'). Give a number of CPUs, such as 1 or 0.25"),
    "a setting of the flat form": (lambda t, s: flat(region_period=2, max_threads=4), "ConfigError", None, "JobConfig(region_period=2, max_threads=4): no setting of this name. Write "),
    "an unknown setting": (lambda t, s: flat(thread=2), "ConfigError", None, "JobConfig has no 'thread'. Did you mean 'threads'?"),
    "pins as a list": (lambda t, s: rel.JobConfig(pes=["m"]), "ConfigError", None, "JobConfig(pes=['m']): neither a number nor {operator: number or name"),
    "a pin to a fraction": (lambda t, s: rel.JobConfig(pes={"m": 1.5}), "ConfigError", "m", "JobConfig(pes={'m': 1.5}). Give an operator's name and the number"),
    "a negative pin": (lambda t, s: rel.JobConfig(pes={"m": -1}), "ConfigError", "m", "JobConfig(pes={'m': -1}). Give an operator's name and the number"),
    "a pin to a bad name": (lambda t, s: rel.JobConfig(pes={"m": "a b"}), "ConfigError", "m", "JobConfig(pes={'m': 'a b'}). Give an operator's name and the number"),
    "a pin of a number": (lambda t, s: rel.JobConfig(pes={3: 1}), "ConfigError", None, "JobConfig(pes={3: 1}). Give an operator's name and the number"),
    "a journal that is no path": (lambda t, s: rel.JobConfig(elasticity=rel.Elasticity(journal=3)), "ConfigError", None, "Elasticity(journal=3). Give the path of a file, such as '{pe}.jsonl'"),
    "more elements than regions": (lambda t, s: (done(s), rel.run(t, rel.JobConfig(pes=50))), "ConfigError", None, "JobConfig(pes=50): the topology has 2 regions to distribute. Give pes="),
    "a pin of an unknown operator": (lambda t, s: (done(s), rel.run(t, rel.JobConfig(pes={"nobody": 1}))), "ConfigError", "nobody", "JobConfig(pes=...) names it, but topology 'bad' has no such operator."),
    "a model of an unknown operator": (lambda t, s: (done(s), rel.run(t, rel.JobConfig(threads=rel.Threads(model={"nobody": "manual"})))), "ConfigError", "nobody", "JobConfig(threads=...) names it, but topology 'bad' has no such oper"),
    "a config that is a dict": (lambda t, s: (done(s), rel.run(t, {"threads": 2})), "ConfigError", None, "{'threads': 2} is no configuration. Give rel.JobConfig(...)"),
    "a topology that is a stream": (lambda t, s: rel.run(s), "GraphError", None, "<Stream of rows: Row(n: int64, word: string)> is no topology. Give the"),
    "a topology that is text": (lambda t, s: rel.run("word_count"), "GraphError", None, "'word_count' is no topology. Give the rel.Topology itself, on which st"),
    "no sink": (lambda t, s: rel.run(t), "GraphError", "rows", "nothing takes its output: a stream without a sink. End it with .sink(..."),
    "a stream that ends nowhere": (lambda t, s: (done(s), s.map(same, name="lost"), rel.run(t)), "GraphError", "lost", "nothing takes its output: a stream without a sink. End it with .sink(..."),
    "an empty topology": (lambda t, s: rel.run(rel.Topology("empty")), "GraphError", None, "topology 'empty' has no source. Start with topology.source(rel.text(...))"),
    "a nameless topology": (lambda t, s: rel.Topology(""), "GraphError", None, "the name of a topology is '': empty or with space around. Give it a sh"),
    "a topology named by a number": (lambda t, s: rel.Topology(7), "GraphError", None, "the name of a topology is 7, which is no str. Gi"),
    "a topology named with a slash": (lambda t, s: rel.Topology("a/b"), "GraphError", None, "the name of a topology is 'a/b': '/', '->' and control characters are"),
    "json compiled": (lambda t, s: s.map(lambda t: __import__("json").dumps(t.n), name="m", schema=str, lane="compiled"), "LaneError", "m", "it can't be compiled: '__import__' outside the function is a builtin_f"),
    "a dict compiled": (lambda t, s: s.map(lambda t: {}[t.n], name="m", schema=int, lane="compiled"), "LaneError", "m", "it can't be compiled: what a value is here can't be told"),
    "a set of floats compiled": (lambda t, s: s.filter(lambda t: 0.5 in {t.n / 2}, name="m", lane="compiled"), "LaneError", "m", "it can't be compiled: a set with float keys isn't compiled"),
    "an import compiled": (lambda t, s: s.map(imports, name="m", schema=int, lane="compiled"), "LaneError", "m", "it can't be compiled: json.dumps isn't compiled"),
    "open compiled": (lambda t, s: s.map(lambda t: open(t.word).read(), name="m", schema=str, lane="compiled"), "LaneError", "m", "it can't be compiled: 'open' outside the function is a builtin_functio"),
    "print compiled": (lambda t, s: s.map(lambda t: print(t), name="m", schema=int, lane="compiled"), "LaneError", "m", "it can't be compiled: print isn't compiled, it needs the interpreter"),
    "eval compiled": (lambda t, s: s.map(lambda t: eval(t.word), name="m", schema=int, lane="compiled"), "LaneError", "m", "it can't be compiled: 'eval' outside the function is a builtin_functio"),
    "a builtin compiled": (lambda t, s: s.map(len, name="m", schema=int, lane="compiled"), "LaneError", "m", "it can't be compiled: it is a builtin_function_or_method, only functions"),
    "a misspelt field": (lambda t, s: s.map(lambda t: t.nn, name="m"), "SchemaError", "m", "Row has no field 'nn'"),
    "a misspelt field in a filter": (lambda t, s: s.filter(lambda t: t.wrd == "a", name="m"), "SchemaError", "m", "Row has no field 'wrd'"),
    "a misspelt field, compiled": (lambda t, s: s.map(lambda t: t.N + 1, name="m", lane="compiled"), "SchemaError", "m", "Row has no field 'N'"),
    "a misspelt field in a flat_map": (lambda t, s: s.flat_map(misspells, name="m"), "SchemaError", "m", "Row has no field 'm'"),
    "text and number": (lambda t, s: s.map(lambda t: t.word + t.n, name="m", schema=str, lane="compiled"), "LaneError", "m", "it can't be compiled: str + int64 isn't compiled"),
    "a field that is assigned": (lambda t, s: s.map(assigns, name="m", schema=int, lane="compiled"), "LaneError", "m", "it can't be compiled: a tuple is immutable: 'n' can't be assigned"),
    "python without schema": (lambda t, s: s.map(lambda t: t.n, name="m", lane="python"), "SchemaError", "m", "its output schema isn't known, because it runs in Python (asked for)."),
    "python flat_map without schema": (lambda t, s: s.flat_map(unannotated, name="m", lane="python"), "SchemaError", "m", "its output schema isn't known, because it runs in Python (asked for)."),
    "not compiled and no schema": (lambda t, s: s.map(lambda t: __import__("json").dumps(t.n), name="m"), "SchemaError", "m", "its output schema isn't known, because it runs in Python (not compiled"),
    "vectorised without annotation": (lambda t, s: s.map(lambda t: t, name="m", schema=Row, lane="vectorised"), "LaneError", "m", "it can't be vectorised: its parameter has no annotation that says what"),
    "vectorised with state": (lambda t, s: s.key_by("word").map(vector_state, name="m", state=Memory, schema=Row, lane="vectorised"), "LaneError", "m", "a keyed function can't be vectorised. Write it for one tuple and the s"),
    "compiled although annotated": (lambda t, s: s.map(vector, name="m", schema=Row, lane="compiled"), "LaneError", "m", "its parameter is annotated with numpy: it is vectorised, not compiled."),
    "compiled with a list as state": (lambda t, s: s.key_by("word").map(lambda t, s: t.n, name="m", state=list, schema=int, lane="compiled"), "LaneError", "m", "it can't be compiled: its state is no NamedTuple class with defaults,"),
    "state of nested values, compiled": (lambda t, s: s.key_by("word").map(lambda t, s: t.n, name="m", state=Nested, schema=int, lane="compiled"), "LaneError", "m", "it can't be compiled: its state has no fixed layout: state field 'inner' is"),
    "a state field that isn't there": (lambda t, s: s.key_by("word").map(bad_state, name="m", state=Memory, schema=int, lane="compiled"), "SchemaError", "m", "state Memory has no field 'sen'"),
    "the wrong number of fields": (lambda t, s: s.map(lambda t: (t.n, t.n, t.n), name="m", schema=Row, lane="compiled"), "LaneError", "m", "it can't be compiled: it gives 3 values where Row(n: int64, word: stri"),
    "the wrong types of fields": (lambda t, s: s.map(lambda t: (t.word, t.word), name="m", schema=Row, lane="compiled"), "LaneError", "m", "it can't be compiled: field 'n' of Row is int64, but is given a str"),
    "a lane that is a number": (lambda t, s: s.map(same, name="m", lane=3), "LaneError", "m", "lane=3 is no lane of a function. Choose 'auto', 'compiled', 'vectorise"),
    "a lane in capitals": (lambda t, s: s.map(same, name="m", lane="PYTHON"), "LaneError", "m", "lane='PYTHON' is no lane of a function. Choose 'auto', 'compiled', 've"),
    "a snapshot at no place": (lambda t, s: rel.Snapshot(""), "ConfigError", None, "Snapshot(''): no location. Give a folder, or a URI such as s3://b/f"),
    "a snapshot at a number": (lambda t, s: rel.Snapshot(5), "ConfigError", None, "Snapshot(5): no location. Give a folder, or a URI such as s3://b/f"),
    "a snapshot with a short key": (lambda t, s: rel.Snapshot("x", key=b"short"), "ConfigError", None, "Snapshot(key=...) has to be 16 bytes or more. Make one with secrets.to"),
    "a snapshot with a text as key": (lambda t, s: rel.Snapshot("x", key="x" * 32), "ConfigError", None, "Snapshot(key=...) has to be 16 bytes or more. Make one with secrets.to"),
    "restored from nowhere": (lambda t, s: (done(s), rel.run(t, restore="/nowhere/at/all")), "DamagedError", None, "snapshot /nowhere/at/all has no manifest.json: it is no snapshot, or w"),
    "restored from a file": (lambda t, s: (done(s), rel.run(t, restore=__file__)), "UnreadableError", None, "can't be looked at: "),
    "restored from a scheme that isn't": (lambda t, s: (done(s), rel.run(t, restore="nosuch://x/y")), "UnreadableError", None, "snapshot 'nosuch://x/y' is of a scheme that isn't known. Give a path, or a URI of f"),
    "restored from an empty place": (lambda t, s: (done(s), rel.run(t, restore="")), "ConfigError", None, "Snapshot(''): no location. Give a folder, or a URI such as s3://b/f"),
    "applied is no operator": (lambda t, s: s.apply(object(), name="a"), "GraphError", "a", "is no operator"),
    "applied is a class": (lambda t, s: s.apply(Pass, name="a"), "GraphError", "a", "apply needs an instance, not the class Pass. Write Pass(...)"),
    "applied is a function": (lambda t, s: s.apply(same, name="a"), "GraphError", "a", "is no operator"),
    "a port that isn't there": (lambda t, s: t.apply(Pass(), name="a", left=s, right=s), "GraphError", "a", "it has no input port 'left'. Its input ports are in"),
    "a port to which nothing is given": (lambda t, s: t.apply(Two(), name="a", left=s), "GraphError", "a", "nothing is given to its input port 'right'. Pass right=stream, or take"),
    "a port that gets no stream": (lambda t, s: t.apply(Two(), name="a", left=s, right=3), "GraphError", "a", "right=3 is no stream. Pass what map, source or union return"),
    "an operator class without invoke": (lambda t, s: rel.operator(type("Empty", (), {})), "GraphError", "Empty", "it has no method invoke. Write def invoke(self, t), which yields tuple"),
    "an operator that is a function": (lambda t, s: rel.operator(same), "GraphError", "same", "@rel.operator decorates a class"),
    "a port of the wrong schema": (lambda t, s: s.apply(Numbers(), name="a"), "SchemaError", "a", "Row has no field 'value'. Its fields are n, word"),
    "exactly none": (lambda t, s: rel.exactly(0), "GraphError", None, "rel.exactly(0) is no number of tuples. Give a whole number, 1 or more"),
    "exactly a fraction": (lambda t, s: rel.exactly(1.5), "GraphError", None, "rel.exactly(1.5) is no number of tuples. Give a whole number, 1 or mor"),
    "at least minus one": (lambda t, s: rel.at_least(-1), "GraphError", None, "rel.at_least(-1) is no number of tuples. Give a whole number, 1 or mor"),
    "at least text": (lambda t, s: rel.at_least("two"), "GraphError", None, "rel.at_least('two') is no number of tuples. Give a whole number, 1 or"),
    "a port with a bad name": (lambda t, s: rel.operator(inputs={"not a name": {"n": int}}, outputs={"n": int})(Blank), "GraphError", "Blank", "'not a name' can't name an input port. Give it a Python name without u"),
    "outputs that are no schema": (lambda t, s: rel.operator(inputs={"n": int}, outputs=7)(Blank), "SchemaError", "Blank", "7 is no schema. Give a class with typed fields"),
    "inputs that are no schema": (lambda t, s: rel.operator(inputs=7, outputs={"n": int})(Blank), "SchemaError", "Blank", "7 is no schema. Give a class with typed fields"),
    "state that can't be made": (lambda t, s: rel.operator(state=3)(Blank), "GraphError", "Blank", "state=3 can't make the state of a key. Give a NamedTuple class with de"),
    "state of a stream without keys": (lambda t, s: s.apply(Keyed(), name="a"), "GraphError", "a", "it keeps state of keys, but the stream of input port 'in' has none. Wr"),
    "a schema that is a number": (lambda t, s: rel.Schema.of(3), "SchemaError", None, "3 is no schema. Give a class with typed fields"),
    "a schema with an unnamed field": (lambda t, s: rel.Schema.of({"": int}), "SchemaError", None, "field '' of Record can't be an attribute of a tuple. Rename it to a Py"),
    "a schema of objects": (lambda t, s: rel.Schema.of({"x": object}), "SchemaError", None, "field 'x' of Record: object can't be held by a record. A record holds"),
    "a schema of sets": (lambda t, s: rel.Schema.of({"x": set[int]}), "SchemaError", None, "field 'x' of Record: set[int] can't be held by a record. A record hol"),
    "a schema of two types": (lambda t, s: rel.Schema.of({"x": int | str}), "SchemaError", None, "field 'x' of Record: int | str can't be held by a record. A record hol"),
    "a NamedTuple of sets": (lambda t, s: rel.Schema.of(Sets), "SchemaError", None, "field 'some' of Sets: set[int] can't be held by a record. A record hol"),
    "a truth as queue": (lambda t, s: rel.JobConfig(threads=rel.Threads(queue_records=True)), "ConfigError", None, "Threads(queue_records=True): no whole number. Give a whole number, 1"),
    "run bytes as text": (lambda t, s: rel.JobConfig(threads=rel.Threads(run_bytes="16k")), "ConfigError", None, "Threads(run_bytes='16k'): no whole number. Give a whole number, 1 or"),
    "half a most thread": (lambda t, s: rel.JobConfig(threads=rel.Threads(max=1.5)), "ConfigError", None, "Threads(max=1.5): no whole number. Give a whole number, 1 or"),
    "a topology named with a newline": (lambda t, s: rel.Topology("a\nb"), "GraphError", None, "the name of a topology is 'a\\nb': '/', '->' and control characters are"),
    "a snapshot at nothing": (lambda t, s: rel.Snapshot(None), "ConfigError", None, "Snapshot(None): no location. Give a folder, or a URI such as s3://b/f"),
    "exactly a truth": (lambda t, s: rel.exactly(True), "GraphError", None, "rel.exactly(True) is no number of tuples. Give a whole number, 1 or mo"),
    "a count of an unknown field": (lambda t, s: s.key_by("word").aggregate(name="a", n=rel.count("zz")), "SchemaError", "a", "Row has no field 'zz'. Its fields are n, word"),
    "a quantile of a text": (lambda t, s: s.aggregate(name="a", q=rel.quantile("word", 0.5)), "SchemaError", "a", "quantile(word, 0.5) needs a number, but field 'word' of Row is string."),
    "a top of too many": (lambda t, s: s.aggregate(name="a", q=rel.top_k("n", 10**6)), "GraphError", None, "top_k with k=1000000. Give a number from 1 to 1000"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InProcessHost, "start_pe", lambda *_: pytest.fail("a processing element was made"))
    declare, kind, operator, says = BAD[case]
    topology = rel.Topology("bad")
    stream = topology.source(rel.rows([Row(1, "a")]), name="rows")
    with pytest.raises(DeclarationError) as caught:
        declare(topology, stream)
    assert type(caught.value).__name__ == kind
    assert caught.value.operator == operator
    assert says in str(caught.value)
    assert caught.value.hint


def test_there_are_two_hundred() -> None:
    assert len(BAD) + len(BAD_DECLARATIONS) >= 200
