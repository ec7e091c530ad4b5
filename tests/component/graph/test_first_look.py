"""`collect` and `show` run what a stream needs, and leave its topology as it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import rayelastic as rel
from tests.raising import raises


def numbers(count: int = 4) -> Any:
    return rel.Topology("look").source(rel.rows([(n,) for n in range(count)], {"n": int}), name="numbers")


def test_collect_runs_again_and_again_and_other_sinks_do_not_run() -> None:
    seen: list[Any] = []
    stream = numbers()
    doubled = stream.map(lambda t: t.n * 2, name="double")
    doubled.sink(rel.call(seen.append), name="list")  # the name that the added sink would have
    before = dict(stream.topology.operators)
    assert [[t.value for t in doubled.collect()] for _ in range(2)] == [[0, 2, 4, 6]] * 2
    assert [t.n for t in stream.collect()] == [0, 1, 2, 3]
    assert (dict(stream.topology.operators), seen) == (before, [])
    rel.run(stream.topology)
    assert len(seen) == 4


def test_other_outputs_of_what_it_needs_have_no_consumer() -> None:
    parts = numbers().split(even=lambda t: t.n % 2 == 0)
    assert [[t.n for t in part.collect()] for part in (parts.even, parts.rest)] == [[0, 2], [1, 3]]
    assert numbers().key_by("n").count().collect()[1] == (1, 1)


def test_show_ends_an_endless_source(capsys: pytest.CaptureFixture[str]) -> None:
    def endless() -> Iterator[int]:
        n = 0
        while True:
            yield n
            n += 1

    source = rel.Topology("endless").source(rel.callable(endless, {"n": int}))
    source.filter(lambda t: t.n % 1000 == 0).show(3)
    assert capsys.readouterr().out.split() == ["n", "----", "0", "1000", "2000"]


def test_show_shortens_what_is_long(capsys: pytest.CaptureFixture[str]) -> None:
    rel.Topology("long").source(rel.rows([("a\nb", None), ("x" * 99, 1)], {"text": str, "n": int | None})).show()
    header, _, first, second = capsys.readouterr().out.splitlines()
    assert (header.split(), first.split(), second.split()) == (["text", "n"], ["a\\nb", "None"], ["x" * 59 + "…", "1"])


def test_show_prints_the_header_of_an_empty_stream(capsys: pytest.CaptureFixture[str]) -> None:
    numbers().show(0)
    numbers(0).show()
    assert capsys.readouterr().out == "n\n-\n" * 2


def test_errors_are_those_of_a_run() -> None:
    bad = numbers().map(lambda t: 1 / t.n, lane="python", schema=float)
    for look in (bad.collect, bad.show):
        with raises(rel.errors.JobFailedError, "function-raised", "ZeroDivisionError"):
            look()
    with raises(rel.errors.GraphError, "out-of-range", "show('all')"):
        numbers().show("all")
    loop = numbers()
    united = loop.union(loop.topology.feedback(like=loop, name="again"))
    with raises(rel.errors.GraphError, "open-feedback", "again"):
        united.collect()
