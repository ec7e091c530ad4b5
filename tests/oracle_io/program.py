"""One program of the oracle: files or a frame, how they are read, and what has to come of it."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.oracle_io.values import NAMES


@dataclass
class Expected:
    """What has to come of a program.

    Args:
        rows: the tuples; None: what `check` says of those that come.
        bad: (file, number of the row) of rows that aren't of the schema, in their order.
        error: a part of the typed error that has to be raised; '' where any may be; None: none may be.
        may_fail: whether a typed error is as good as rows.
        check: says what is wrong with the tuples, given them and the names of their fields.
    """

    rows: list[tuple[Any, ...]] | None = None
    bad: list[tuple[int, int]] = field(default_factory=list)
    error: str | None = None
    may_fail: bool = False
    check: Callable[[list[tuple[Any, ...]], Any], str | None] = lambda rows, schema: None


@dataclass
class Program:
    """What is read.

    Args:
        reader: 'csv', 'json', 'text', 'parquet' or 'arrow'.
        files: the content of each.
        options: of the reader.
        expected: what has to come of it.
        table: of 'arrow', and of 'parquet' what the files hold.
        round_trip: whether what is inferred is written and read once more.
    """

    reader: str
    files: list[bytes]
    options: dict[str, Any]
    expected: Expected
    table: Any = None
    round_trip: bool = True

    def written(self, folder: Path) -> list[str]:
        """Writes the files, and returns their paths."""
        paths = []
        for number, content in enumerate(self.files):
            path = folder / f"{number}.{self.reader}"
            path.write_bytes(content)
            paths.append(str(path))
        return paths


def fields(chance: random.Random, count: int) -> tuple[list[str], dict[str, str] | None]:
    """Names of columns, and a renaming where one of them isn't a name of a field."""
    names = chance.sample(NAMES, count)
    if all(name.isidentifier() and name not in ("class", "None", "_links") for name in names) and chance.random() < 0.8:
        return names, None
    return names, {name: f"f{number}" for number, name in enumerate(names)}


def packed(chance: random.Random, content: bytes) -> bytes:
    """The content, sometimes compressed."""
    if chance.random() < 0.9:
        return content
    packs: list[Callable[[bytes], bytes]] = [gzip.compress, bz2.compress, lzma.compress]
    pack = chance.choice(packs)
    half = len(content) // 2
    return pack(content[:half]) + pack(content[half:]) if chance.random() < 0.5 else pack(content)


def encoded(chance: random.Random, text: str) -> tuple[bytes, dict[str, Any]]:
    """A text as bytes, and what a reader has to be told of them."""
    match chance.choice(["plain"] * 8 + ["marked", "told", "utf-16", "utf-16 told", "utf-32", "latin-1"]):
        case "marked":
            return b"\xef\xbb\xbf" + text.encode(), {}
        case "told":
            return text.encode(), {"encoding": "utf-8"}
        case "utf-16":
            return text.encode("utf-16"), {}
        case "utf-16 told":
            return text.encode("utf-16-be"), {"encoding": "utf-16-be"}
        case "utf-32":
            return text.encode("utf-32"), {}
        case "latin-1" if all(ord(letter) < 256 for letter in text):
            return text.encode("latin-1"), {"encoding": "latin-1"}
    return text.encode(), {}
