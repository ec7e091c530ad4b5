"""rel.json: nothing is read as something else, bad lines are reported by number, names and types can be chosen."""

# ruff: noqa: E501  (tables of cases, one a line)

from __future__ import annotations

import datetime as dt
import decimal
import gzip
import json
import logging
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import rayelastic as rel
from rayelastic.connectors.files import byte_streams
from rayelastic.connectors.json import lines as json_text
from tests.component.connectors.reading import refused, rows

pytestmark = pytest.mark.edges
Read = Callable[..., Any]
BIG = "18446744073709551615"


class Point(NamedTuple):
    x: float
    y: float | None


@pytest.fixture
def source(tmp_path: Path) -> Read:
    """What makes a source of a content."""

    def make(content: str | bytes, schema: Any = None, **options: Any) -> Any:
        path = tmp_path / "it.jsonl"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return rel.json(str(path), schema, **options)

    return make


def deep(levels: int) -> str:
    return '{"a":' + "[" * (levels - 1) + "]" * (levels - 1) + "}\n"


NAMES = '{"@timestamp":"x","user-agent":1,"class":true,"_links":null,"order id":{"a":{}}}\n'
RENAMED = {"@timestamp": "at", "user-agent": "agent", "class": "kind", "_links": "links"}
MANY = '{"a":1}\n' * 200_000  # more than a block

# What is written, how it is read, and what that gives.
RIGHT: dict[str, tuple[str | bytes, dict[str, Any], list[tuple[Any, ...]]]] = {
    "A5: beyond 64 bits, as text": (f'{{"trace": {BIG}}}\n', {"types": {"trace": str}}, [(BIG,)]),
    "A5: beyond 64 bits, as decimal": (f'{{"trace": {BIG}}}\n', {"types": {"trace": decimal.Decimal}}, [(decimal.Decimal(BIG),)]),
    "A5: beyond 64 bits, as JSON": (f'{{"trace": {BIG}}}\n', {"types": {"trace": rel.Json}}, [(int(BIG),)]),
    "A5: beyond 64 bits, unsigned": (f'{{"trace": {BIG}}}\n', {"types": {"trace": np.uint64}}, [(int(BIG),)]),
    "A5: rounded when asked for": ('{"x": 9007199254740993}\n', {"types": {"x": float}}, [(9007199254740992.0,)]),
    "whole numbers": ('{"n": 9007199254740993}\n{"n": -9223372036854775808}\n', {}, [(9007199254740993,), (-(1 << 63),)]),
    "A7: chosen by columns": (MANY + '{"a":1,"country":"de"}\n', {"columns": ["a"]}, [(1,)] * 200_001),
    "A7: declared by types": (MANY + '{"a":1,"country":"de"}\n', {"types": {"country": str | None}}, [(1, None)] * 200_000 + [(1, "de")]),
    "A7: chosen by a schema": (MANY + '{"a":1,"country":"de"}\n', {"schema": {"a": int}}, [(1,)] * 200_001),
    "A12: names that no field can have": (NAMES, {"columns": RENAMED}, [("x", 1, True, None)]),
    "A12: such names, declared": (NAMES, {"columns": {"order id": "order"}, "schema": {"order": rel.Json}}, [({"a": {}},)]),
    "A12: JSON": ('{"a":{"b":[1,1.50,null]}}\n{"a":""}\n{}\n', {"schema": {"a": rel.Json}}, [({"b": [1, 1.5, None]},), ("",), (None,)]),
    "A12: nulls alone": ('{"a":null,"n":1}\n{"a":null}\n', {}, [(None, 1), (None, None)]),
    "A12: nulls in the first megabyte": ('{"a":null}\n' * 150_000 + '{"a":7}\n', {"types": {"a": int | None}}, [(None,)] * 150_000 + [(7,)]),
    "empty lists": ('{"a":[]}\n{"a":[null]}\n', {}, [([],), ([None],)]),
    "texts that look like times": ('{"at":"2024-01-02T03:04:05"}\n', {}, [("2024-01-02T03:04:05",)]),
    "times, declared": ('{"at":"2024-01-02T03:04:05.5","of":"23:59:59.999000"}\n', {"types": {"at": dt.datetime, "of": dt.time}}, [(dt.datetime(2024, 1, 2, 3, 4, 5, 500_000), dt.time(23, 59, 59, 999_000))]),  # noqa: DTZ001
    "no object where times are declared": ('{"p":null}\n', {"schema": {"p": list[dt.datetime] | None}}, [(None,)]),
    "a name twice that isn't read": ('{"a":1,"b":1,"b":2}\n', {"schema": {"a": int}}, [(1,)]),
    "what isn't declared in an object": ('{"p":{"x":1,"z":2}}\n', {"schema": {"p": Point}}, [(Point(1.0, None),)]),
    "a byte order mark": (b'\xef\xbb\xbf{"a":1}\n', {}, [(1,)]),
    "a byte order mark, encoding told": (b'\xef\xbb\xbf{"a":1}\n', {"encoding": "utf-8"}, [(1,)]),
    "utf-16": ('{"a":"é"}\n'.encode("utf-16"), {}, [("é",)]),
    "latin-1": ('{"a":"é"}\n'.encode("latin-1"), {"encoding": "latin-1"}, [("é",)]),
    "compressed, blank lines, no last line end": (gzip.compress(b'{"a":1}\r\n\n  \n') + gzip.compress(b'{"a":2}'), {}, [(1,), (2,)]),
    "60 levels": (deep(60), {"schema": {"a": rel.Json}}, [(json.loads(deep(60))["a"],)]),
}  # fmt: skip


@pytest.mark.parametrize("case", RIGHT)
def test_what_is_read(case: str, source: Read) -> None:
    content, options, expected = RIGHT[case]
    read = [tuple(t) for t in rows(source(content, **options))]
    assert len(read) == len(expected)
    assert read == expected


# What is rejected, and what is said of it.
WRONG: dict[str, tuple[str | bytes, dict[str, Any], str]] = {
    "A5: beyond 64 bits": (f'{{"trace": {BIG}}}\n', {}, f"field 'trace' has {BIG} in row 1, which neither 64-bit integers nor floats hold. Say what it is: types={{'trace': str}}"),
    "A5: beside fractions": ('{"x":9007199254740993}\n{"x":1.5}\n', {}, "field 'x' has 9007199254740993 in row 1, which floats don't hold, and others that aren't whole"),
    "A5: in a list of an object": ('{"u":{"a":[1.5, 9007199254740993]}}\n', {}, "field 'u.a[]' has 9007199254740993 in row 1"),
    "A5: renamed": (f'{{"@id": {BIG}}}\n', {"columns": {"@id": "id"}}, "types={'id': str}"),
    "A5: behind the first megabyte": ('{"x":1.5}\n' * 150_000 + '{"x":9007199254740993}\n', {}, "row 150,001: 9007199254740993 of field 'x' doesn't fit the float64, which was inferred"),
    "A5: a short float": ('{"x":1e39}\n', {"types": {"x": np.float32}}, "row 1: 1e39 of field 'x' doesn't fit the float32"),
    "A5: a decimal of too many digits": ('{"x":1000}\n', {"types": {"x": decimal.Decimal}, "columns": ["x"]}, ""),
    "beyond all floats": ('{"x":1.5}\n{"x":1e400}\n', {}, "row 2: 1e400 of field 'x' doesn't fit the float64"),
    "A7: a late field": (MANY + '{"a":1,"country":"de"}\n', {}, "row 200,001: it has a field 'country', which the first rows don't have: declare it by types={'country': ...}, or choose fields by columns="),
    "A7: a late field in an object": ('{"p":{"x":1}}\n' * 100_000 + '{"p":{"x":1,"y":2}}\n', {}, "row 100,001: field 'p' has 'y', which the first rows don't have"),
    "A7: the same where fields are chosen": ('{"p":{"x":1}}\n' * 100_000 + '{"p":{"x":1,"y":2}}\n', {"columns": ["p"]}, "row 100,001: field 'p' has 'y', which the first rows don't have"),
    "A12: the right row": ('{"a":1}\n' * 8000 + '{"a":"x"}\n', {"schema": {"a": int}}, "row 8,001: 'x' of field 'a' doesn't fit the int64"),
    "A12: the right row, far behind": (MANY + '{"a":"x"}\n', {}, "row 200,001: 'x' of field 'a' doesn't fit the int64, which was inferred"),
    "A12: a name that no field can have": (NAMES, {}, "column '@timestamp' can't be an attribute of a tuple as '@timestamp'. Rename it: columns={'@timestamp': 'timestamp', ...}"),
    "A12: several kinds": ('{"a":{"x":1}}\n{"a":""}\n', {}, "field 'a' is an object in row 1 and a text in row 2. Say what it is: types={'a': rel.Json} keeps any value"),
    "an object without fields": ('{"a":{}}\n', {}, "types={'a': rel.Json}"),
    "a name in an object that no field can have": ('{"a":{"first name":1}}\n', {}, "types={'a': rel.Json}"),
    "B6: 100 levels": (deep(100), {}, "row 1: it is nested deeper than 60 levels"),
    "B6: 1,000 levels": ('{"a":1}\n' + deep(1000), {}, "row 2: it is nested deeper than 60 levels"),
    "B6: 20,000 levels": (deep(20_000), {}, "row 1: it is nested deeper than 60 levels"),
    "B6: 20,000 levels, declared": (deep(20_000), {"schema": {"b": int | None}}, "row 1: it is nested deeper than 60 levels"),
    "B6: 20,000 levels behind the first megabyte": (MANY + deep(20_000), {}, "row 200,001: it is nested deeper than 60 levels"),
    "B6: null, which pyarrow crashes on": ("null\n", {"schema": {"a": int | None}}, "row 1: it has null, not an object"),
    "two objects in a line": ('{"a":1} null {"a":2}\n', {"schema": {"a": int | None}}, "row 1: it isn't one JSON object"),
    "a name twice": ('{"a":1}\n{"a":1,"a":2}\n', {}, "row 2: it has 'a' twice in one object"),
    "half of a surrogate pair": ('{"a":"\\ud800"}\n', {}, "row 1: it has half of a surrogate pair"),
    "latin-1": ('{"a":"é"}\n'.encode("latin-1"), {}, "isn't UTF-8. Give its encoding="),
    "a zone where none is declared": ('{"at":"2024-01-01T00:00:00Z"}\n', {"types": {"at": dt.datetime}}, "row 1: '2024-01-01T00:00:00Z' of field 'at' doesn't fit the timestamp"),
    "no rows": ("\n", {}, "has no fields. Declare schema="),
    "types beside a schema": ('{"a":1}\n', {"schema": {"a": int}, "types": {"a": str}}, "schema= and types= both set types"),
    "a column that isn't there": ('{"a":1}\n', {"columns": ["z"]}, "has no column 'z'. Its columns are a"),
    "no policy": ('{"a":1}\n', {"on_bad_row": "keep"}, "on_bad_row='keep' is invalid. Choose 'fail', 'skip' or 'divert'"),
    "no encoding": ('{"a":1}\n', {"encoding": "klingon"}, "encoding='klingon' is unknown"),
}  # fmt: skip
del WRONG["A5: a decimal of too many digits"]


@pytest.mark.parametrize("case", WRONG)
def test_what_is_rejected(case: str, source: Read, tmp_path: Path) -> None:
    content, options, says = WRONG[case]
    said = refused(source(content, **options))
    assert says in said
    assert "'rows'" in said
    if "row " in says:
        assert f"'{tmp_path / 'it.jsonl'}'" in said


BAD = '{"a":1}\n[2]\n{"a":"x"}\n\n{"a":4}\nnull\n{"b":1}\n{"a":6,"b":null}\n' + deep(20_000)


def test_bad_lines_are_skipped_and_counted(source: Read, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "rayelastic.events"):
        topology = rel.Topology("skips")
        topology.source(source(BAD, {"a": int}, on_bad_row="skip"), name="rows").sink(rel.list(), name="out")
        result = rel.run(topology)
    assert [t.a for t in result["out"]] == [1, 4, 6]
    assert result.metrics.operator("rows").dropped == {"bad_row": 5}
    (told,) = [json.loads(record.message) for record in caplog.records if "left out" in record.message]
    assert (told["operator"], told["count"]) == ("rows", 5)
    assert f"{tmp_path / 'it.jsonl'}, row 2: it has a list, not an object" in told["first"]


@pytest.mark.parametrize("lead", [0, 200_000], ids=["in the first block", "behind it"])
def test_bad_lines_are_diverted(lead: int, source: Read) -> None:
    topology = rel.Topology("diverts")
    read = topology.source(source('{"a":0}\n' * lead + BAD, {"a": int}, on_bad_row="divert"), name="events")
    read.sink(rel.count(), name="out")
    read.errors.sink(rel.list(), name="bad")
    result = rel.run(topology)
    assert result["out"] == lead + 3
    assert [t.row - lead for t in result["bad"]] == [2, 3, 6, 7, 9]
    assert [t.text for t in result["bad"]][:4] == ["[2]", '{"a":"x"}', "null", '{"b":1}']
    assert {t.operator for t in result["bad"]} == {"events"}


def test_a_line_may_be_as_long_as_is_said(source: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    """B6: text without an end is an error that names file and row."""
    monkeypatch.setattr(json_text, "LONGEST_LINE", 1 << 21)
    long = '{"a":"' + "x" * (2 << 20) + '"}\n'
    assert [len(t.a) for t in rows(source('{"a":"y"}\n' + long, {"a": str}))] == [1, 2 << 20]
    assert "row 2: it is longer than 2 MiB" in refused(source('{"a":"y"}\n' + "\0" * (5 << 20), {"a": str}))
    assert byte_streams.LONGEST_LINE == 64 << 20


def test_lines_one_by_one_are_read_alike(source: Read) -> None:
    """What is in a block with a bad line is read another way, and comes to the same."""
    chance = random.Random(3)
    kinds = {
        "n": int | None,
        "x": float | None,
        "t": str | None,
        "b": bool | None,
        "p": Point | None,
        "l": list[int],
        "at": dt.datetime | None,
    }
    texts = {
        "n": ["0", "-7", "9223372036854775807", "null"], "x": ["1.5", "-0.0", "NaN", "Infinity", "7", "9007199254740993"],
        "t": ['"a"', '"\\u00e9\\n"', '""', "null"], "b": ["true", "false", "null"], "p": ['{"x":1}', '{"y":null,"x":0.5}', "null"],
        "l": ["[]", "[1, 2]"], "at": ['"2024-02-29 12:30:00"', '"1969-12-31T23:59:59.999999"', "null"],
    }  # fmt: skip
    lines = ["{" + ",".join(f'"{n}":{chance.choice(of)}' for n, of in texts.items()) + "}\n" for _ in range(500)]
    fast = rows(source("".join(lines), kinds))
    slow = rows(source("".join([*lines, "null\n"]), kinds, on_bad_row="skip"))
    assert len(fast) == 500
    assert [repr(t) for t in slow] == [repr(t) for t in fast]
    assert any(isinstance(t.x, float) and math.isnan(t.x) for t in fast)


def test_a_later_file_that_has_other_fields(tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_text('{"a":1}\n')
    (tmp_path / "2.jsonl").write_text('{"a":1,"b":2}\n')
    assert f"'{tmp_path / '2.jsonl'}', row 1: it has a field 'b'" in refused(rel.json(str(tmp_path / "*.jsonl")))


def test_json_that_is_written_keeps_its_numbers(source: Read, tmp_path: Path) -> None:
    topology = rel.Topology("copies")
    read = topology.source(source('{"a":{"id":18446744073709551616,"x":1.10}}\n', {"a": rel.Json}), name="rows")
    read.sink(rel.json(str(tmp_path / "copy.jsonl")), name="out")
    rel.run(topology)
    assert (tmp_path / "copy.jsonl").read_text() == '{"a": {"id":18446744073709551616,"x":1.10}}\n'
