"""Every reader and writer takes URIs: file:// is a local path, s3:// goes to a store of objects, others are refused."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rayelastic as rel
from rayelastic.errors import DeclarationError, SinkError, SourceError
from rayelastic.spark import sink_stream
from tests.component.connectors.object_store import Store, object_store
from tests.component.connectors.reading import refused, rows

READERS: dict[str, Callable[[Any], Any]] = {"text": rel.text, "csv": rel.csv, "parquet": rel.parquet}
WRITERS: dict[str, Callable[[Any], Any]] = {"csv": rel.csv, "parquet": rel.parquet, "growing": sink_stream}


@pytest.fixture
def store() -> Iterator[Store]:
    with object_store() as made:
        yield made


def written(sink: Any) -> Any:
    topology = rel.Topology("writes")
    topology.source(rel.sequence(1000), name="numbers").sink(sink, name="out")
    return rel.run(topology)["out"]


def content(reader: str, numbers: range) -> bytes:
    """What a reader reads numbers from."""
    if reader != "parquet":
        return "\n".join(["value", *map(str, numbers)]).encode()
    into = pa.BufferOutputStream()
    pq.write_table(pa.table({"value": list(numbers)}), into)
    made: bytes = into.getvalue().to_pybytes()
    return made


def numbers_of(read: list[Any]) -> list[int]:
    return [int(t[0]) for t in read if t[0] != "value"]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("form", ["file://{}", "file:{}", "file://localhost{}"])
def test_local_uris_are_read(reader: str, form: str, tmp_path: Path) -> None:
    folder = tmp_path / "a folder%"
    folder.mkdir()
    for at in range(2):
        (folder / f"{at}.data").write_bytes(content(reader, range(at * 10, at * 10 + 10)))
    quoted = str(folder).replace("%", "%25").replace(" ", "%20")
    assert numbers_of(rows(READERS[reader](form.format(f"{quoted}/0.data")))) == list(range(10))
    assert numbers_of(rows(READERS[reader](form.format(f"{quoted}/*.data")))) == list(range(20))


@pytest.mark.parametrize("writer", ["csv", "parquet"])
def test_local_uris_are_written(writer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    uri = f"file://{tmp_path}/made/here%20.data"
    assert written(WRITERS[writer](uri)) == f"{tmp_path}/made/here .data"
    assert [path.name for path in tmp_path.rglob("*")] == ["made", "here .data"]
    assert numbers_of(rows(READERS[writer](uri))) == list(range(1000))


@pytest.mark.parametrize("reader", READERS)
def test_objects_are_read(reader: str, store: Store) -> None:
    for at, name in enumerate(("a b.data", "c=d.data", "deep/e.data", "deep/er/f.other")):
        store.objects[f"store/in/{name}"] = content(reader, range(at * 10, at * 10 + 10))
    for pattern, files in (("in/a%20b.data", 1), ("in/*.data", 2), ("in/**/*.data", 3)):
        assert numbers_of(rows(READERS[reader](store.uri(pattern)))) == list(range(files * 10)), pattern
    if reader != "csv":
        assert numbers_of(rows(READERS[reader](store.uri("in")))) == list(range(40))


def test_compressed_objects_are_decompressed(store: Store) -> None:
    store.objects["store/a"] = gzip.compress(content("text", range(100_000)))
    for reader in (rel.text, rel.csv):
        assert numbers_of(rows(reader(store.uri("a")))) == list(range(100_000))
    store.objects["store/a"] = store.objects["store/a"][:-20]
    said = refused(rel.text(store.uri("a")))
    assert "'s3://user:***@store/a' is damaged (gzip) after byte" in said
    assert "secret" not in said


@pytest.mark.parametrize("writer", WRITERS)
def test_objects_are_written(writer: str, store: Store) -> None:
    store.objects["store/there"] = b""
    uri = store.uri("made/folder" if writer == "growing" else "made/one.data")
    assert written(WRITERS[writer](uri)) == uri
    made = [key for key in store.objects if key.startswith("store/made") and "/." not in key and store.objects[key]]
    name = r"folder/part-000000-[0-9a-f]{8}-1\.parquet" if writer == "growing" else r"one\.data"
    assert len(made) == 1
    assert re.fullmatch(f"store/made/{name}", made[0])
    reader = "csv" if writer == "csv" else "parquet"
    assert numbers_of(rows(READERS[reader](uri))) == list(range(1000))


@pytest.mark.parametrize(
    ("uri", "problem"),
    [
        ("nosuch://a/b.data", "is of a scheme that isn't known. Pass a path, or a URI of file, s3, gs, abfs or hdfs"),
        ("http://a/b.data", "is of a scheme that isn't known"),
        ("file://elsewhere/b.data", "names a file of another host. Write file:///folder/file"),
        ("s3:/a/b.data", "is a URI that went through pathlib.Path. Pass the URI as text"),
        ("s3:///b.data", "can't be opened: Missing bucket name in S3 URI"),
    ],
)
@pytest.mark.parametrize("maker", [*READERS, "written csv", "written parquet"])
def test_what_cant_be_a_location_is_refused_at_declaration(maker: str, uri: str, problem: str, tmp_path: Path) -> None:
    topology = rel.Topology("refused")
    numbers = topology.source(rel.sequence(1), name="numbers")
    writes = maker.startswith("written ")
    made = WRITERS[maker.removeprefix("written ")](uri) if writes else READERS[maker](uri)
    with pytest.raises(DeclarationError) as caught:
        _ = numbers.sink(made, name="it") if writes else topology.source(made, name="it")
    assert isinstance(caught.value, SinkError if writes else SourceError)
    assert caught.value.operator == "it"
    assert f"{uri!r} {problem}" in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_objects_that_arent_there_are_named_without_secrets(store: Store) -> None:
    store.objects["store/in/a"] = b"a"
    for key, problem in (("in/b", "there is no file"), ("in/*.csv", "no file matches"), ("none/*", "no file matches")):
        said = refused(rel.text(store.uri(key)))
        assert f"{problem} 's3://user:***@store/{key}'" in said
        assert "secret" not in said
    assert "'s3://user:***@store/in' is a folder. Name files" in refused(rel.csv(store.uri("in")))
