"""rel.parquet: other spellings of a type are decoded, folders are columns, files of other columns told at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rayelastic as rel
from rayelastic.errors import SchemaError, SourceError
from tests.component.connectors.reading import refused, rows
from tests.raising import raises

Write = Callable[..., str]
LONG = "a text that isn't held inline"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def one(name: str, **columns: Any) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), path)
        return str(path)

    return one


TYPES: dict[str, tuple[Any, list[Any]]] = {
    "dictionary": (pa.array(["a", None, LONG, "a"]).dictionary_encode(), ["a", None, LONG, "a"]),
    "dictionary of numbers": (pa.array([7, 7, None]).dictionary_encode(), [7, 7, None]),
    "string_view": (pa.array(["a", None, LONG], pa.string_view()), ["a", None, LONG]),
    "binary_view": (pa.array([b"a", None, LONG.encode()], pa.binary_view()), [b"a", None, LONG.encode()]),
    "large_string": (pa.array(["a", None, LONG], pa.large_string()), ["a", None, LONG]),
    "large_binary": (pa.array([b"a", None, LONG.encode()], pa.large_binary()), [b"a", None, LONG.encode()]),
}


@pytest.mark.parametrize("case", TYPES)
def test_types_are_decoded(case: str, write: Write, tmp_path: Path) -> None:
    column, values = TYPES[case]
    for source in (rel.parquet(write("it.parquet", it=column)), rel.arrow(pa.table({"it": column}))):
        topology = rel.Topology("reads")
        read = topology.source(source, name="rows")
        for name, sink in (("list", rel.list()), ("table", rel.arrow()), ("file", rel.parquet(str(tmp_path / "out")))):
            read.sink(sink, name=name)
        result = rel.run(topology)
        assert [t.it for t in result["list"]] == values
        assert result["table"]["it"].to_pylist() == values
        assert pq.read_table(result["file"])["it"].to_pylist() == values


def test_pandas_categories(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"colour": pandas.Categorical(["red", "blue", "red"])})
    frame.to_parquet(tmp_path / "it.parquet")
    for source in (rel.parquet(str(tmp_path / "it.parquet")), rel.arrow(frame)):
        assert [t.colour for t in rows(source)] == ["red", "blue", "red"]


def test_folders_are_columns(write: Write, tmp_path: Path) -> None:
    for k, day in ((1, "01"), (2, "__HIVE_DEFAULT_PARTITION__")):
        write(f"table/k={k}/day={day}/place=a%20b/part.parquet", n=[k * 10, k * 10 + 1])
    write("table/_old/x.parquet", other=[1])
    (tmp_path / "table" / "_SUCCESS").write_bytes(b"")
    expected = [(10, 1, "01", "a b"), (11, 1, "01", "a b"), (20, 2, None, "a b"), (21, 2, None, "a b")]
    for paths in ("table", "table/k=*/*/*/*.parquet", "table/**/part.parquet"):
        topology = rel.Topology("reads")
        read = topology.source(rel.parquet(str(tmp_path / paths)), name="rows")
        assert str(read.schema) == "Record(n: int64 | None, k: int64, day: string | None, place: string)"
        assert [tuple(t) for t in rows(rel.parquet(f"file://{tmp_path}/{paths}"))] == expected
    chosen = rows(rel.parquet(str(tmp_path / "table"), {"k": float, "n": int}))
    assert [tuple(t) for t in chosen] == [(1.0, 10), (1.0, 11), (2.0, 20), (2.0, 21)]
    assert [tuple(t) for t in rows(rel.parquet(str(tmp_path / "table"), {"k": str}))] == [("1",)] * 2 + [("2",)] * 2
    assert [t._fields for t in rows(rel.parquet(str(tmp_path / "table/k=1/day=01/place=a%20b/part.parquet")))] == [
        ("n",)
    ] * 2


def test_folders_of_several_layouts_are_refused(write: Write, tmp_path: Path) -> None:
    write("table/k=1/a.parquet", n=[1])
    write("table/m=1/a.parquet", n=[1])
    assert "name the columns ['m'], those of" in refused(rel.parquet(str(tmp_path / "table")))


OTHER: dict[str, tuple[dict[str, Any], str]] = {
    "a column less": ({"n": [1]}, "has a column 'm', "),
    "a column more": ({"n": [1], "m": [1], "x": [1]}, "has a column 'x', "),
    "another type": ({"n": [1], "m": ["a"]}, "'m' is int64 in "),
}


@pytest.mark.parametrize("case", OTHER)
def test_other_columns_are_told_at_declaration(case: str, write: Write, tmp_path: Path) -> None:
    columns, says = OTHER[case]
    first, second = write("table/1.parquet", n=[1], m=[2]), write("table/2.parquet", **columns)
    with pytest.raises(SchemaError) as caught:
        rel.Topology("reads").source(rel.parquet(str(tmp_path / "table")), name="it")
    assert says in str(caught.value)
    assert first in str(caught.value)
    assert second in str(caught.value)
    assert "Declare schema= with the columns that all files have" in str(caught.value)
    assert [tuple(t) for t in rows(rel.parquet(str(tmp_path / "table"), {"n": int}))] == [(1,), (1,)]


def test_a_declared_column_has_to_be_in_each_file(write: Write, tmp_path: Path) -> None:
    write("table/1.parquet", n=[1], m=[2])
    second = write("table/2.parquet", n=[1])
    with raises(SchemaError, "unknown-column", str(second)):
        rel.Topology("reads").source(rel.parquet(str(tmp_path / "table"), {"m": int}), name="it")


def test_nulls_of_a_later_file(tmp_path: Path) -> None:
    for number, nullable in enumerate((False, True)):
        schema = pa.schema([pa.field("n", pa.int64(), nullable=nullable)])
        pq.write_table(pa.table({"n": [None if nullable else 1]}, schema), tmp_path / f"{number}.parquet")
    assert [tuple(t) for t in rows(rel.parquet(str(tmp_path)))] == [(1,), (None,)]


def test_large_texts_of_a_later_file(write: Write, tmp_path: Path) -> None:
    for number, kind in enumerate((pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.large_string()))):
        write(f"table/{number}.parquet", t=pa.array([LONG], pa.string()).cast(kind))
    assert [t.t for t in rows(rel.parquet(str(tmp_path / "table")))] == [LONG] * 3


def test_a_file_without_columns(write: Write) -> None:
    path = write("none.parquet")
    with raises(SchemaError, "no-fields", str(path)):
        rel.Topology("reads").source(rel.parquet(path), name="it")


def test_damage_names_the_file(write: Write, tmp_path: Path) -> None:
    path = Path(write("it.parquet", n=pa.array(range(100_000)), t=pa.array(["text"] * 100_000)))
    content = path.read_bytes()
    path.write_bytes(content[:1000] + b"\0" * 50_000 + content[51_000:])
    assert f"SourceError: '{path}' can't be read behind row " in refused(rel.parquet(str(path)))
    path.write_bytes(content[:-20])
    with raises(SourceError, "malformed-file", str(path)):
        rel.Topology("reads").source(rel.parquet(str(path)), name="it")
