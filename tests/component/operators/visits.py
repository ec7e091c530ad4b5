"""Visits by key and event time, some late, and the state that operators keep of them for a while."""

from __future__ import annotations

import random
from typing import NamedTuple

from hypothesis import strategies as st

TTL = 10  # of event time
LATENESS = 3  # of event time


class Visit(NamedTuple):
    who: str
    at: int


class Seen(NamedTuple):
    count: int = 0  # type: ignore[assignment]
    note: str = ""


class Counted(NamedTuple):
    who: str
    count: int  # type: ignore[assignment]


KEYS = ["a", "b", "a key of more than twelve bytes"]
VISITS = st.lists(
    st.tuples(st.sampled_from(KEYS), st.integers(-2, 9), st.integers(0, 12)), max_size=50
)  # key, step, disorder


def visits(steps: list[tuple[str, int, int]]) -> list[Visit]:
    at, rows = 0, []
    for who, step, disorder in steps:
        at += step
        rows.append(Visit(who, at - disorder))  # some of them late
    return rows


def stream_of(count: int, *, keys: int, disorder: int = LATENESS, seed: int = 1) -> list[Visit]:
    dice = random.Random(seed)
    return [Visit(f"key number {dice.randrange(keys)}", at // 2 - dice.randint(0, disorder)) for at in range(count)]
