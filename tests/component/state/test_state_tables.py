"""Keyed state as tables: of snapshots, and of jobs that run."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import ConfigError, DamagedError, StateError
from tests.component.connectors.behind_gate import PATIENCE, behind_gate
from tests.raising import raises

KEY = b"0123456789abcdef" * 2
DAY = dt.datetime(2026, 3, 1)  # noqa: DTZ001  (as a stream without a zone has it)


class Row(NamedTuple):
    user: str | None
    part: int
    price: float
    at: dt.datetime
    hot: bool


class Seen(NamedTuple):
    rows: int = 0
    longest: str = ""
    most: float = 0.0


ROWS = [
    Row(
        None if n % 11 == 0 else f"user {n % 7} " + "x" * (n % 7 * 3),
        n % 3,
        n / 4,
        DAY + dt.timedelta(hours=n),
        n % 2 == 0,
    )
    for n in range(500)
]


def seen(t: Row, s: Any) -> int:
    s.rows += 1
    if t.user is not None and len(t.user) > len(s.longest):
        s.longest = t.user
    if t.price > s.most:
        s.most = t.price
    return s.rows


class Odd:
    """Nothing that Arrow knows."""

    def __repr__(self) -> str:
        return "an odd one"


def odd(t: Row, s: dict[str, Any]) -> int:
    s["odd"] = Odd() if t.part == 1 else t.part
    return len(s)


def listed(t: Row, s: list[float]) -> int:
    s.append(t.price)
    return len(s)


class Process:
    """Asks for a timer a day behind each tuple, and counts."""

    def on_tuple(self, t: Row, state: dict[str, int], out: Any) -> None:
        state["rows"] = state.get("rows", 0) + 1
        out.after(86_400)

    def on_time(self, time: Any, state: dict[str, int], out: Any) -> None:
        state["times"] = state.get("times", 0) + 1


def keeping(rows: Any) -> None:
    keyed = rows.key_by("user", "part")
    timed = rows.event_time("at", name="timed").key_by("part")
    outputs = [
        timed.aggregate(name="timed_count", emit="update", ttl=1e6, n=rel.count()),
        timed.map(seen, name="timed_record", state=Seen, schema={"n": int}, lane="compiled", ttl=1e6),
        keyed.map(seen, name="record", state=Seen, schema={"n": int}, lane="compiled"),
        rows.key_by("hot").map(listed, name="value", state=list, schema={"n": int}, lane="python"),
        rows.key_by("user").aggregate(name="totals", n=rel.count(), most=rel.max("price"), users=rel.distinct("part")),
        rows.key_by("part").aggregate(name="mortal", emit="update", ttl=1e6, n=rel.count(), some=rel.last("user")),
        rows.aggregate(name="all", n=rel.count(), mean=rel.mean("price")),
        rows.key_by("part").process(Process(), name="process", schema={"n": int}, clock=True),
        rows.key_by("at").map(seen, name="times", state=Seen, schema={"n": int}, lane="compiled"),
        rows.key_by("price").map(seen, name="prices", state=Seen, schema={"n": int}, lane="compiled"),
        rows.key_by("part").window(count=7).aggregate(name="windows", n=rel.count()),
        rows.key_by("part").map(odd, name="odd", state=dict, schema={"n": int}, lane="python"),
    ]
    for number, output in enumerate(outputs):
        output.sink(rel.count(), name=f"out{number}")
    rows.map(lambda t: t.part, name="plain", schema={"n": int}).sink(rel.count(), name="out")


@pytest.fixture(scope="module")
def running() -> Iterator[rel.Job]:
    with behind_gate(ROWS, keeping, rel.JobConfig(elasticity="off", pes=2)) as job:
        yield job


@pytest.fixture(scope="module")
def saved(running: rel.Job, tmp_path_factory: pytest.TempPathFactory) -> rel.Snapshot:
    return running.snapshot(rel.Snapshot(tmp_path_factory.mktemp("saved") / "one", key=KEY))


def by_key(*keys: str) -> dict[Any, list[Row]]:
    groups: dict[Any, list[Row]] = {}
    for row in ROWS:
        key = tuple(getattr(row, key) for key in keys)
        groups.setdefault(key[0] if len(key) == 1 else key, []).append(row)
    return groups


def expected_seen(rows: list[Row]) -> tuple[int, str, float]:
    longest = ""
    for row in rows:
        longest = row.user if row.user is not None and len(row.user) > len(longest) else longest
    return len(rows), longest, max(row.price for row in rows)


EXPECTED: dict[str, dict[Any, Any]] = {
    "record": {key: expected_seen(rows) for key, rows in by_key("user", "part").items()},
    "times": {key: expected_seen(rows) for key, rows in by_key("at").items()},
    "prices": {key: expected_seen(rows) for key, rows in by_key("price").items()},
    "value": {key: [row.price for row in rows] for key, rows in by_key("hot").items()},
    "totals": {
        key: (len(rows), max(row.price for row in rows), len({row.part for row in rows}))
        for key, rows in by_key("user").items()
    },
    "timed_count": {key: (len(rows),) for key, rows in by_key("part").items()},
    "timed_record": {key: expected_seen(rows) for key, rows in by_key("part").items()},
    "mortal": {key: (len(rows), rows[-1].user) for key, rows in by_key("part").items()},
    "all": {(): (len(ROWS), sum(row.price for row in ROWS) / len(ROWS))},
    "process": {key: {"rows": len(rows)} for key, rows in by_key("part").items()},
}


@pytest.mark.parametrize("operator", EXPECTED)
def test_the_state_of_a_running_job_is_what_python_would_have(
    saved: rel.Snapshot, running: rel.Job, operator: str
) -> None:
    state, expected = running.state(operator), EXPECTED[operator]
    assert dict(state.items(10_000)) == expected
    assert len(list(state.keys(limit=2))) == min(2, len(expected))
    for key in list(expected)[:20]:
        assert state.get(key) == expected[key]
    assert state.table().num_rows == len(expected)


@pytest.mark.parametrize("operator", EXPECTED)
def test_a_snapshot_is_read_without_its_program(saved: rel.Snapshot, operator: str) -> None:
    read, expected = rel.read_snapshot(saved), EXPECTED[operator]
    assert (read.job, read.positions) == ("gated", {"rows": len(ROWS)})
    table = read[operator]
    keys = [field for field in ("user", "part", "at", "price", "hot") if field in table.column_names[:2]]
    names = {"record": 2, "all": 0}.get(operator, 1)
    columns = [column.to_pylist() for column in table.columns]
    rows = list(zip(*columns, strict=True))
    found = {(row[0] if names == 1 else row[:names]): row[names:] for row in rows}
    assert len(keys) >= names
    if operator in ("value", "process"):
        assert {key: row[0] for key, row in found.items()} == expected
    else:
        assert found == expected
    if operator == "process":
        assert all(len(row[1]) >= 1 for row in found.values())  # its timers


def test_values_without_an_arrow_type_are_texts_and_the_column_says_so(saved: rel.Snapshot, running: rel.Job) -> None:
    for table in (rel.read_snapshot(saved)["odd"], running.state("odd").table()):
        assert table.column_names == ["part", "value_as_text"]
        assert table.sort_by("part")["value_as_text"].to_pylist() == ["{'odd': 0}", "{'odd': an odd one}", "{'odd': 2}"]
    assert running.state("odd").get(2) == {"odd": 2}


def test_null_and_the_text_null_are_two_keys(running: rel.Job) -> None:
    key_of = running.state("totals").key_of
    assert [key_of([text]) for text in ("null", '"null"', "a", '"', '"a" or "b"')] == [
        (None,),
        ("null",),
        ("a",),
        ('"',),
        ('"a" or "b"',),
    ]


def test_what_cannot_be_looked_at_is_told(saved: rel.Snapshot, running: rel.Job) -> None:
    for operator, code in {
        "windows": "state-not-readable",
        "plain": "no-state",
        "rows": "no-state",
        "nobody": "unknown-operator",
    }.items():
        with raises(StateError, code, operator=operator):
            running.state(operator).get("x")
    with raises(StateError, "key-mismatch"):
        running.state("record").get("x")
    with raises(StateError, "key-mismatch"):
        running.state("record").get((3, "x"))
    with raises(StateError, "key-mismatch", "None"):
        running.state("record").get(("x", None))
    with raises(ConfigError, "out-of-range"):
        running.state("record").items(0)
    assert running.state("record").get(("nobody", 1)) is None
    assert running.state("record").get(("nobody", 1), 7) == 7
    read = rel.read_snapshot(saved)
    with pytest.raises(KeyError):
        read["nobody"]
    unsigned = rel.read_snapshot(saved.location)
    assert unsigned["record"].num_rows == len(EXPECTED["record"])
    with raises(StateError, "unsigned-values", "value"):
        unsigned["value"]


def test_what_was_damaged_is_refused(running: rel.Job, tmp_path: Path) -> None:
    damaged = running.snapshot(rel.Snapshot(tmp_path / "damaged", key=KEY))
    for file in (tmp_path / "damaged").glob("*.state"):
        file.write_bytes(file.read_bytes()[:-1])
    with raises(DamagedError, "damaged-state"):
        rel.read_snapshot(damaged)["record"]


def test_keys_of_replicas_are_found_wherever_they_are() -> None:
    gate = testing.Gate()
    made = rel.Topology("replicas")
    rows = made.source(testing.script([*ROWS, gate], Row), name="rows")
    rows.key_by("price").map(seen, name="prices", state=Seen, schema={"n": int}, lane="compiled").sink(
        rel.count(), name="out"
    )
    job = rel.start(made, rel.JobConfig(regions="manual", elasticity="off"))
    try:
        assert gate.wait_reached(PATIENCE)
        region = next(one.region.name for one in job.plan().regions if "prices" in one.region.operators)
        job.rescale(region, 3)
        state = job.state("prices")
        assert dict(state.items(10_000)) == EXPECTED["prices"]
        assert all(state.get(key) == value for key, value in list(EXPECTED["prices"].items())[:50])
        gate.open()
        job.wait(PATIENCE)
        with raises(StateError, "job-not-running"):
            state.get(1.0)
    finally:
        gate.open()
        job.close()
