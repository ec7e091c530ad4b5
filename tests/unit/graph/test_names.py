"""Names of operators: automatic ones, and `name=`."""

from __future__ import annotations

import functools
from typing import Any

import pytest

import rayelastic as rel
from rayelastic.errors import GraphError
from tests.raising import raises


def words(t: Any) -> Any:
    for word in t.line.split():
        yield (word,)


def lines(topology: rel.Topology) -> rel.Stream:
    return topology.source(rel.rows([("a b a",)], schema={"line": str}))


def test_names_are_those_of_functions_and_methods() -> None:
    topology = rel.Topology("names")
    counts = lines(topology).flat_map(words, schema={"word": str}).key_by("word").aggregate(n=rel.count())
    counts.filter(lambda t: t.n > 1).sink(rel.list())
    counts.map(functools.partial(max, 1), lane="python", schema=int).sink(rel.count())
    counts.sink(rel.call(print))
    assert list(topology.operators) == [
        "rows", "words", "aggregate", "filter", "list", "max", "count", "print",
    ]  # fmt: skip
    assert all(spec.automatic for spec in topology.operators.values())


def test_a_name_that_is_taken_has_a_number() -> None:
    topology = rel.Topology("numbered")
    source = lines(topology)
    source.map(lambda t: t, name="map_2")
    source.map(lambda t: t)
    source.map(lambda t: t)
    source.filter(lambda t: True, name="aggregate.partial")
    source.aggregate(n=rel.count())  # may become 'aggregate.partial' and 'aggregate' in two steps
    assert list(topology.operators) == ["rows", "map_2", "map", "map_3", "aggregate.partial", "aggregate_2"]
    assert not topology.operators["map_2"].automatic


def test_names_in_stages_are_those_of_their_channels() -> None:
    topology = rel.Topology("stages")
    lines(topology).parallel(2, lambda s: s.map(lambda t: t)).sink(rel.count())
    assert {"parallel", "parallel.0.map", "parallel.1.map"} <= set(topology.operators)


def test_joins_have_names_of_their_functions_or_their_own() -> None:
    topology = rel.Topology("joins")
    left, right = (lines(topology).key_by("line") for _ in range(2))
    left.join(right, how="inner").sink(rel.list())
    left.join(right, how="inner", fn=max, schema=int)
    left.cross_join(right, by="arrival")
    assert list(topology.operators) == ["rows", "rows_2", "join", "list", "max.joined", "max", "cross_join"]


def test_a_feedback_has_a_name() -> None:
    topology = rel.Topology("loop")
    source = lines(topology)
    assert [topology.feedback(source).name, topology.feedback(source).name] == ["feedback", "feedback_2"]


def test_a_name_that_an_automatic_one_has_taken() -> None:
    topology = rel.Topology("taken")
    source = lines(topology)
    source.map(lambda t: t)
    with raises(GraphError, "duplicate-name", operator="map"):
        source.filter(lambda t: True, name="map")


def test_an_aggregate_called_name() -> None:
    with raises(GraphError, "bad-name", "AggregateSpec"):
        lines(rel.Topology("count")).aggregate(name=rel.count())  # type: ignore[arg-type]


# Through getattr and a star: the declarations are wrong on purpose.
FIRST: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], str]] = {
    "map": ("map", ("parse", words), {}, ".map(fn, name='parse')"),
    "options": ("map", ("parse", words), {"lane": "python"}, ".map(fn, name='parse', lane=...)"),
    "nothing else": ("aggregate", ("n",), {"n": rel.count()}, ".aggregate(name='n', n=...)"),
    "emit": ("aggregate", ("n", "update"), {}, ".aggregate(..., name='n')"),
    "sink": ("sink", ("out", rel.list()), {}, ".sink(sink, name='out')"),
    "field": ("event_time", ("time", "at"), {}, ".event_time(field, name='time')"),
    "field by name": ("event_time", ("time",), {"field": "at"}, ".event_time(name='time', field=...)"),
    "streams": ("merge_by_time", ("all", None), {}, ".merge_by_time(..., name='all')"),
    "predicates": ("split", ("parts",), {"small": words}, ".split(name='parts', small=...)"),
}


@pytest.mark.parametrize(("method", "args", "given", "message"), FIRST.values(), ids=FIRST)
def test_a_name_in_the_first_place(method: str, args: Any, given: Any, message: str) -> None:
    stream = lines(rel.Topology("first"))
    with raises(GraphError, "positional-name", message):
        getattr(stream, method)(*args, **given)


def test_a_source_with_its_name_in_the_first_place() -> None:
    with raises(GraphError, "positional-name", "lines", "name="):
        getattr(rel.Topology("first"), "source")("lines", rel.sequence(1))  # noqa: B009


def test_a_field_is_no_name() -> None:
    stream = rel.Topology("field").source(rel.rows([(1,)], schema={"at": int})).event_time("at")
    assert list(stream.topology.operators) == ["rows", "event_time"]
