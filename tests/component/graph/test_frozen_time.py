"""Tests that use freezegun: its datetime is datetime, in schemas and in functions, first and afterwards."""

# ruff: noqa: DTZ001, DTZ005, DTZ011 -- times as users write them

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import freezegun
import hypothesis
import hypothesis.strategies as st
import pytest

import rayelastic as rel
from rayelastic import compile_report, testing
from rayelastic.graph.records.schema import Schema

pytestmark = pytest.mark.edges
ROOT = Path(__file__).parents[3]


class Seen(NamedTuple):
    at: dt.datetime
    day: dt.date
    before: dt.datetime | None = None


ROWS = [(dt.datetime(2020, 1, 1), dt.date(2020, 2, 3), None), (dt.datetime(2020, 1, 1, 2), dt.date(2020, 2, 3), None)]


def test_schemas_are_declared_while_time_is_frozen() -> None:
    """B5."""
    plain = {"at": dt.datetime, "days": list[dt.date]}
    text = str(Schema.of(plain))
    with freezegun.freeze_time("2020-05-17"):

        class Here(NamedTuple):
            at: dt.datetime
            day: dt.date
            before: dt.datetime | None = None

        assert Schema.of(Here).fields == Schema.of(Seen).fields
        assert str(Schema.of(dt.datetime)) == "Record(value: timestamp)"
        assert str(Schema.of({"at": dt.datetime, "days": list[dt.date]})) == text

        def made(t: Any) -> Here:
            return Here(dt.datetime.now(), dt.date.today())

        rows = testing.collect(lambda s: s.map(made, name="made"), [(1,)], {"n": int})
        assert rows == [(dt.datetime(2020, 5, 17), dt.date(2020, 5, 17), None)]
        windows = testing.collect(
            lambda s: s.event_time("at", name="e").window(seconds=10).aggregate(name="w", n=rel.count()), ROWS, Here
        )
        assert [row[0] for row in windows] == [row[0] for row in ROWS]


def test_functions_do_the_same_frozen_or_not() -> None:
    """B5."""

    def functions() -> list[Any]:
        later = lambda t: t.at + dt.timedelta(days=1) if t.at < dt.datetime(2021, 1, 1) else t.at  # noqa: E731
        assert compile_report(later, Seen).lane == "compiled"
        schema = {"at": dt.datetime, "now": dt.datetime, "instant": float}
        return testing.collect(
            lambda s: s.map(lambda t: (t.at, dt.datetime.now(), time.time()), name="m", schema=schema), ROWS, Seen
        )

    before = functions()
    with freezegun.freeze_time("2020-05-17"):
        assert [row[1:] for row in functions()] == [(dt.datetime(2020, 5, 17), 1589673600.0)] * 2
    assert [row[0] for row in before] == [row[0] for row in ROWS]
    assert all(row[1].year > 2020 and row[2] > 1589673600.0 for row in [*before, *functions()])


PROGRAM = """
import datetime as dt
import freezegun
import hypothesis
from rayelastic import compile_report

def run():
    function = lambda t: t.at < dt.datetime(2021, 1, 1)
    return compile_report(function, {"at": dt.datetime}).lane, compile_report(lambda t: dt.date(2020, 1, 1), int).lane

with freezegun.freeze_time("2020-05-17"):
    frozen = run()
print(*frozen, *run())
"""


def test_the_compiler_is_loaded_while_time_is_frozen(tmp_path: Path) -> None:
    """B5: what stands for datetime.datetime is known by what it is, not by what the name was at import."""
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["compiled"] * 4


@hypothesis.settings(max_examples=10, deadline=None, derandomize=True)
@hypothesis.given(st.lists(st.tuples(st.integers(-1000, 1000), st.text(max_size=8)), max_size=20))
def test_hypothesis_draws_the_rows(rows: list[tuple[int, str]]) -> None:
    wanted = [(n * 2, text.upper()) for n, text in rows]
    assert testing.collect(lambda s: s.map(doubled, name="m"), rows, {"n": int, "text": str}) == wanted


def doubled(t: Any) -> Any:
    return t.n * 2, t.text.upper()
