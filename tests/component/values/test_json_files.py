"""Objects of JSON files as tuples: declared, inferred, compressed, broken."""

from __future__ import annotations

import datetime as dt
import decimal
import gzip
import json
import tempfile
import uuid
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rayelastic as rel
from rayelastic.errors import JobFailedError, SchemaError, SinkError, SourceError
from tests.component.values.kinds import LEAVES, Kind, Leg, Side, listed, optional
from tests.raising import raises

LINES = [
    {"user": {"name": "ada", "tags": ["a", "b"]}, "n": 3, "more": {"x": 1}},
    {"user": {"name": "bob", "tags": []}},
    {"user": {"name": "cleo", "tags": ["c"]}, "n": None},
]


class User(NamedTuple):
    name: str
    tags: list[str]


class Event(NamedTuple):
    user: User
    n: int | None


def written(folder: Path, lines: list[Any], name: str = "events.jsonl") -> str:
    path = folder / name
    raw = "".join(json.dumps(line) + "\n" for line in lines).encode()
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return str(path)


def read(source: Any) -> list[Any]:
    topology = rel.Topology("json")
    topology.source(source, name="in").sink(rel.list(), name="out")
    return list(rel.run(topology)["out"])


@pytest.mark.parametrize("name", ["events.jsonl", "events.jsonl.gz"])
def test_declared(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, LINES, name)
    expected = [Event(User("ada", ["a", "b"]), 3), Event(User("bob", []), None), Event(User("cleo", ["c"]), None)]
    assert read(rel.json(path, Event)) == expected
    assert read(rel.json([path, path], Event)) == expected * 2


def test_inferred_and_compiled_by_path(tmp_path: Path) -> None:
    topology = rel.Topology("json")
    events = topology.source(rel.json(written(tmp_path, LINES)), name="in")
    named = events.map(lambda t: ("" if t.user is None else t.user.name, t.n), name="name", lane="compiled")
    named.sink(rel.list(), name="out")
    assert [tuple(t) for t in rel.run(topology)["out"]] == [("ada", 3), ("bob", None), ("cleo", None)]


def test_members_and_decimals(tmp_path: Path) -> None:
    path = written(tmp_path, [{"side": "sell", "price": "1.5"}])
    out = read(rel.json(path, {"side": Side, "price": decimal.Decimal}))
    assert [tuple(t) for t in out] == [(Side.SELL, decimal.Decimal("1.5"))]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"user": {"name": true, "tags": []}}\n', "source-failed True"),
        ('{"user": \n', "source-failed JSON"),
        ('{"n": 1}\n', "source-failed user"),
    ],
)
def test_what_isnt_of_the_schema_fails_the_job_by_file_or_row(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    with raises(JobFailedError, *says.split()):
        read(rel.json(str(path), Event))


def test_what_json_has_not_is_refused_where_it_is_declared(tmp_path: Path) -> None:
    path = written(tmp_path, LINES)
    topology = rel.Topology("json")
    with raises(SchemaError, "unsupported-type", "x", "Record", "None"):
        topology.source(rel.json(path, {"x": list[Any]}), name="a")
    with raises(SourceError, "missing-file"):
        topology.source(rel.json(str(tmp_path / "nothing.jsonl"), Event), name="b")
    with raises(SourceError, "malformed-file", "JSON"):
        topology.source(rel.json(written(tmp_path, [[1]], "list.jsonl")), name="c")


def test_sinks_say_what_they_cant_write(tmp_path: Path) -> None:
    topology = rel.Topology("json")
    events = topology.source(rel.json(written(tmp_path, LINES), Event), name="in")
    with raises(SinkError, "unsupported-type", "user", "Event", "User"):
        events.sink(rel.csv(str(tmp_path / "out.csv")), name="out")


def mapped(kind: Kind) -> Kind:
    """Maps of texts to it."""
    texts = st.dictionaries(st.text('ab"é ', max_size=3), kind[1], max_size=3)
    return dict.__class_getitem__((str, kind[0])), texts


@st.composite
def tables(draw: st.DrawFn) -> tuple[dict[str, Any], list[tuple[Any, ...]]]:
    """A schema of what JSON has, and rows of it."""
    chosen: list[Kind] = draw(st.lists(st.sampled_from(LEAVES), min_size=1, max_size=4))
    made = [
        draw(st.sampled_from([kind, optional(kind), listed(kind), listed(optional(kind)), mapped(kind)]))
        for kind in chosen
    ]
    rows = draw(st.lists(st.tuples(*(values for _, values in made)), max_size=5))
    return {f"f{n}": kind for n, (kind, _) in enumerate(made)}, rows


@settings(deadline=None, max_examples=60)
@given(tables())
def test_what_is_written_is_read_again(table: tuple[dict[str, Any], list[tuple[Any, ...]]]) -> None:
    declared, rows = table
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "rows.jsonl")
        topology = rel.Topology("json")
        topology.source(rel.rows(rows, schema=declared), name="in").sink(rel.json(path), name="out")
        rel.run(topology)
        assert len(Path(path).read_bytes().splitlines()) == len(rows)
        if rows:
            assert [tuple(row) for row in read(rel.json(path, declared))] == rows


class Everything(NamedTuple):
    at: dt.datetime
    of: dt.time
    payload: rel.Json
    named: dict[str, int]
    numbered: dict[int, list[rel.Json]]
    id: uuid.UUID
    nothing: float
    legs: list[Leg]


def test_what_others_read_of_it(tmp_path: Path) -> None:
    leg = Leg(Side.SELL, decimal.Decimal("1.50"))
    values: list[Any] = [
        dt.datetime.fromisoformat("2024-01-02T03:04:05.000006"), dt.time(1, 2),
        {"a": [1, None]}, {"b": 2}, {3: ["x", {"y": 1}]},
        uuid.UUID(int=7), float("nan"), [leg],
    ]  # fmt: skip
    row = Everything(*values)
    topology = rel.Topology("json")
    topology.source(rel.rows([row]), name="in").sink(rel.json(tmp_path / "parts"), name="out")
    rel.run(topology)
    (part,) = (tmp_path / "parts").glob("part-0-*.jsonl")
    (line,) = part.read_text().splitlines()
    assert json.loads(line.replace("NaN", "0.5")) == {
        "at": "2024-01-02T03:04:05.000006",
        "of": "01:02:00",
        "payload": {"a": [1, None]},
        "named": {"b": 2},
        "numbered": [[3, ["x", {"y": 1}]]],
        "id": str(row.id),
        "nothing": 0.5,
        "legs": [{"side": "sell", "price": "1.50", "at": None}],
    }


class Uncommon(NamedTuple):
    id: uuid.UUID | None
    content: bytes
    took: dt.timedelta
    by_name: dict[str, dt.date]
    by_id: dict[uuid.UUID, list[bytes | None]] | None


UNCOMMON = """
{"id": "00000000-0000-0000-0000-0000000000Ff", "content": "/w==", "took": "-PT0.5S", "by_name": {"a b": "2024-01-02"},
 "by_id": [["00000000-0000-0000-0000-000000000001", ["", null]]]}
{"id": null, "content": "", "took": "P1W2DT3H4M5,000006S", "by_name": {}, "by_id": null}
"""


@pytest.mark.edges
def test_ids_bytes_durations_and_maps(tmp_path: Path) -> None:
    path = tmp_path / "uncommon.jsonl"
    path.write_text(UNCOMMON.replace(",\n", ","))
    first, second = read(rel.json(str(path), Uncommon))
    one, day = uuid.UUID(int=1), dt.date(2024, 1, 2)
    half = dt.timedelta(seconds=-0.5)
    assert first == Uncommon(uuid.UUID(int=255), b"\xff", half, {"a b": day}, {one: [b"", None]})
    long = dt.timedelta(weeks=1, days=2, hours=3, minutes=4, seconds=5, microseconds=6)
    assert second == Uncommon(None, b"", long, {}, None)


@pytest.mark.edges
@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ('"00000000"', uuid.UUID), ("1", uuid.UUID),
        ("1.5", dt.timedelta), ('"P1Y"', dt.timedelta), ('"P"', dt.timedelta), ('"P1DT"', dt.timedelta),
        ('"PT0.0000001S"', dt.timedelta), ('"P99999999999999999W"', dt.timedelta),
        ('"YQ"', bytes), ('"Y!=="', bytes), ("[1]", bytes), ("1", bytes),
        ("[]", dict[str, int]), ('{"a": "x"}', dict[str, int]), ('{"a": 1, "a": 2}', dict[str, int]),
        ('{"1": 2}', dict[int, int]), ("[[1, 2], [1, 3]]", dict[int, int]), ("[[null, 2]]", dict[int, int]),
    ],
)  # fmt: skip
def test_texts_that_are_none_of_these(tmp_path: Path, value: str, kind: Any) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(f'{{"x": {value}}}\n')
    with raises(JobFailedError, "source-failed", "bad.jsonl', row 1: "):
        read(rel.json(str(path), {"x": kind}))


@pytest.mark.parametrize("kind", [Any, list[Any]])
def test_what_json_has_not_isnt_written(kind: Any, tmp_path: Path) -> None:
    topology = rel.Topology("json")
    with raises(SinkError, "unsupported-type", "JsonSink"):
        topology.source(rel.rows([], schema={"x": kind}), name="in").sink(rel.json(tmp_path / "x.jsonl"), name="out")
