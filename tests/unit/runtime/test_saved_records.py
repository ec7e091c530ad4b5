"""Exported records of state are taken apart into what they were made of."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import example, given
from hypothesis import strategies as st

from rayelastic.graph.records.schema import Schema
from rayelastic.runtime.saved.chunks import record_bytes, record_cells


class Row(NamedTuple):
    first: str
    flag: bool
    second: str | None
    number: int | None
    third: bytes


cells = st.tuples(
    st.binary(max_size=30),
    st.binary(min_size=1, max_size=1),
    st.none() | st.binary(max_size=30),
    st.none() | st.binary(min_size=8, max_size=8),
    st.binary(max_size=30),
)  # of texts up to 12 bytes stand in the record, the others behind it


@example((b"a" * 20, b"\1", b"b" * 25, None, b"c" * 14))
@given(cells)
def test_a_record_has_what_it_was_made_of(made: tuple[bytes | None, ...]) -> None:
    schema = Schema.of(Row)
    assert record_cells(record_bytes(made, schema), schema) == list(made)
