"""The queries of Nexmark in the guide's spelling have DuckDB's rows over the same events."""

from __future__ import annotations

import pytest

from bench.nexmark.answers import difference
from bench.nexmark.events import Events, events
from bench.nexmark.queries import QUERIES, run

GATE = ("q0", "q4", "q7", "q8")
SLOW = [pytest.param(name, marks=() if name in GATE else pytest.mark.nightly) for name in QUERIES]


@pytest.fixture(scope="module")
def some() -> Events:
    """30,000 events of a minute: six windows of 10 s."""
    return events(30_000, seed=3, rate=500)


@pytest.mark.parametrize("name", SLOW)
def test_a_query_has_the_rows_of_duckdb(some: Events, name: str) -> None:
    assert difference(name, run(name, some), some) == ""


def test_the_same_seed_makes_the_same_events_and_a_wrong_row_is_seen() -> None:
    one, same, other = events(500), events(500), events(500, seed=2)
    assert one.bids.equals(same.bids)
    assert not one.bids.equals(other.bids)
    assert difference("q7", run("q7", other), one)
