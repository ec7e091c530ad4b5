"""Schemas: what can be declared, the layout rule, conversions, pickling."""

from __future__ import annotations

import datetime as dt
import enum
import pickle
from typing import NamedTuple, Optional

import cloudpickle
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayelastic.errors import SchemaError
from rayelastic.graph.records.data_type import FORMATS
from rayelastic.graph.records.schema import DataType, Schema, laid_out
from tests.raising import raises


class Trade(NamedTuple):
    symbol: str
    price: float
    volume: int | None
    note: Optional[bytes] = None  # noqa: UP045  (the other spelling)


FIXED = [t for t in DataType if t.size <= 8 and t is not DataType.ENUM]
formats = st.sampled_from([*FORMATS, "tsu:UTC", "tsn:Europe/Berlin"])
columns = st.lists(st.tuples(formats, st.booleans()), max_size=24).map(
    lambda drawn: [(f"f{i}", text, nullable) for i, (text, nullable) in enumerate(drawn)]
)


def test_a_named_tuple_class_is_laid_out_in_order() -> None:
    schema = Schema.of(Trade)
    assert [(f.name, f.type, f.nullable, f.offset, f.validity) for f in schema.fields] == [
        ("symbol", DataType.STRING, False, 0, -1),
        ("price", DataType.FLOAT64, False, 16, -1),
        ("volume", DataType.INT64, True, 24, 0),
        ("note", DataType.BINARY, True, 32, 1),
    ]
    assert (schema.name, schema.validity_offset, schema.record_size) == ("Trade", 48, 56)
    assert schema.tuple_type is Trade


def test_python_types_and_their_fields() -> None:
    schema = Schema.of(
        {
            "a": bool,
            "b": int,
            "c": float,
            "d": str,
            "e": bytes,
            "f": dt.datetime,
            "g": dt.date,
            "h": dt.time,
            "i": dt.timedelta,
        }
    )
    assert [f.format for f in schema.fields] == ["b", "l", "g", "u", "z", "tsu:", "tdD", "ttu", "tDu"]
    back = {f.name: f.type.python_type for f in schema.fields}
    assert Schema.of(back) == schema


def test_a_schema_comes_back_as_it_is() -> None:
    schema = Schema.of(Trade)
    assert Schema.of(schema) is schema


@given(columns)
def test_layout(given_columns: list[tuple[str, str, bool]]) -> None:
    schema = laid_out("S", given_columns)
    end = 0
    for f in schema.fields:
        assert f.offset % f.type.alignment == 0
        assert end <= f.offset < end + 8
        end = f.offset + f.type.size
    nullable = [f for f in schema.fields if f.nullable]
    assert [f.validity for f in nullable] == list(range(len(nullable)))
    assert schema.validity_offset == end
    assert schema.record_size % 8 == 0
    assert max(8, end + (len(nullable) + 7) // 8) <= schema.record_size < end + (len(nullable) + 7) // 8 + 9


@given(columns)
def test_layout_is_that_of_an_aligned_numpy_struct(given_columns: list[tuple[str, str, bool]]) -> None:
    schema = laid_out("S", [(n, f, False) for n, f, _ in given_columns])
    view = np.dtype([("length", "<u8"), ("rest", "<u8")], align=True)
    dtype = schema.to_numpy()
    aligned = np.dtype([(f.name, view if f.type.is_text else dtype[f.name]) for f in schema.fields], align=True)
    assert aligned.fields is not None
    assert [aligned.fields[n][1] for n in schema.names] == [f.offset for f in schema.fields]
    assert schema.record_size == max(8, -(-aligned.itemsize // 8) * 8)
    assert dtype.itemsize == schema.record_size


@given(columns)
def test_arrow_and_back(given_columns: list[tuple[str, str, bool]]) -> None:
    schema = laid_out("Record", given_columns)
    assert Schema.of(schema.to_arrow()) == schema
    assert schema.to_arrow().names == list(schema.names)


@given(columns)
def test_pickling(given_columns: list[tuple[str, str, bool]]) -> None:
    schema = laid_out("S", given_columns)
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert cloudpickle.loads(cloudpickle.dumps(schema)) == schema


@pytest.mark.parametrize("kind", FIXED)
def test_a_numpy_dtype_of_the_records_is_the_schema_again(kind: DataType) -> None:
    schema = Schema.of({"x": kind})
    again = Schema.of(schema.to_numpy())
    assert again.field("x").type.size == kind.size
    if kind.is_numeric or kind in (DataType.BOOL, DataType.TIMESTAMP, DataType.DURATION):
        assert again == schema


@pytest.mark.parametrize("scalar", [np.int8, np.uint16, np.float16, np.float32, np.float64, np.int64, np.bool_])
def test_numpy_scalar_types_are_themselves(scalar: type) -> None:
    assert Schema.of({"x": scalar}).field("x").type.value == np.dtype(scalar).name


def test_numpy_structured_dtypes() -> None:
    schema = Schema.of(np.dtype([("a", "i4"), ("b", "f8"), ("t", "M8[ms]"), ("d", "M8[D]"), ("s", "U10"), ("z", "S3")]))
    assert str(schema) == "Record(a: int32, b: float64, t: timestamp[ms], d: date32, s: string, z: binary)"


def test_pyarrow_types_in_a_dict() -> None:
    schema = Schema.of({"t": pa.timestamp("ns", "UTC"), "s": pa.large_string(), "w": pa.time32("s")})
    assert [f.format for f in schema.fields] == ["tsn:UTC", "U", "tts"]


def test_tuples_of_a_schema_without_a_class_pickle() -> None:
    schema = Schema.of({"word": str, "count": int}, name="Word")
    row = schema.tuple_type("the", 3)
    assert (row.count, repr(row)) == (3, "Word(word='the', count=3)")
    assert pickle.loads(pickle.dumps(row)) == row
    shipped = cloudpickle.loads(cloudpickle.dumps(schema.tuple_type))
    assert shipped("the", 3) == row
    assert schema.tuple_type is Schema.of({"word": bytes, "count": int}, name="Word").tuple_type


def test_the_users_class_is_kept_when_shipped() -> None:
    assert cloudpickle.loads(cloudpickle.dumps(Schema.of(Trade))).tuple_type is Trade


class Nested(NamedTuple):
    inner: complex


class Around(NamedTuple):
    inner: list[Nested]


class Circle(NamedTuple):
    inner: Circle | None


class Rights(enum.Flag):
    READ = 1


class Missing(NamedTuple):
    x: NotThere  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        (Nested, "unsupported-type 'inner'"),
        (Around, "unsupported-type 'inner'"),
        (Circle, "recursive-record"),
        ({"x": Rights}, "unsupported-type"),
        ({"x": pa.decimal256(50, 2)}, "unsupported-type 'x'"),
        ({"x": dict[list[int], str]}, "unsupported-type 'x'"),
        (Missing, "bad-annotation"),
        ({"x": set[int]}, "unsupported-type 'x'"),
        ({"x": int | str}, "unsupported-type 'x'"),
        ({"x": object}, "unsupported-type 'x'"),
        ({"x": np.complex128}, "unsupported-type 'x'"),
        ({"x": None}, "unsupported-type 'x'"),
        ({"from": int}, "bad-field-name 'from'"),
        ({"_x": int}, "bad-field-name '_x'"),
        ({"unit price": int}, "bad-field-name"),
        ({3: int}, "bad-field-name"),
        (
            pa.schema([("m", pa.map_(pa.list_(pa.int8()), pa.int8()))]),
            "unsupported-type 'm'",
        ),
        (pa.schema([("d", pa.decimal128(9, -2))]), "unsupported-type"),
        (pa.schema([("n", pa.null())]), "unsupported-type 'n'"),
        (pa.schema([("a", pa.int8()), ("a", pa.int8())]), "duplicate-field 'a'"),
        (np.dtype([("v", "f4", (3,))]), "unsupported-type 'v'"),
        (np.dtype([("v", "c16")]), "unsupported-type 'v'"),
        (np.dtype([("v", "M8[h]")]), "unsupported-type 'v'"),
        (42, "wrong-type"),
        (None, "wrong-type"),
        ([("a", int)], "wrong-type"),
    ],
)
def test_what_no_record_can_hold_is_refused_by_name(declared: object, expected: str) -> None:
    with raises(SchemaError, *expected.split()) as caught:
        Schema.of(declared)
    assert caught.value.hint


def test_an_unknown_field_is_answered_with_the_one_that_was_meant() -> None:
    with raises(SchemaError, "unknown-field", "prize", "Trade"):
        Schema.of(Trade).field("prize")
