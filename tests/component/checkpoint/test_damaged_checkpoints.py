"""Checkpoints that were damaged at random: an earlier one counts, or a typed error tells; never another state."""

from __future__ import annotations

import hashlib
import hmac
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import StateError
from tests.raising import raises
from tests.waiting import wait_until_taken

PATIENCE = 60.0
IN_THE_GATE, NIGHTLY = 200, 1000  # of R15
ROWS = [(n % 7, f"a text that is long enough {n}") for n in range(600)]
SCHEMA: dict[str, Any] = {"key": int, "text": str}


class Last(NamedTuple):
    rows: int = 0
    text: str = ""


def last(t: Any, s: Any) -> tuple[int, int, str]:
    before = s.text
    s.rows += 1
    s.text = t.text
    return t.key, s.rows, before


def counting(source: Any) -> rel.Topology:
    topology = rel.Topology("damaged")
    rows = topology.source(source, name="rows")
    schema: dict[str, Any] = {"key": int, "rows": int, "before": str}
    rows.key_by("key").map(last, name="last", state=Last, schema=schema, lane="compiled").sink(rel.list(), name="out")
    rows.key_by("key").aggregate(name="all", n=rel.count(), texts=rel.distinct("text")).sink(rel.list(), name="totals")
    return topology


def ran(source: Any, **options: Any) -> dict[str, list[Any]]:
    result = rel.run(counting(source), **options)
    return {name: sorted(tuple(t) for t in result[name]) for name in ("out", "totals")}


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two complete ones, with rows that sinks hold in memory beside them."""
    place = tmp_path_factory.mktemp("checkpoints") / "here"
    gates = [testing.Gate(), testing.Gate()]
    source = testing.script([*ROWS[:200], gates[0], *ROWS[200:400], gates[1], *ROWS[400:]], SCHEMA)
    job = rel.start(counting(source), rel.JobConfig(checkpoint=rel.Checkpoint(place, every=0.2)))
    try:
        for gate in gates:
            assert gate.wait_reached(PATIENCE)
            taken = job.status.checkpoints.taken
            wait_until_taken(job, taken + 1 + (gate is gates[1]))
            gate.open()
        job.cancel(drain=False)
    finally:
        for gate in gates:
            gate.open()
        job.close()
    assert len(list(place.glob("0*"))) == 2
    return place


def flipped(data: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :]


DAMAGE: list[Callable[[bytes, random.Random], bytes | None]] = [
    flipped,
    lambda data, dice: data[: dice.randrange(len(data))],
    lambda data, dice: data + dice.randbytes(1 + dice.randrange(9)),
    lambda data, dice: dice.randbytes(len(data)),
    lambda _data, _dice: None,  # it is gone
]


@pytest.mark.parametrize(
    "seeds", [range(IN_THE_GATE), pytest.param(range(IN_THE_GATE, NIGHTLY), marks=pytest.mark.nightly)]
)
def test_no_damage_becomes_another_state(checkpoints: Path, tmp_path: Path, seeds: range) -> None:
    whole = ran(rel.rows(ROWS, schema=SCHEMA))
    assert ran(rel.rows(ROWS, schema=SCHEMA), restore=checkpoints) == whole
    went_on = refused = 0
    for seed in seeds:
        dice, place = random.Random(seed), tmp_path / f"{seed}"
        shutil.copytree(checkpoints, place)
        # One file of the newest is damaged, as by a disk; each third time one of the earlier one, too.
        for folder in sorted(place.glob("0*"), reverse=True)[: 1 + (seed % 3 == 0)]:
            path = dice.choice(sorted(folder.iterdir()))
            left = dice.choice(DAMAGE)(path.read_bytes(), dice)
            path.unlink() if left is None else path.write_bytes(left)
        try:
            if seed % 20 == 0:  # through to the end; reading is as much, and takes less time
                assert ran(rel.rows(ROWS, schema=SCHEMA), restore=place) == whole, seed
            else:
                read = rel.read_snapshot(place)
                position = read.positions["rows"]
                assert sum(read["last"].column("rows").to_pylist()) == position, seed
                assert sum(read["all"].column("n").to_pylist()) == position, seed
            went_on += 1
        except StateError:  # a DamagedError, or its signature isn't that of its key
            refused += 1
        shutil.rmtree(place)
    assert went_on >= len(seeds) // 2
    assert refused >= len(seeds) // 6


def test_another_format_or_key_is_no_reason_to_take_an_earlier_one(checkpoints: Path, tmp_path: Path) -> None:
    place = tmp_path / "here"
    shutil.copytree(checkpoints, place)
    newest = max(place.glob("0*")) / "manifest.json"
    document = json.loads(newest.read_text())
    body = json.dumps(json.loads(document["body"]) | {"format": 99})
    signed = hmac.new((place / "key").read_bytes(), body.encode(), hashlib.sha256).hexdigest()
    digest = hashlib.sha256(body.encode()).hexdigest()
    newest.write_text(json.dumps(document | {"body": body, "sha256": digest, "hmac": signed}))
    with raises(StateError, "older-version", "99"):
        ran(rel.rows(ROWS, schema=SCHEMA), restore=place)
    with raises(StateError, "bad-signing-key"):
        rel.read_snapshot(rel.Checkpoint(checkpoints, key=b"another key of sixteen bytes"))
