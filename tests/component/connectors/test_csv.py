"""rel.csv: nothing is read as something else, bad rows are told by number, what can't be read says why."""

# ruff: noqa: E501  (tables of cases, one a line)

from __future__ import annotations

import datetime as dt
import gzip
import json
import logging
import math
import random
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rayelastic as rel
from rayelastic.connectors.csv import inference as csv_files
from rayelastic.connectors.csv import text as csv_text
from rayelastic.errors import DeclarationError
from tests.component.connectors.reading import refused, rows
from tests.raising import raises

Read = Callable[..., Any]


@pytest.fixture
def csv(tmp_path: Path) -> Read:
    """What makes a source of a content."""

    def make(content: str | bytes, schema: Any = None, **options: Any) -> Any:
        path = tmp_path / "it.csv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return rel.csv(str(path), schema, **options)

    return make


# What is written, how it is read, and what that gives. Each is a row of the table of inputs, or stands beside one.
RIGHT: dict[str, tuple[str | bytes, dict[str, Any], list[tuple[Any, ...]]]] = {
    "columns that no field can be called, renamed": ("my col,class,1x\n1,2,3\n", {"columns": {"1x": "x", "my col": "mine"}}, [(3, 1)]),
    "columns that are selected": ("a,b,c\n1,2,3\n", {"columns": ["c", "a"]}, [(3, 1)]),
    "columns of a schema, renamed": ("my col,b\n01,2\n", {"columns": {"my col": "mine"}, "schema": {"mine": str}}, [("01",)]),
    "one of two columns of a name left out": ("a,a,b\n1,2,3\n", {"columns": ["b"]}, [(3,)]),
    "a number beyond 64 bits as text": ("n\n99999999999999999999\n", {"types": {"n": str}}, [("99999999999999999999",)]),
    "a number beyond 64 bits, rounded when asked for": ("n\n99999999999999999999\n", {"types": {"n": float}}, [(1e20,)]),
    "leading zeros, inferred": ("zip\n01234\n99999\n", {}, [("01234",), ("99999",)]),
    "a negative number with leading zeros": ("n\n-07\n5\n", {}, [("-07",), ("5",)]),
    "zeros that lead to nothing": ("n\n0\n0.5\n", {}, [(0.0,), (0.5,)]),
    "leading zeros, declared as text": ("zip\n01234\n", {"schema": {"zip": str}}, [("01234",)]),
    "leading zeros, declared as number": ("zip\n01234\n", {"schema": {"zip": int}}, [(1234,)]),
    "nan and NA as text": ("t\nnan\nNA\nnull\n", {"schema": {"t": str}}, [("nan",), ("NA",), ("null",)]),
    "nan and NA as text, inferred": ("t\nnan\nNA\nnull\n", {}, [("nan",), ("NA",), ("null",)]),
    "an empty text, declared": ('t,n\n,1\n"",2\n', {"schema": {"t": str, "n": int}}, [("", 1), ("", 2)]),
    "an empty text or none": ('t,n\n,1\n"",2\n', {}, [(None, 1), ("", 2)]),
    "an empty number": ('x,n\n1.5,1\n,""\n', {}, [(1.5, 1), (None, None)]),
    "what stands for None": ('t,n\nNA,-\n"NA",1\n', {"nulls": ["NA", "-"]}, [(None, None), ("NA", 1)]),
    "latin-1": ("t\ncafé\n".encode("latin-1"), {"encoding": "latin-1"}, [("café",)]),
    "utf-16": ("t\ncafé\n".encode("utf-16"), {"encoding": "utf-16"}, [("café",)]),
    "utf-16, told by its byte order mark": ("t\ncafé\n".encode("utf-16"), {}, [("café",)]),
    "utf-32, told by its byte order mark": ("t\ncafé\n".encode("utf-32"), {}, [("café",)]),
    "a byte order mark, encoding told": (b"\xef\xbb\xbft\na\n", {"encoding": "utf-8"}, [("a",)]),
    "no header": ("5.1,3.5,setosa\n4.9,3.0,virginica\n", {"header": False}, [(5.1, 3.5, "setosa"), (4.9, 3.0, "virginica")]),
    "no header, some columns": ("5.1,x\n4.9,y\n", {"header": False, "columns": {"f1": "kind"}}, [("x",), ("y",)]),
    "no header, declared": ("5.1,x\n4.9,y\n", {"header": False, "schema": {"size": float, "kind": str}}, [(5.1, "x"), (4.9, "y")]),
    "no header, names": ("5.1,x\n4.9,y\n", {"header": ["order id", "kind"], "columns": {"order id": "size"}}, [(5.1,), (4.9,)]),
    "escaped quotes": ('t,n\n"say \\"hi\\", ""you""",1\nb\\,c,2\n', {"escape": "\\"}, [('say "hi", "you"', 1), ("b,c", 2)]),
    "escaped quotes, comments": ('# "\nt,n\n"a\\"\n# b",1\n# c\n', {"escape": "\\", "comment": "#"}, [('a"\n# b', 1)]),
    "a column of nulls": ("a,n\nx,\ny,\n", {}, [("x", None), ("y", None)]),
    "hexadecimal digits": ("n\n0x1F\n0x00\n", {}, [("0x1F",), ("0x00",)]),
    "bytes, declared": (b"t\n\xe9\n", {"types": {"t": bytes}}, [(b"\xe9",)]),
    "a byte order mark": (b"\xef\xbb\xbft\na\n", {}, [("a",)]),
    "compressed": (gzip.compress(b"t\na\n") + gzip.compress(b"b\n"), {}, [("a",), ("b",)]),
    "comment lines": ('#RIC\na,b\n#### LATE EVENTS ####\n1,2\n3,"\n# quoted\n"\n# end', {"comment": "#"}, [(1, "2"), (3, "\n# quoted\n")]),
    "line ends in quotes, over blocks": ("a,b\n" + '1,"x\n\ny"\n' * 200_000, {}, [(1, "x\n\ny")] * 200_000),
    "a field of 5 MB": ("a,b\n1,x\n2," + "y" * 5_000_000 + "\n3,z\n", {}, [(1, "x"), (2, "y" * 5_000_000), (3, "z")]),
    "a field of 5 MB behind a block": ("a,b\n" + "1,x\n" * 300_000 + "2," + "y" * 5_000_000, {}, [(1, "x")] * 300_000 + [(2, "y" * 5_000_000)]),
    "stray quotes": ('a,b\n1,5" pipe\n2,"p\nq"\n', {}, [(1, '5" pipe'), (2, "p\nq")]),
    "no quotes": ('a\tb\n1\t"x\n2\ty\n', {"delimiter": "\t", "quote": None}, [(1, '"x'), (2, "y")]),
    "single quotes": ("a,b\n1,'x,y'\n", {"quote": "'"}, [(1, "x,y")]),
    "no rows": ("a,b\n", {}, []),
    "truths": ("t\ntrue\n0\n\nFalse\n1\n", {"types": {"t": bool}}, [(True,), (False,), (False,), (True,)]),
    "a duration": ("d\nPT0.000005S\n\"\"\n", {"types": {"d": dt.timedelta | None}}, [(dt.timedelta(microseconds=5),), (None,)]),
    "a quoted text that stands for null": ('a,b\n"NA",1\nNA,2\n1.5,3\n', {"nulls": ["NA"]}, [("NA", 1), (None, 2), ("1.5", 3)]),
    "an id": ("u\n00000000-0000-0000-0000-00000000000A\n", {"types": {"u": uuid.UUID}}, [(uuid.UUID(int=10),)]),
}  # fmt: skip


@pytest.mark.parametrize("case", RIGHT)
def test_what_is_read(case: str, csv: Read) -> None:
    content, options, expected = RIGHT[case]
    read = [tuple(t) for t in rows(csv(content, **options))]
    assert len(read) == len(expected)
    assert read == expected


def test_nan_is_a_number_and_empty_is_none(csv: Read) -> None:
    (first,), (second,), (third,) = rows(csv("x,y\nnan,1\n,1\nNaN,1\n", columns=["x"]))
    assert math.isnan(first)
    assert second is None
    assert math.isnan(third)


# What is refused, and what is said of it.
WRONG: dict[str, tuple[str | bytes, dict[str, Any], str]] = {
    "a column that no field can be called": ("my col\n1\n", {}, "column 'my col' can't be an attribute of a tuple as 'my col'. Rename it: columns={'my col': 'my_col', ...}"),
    "a column that is a keyword": ("class\n1\n", {}, "Rename it: columns={'class': "),
    "a number beyond 64 bits, inferred": ("n\n99999999999999999999\n", {}, "column 'n' has 99999999999999999999, which neither 64-bit integers nor floats hold. Say what it is: types={'n': str}"),
    "a number beyond 64 bits, declared": ("n\n1\n99999999999999999999\n", {"types": {"n": int}}, "row 3: '99999999999999999999' doesn't fit the int64 of column 'n'"),
    "a number beyond 64 bits, late": ("x\n" + "1.5\n" * 300_000 + "99999999999999999999\n", {}, "row 300,002: '99999999999999999999' doesn't fit the float64 of column 'x', which was inferred from the first rows"),
    "leading zeros, late": ("zip\n" + "12345\n" * 300_000 + "01234\n", {}, "row 300,002: '01234' doesn't fit the int64 of column 'zip', which was inferred"),
    "2.5 after 2 M rows": ("n\n" + "1\n" * 2_000_000 + "2.5\n", {}, "row 2,000,002: '2.5' doesn't fit the int64 of column 'n', which was inferred from the first rows: declare it by types="),
    "an empty number, declared": ("n,t\n1,a\n,b\n", {"schema": {"n": int, "t": str}}, "row 3: it is empty, but int64 of column 'n' is declared without None"),
    "latin-1, inferred": ("t\na\ncafé\n".encode("latin-1"), {}, "column 't' isn't UTF-8: b'caf\\xe9' is value 2 of it. Pass its encoding=, such as 'latin-1'"),
    "latin-1, declared": ("t\na\ncafé\n".encode("latin-1"), {"schema": {"t": str}}, "row 3: b'caf\\xe9' of column 't' isn't UTF-8. Pass its encoding="),
    "latin-1 in the header": ("café\na\n".encode("latin-1"), {}, "the header of"),
    "not of the encoding": (b"t\n\xe9\n", {"encoding": "ascii"}, "isn't ascii: b'\\xe9' at byte 2 of its content"),
    "too many fields": ("a,b\n1,2\n3,4,5\n", {}, "row 3: it has 3 fields, not 2: '3,4,5'. Mend the file, declare other types, or pass on_bad_row='skip' or 'divert'"),
    "too few fields": ("a,b\n1,2\n\n3\n", {}, "row 3: it has 1 fields, not 2: '3'"),
    "a quote that is never closed": ('a,b\n1,"x\n2,y\n3,z\n', {}, "the quote in front of the last field of row 2 is never closed: it is the rest of the file. Close it, or pass quote=None"),
    "such a quote behind one that stands alone": ('a,b\n1,z"\n2,"x\n3,y\n', {}, "the quote in front of the last field of row 3 is never closed"),
    "such a quote in a long file": ('a,b\n1,"x\n' + "2,y\n" * 600_000, {}, "the quote in front of the last field of row 2 is never closed"),
    "such a quote in another column": ('a,b,c\n1,2,3\n4,"x\n5,6,7\n', {}, "a quote that opens in row 3 is never closed"),
    "such a quote in a column that isn't read": ('a,b\n1,"x\n2,y\n', {"columns": ["a"]}, "the quote in front of the last field of row 2 is never closed"),
    "such a quote, though bad rows are skipped": ('a,b,c\n1,2,3\n4,"x\n5,6,7\n', {"on_bad_row": "skip"}, "a quote that opens in row 3 is never closed"),
    "an empty file": ("", {}, "can't be read as CSV: it is empty. Leave it out, or write a header line"),
    "two columns of a name": ("a,a\n1,2\n", {}, "has 2 columns called 'a'. Rename them in the file, or leave them out with columns="),
    "beyond all floats, inferred": ("x\n1.5\n1e400\n", {}, "column 'x' has 1e400, which neither 64-bit integers nor floats hold"),
    "beyond all floats, late": ("x\n" + "1.5\n" * 300_000 + "1e400\n", {}, "row 300,002: '1e400' doesn't fit the float64"),
    "beyond all floats, declared": ("x\n1.5\n-1e400\n", {"types": {"x": float}}, "row 3: '-1e400' doesn't fit the float64"),
    "beyond short floats": ("x\n1e39\n", {"types": {"x": np.float32}}, "row 2: '1e39' doesn't fit the float32"),
    "beyond half floats": ("x\n70000\n", {"types": {"x": np.float16}}, "row 2: '70000' doesn't fit the float16"),
    "no header, too few fields": ("1,a\n2\n", {"header": False}, "row 2: it has 1 fields, not 2: '2'"),
    "no header, a bad value": ("1,a\nx,b\n", {"header": False, "schema": {"n": int, "t": str}}, "row 2: 'x' doesn't fit the int64 of column 'n'"),
    "an escaped quote that closes nothing": ('a,b\n1,"x\\"\n2,y\n', {"escape": "\\"}, "the quote in front of the last field of row 2 is never closed"),
    "an escape that nulls need": ("a\n\\N\n", {"escape": "\\", "nulls": ["\\N"]}, "nulls= has '\\\\N', which escape='\\\\' reads as 'N'"),
    "no escape": ("a\n1\n", {"escape": "xx"}, "escape='xx' is invalid. Pass one ASCII character"),
    "damaged gzip": (gzip.compress(b"a,b\n" + b"1,2\n" * 500_000)[:-9], {}, "is damaged (gzip) after byte"),
    "a column that isn't there": ("a\n1\n", {"columns": ["z"]}, "has no column 'z'. Its columns are a"),
    "a type of no field": ("a\n1\n", {"types": {"z": int}}, "types= names 'z', which isn't a field. The fields are a"),
    "types beside a schema": ("a\n1\n", {"schema": {"a": int}, "types": {"a": str}}, "schema= and types= both set types"),
    "two fields of a name": ("a,b\n1,2\n", {"columns": {"a": "x", "b": "x"}}, "columns= maps two columns to one name"),
    "no policy": ("a\n1\n", {"on_bad_row": "keep"}, "on_bad_row='keep' is invalid. Choose 'fail', 'skip' or 'divert'"),
    "no delimiter": ("a\n1\n", {"delimiter": "||"}, "delimiter='||' is invalid. Pass one ASCII character"),
    "no encoding": ("a\n1\n", {"encoding": "klingon"}, "encoding='klingon' is unknown"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_refused(case: str, csv: Read, tmp_path: Path) -> None:
    content, options, says = WRONG[case]
    said = refused(csv(content, **options))
    assert says in said
    assert "'rows'" in said
    if "row " in says or "damaged" in says:
        assert f"'{tmp_path / 'it.csv'}'" in said


@pytest.mark.edges
@pytest.mark.parametrize("chosen", [{"columns": ["a", "b"]}, {"schema": {"a": int, "b": str}}, {}], ids=str)
def test_a_column_that_the_first_file_lacks_is_never_dropped_silently(chosen: dict[str, Any], tmp_path: Path) -> None:
    """A7: it fails the job, unless the user has chosen columns."""
    (tmp_path / "1.csv").write_text("a,b\n1,x\n")
    (tmp_path / "2.csv").write_text("a,b,c\n2,y,z\n")
    source = rel.csv(str(tmp_path / "*.csv"), **chosen)
    if chosen:
        assert [tuple(t) for t in rows(source)] == [(1, "x"), (2, "y")]
    else:
        assert f"'{tmp_path / '2.csv'}': it has a column 'c', which the first file doesn't have" in refused(source)


@pytest.mark.parametrize("second", ["b,a\nx,2\n", "a,c\n2,y\n", "a\n2\n"], ids=["in another order", "another", "less"])
def test_columns_of_a_later_file(second: str, tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a,b\n1,x\n")
    (tmp_path / "2.csv").write_text(second)
    source = rel.csv(str(tmp_path / "*.csv"))
    if "b" in second:
        assert [tuple(t) for t in rows(source)] == [(1, "x"), (2, "x")]
    else:
        assert f"'{tmp_path / '2.csv'}': it has no column 'b'. Its columns are a" in refused(source)


BAD = "a,b\n1,x\n2,y,z\nq,w\n\n4,v\n5\n,u\n6,t\n"  # row 3 has too many, 4 no number, 6 too few, 7 is empty


def test_bad_rows_are_skipped_and_counted(csv: Read, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = csv(BAD, {"a": int, "b": str}, on_bad_row="skip")
    with caplog.at_level(logging.WARNING, "rayelastic.events"):
        topology = rel.Topology("skips")
        topology.source(source, name="rows").sink(rel.list(), name="out")
        result = rel.run(topology)
    assert [tuple(t) for t in result["out"]] == [(1, "x"), (4, "v"), (6, "t")]
    assert result.metrics.operator("rows").dropped == {"bad_row": 4}
    (told,) = [json.loads(record.message) for record in caplog.records if "left out" in record.message]
    assert (told["event"], told["operator"], told["count"]) == ("bad rows left out", "rows", 4)
    assert f"{tmp_path / 'it.csv'}, row 3: it has 3 fields, not 2: '2,y,z'" in told["first"]


@pytest.mark.parametrize("lead", [0, 300_000], ids=["in the first block", "behind it"])
def test_bad_rows_are_diverted(lead: int, csv: Read, tmp_path: Path) -> None:
    topology = rel.Topology("diverts")
    content = BAD.replace("1,x\n", "1,x\n" * (lead + 1))
    read = topology.source(csv(content, {"a": int, "b": str}, on_bad_row="divert"), name="trades")
    read.sink(rel.list(), name="out")
    read.errors.sink(rel.list(), name="bad")
    result = rel.run(topology)
    assert [tuple(t) for t in result["out"]] == [(1, "x")] * (lead + 1) + [(4, "v"), (6, "t")]
    assert {t.file for t in result["bad"]} == {str(tmp_path / "it.csv")}
    assert {t.operator for t in result["bad"]} == {"trades"}
    assert result.metrics.operator("trades").dropped == {}
    assert {(t.row - lead, t.text, t.error) for t in result["bad"]} == {
        (3, "2,y,z", "it has 3 fields, not 2: '2,y,z'"),
        (4, "q,w", "'q' doesn't fit the int64 of column 'a'"),
        (6, "5", "it has 1 fields, not 2: '5'"),
        (7, ",u", "it is empty, but int64 of column 'a' is declared without None"),
    }


def test_diverted_rows_have_to_be_taken(csv: Read) -> None:
    topology = rel.Topology("diverts")
    topology.source(csv(BAD, {"a": int, "b": str}, on_bad_row="divert"), name="trades").sink(rel.count(), name="out")
    with raises(DeclarationError, "no-sink", "trades_errors"):
        rel.run(topology)


def test_a_source_that_diverts_nothing_has_no_errors(csv: Read) -> None:
    source = rel.Topology("diverts").source(csv(BAD, {"a": int, "b": str}), name="trades")
    with raises(DeclarationError, "unknown-port", "errors"):
        _ = source.errors


def test_read_with_care_is_read_alike(csv: Read) -> None:
    """What is behind a bad row is read another way, and comes to the same."""
    chance = random.Random(5)
    numbers = ["0", "7", "-3", " 12 ", "9223372036854775807", "", '""', "007"]
    floats = ["1.5", "-0.0", "nan", "inf", "1e40", " 2.5", "", "00.5", "-inf", "12345678901234567890"]
    texts = ["a", '"q,\nr"', '""', "", " s ", '"say ""x"""', "é", "007", "nan"]
    truths = ["true", "FALSE", "1", "0", "", "True"]
    days = ["2024-02-29", "1969-12-31", ""]
    times = ["2024-02-29 12:30:00", "1969-12-31T23:59:59", ""]
    kinds = {
        "n": int | None,
        "x": float | None,
        "t": str | None,
        "b": bool | None,
        "d": dt.date | None,
        "at": dt.datetime | None,
    }
    content = "\n".join(
        ",".join(chance.choice(one) for one in (numbers, floats, texts, truths, days, times)) for _ in range(3000)
    )
    heading = "n,x,t,b,d,at\n"
    fast = rows(csv(heading + content.replace('""', ""), kinds))
    careful = rows(csv(heading + "too,few\n" + content.replace('""', ""), kinds, on_bad_row="skip"))
    assert len(fast) == 3000
    assert [repr(t) for t in careful] == [repr(t) for t in fast]


def test_a_comment_may_be_as_long(csv: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_text, "LONGEST_LINE", 1 << 21)
    assert "has a line that is longer than 2 MiB" in refused(csv(b"#" * (5 << 20), comment="#"))


def test_a_row_may_be_as_long_as_is_said(csv: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read at once to infer types grows until there is a whole row in it, to the longest row at most."""
    monkeypatch.setattr(csv_files, "SAMPLE_BYTES", 16)
    monkeypatch.setattr(csv_files, "LONGEST_ROW", 16 * 16)
    assert [len(t.a) for t in rows(csv("a,b\n" + "x" * 200 + ",1\n"))] == [200]
    assert "a row at the start of" in refused(csv("a,b\n" + "x" * 1000 + ",1\n"))
