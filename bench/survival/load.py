"""The jobs that are measured: keyed state of so many megabytes, a part of which is touched again each second."""

from __future__ import annotations

import time
from collections import namedtuple
from typing import Any, NamedTuple

import rayelastic as rel

FIELDS = [f"f{n}" for n in range(31)]
STATE_BYTES = 8 * (len(FIELDS) + 1)  # of a key, without the table around it
PARTS = 10  # of the keys: one is touched at a time
LOOK = 0.02  # seconds between two looks
PATIENCE = 300.0  # seconds until the state is filled, or a checkpoint complete

# Fields by number: no class statement has those.
State: Any = namedtuple("State", ["n", *FIELDS], defaults=[0] * (len(FIELDS) + 1))  # type: ignore[misc]  # noqa: PYI024
State.__annotations__ = dict.fromkeys(State._fields, int)


class Keyed(NamedTuple):
    key: int
    n: int


def touch(t: Keyed, s: State) -> int:
    s.n += 1  # type: ignore[attr-defined]
    return t.n


def value() -> dict[str, Any]:
    return {"n": 0, "fields": [0] * len(FIELDS)}


def touch_value(t: Keyed, s: dict[str, Any]) -> int:
    s["n"] += 1
    s["fields"][t.n % len(FIELDS)] = t.n
    return t.n


def keys_of(megabytes: int) -> int:
    return max(PARTS, megabytes * 1_000_000 // STATE_BYTES)


def topology(name: str, keys: int, turn: int, sink: Any, every: int, *, python: bool = False) -> rel.Topology:
    """Each key once, then for `turn` rows those of one tenth, for as many of the next one, and so on.

    Args:
        name: of the topology.
        keys: how many.
        turn: rows for which a tenth of the keys is touched.
        sink: takes one row in `every`.
        every: see `sink`.
        python: whether a key has a Python value instead of a record.
    """
    tenth = keys // PARTS

    def key(t: Any) -> Keyed:
        n = t.value
        return Keyed(n if n < keys else (n // turn % PARTS) * tenth + n * 7919 % tenth, n)

    made = rel.Topology(name)
    rows = made.source(rel.sequence(1 << 50), name="numbers").map(key, name="key", schema=Keyed, lane="compiled")
    keyed = rows.key_by("key")
    if python:
        touched = keyed.map(touch_value, name="touch", state=value, schema={"n": int}, lane="python")
    else:
        touched = keyed.map(touch, name="touch", state=State, schema={"n": int}, lane="compiled")
    touched.filter(lambda t: t.n % every == 0, name="some").sink(sink, name="out")
    return made


def wait_for(job: rel.Job, condition: Any, what: str) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > until or job.status.state.is_final:
            raise TimeoutError(f"{what}: {job.status}")
        job.pause(LOOK)
