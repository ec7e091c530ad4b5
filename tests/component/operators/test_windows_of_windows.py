"""Windows whose tuples have fields named as the bounds of a window: results of other windows, above all."""

from __future__ import annotations

from typing import Any

import pytest

import rayelastic as rel
from rayelastic import testing

ROWS = [("a", 1), ("b", 2), ("a", 3), ("b", 11), ("b", 12), ("a", 27)]
SCHEMA = {"key": str, "at": int}
NAMES = ("window_start", "window_end")


def counts(s: Any) -> Any:
    return s.event_time("at").key_by("key").window(seconds=10).aggregate(n=rel.count())


def fields_of(declare: Any) -> tuple[str, ...]:
    stream = rel.Topology("windows").source(rel.rows(ROWS, SCHEMA))
    return tuple(declare(stream).schema.names)


def test_the_best_of_each_window_keeps_the_bounds_of_the_first_windows() -> None:
    top = testing.collect(lambda s: counts(s).window(seconds=20).top(1, "n"), ROWS, SCHEMA)
    assert top == [(0, 20, 1, "a", 0, 10, 2), (20, 40, 1, "a", 20, 30, 1)]  # of equal ones the earlier
    assert fields_of(lambda s: counts(s).window(seconds=20).top(1, "n")) == (
        *NAMES,
        "place",
        "key",
        "start",
        "end",
        "n",
    )


@pytest.mark.parametrize(
    ("declare", "fields"),
    [
        (lambda s: s.key_by("start").window(seconds=20).aggregate(n=rel.sum("n")), ("start", *NAMES, "n")),
        (lambda s: s.window(seconds=20).aggregate(end=rel.max("end")), (*NAMES, "end")),
        (lambda s: s.key_by("end").window(seconds=20).fold(lambda n, t: n + t.n, 0), ("end", *NAMES, "value")),
        (lambda s: s.window(seconds=20).aggregate(n=rel.sum("n")), ("start", "end", "n")),
    ],
)
def test_the_later_windows_have_other_names_only_where_they_must(declare: Any, fields: tuple[str, ...]) -> None:
    assert fields_of(lambda s: declare(counts(s))) == fields


def test_a_third_window_goes_by_the_end_of_the_second() -> None:
    twice = lambda s: counts(s).window(seconds=20).top(1, "n").window(seconds=40).aggregate(n=rel.sum("n"))  # noqa: E731
    assert testing.collect(twice, ROWS, SCHEMA) == [(0, 40, 3)]
