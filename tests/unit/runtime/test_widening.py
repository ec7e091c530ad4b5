"""What a key of a wider state begins with, as records and texts of compiled state have it."""

from __future__ import annotations

import struct

from rayelastic.compile.code.state import initial_record
from rayelastic.graph.records.schema import Schema
from rayelastic.runtime.saved.widening import _first_cells


def test_texts_are_had_whole_wherever_they_stand() -> None:
    schema = Schema.of({"a": str, "n": int, "b": str | None, "c": bytes})
    for size in (0, 1, 11, 12):
        text = "x" * size
        initial = initial_record(schema, (text, 7, None, text.encode()))
        assert _first_cells(initial, schema) == [text.encode(), struct.pack("<q", 7), None, text.encode()]
    short = initial_record(schema, ("", 7, None, b""))
    long = struct.pack("<I4sQ", 13, b"long", len(short)) + short[16:] + b"longer than 12"
    assert _first_cells(long, schema)[:2] == [b"longer than 1", struct.pack("<q", 7)], "behind the record"
