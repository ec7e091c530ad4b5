"""A name that isn't there: the word for it here, or what was probably meant; and who has it by what name."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

import rayelastic as rel
from rayelastic.fluent.stream import Stream
from rayelastic.graph.words import MODULE, RESULT, STREAM, TOPOLOGY, pages
from rayelastic.job.result import JobResult
from tests.raising import raises

DOCS = Path(__file__).resolve().parents[3] / "docs"


def stream() -> Any:
    return rel.Topology("words").source(rel.rows([(1,)], {"n": int}), name="in")


@pytest.mark.parametrize("word", ["map_value", "sort_values", "withWatermark", "stateful_map", "setParallelism"])
def test_a_foreign_method(word: str) -> None:
    with pytest.raises(AttributeError) as error:
        getattr(stream(), word)
    assert str(error.value) == f"a Stream has no {word!r}. Here it is {STREAM[word]}"


def test_no_foreign_word_hides_one_of_ours() -> None:
    assert [word for word in STREAM if hasattr(Stream, word)] == []
    assert [word for word in TOPOLOGY if hasattr(rel.Topology, word)] == []
    assert [word for word in MODULE if word in dir(rel)] == []
    assert [word for word in RESULT if hasattr(JobResult, word)] == []


@pytest.mark.parametrize(
    ("owner", "word", "said"),
    [
        (stream(), "filtr", "Did you mean 'filter'?"),
        (stream().key_by("n"), "agregate", "a KeyedStream has no 'agregate'. Did you mean 'aggregate'?"),
        (stream().window(count=3), "rolling", "a WindowedStream has no 'rolling'. Here it is .window("),
        (rel.Topology("t"), "execute", "Here it is rel.run(topology)"),
        (rel, "kinesis", "the module rayelastic has no 'kinesis'. Here it is rel.polled"),
        (rel, "sql", "the module rayelastic has no 'sql'. Here it is rel.postgres"),
        (rel, "Topologie", "Did you mean 'Topology'?"),
        (JobResult({"out": 1}, None, 0.0), "out", 'write result["out"]'),  # type: ignore[arg-type]
        (JobResult({}, None, 0.0), "to_pandas", "rel.pandas() as sink"),  # type: ignore[arg-type]
    ],
)
def test_what_an_unknown_name_says(owner: Any, word: str, said: str) -> None:
    with pytest.raises(AttributeError) as error:
        getattr(owner, word)
    assert said in str(error.value)


def test_a_misspelt_output_names_those_there_are() -> None:
    with pytest.raises(KeyError, match="no sink is called 'outt'. Did you mean 'out'.*The sinks are 'out', 'bad'"):
        JobResult({"out": 1, "bad": 2}, None, 0.0)["outt"]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda s: s.map(), r"Stream\.map\(\)"),
        (lambda s: s.delay(), r"Stream\.delay\(\)"),
        (lambda s: s.key_by("n").process(), r"KeyedStream\.process\(\)"),
    ],
)
def test_python_names_the_public_class(call: Any, name: str) -> None:
    with pytest.raises(TypeError, match=name) as error:
        call(stream())
    assert "Methods" not in str(error.value)


def test_the_pages_of_the_guide_are_the_tables() -> None:
    for file, text in pages().items():
        assert (DOCS / "reference" / file).read_text() == text


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda s: s.window(5), "wrong-type"),
        (lambda s: s.window(dt.timedelta(seconds=5), seconds=3), "wrong-type"),
        (lambda s: s.select(), "missing-argument"),
        (lambda s: s.select("m"), "unknown-field"),
        (lambda s: s.drop("n"), "no-fields"),
        (lambda s: s.rename({"n": "a-b"}), "bad-field-name"),
        (lambda s: s.take(-1), "out-of-range"),
        (lambda s: s.take(True), "out-of-range"),
        (lambda s: s.with_columns(), "missing-argument"),
        (lambda s: s.with_columns(m=3), "not-a-function"),
        (lambda s: s.inspect(len_of_two), "not-a-function"),
    ],
)
def test_bad_arguments_of_the_verbs(call: Any, said: str) -> None:
    with raises(rel.errors.DeclarationError, *said.split()):
        call(stream())


def len_of_two(_a: object, _b: object) -> int:
    return 2


def test_positions_that_can_mean_one_thing_only() -> None:
    timed = stream().event_time("n")
    assert str(timed.window(dt.timedelta(seconds=5))) == str(timed.window(seconds=5))
    assert str(timed.session(dt.timedelta(seconds=5))) == str(timed.session(gap=5))
    assert rel.concurrent(8) == rel.concurrent(capacity=8)
    assert stream().throttle(100).topology.operators["throttle"].body.reason


def test_verbs_name_themselves() -> None:
    s = stream()
    s.select("n").select("n").take(1).rename({"n": "m"}).with_columns(k=lambda t: t.m + 1).drop("m").print()
    assert list(s.topology.operators)[1:] == ["select", "select_2", "take", "rename", "with_columns", "drop", "print"]
    assert all(spec.automatic for spec in list(s.topology.operators.values())[1:])
