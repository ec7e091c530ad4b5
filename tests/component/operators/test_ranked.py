"""`sort` and `top` of a finite stream, compared with plain Python; by key, across a restore, with None and NaN."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import rayelastic as rel
from rayelastic import testing
from tests.raising import raises

SCHEMA = {"key": str, "n": int, "x": float | None}
DRAWN = random.Random(7)
ROWS: list[Any] = [
    (DRAWN.choice("abc"), DRAWN.randrange(9), DRAWN.choice([None, float("nan"), 1.5, -2.0, 7.0])) for _ in range(500)
]


def ranks(row: tuple[Any, ...]) -> bool:
    return row[2] is not None and row[2] == row[2]


def collected(declare: Any) -> list[Any]:
    return [repr(row) for row in testing.collect(declare, ROWS, SCHEMA)]


@pytest.mark.parametrize("descending", [False, True])
def test_sort_keeps_equal_tuples_in_order_and_puts_missing_values_last(descending: bool) -> None:
    expected = sorted(filter(ranks, ROWS), key=lambda row: row[2], reverse=descending)
    expected += [row for row in ROWS if not ranks(row)]
    assert collected(lambda s: s.sort("x", descending=descending)) == [repr(row) for row in expected]
    by_two = sorted(ROWS, key=lambda row: (row[1], row[0]), reverse=descending)
    assert collected(lambda s: s.sort("n", "key", descending=descending)) == [repr(row) for row in by_two]


@pytest.mark.parametrize("least", [False, True])
@pytest.mark.parametrize("n", [1, 3, 60, 1000])
def test_top_leaves_missing_values_out(n: int, least: bool) -> None:
    expected = sorted(filter(ranks, ROWS), key=lambda row: row[2], reverse=not least)[:n]
    assert collected(lambda s: s.top(n, by="x", least=least)) == [repr(row) for row in expected]


def test_after_key_by_each_key_has_its_own() -> None:
    keys = list(dict.fromkeys(row[0] for row in ROWS))
    best = [r for k in keys for r in sorted((r for r in ROWS if r[0] == k), key=lambda r: -r[1])[:2]]
    assert collected(lambda s: s.key_by("key").top(2, by="n")) == [repr(row) for row in best]


def test_top_is_native_and_a_field_may_have_the_name_of_the_rank() -> None:
    topology = rel.Topology("ranked")
    rows = topology.source(rel.rows([("a", 1, 5), ("a", 2, 7)], {"key": str, "place": int, "n": int}))
    rows.key_by("key").top(1, by="n").sink(rel.list(), name="out")
    assert "top 1 by n of the whole input" in topology.explain()
    assert [tuple(row) for row in rel.run(topology)["out"]] == [("a", 2, 7)]


def test_a_restored_job_has_what_was_kept(tmp_path: Path) -> None:
    def declare(source: Any) -> Any:
        topology = rel.Topology("ranked")
        rows = topology.source(source, name="rows")
        rows.top(2, by="n").sink(rel.list(), name="most")
        rows.sort("n").sink(rel.list(), name="order")
        return topology

    gate, schema = testing.Gate(), {"n": int}
    job = rel.start(declare(testing.script([(5,), (1,), gate], schema)))
    assert gate.wait_reached(60)
    job.snapshot(kept := rel.Snapshot(tmp_path / "kept", key=b"s" * 32))
    job.close()
    result = rel.run(declare(testing.script([(5,), (1,), (3,)], schema)), restore=kept)
    assert ([t.n for t in result["most"]], [t.n for t in result["order"]]) == ([5, 3], [1, 3, 5])


@pytest.mark.parametrize(
    ("declare", "code"),
    [
        (lambda s: s.sort(), "missing-argument"),
        (lambda s: s.sort("m"), "unknown-field"),
        (lambda s: s.top(2, by="m"), "unknown-field"),
        (lambda s: s.top(0, by="n"), "out-of-range"),
        (lambda s: s.top("2", by="n"), "out-of-range"),
    ],
)
def test_what_is_rejected(declare: Any, code: str) -> None:
    with raises(rel.errors.GraphError, code):
        declare(rel.Topology("t").source(rel.rows([(1,)], {"n": int})))
