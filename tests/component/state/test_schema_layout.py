"""The layout rule is written twice, in graph/schema.py and in native schema.cpp: both give the same records."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from rayelastic import _native
from rayelastic.graph.records.data_type import FORMATS
from rayelastic.graph.records.schema import laid_out

formats = st.sampled_from([*FORMATS, "tsu:UTC", "tsn:Europe/Berlin"])


@settings(derandomize=True, deadline=None)
@given(st.lists(st.tuples(formats, st.booleans()), max_size=40))
def test_both_lay_records_out_alike(columns: list[tuple[str, bool]]) -> None:
    schema = laid_out("S", [(f"f{i}", text, nullable) for i, (text, nullable) in enumerate(columns)])
    native = _native.Schema([(f.name, f.type.value, f.nullable, f.format) for f in schema.fields])
    assert native.record_size == schema.record_size
    assert native.validity_offset == schema.validity_offset
    assert list(native.offsets) == [f.offset for f in schema.fields]
