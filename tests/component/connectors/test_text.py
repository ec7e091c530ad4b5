"""rel.text: compressed files are told by their first bytes, byte order marks dropped, damage names file and place."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import rayelastic as rel
from tests.component.connectors.reading import lines, refused
from tests.raising import raises

LINES = [f"line {number} é" for number in range(60_000)]  # more than a chunk of the native reader
TEXT = "\n".join(LINES).encode() + b"\n"
HALF = TEXT.index(b"\n", len(TEXT) // 2) + 4  # in the middle of a line


def by_arrow(codec: str) -> Callable[[bytes], bytes]:
    def compress(content: bytes) -> bytes:
        into = pa.BufferOutputStream()
        with pa.CompressedOutputStream(into, codec) as stream:
            stream.write(content)
        packed: bytes = into.getvalue().to_pybytes()
        return packed

    return compress


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress, "zstd": by_arrow("zstd"), "lz4": by_arrow("lz4"),
}  # fmt: skip


@pytest.mark.parametrize("packing", PACKED)
def test_compressed_files_whatever_their_name(packing: str, tmp_path: Path) -> None:
    pack = PACKED[packing]
    one, several, nothing, plain = (tmp_path / name for name in ("one.log", "several.log", "nothing.log", "plain.gz"))
    one.write_bytes(pack(TEXT))
    several.write_bytes(pack(TEXT[:HALF]) + pack(b"") + pack(TEXT[HALF:]))
    nothing.write_bytes(pack(b""))
    plain.write_bytes(TEXT)
    assert lines(one) == LINES
    assert lines(several) == LINES
    assert lines(nothing) == []
    assert lines(plain, one, nothing, several) == LINES * 3


@pytest.mark.parametrize("packing", PACKED)
@pytest.mark.parametrize("damage", ["cut", "garbage behind", "changed"])
def test_damage_names_the_file_and_the_place(packing: str, damage: str, tmp_path: Path) -> None:
    packed = PACKED[packing](TEXT)
    broken = tmp_path / "broken.log"
    middle = 4 if packing in ("zstd", "lz4") else len(packed) // 2  # Arrow writes those without checksums
    broken.write_bytes(
        {
            "cut": packed[:-9],
            "garbage behind": packed + b"garbage, and more of it",
            "changed": packed[:middle] + bytes(b ^ 0x55 for b in packed[middle : middle + 8]) + packed[middle + 8 :],
        }[damage]
    )
    said = refused(rel.text(str(broken)))
    assert f"SourceError: '{broken}' is damaged ({packing}) after byte" in said
    assert "Get an undamaged copy" in said


def test_padding_behind_a_member_is_none_of_the_content(tmp_path: Path) -> None:
    padded = tmp_path / "padded.gz"
    padded.write_bytes(gzip.compress(b"a\n") + b"\0" * 512 + gzip.compress(b"b\n") + b"\0" * 512)
    assert lines(padded) == ["a", "b"]


@pytest.mark.parametrize(
    "content", [b"", b"a", b"B", b"BZ", b"BZh9 is a text", b"\xef", b"\xef\xbb", b"P*", b"PK", b"%*M"]
)
def test_a_text_that_begins_like_something_else(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(content)
    assert lines(path) == content.decode(errors="replace").splitlines()


def test_byte_order_marks_are_dropped_in_front_of_each_file(tmp_path: Path) -> None:
    mark = b"\xef\xbb\xbf"
    paths = [tmp_path / name for name in ("marked", "empty", "packed", "inside")]
    for path, content in zip(
        paths, (mark + b"a\n", mark, gzip.compress(mark + b"b\n"), b"c\n" + mark + b"d"), strict=True
    ):
        path.write_bytes(content)
    assert lines(*paths) == ["a", "b", "c", "\ufeffd"]


def test_a_lone_carriage_return_ends_a_line(tmp_path: Path) -> None:
    path = tmp_path / "mac"
    path.write_bytes(gzip.compress("a\rb\r\nc\u0085".encode()))
    assert lines(path) == ["a", "b", "c\u0085"]


def test_a_pipe_is_read_as_it_comes_and_cant_be_compressed(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for content, expected in ((b"\xef\xbb\xbfone\ntwo", ["one", "two"]), (gzip.compress(b"one"), None)):
        writer = threading.Thread(target=pipe.write_bytes, args=(content,))
        writer.start()
        if expected is not None:
            assert lines(pipe) == expected
        else:
            assert "compressed bytes, or UTF-16, come out of a pipe" in refused(rel.text(str(pipe)))
        writer.join()


@pytest.mark.parametrize("content", [b"PK\x03\x04 and so on", b"\x1f\x9d\x90 and so on"], ids=["zip", "compress"])
def test_archives_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "archive"
    path.write_bytes(content)
    said = refused(rel.text(str(path)))
    assert f"'{path}' is " in said
    assert "Unpack it" in said


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "cp1252", "utf-8"])
def test_encodings(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(gzip.compress("\n".join(LINES).encode(encoding)))
    assert lines(path, encoding=encoding) == LINES


def test_what_isnt_of_the_encoding_names_the_byte(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"x" * 1_000_000 + b"\xe9t\xe9")
    said = refused(rel.text(str(path), encoding="utf-8"))
    assert f"'{path}' isn't utf-8: b'\\xe9' at byte 1,000,000 of its content" in said
    assert "Pass the encoding= that it was written in" in said


@pytest.mark.parametrize("encoding", ["klingon", "base64", 7])
def test_no_encoding_is_refused_at_declaration(encoding: object, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"a")
    with raises(rel.errors.SourceError, "unknown-encoding"):
        rel.Topology("t").source(rel.text(str(tmp_path / "text"), encoding=encoding), name="s")  # type: ignore[arg-type]


@pytest.mark.edges
def test_text_of_other_encodings_is_told_by_its_byte_order_mark(tmp_path: Path) -> None:
    """A12: it was garbage with NULs."""
    for number, encoding in enumerate(("utf-16", "utf-32", "utf-8-sig")):
        (tmp_path / f"{number}.txt").write_bytes("é\nb\n".encode(encoding))
    (tmp_path / "3.txt").write_bytes(b"\xfe\xff" + "é\nb\n".encode("utf-16-be"))
    assert lines(*sorted(tmp_path.glob("*.txt"))) == ["é", "b"] * 4


@pytest.mark.edges
def test_text_without_a_line_end_has_an_end(tmp_path: Path) -> None:
    """B6: /dev/zero was read for ever."""
    long = tmp_path / "long.txt"
    long.write_bytes(b"a\nb\n" + b"\0" * (65 << 20))
    assert f"more than 64 MiB without a line end in line 3 of text file '{long}'" in refused(rel.text(str(long)))
    assert "more than 64 MiB without a line end in line 1 of text file '/dev/zero'" in refused(rel.text("/dev/zero"))
