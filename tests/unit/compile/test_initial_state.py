"""The record that a key's compiled state begins with: dates and times as Arrow counts them."""

from __future__ import annotations

import datetime as dt
import struct
from typing import Any

import pytest

from rayelastic.compile.code.state import initial_record
from rayelastic.graph import Schema
from rayelastic.graph.records.data_type import DataType


@pytest.mark.parametrize(
    ("kind", "value", "form", "count"),
    [
        (DataType.DATE32, dt.date(1970, 1, 11), "<i", 10),
        (DataType.DATE64, dt.date(1970, 1, 11), "<q", 10 * 86_400_000),
        (DataType.DATE64, dt.date(1969, 12, 31), "<q", -86_400_000),
        (DataType.INT64, 7, "<q", 7),
    ],
)
def test_a_value_is_what_a_record_holds(kind: Any, value: Any, form: str, count: int) -> None:
    record = initial_record(Schema.of({"value": kind}), (value,))
    assert struct.unpack_from(form, record) == (count,)
