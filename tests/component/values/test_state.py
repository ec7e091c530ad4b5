"""Values of every type as keys, in the state of operators, over a snapshot; objects under their seal."""

from __future__ import annotations

import decimal
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import GraphError, JobFailedError, SchemaError, SinkError, StateError
from rayelastic.graph.records.sealing import Seal
from tests.component.values.kinds import Leg, Level, Point, Side
from tests.raising import raises
from tests.waiting import wait_until_received

PATIENCE = 60.0


class Row(NamedTuple):
    id: uuid.UUID
    side: Side
    level: Level | None
    price: decimal.Decimal
    at: Point
    leg: Leg | None
    names: list[str]
    scores: dict[str, int]
    thing: Any
    n: int


def row(n: int) -> Row:
    return Row(
        uuid.UUID(int=n % 7), Side.BUY if n % 2 else Side.SELL, None if n % 5 == 0 else Level.HIGH,
        decimal.Decimal(n % 11) / 4, Point(n / 2, "a text that is long enough" * (n % 3)),
        None if n % 3 else Leg(Side.BUY, decimal.Decimal(n)), [f"name {n}", "b" * (n % 30)], {"n": n}, {n}, n,
    )  # fmt: skip


ROWS = [row(n) for n in range(400)]
KEYS = ["id", "side", "level", "price"]


def latest(stream: Any, *keys: str) -> Any:
    return stream.key_by(*keys).aggregate(
        name="latest", n=rel.last("n"), at=rel.last("at"), leg=rel.first("leg"), names=rel.last("names"),
        scores=rel.last("scores"), most=rel.max("price"), ids=rel.distinct("id"), thing=rel.last("thing"),
    )  # fmt: skip


def expected(rows: list[Row], *keys: str) -> dict[Any, Any]:
    groups: dict[Any, list[Row]] = {}
    for one in rows:
        groups.setdefault(tuple(getattr(one, key) for key in keys), []).append(one)
    made = {}
    for key, group in groups.items():
        legs = [one.leg for one in group if one.leg is not None]
        last = group[-1]
        made[key] = (
            last.n, last.at, legs[0] if legs else None, last.names, last.scores, max(one.price for one in group),
            len({one.id for one in group}), last.thing,
        )  # fmt: skip
    return made


def by_key(out: list[Any], keys: int) -> dict[Any, Any]:
    return {tuple(one[:keys]): tuple(one[keys:]) for one in out}


@pytest.mark.parametrize("keys", [*((key,) for key in KEYS), ("id", "side", "price")])
def test_keys_and_state(keys: tuple[str, ...]) -> None:
    topology = rel.Topology("keys")
    latest(topology.source(rel.rows(ROWS, schema=Row), name="in"), *keys).sink(rel.list(), name="out")
    assert by_key(rel.run(topology)["out"], len(keys)) == expected(ROWS, *keys)


def test_a_snapshot_has_them(tmp_path: Path) -> None:
    gate = testing.Gate()

    def declared(source: Any) -> rel.Topology:
        topology = rel.Topology("saved")
        latest(topology.source(source, name="in"), "id", "side").sink(rel.list(), name="out")
        return topology

    folder = rel.Snapshot(tmp_path / "saved", key=b"k" * 32)
    job = rel.start(declared(testing.script([*ROWS[:250], gate], Row)))
    try:
        assert gate.wait_reached(PATIENCE)
        job.stop(folder)
    finally:
        job.close()
    again = rel.start(declared(testing.script(ROWS, Row)), restore=folder)
    try:
        assert by_key(again.wait()["out"], 2) == expected(ROWS, "id", "side")
    finally:
        again.close()


def test_state_of_all_types_is_shown(tmp_path: Path) -> None:
    gate = testing.Gate()
    topology = rel.Topology("shown")
    rows = topology.source(testing.script([*ROWS, gate], Row), name="in")
    latest(rows, "side").sink(rel.list(), name="out")
    plain = rows.key_by("id").aggregate(
        name="plain", at=rel.last("at"), leg=rel.first("leg"), names=rel.last("names"), scores=rel.first("scores")
    )
    plain.sink(rel.list(), name="also")
    job, folder = rel.start(topology), rel.Snapshot(tmp_path / "saved", key=b"k" * 32)
    try:
        assert gate.wait_reached(PATIENCE)
        for name in ("latest", "plain"):
            wait_until_received(job, name, len(ROWS))
        state = job.state("latest")
        assert {(side,): tuple(found) for side, found in state.items()} == expected(ROWS, "side")
        assert tuple(state.get(Side.BUY)) == expected(ROWS, "side")[(Side.BUY,)]
        job.stop(folder)
    finally:
        gate.open()
        job.close()
    saved = rel.read_snapshot(folder)
    with raises(StateError, "state-not-readable"):
        saved["latest"]
    found = {one.pop("id"): one for one in saved["plain"].to_pylist()}
    groups = {number: [one for one in ROWS if one.id == number] for number in found}
    assert sum(map(len, groups.values())) == len(ROWS)
    for number, group in groups.items():
        legs = [one.leg for one in group if one.leg is not None]
        leg = {"side": legs[0].side.value, "price": legs[0].price, "at": None} if legs else None
        assert found[number] == {
            "at": group[-1].at._asdict(), "leg": leg, "names": group[-1].names, "scores": [*group[0].scores.items()],
        }  # fmt: skip


KEYED: dict[str, Callable[[Any], Any]] = {
    "aggregate": lambda keyed: keyed.aggregate(
        name="kept", total=rel.sum("price"), latest=rel.last("level"), most=rel.max("id")
    ),
    "value": lambda keyed: keyed.map(counted, name="kept", state=list, schema=int),
    "record": lambda keyed: keyed.map(numbered, name="kept", state=Count, schema=int, lane="compiled"),
}


class Count(NamedTuple):
    n: int = 0


def numbered(t: Row, s: Any) -> int:
    s.n += 1
    return s.n


def counted(t: Row, s: list[int]) -> int:
    s.append(t.n)
    return len(s)


@pytest.mark.parametrize("kind", KEYED)
@pytest.mark.parametrize("keys", [("side",), ("level", "side"), ("price",), ("id", "side")])
def test_state_of_such_keys_is_shown(kind: str, keys: tuple[str, ...], tmp_path: Path) -> None:
    gate = testing.Gate()
    topology = rel.Topology("shown")
    rows = topology.source(testing.script([*ROWS, gate], Row), name="in")
    KEYED[kind](rows.key_by(*keys)).sink(rel.count(), name="out")
    groups: dict[Any, list[Row]] = {}
    for one in ROWS:
        groups.setdefault(tuple(getattr(one, key) for key in keys), []).append(one)
    job, folder = rel.start(topology), rel.Snapshot(tmp_path / "saved", key=b"k" * 32)
    try:
        assert gate.wait_reached(PATIENCE)
        wait_until_received(job, "kept", len(ROWS))
        state = job.state("kept")
        for key, group in groups.items():
            found = state.get(key)
            if kind == "value":
                assert found == [one.n for one in group]
            elif kind == "record":
                assert tuple(found) == (len(group),)
            else:
                assert found.total == sum((one.price for one in group), decimal.Decimal(0))
                levels = [one.level for one in group if one.level is not None]
                assert (found.latest, found.most) == (levels[-1] if levels else None, max(one.id for one in group))
            texts = [str(value.value) if isinstance(value, Side | Level) else str(value) for value in key]
            assert None in key or state.get(state.key_of(texts)) == found
        assert {key if isinstance(key, tuple) else (key,) for key, _ in state.items()} == set(groups)
        with raises(StateError, "key-mismatch"):
            state.get(tuple("nothing" for _ in keys))
        job.stop(folder)
    finally:
        gate.open()
        job.close()
    assert rel.read_snapshot(folder)["kept"].num_rows == len(groups)


def test_windows_keep_them() -> None:
    topology = rel.Topology("windows")
    timed = topology.source(rel.rows(ROWS, schema=Row), name="in").event_time("n", name="time")
    timed.key_by("side").window(seconds=100).aggregate(name="w", names=rel.last("names"), at=rel.max("price")).sink(
        rel.list(), name="out"
    )
    last = {(one.side, one.n // 100): one.names for one in ROWS}
    assert sorted((t.side.value, t.names) for t in rel.run(topology)["out"]) == sorted(
        (side.value, names) for (side, _), names in last.items()
    )


def test_what_is_no_key_is_refused() -> None:
    source = rel.Topology("t").source(rel.rows(ROWS, schema=Row), name="in")
    with raises(GraphError, "wrong-field-type", "names", "key_by", "Row"):
        source.key_by("names")
    with raises(GraphError, "wrong-field-type"):
        source.key_by("thing")
    with raises(SchemaError, "wrong-field-type", "names", "Row"):
        source.aggregate(name="a", x=rel.max("names"))
    with raises(SchemaError, "wrong-field-type"):
        source.aggregate(name="b", x=rel.distinct("scores"))


# --- objects ----------------------------------------------------------------------------------------------------------


class Thing(NamedTuple):
    what: Any


def run(rows: list[Any], config: rel.JobConfig | None = None) -> list[Any]:
    topology = rel.Topology("objects")
    stream = topology.source(rel.rows(rows, schema=Thing), name="in").map(
        lambda t: t, name="same", schema=Thing, lane="python"
    )
    stream.sink(rel.list(), name="out")
    return [t.what for t in rel.run(topology, config)["out"]]


def test_objects_come_as_they_were() -> None:
    things = [{1, 2}, None, 1 + 2j, "text", Point(1, "a"), [Leg(Side.BUY, decimal.Decimal(1))], pa.schema([])]
    assert run([(thing,) for thing in things]) == things
    assert run([(thing,) for thing in things], rel.JobConfig(pes={"in": 0, "same": 1})) == things


def test_a_function_with_an_object_is_compiled_if_it_only_hands_it_on() -> None:
    topology = rel.Topology("handed on")
    stream = topology.source(rel.rows([({1, 2}, 3)], schema={"what": Any, "n": int}), name="in")
    stream.map(lambda t: (t.what, t.n + 1), name="same", lane="compiled").sink(rel.list(), name="out")
    assert [tuple(t) for t in rel.run(topology)["out"]] == [({1, 2}, 4)]


def test_what_cant_be_pickled_is_told() -> None:
    with raises(JobFailedError, "function-raised", "a generator can't be pickled for the next operator"):
        run([((n for n in range(3)),)])


def test_nothing_is_unpickled_that_wasnt_sealed() -> None:
    foreign = pa.table({"what": [Seal(b"another key").sealed({1})]})
    topology = rel.Topology("foreign")
    topology.source(rel.arrow(foreign, schema=Thing), name="in").map(
        lambda t: t, name="m", schema=Thing, lane="python"
    ).sink(rel.list(), name="out")
    with raises(JobFailedError, "function-raised", "an object of another job, or damaged"):
        rel.run(topology)


def test_no_file_is_written_with_objects(tmp_path: Path) -> None:
    stream = rel.Topology("t").source(rel.rows([({1},)], schema={"what": list[Any]}), name="in")
    with raises(SinkError, "unsupported-type", "None", "ParquetSink"):
        stream.sink(rel.parquet(str(tmp_path / "x.parquet")), name="out")


class Memory(NamedTuple):
    seen: list[int] = []
    last: decimal.Decimal | None = None
    side: Side | None = None


def remembered(t: Row, s: Memory) -> tuple[int, Any]:
    s.seen = [*s.seen, t.n]  # type: ignore[misc]
    s.side = t.side  # type: ignore[misc]
    return sum(s.seen), s.side


def test_state_of_such_types_runs_in_python() -> None:
    topology = rel.Topology("memory")
    stream = topology.source(rel.rows(ROWS[:3], schema=Row), name="in").key_by("level")
    stream.map(remembered, name="m", state=Memory, schema={"n": int, "side": Side}).sink(rel.list(), name="out")
    assert "state field 'seen' is list, which compiled state doesn't hold" in " ".join(str(topology.explain()).split())
    assert [tuple(t) for t in rel.run(topology)["out"]] == [(0, Side.SELL), (1, Side.BUY), (3, Side.SELL)]
