"""Whoever follows the updates of a job, from whenever on, and whatever is missed, knows the same."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rayelastic.web.frames import COLUMNS
from rayelastic.web.updates import Updates, written

OPERATORS = 40
TABLE = ("operators", "columns", "rows", "values", "after")  # what a message says beside fields


class Follower:
    """Takes updates as the page does: rows, fields, or all anew."""

    def __init__(self) -> None:
        self.said: dict[str, Any] = {}
        self.table: NDArray[np.float32] | None = None

    @property
    def number(self) -> int | None:
        return self.said.get("number")

    def take(self, update: bytes) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(update)
        said = {name: value for name, value in message.items() if name not in TABLE}
        if "after" in message:
            assert message["after"] == self.number
            said = {**self.said, **said}
        if "operators" in message:
            self.table = floats(message["operators"])
        elif "after" not in message:
            self.table = None
        if "rows" in message:
            assert self.table is not None
            self.table = self.table.copy()
            self.table[np.frombuffer(base64.b64decode(message["rows"]), "<u4")] = floats(message["values"])
        self.said = said
        return message


def floats(text: str) -> NDArray[np.float32]:
    return np.frombuffer(base64.b64decode(text), "<f4").reshape(-1, len(COLUMNS))


def states(count: int, chance: random.Random) -> list[tuple[dict[str, Any], NDArray[np.float32] | None]]:
    """Some with no table yet, then with few rows that change, none, or nearly all."""
    made: list[tuple[dict[str, Any], NDArray[np.float32] | None]] = [({"state": "created", "epoch": 0}, None)] * 2
    table = np.zeros((OPERATORS, len(COLUMNS)), dtype=np.float32)
    for number in range(count):
        table = table.copy()
        for row in chance.sample(range(OPERATORS), chance.choice((0, 0, 1, 3, OPERATORS - 1))):
            table[row, chance.randrange(len(COLUMNS))] = chance.random()
        said = {"state": chance.choice(("running", "recovering")), "epoch": number // 5}
        made.append((said, table))
    return made


def test_followers_from_the_start_late_ones_and_those_who_miss_some_know_the_same() -> None:
    chance = random.Random(7)
    (said, table), *rest = states(60, chance)
    updates = Updates(said, table)
    early, late, lossy = Follower(), Follower(), Follower()
    early.take(updates.since(early.number))
    for number, (state, rows) in enumerate(rest, 1):
        updates.take(state, rows)
        followers = [early]
        followers += [late] if number > 30 else []
        followers += [lossy] if chance.random() < 0.7 else []
        for follower in followers:
            follower.take(updates.since(follower.number))
            assert follower.number == number
            assert {**follower.said, "number": 0} == {**state, "number": 0}
            assert rows is None or (follower.table is not None and np.array_equal(follower.table, rows))


def test_only_what_has_changed_is_sent() -> None:
    table = np.zeros((2305, len(COLUMNS)), dtype=np.float32)
    said = {"state": "running", "epoch": 3, "pes": [{"pe": "pe0"}]}
    updates, follower = Updates(said, table), Follower()
    whole = updates.since(None)
    follower.take(whole)
    assert len(whole) > table.nbytes
    now = table.copy()
    now[7, 2] = 1.0
    updates.take({**said, "epoch": 4}, now, new_events=[{"number": 0}])
    change = updates.since(0)
    assert len(change) < 300
    assert follower.take(change).keys() == {"after", "number", "epoch", "new_events", "rows", "values"}
    assert follower.table is not None
    assert np.array_equal(follower.table, now)
    updates.take({**said, "epoch": 4}, now)
    assert json.loads(updates.since(1)) == {"after": 1, "number": 2}


def test_it_is_written_once_for_all() -> None:
    updates = Updates({"state": "running"}, np.zeros((3, len(COLUMNS)), dtype=np.float32))
    assert updates.since(None) is updates.since(None)
    updates.take({"state": "finished"}, None)
    assert updates.since(0) is updates.since(0)
    assert updates.since(5) is updates.whole  # a number of another server's


def test_a_state_is_json_with_or_without_a_table() -> None:
    assert json.loads(written({"a": 1}, None)) == {"a": 1}
    told = json.loads(written({"a": 1}, np.ones((1, len(COLUMNS)), dtype=np.float32)))
    assert (told["a"], told["columns"]) == (1, len(COLUMNS))
    assert np.array_equal(floats(told["operators"]), np.ones((1, len(COLUMNS))))
