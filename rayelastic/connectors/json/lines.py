"""Lines of JSON as values that keep the text: numbers as texts, duplicate names detected, limited depth.

A line has one object. An invalid line is a BadLineError, which knows neither the file nor the number of the line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container
from typing import Any

from rayelastic.connectors.files.byte_streams import LONGEST_LINE, Content
from rayelastic.connectors.files.locations import shown_location
from rayelastic.errors import ErrorCode, SourceError
from rayelastic.graph.records.shown import shown

SAMPLE_BYTES = 1 << 20  # of the first file, to infer types from
BLOCK_BYTES = 2 << 20  # read at once
DEEPEST = 60  # levels of a line; Arrow's schemas have 64, one of them for the row and one for items of a list
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"?|([{\[])|([}\]])', re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class BadLineError(Exception):
    """A line of JSON can't be read, or has a value that isn't of the schema."""


class Number(str):
    """A number as its text."""

    __slots__ = ()

    @property
    def is_whole(self) -> bool:
        """Return whether it has neither a fraction nor an exponent."""
        return self.lstrip("-").isdigit()

    def __repr__(self) -> str:
        return str(self)


class Twice(dict[str, Any]):
    """An object with a duplicate name, which is an error if that name is read."""

    __slots__ = ("names",)
    names: frozenset[str]  # the duplicate ones

    def check(self, read: Container[str] | None = None) -> None:
        """Raise BadLineError if a name that is read is duplicate; by default all are read."""
        if (name := next((name for name in self.names if read is None or name in read), None)) is not None:
            raise BadLineError(f"it has {name!r} twice in one object")


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its fields."""
    values = dict(pairs)
    if len(values) == len(pairs):
        return values
    twice, names = Twice(pairs), [name for name, _ in pairs]
    twice.names = frozenset(name for name in names if names.count(name) > 1)
    return twice


_DECODER = json.JSONDecoder(object_pairs_hook=_fields, parse_int=Number, parse_float=Number, parse_constant=Number)


def object_of(line: bytes) -> dict[str, Any]:
    """Return the fields of the object in a line.

    Raises:
        BadLineError: It isn't UTF-8 or JSON, has no object, or one that is nested deeper than `DEEPEST` levels.

    >>> object_of(b'{"id": 18446744073709551616, "x": [1.50]}')
    {'id': 18446744073709551616, 'x': [1.50]}
    """
    try:
        text = line.decode().strip(" \t\r\n")
    except UnicodeDecodeError as error:
        raise BadLineError(f"{shown(error.object[error.start :][:20])} at byte {error.start:,} isn't UTF-8") from None
    if line.count(b"{") + line.count(b"[") > DEEPEST and _depth(line) > DEEPEST:
        raise BadLineError(f"it is nested deeper than {DEEPEST} levels")
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise BadLineError(f"it isn't one JSON object: {error.msg} at character {error.pos + 1:,}") from None
    if not isinstance(value, dict):
        raise BadLineError(f"it has {kind_of(value)}, not an object")
    if _SURROGATE.search(text) is not None and not _is_text(value):
        raise BadLineError("it has half of a surrogate pair, which is no character")
    return value


def _depth(line: bytes) -> int:
    depth = deepest = 0
    for bracket in _BRACKETS.finditer(line):
        depth += 1 if bracket[1] else -1 if bracket[2] else 0
        deepest = max(deepest, depth)
    return deepest


def _is_text(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def kind_of(value: object) -> str:
    """Name the kind of a value.

    >>> kind_of(Number("1.5")), kind_of([]), kind_of(None)
    ('a number', 'a list', 'null')
    """
    if value is None:
        return "null"
    kinds = {Number: "a number", str: "a text", bool: "a truth value", list: "a list"}
    return kinds.get(type(value), "an object")


def text_of(value: Any) -> str:
    """Write a value as JSON, with its numbers unchanged.

    Raises:
        BadLineError: It has NaN or Infinity, which JSON lacks, or an object with a duplicate name.

    >>> text_of(object_of(b'{"a": [1.50, null, "x"]}'))
    '{"a":[1.50,null,"x"]}'
    """
    if isinstance(value, Number):
        if value[-1] in "Ny":
            raise BadLineError(f"it has {value}, which JSON doesn't have")
        return str(value)
    if isinstance(value, dict):
        if isinstance(value, Twice):
            value.check()
        return "{" + ",".join(f"{_written(name)}:{text_of(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(text_of, value)) + "]"
    return _written(value)


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


class Blocks:
    """The content of a file as blocks of whole lines.

    Args:
        path: The file.
        encoding: The text's encoding; None: UTF-8.
        size: The most bytes of a block, except for a longer line.

    Raises:
        SourceError: The file can't be read, isn't of the encoding, or has a line that is longer than `LONGEST_LINE`.
    """

    def __init__(self, path: str, encoding: str | None, size: int | None = None) -> None:
        self._path = path
        self._content = Content(path, encoding)
        self._bytes = bytearray(size or BLOCK_BYTES)
        self._parts: list[bytes] = []  # of an incomplete line
        self._size = 0
        self._line = 1  # the number of the next line
        self._ended = False

    def __iter__(self) -> Blocks:
        return self

    def __next__(self) -> tuple[int, bytes]:
        """Return the number of the first line, and lines with their ends; the last one's may be missing."""
        while not self._ended:
            got = self._content.fill(memoryview(self._bytes))
            data = memoryview(self._bytes)[:got]
            self._ended = got < len(self._bytes)
            end = got if self._ended else self._bytes.rfind(b"\n") + 1
            self._size += end or got
            if self._size > LONGEST_LINE + len(self._bytes):
                raise SourceError(
                    f"{shown_location(self._path)!r}, row {self._line:,}: it is longer than {LONGEST_LINE >> 20} MiB",
                    hint="Check that the file has an object a line, and ends",
                    code=ErrorCode.MALFORMED_FILE,
                )
            if not end and not self._ended:
                self._parts.append(bytes(data))
                continue
            block = b"".join([*self._parts, data[:end]])
            self._parts, self._size = [bytes(data[end:])] if end < got else [], got - end
            if block:
                first, self._line = self._line, self._line + block.count(b"\n")
                return first, block
        self._content.close()
        raise StopIteration

    def close(self) -> None:
        """Close the file."""
        self._content.close()
