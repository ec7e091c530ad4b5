"""Objects of JSON files as tuples: declared, inferred, compressed, broken."""

from __future__ import annotations

import decimal
import gzip
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic.errors import JobFailedError, SchemaError, SinkError, SourceError
from tests.component.values.kinds import Side

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
    topology.source("in", source).sink("out", rel.list())
    return list(rel.run(topology)["out"])


@pytest.mark.parametrize("name", ["events.jsonl", "events.jsonl.gz"])
def test_declared(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, LINES, name)
    expected = [Event(User("ada", ["a", "b"]), 3), Event(User("bob", []), None), Event(User("cleo", ["c"]), None)]
    assert read(rel.json(path, Event)) == expected
    assert read(rel.json([path, path], Event)) == expected * 2


def test_inferred_and_compiled_by_path(tmp_path: Path) -> None:
    topology = rel.Topology("json")
    events = topology.source("in", rel.json(written(tmp_path, LINES)))
    named = events.map("name", lambda t: ("" if t.user is None else t.user.name, t.n), lane="compiled")
    named.sink("out", rel.list())
    assert [tuple(t) for t in rel.run(topology)["out"]] == [("ada", 3), ("bob", None), ("cleo", None)]


def test_members_and_decimals(tmp_path: Path) -> None:
    path = written(tmp_path, [{"side": "sell", "price": "1.5"}])
    out = read(rel.json(path, {"side": Side, "price": decimal.Decimal}))
    assert [tuple(t) for t in out] == [(Side.SELL, decimal.Decimal("1.5"))]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"user": {"name": 1, "tags": []}}\n', "Column"),
        ('{"user": \n', "can't be read as JSON"),
        ('{"n": 1}\n', "a required field was absent"),
    ],
)
def test_what_isnt_of_the_schema_fails_the_job_by_file_or_row(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    with pytest.raises(JobFailedError, match=says):
        read(rel.json(str(path), Event))


def test_what_json_has_not_is_refused_where_it_is_declared(tmp_path: Path) -> None:
    path = written(tmp_path, LINES)
    topology = rel.Topology("json")
    with pytest.raises(SchemaError, match=r"field 'x' of Record: binary can't be read from JSON.*declare it as a str"):
        topology.source("a", rel.json(path, {"x": list[bytes]}))
    with pytest.raises(SourceError, match="nothing"):
        topology.source("b", rel.json(str(tmp_path / "nothing.jsonl"), Event))
    with pytest.raises(SourceError, match="can't be read as JSON"):
        topology.source("c", rel.json(written(tmp_path, [[1]], "list.jsonl")))


def test_sinks_say_what_they_cant_write(tmp_path: Path) -> None:
    topology = rel.Topology("json")
    events = topology.source("in", rel.json(written(tmp_path, LINES), Event))
    with pytest.raises(SinkError, match=r"field 'user' of Event is User\(.*CsvSink can't write"):
        events.sink("out", rel.csv(str(tmp_path / "out.csv")))
