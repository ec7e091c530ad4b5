"""Programs about tables: Arrow, pandas and Parquet, with every type at its edges, and casts that may change a value."""

# ruff: noqa: DTZ001, E501  (tables of values, and times without a zone)

from __future__ import annotations

import datetime as dt
import decimal
import io
import random
import uuid
from decimal import Decimal
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.oracle_io.program import Expected, Program, fields

_INTS = {
    f"{sign}int{bits}": [-(1 << bits - 1), 0, 1, (1 << bits - 1) - 1] if sign == "" else [0, 1, (1 << bits) - 1]
    for bits in (8, 16, 32, 64)
    for sign in ("", "u")
}
MOMENTS = [
    dt.datetime(2024, 2, 29, 12, 30),
    dt.datetime(1969, 12, 31, 23, 59, 59),
    dt.datetime(1700, 1, 1),
    dt.datetime(2261, 1, 1),
]
TYPES: dict[str, tuple[Any, list[Any]]] = {
    **{name: (getattr(pa, name)(), values) for name, values in _INTS.items()},
    "float64": (pa.float64(), [1.5, -0.0, float("inf"), float("nan"), 5e-324, 1.7976931348623157e308, 7.0, 2.0**53]),
    "float32": (pa.float32(), [1.5, -0.0, float("inf"), 0.25]),
    "float16": (pa.float16(), [1.5, 0.25, 65504.0]),
    "bool": (pa.bool_(), [True, False]),
    "string": (pa.string(), ["", "x", "é", "😀", "a\nb", "1", "1.5", "true", "2024-01-01", "x" * 200, "\0"]),
    "large_string": (pa.large_string(), ["", "x" * 100]),
    "string_view": (pa.string_view(), ["", "x" * 100]),
    "binary": (pa.binary(), [b"", b"\xff\0", b"x" * 100]),
    "large_binary": (pa.large_binary(), [b"\xff"]),
    "category": (pa.dictionary(pa.int8(), pa.string()), ["red", "blue", "a long name of a colour"]),
    "category of numbers": (pa.dictionary(pa.int32(), pa.int64()), [1, 1 << 60]),
    "null": (pa.null(), [None]),
    "date32": (pa.date32(), [dt.date(1, 1, 1), dt.date(2024, 2, 29), dt.date(9999, 12, 31)]),
    "date64": (pa.date64(), [dt.date(2024, 2, 29), dt.date(1969, 12, 31)]),
    **{f"timestamp_{unit}": (pa.timestamp(unit), MOMENTS) for unit in ("s", "ms", "us", "ns")},
    "timestamp_utc": (pa.timestamp("us", "UTC"), [m.replace(tzinfo=dt.UTC) for m in MOMENTS]),
    "timestamp_berlin": (pa.timestamp("ns", "Europe/Berlin"), [m.replace(tzinfo=dt.UTC) for m in MOMENTS]),
    "time32": (pa.time32("ms"), [dt.time(12, 30), dt.time(23, 59, 59, 999000)]),
    "time64": (pa.time64("us"), [dt.time(12, 30), dt.time(23, 59, 59, 999999)]),
    "duration": (pa.duration("us"), [dt.timedelta(0), dt.timedelta(days=-3, microseconds=1), dt.timedelta(days=100_000)]),
    "decimal": (pa.decimal128(38, 18), [Decimal("1.5"), Decimal("-99999999999999999999.999999999999999999")]),
    "short decimal": (pa.decimal128(5, 2), [Decimal("1.25"), Decimal("-999.99")]),
    "uuid": (pa.uuid(), [uuid.UUID(int=0), uuid.UUID(int=(1 << 128) - 1)]),
    "list": (pa.list_(pa.int64()), [[], [1, None, 3], [1 << 62]]),
    "list of texts": (pa.list_(pa.string()), [[""], ["a", None]]),
    "list of nulls": (pa.list_(pa.null()), [[], [None]]),
    "struct": (pa.struct([("x", pa.float64()), ("t", pa.string())]), [{"x": 1.5, "t": None}, {"x": None, "t": "é"}]),
    "deep": (pa.list_(pa.struct([("a", pa.list_(pa.int32()))])), [[{"a": [1]}, {"a": None}], []]),
    "map": (pa.map_(pa.string(), pa.int64()), [[("a", 1)], [], [("a", None), ("b", 2)]]),
}  # fmt: skip
UNREADABLE: dict[str, tuple[Any, list[Any]]] = {
    "decimal256": (pa.decimal256(60, 2), [Decimal("1.25")]),
    "empty struct": (pa.struct([]), [{}]),
    "interval": (pa.month_day_nano_interval(), [pa.MonthDayNano([1, 2, 3])]),
}  # fmt: skip
CASTS: dict[str, Any] = {
    "int": (int, pa.int64()), "int32": (np.int32, pa.int32()), "uint8": (np.uint8, pa.uint8()), "float": (float, pa.float64()),
    "float32": (np.float32, pa.float32()), "str": (str, pa.string()), "bool": (bool, pa.bool_()), "datetime": (dt.datetime, pa.timestamp("us")),
    "date": (dt.date, pa.date32()), "decimal": (Decimal, pa.decimal128(38, 18)), "utc": (pa.timestamp("us", "UTC"), pa.timestamp("us", "UTC")),
}  # fmt: skip


def table_program(chance: random.Random) -> Program:
    """Makes a program."""
    names, renaming = fields(chance, chance.randint(1, 5))
    pool = TYPES | (UNREADABLE if chance.random() < 0.1 else {})
    kinds = [chance.choice(list(pool)) for _ in names]
    count = chance.randint(0, 10)
    columns = [pa.array([_drawn(chance, pool[kind][1]) for _ in range(count)], pool[kind][0]) for kind in kinds]
    table = pa.table(dict(zip(names, columns, strict=True)))
    options: dict[str, Any] = {"columns": renaming} if renaming else {}
    reader = chance.choice(["arrow", "parquet"])
    may_fail = any(kind in UNREADABLE for kind in kinds)
    expected = Expected(_rows(table), may_fail=may_fail)
    if chance.random() < 0.4 and not may_fail:
        expected = _cast(chance, table, renaming, options)
    if reader == "arrow":
        return Program("arrow", [], options, expected, table)
    parts = [table] if count < 2 or chance.random() < 0.7 else [table.slice(0, count // 2), table.slice(count // 2)]
    try:
        files = [_parquet(chance, part) for part in parts]
    except (pa.ArrowException, NotImplementedError, ValueError):  # what Parquet doesn't have
        return Program("arrow", [], options, expected, table)
    return Program("parquet", files, options, expected, table)


def _drawn(chance: random.Random, values: list[Any]) -> Any:
    return None if chance.random() < 0.15 else chance.choice(values)


def _rows(table: Any) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _parquet(chance: random.Random, table: Any) -> bytes:
    into = io.BytesIO()
    pq.write_table(
        table, into, compression=chance.choice(["snappy", "zstd", "none", "gzip"]), use_dictionary=chance.random() < 0.5,
        version=chance.choice(["1.0", "2.4", "2.6"]) if not _is_fine(table) else "2.6", data_page_version=chance.choice(["1.0", "2.0"]),
        row_group_size=chance.choice([1, 3, 1000]),
    )  # fmt: skip
    return into.getvalue()


def _is_fine(table: Any) -> bool:
    """Whether older versions of Parquet would change its values."""
    return any(
        pa.types.is_timestamp(kind) or pa.types.is_unsigned_integer(kind) or kind.num_fields
        for kind in table.schema.types
    )


def _cast(chance: random.Random, table: Any, renaming: dict[str, str] | None, options: dict[str, Any]) -> Expected:
    """A schema of other types: each value is the same, or the cast is an error."""
    wanted = [chance.choice(list(CASTS)) for _ in table.columns]
    declared = {
        (renaming or {}).get(name, name): (
            kind if isinstance(kind := CASTS[cast][0], type) else Annotated[object, kind]
        )
        for name, cast in zip(table.schema.names, wanted, strict=True)
    }
    options["schema"] = {
        name: kind | None if isinstance(kind, type) else _optional(kind) for name, kind in declared.items()
    }
    before = _rows(table)

    def check(rows: list[tuple[Any, ...]], schema: Any) -> str | None:
        if len(rows) != len(before):
            return f"{len(rows)} rows of {len(before)}"
        for old, new in zip(before, rows, strict=True):
            for one, other, cast in zip(old, new, wanted, strict=True):
                if not is_same(one, other, cast):
                    return f"{other!r} for {one!r} as {cast}"
        return None

    return Expected(None, may_fail=True, check=check)


def _optional(kind: Any) -> Any:
    from typing import Optional

    return Optional[kind]  # noqa: UP045  (Annotated | None)


def is_same(one: Any, other: Any, cast: str) -> bool:
    """Whether a value is the same after a cast, as far as its type can hold it."""
    if one is None or other is None:
        return one is None and other is None
    if isinstance(other, str) or isinstance(one, str):
        return _is_same_text(one, other)
    if isinstance(one, dt.date | dt.time | dt.timedelta) and isinstance(other, int):
        return True  # so many units of the column's type
    if isinstance(one, dt.datetime) and isinstance(other, dt.datetime):
        return (one.tzinfo is None) == (other.tzinfo is None) and one == other
    if isinstance(one, dt.datetime) and isinstance(other, dt.date):
        return one.replace(tzinfo=None) == dt.datetime.combine(other, dt.time())
    if isinstance(other, dt.datetime) and isinstance(one, dt.date):
        return dt.datetime.combine(one, dt.time()) == other.replace(tzinfo=None)
    if isinstance(one, float) and one != one:
        return isinstance(other, float) and other != other
    numbers = (int, float, Decimal)
    if isinstance(one, numbers) and isinstance(other, numbers):
        if cast == "float32":
            return bool(np.float32(one) == other)
        if isinstance(one, Decimal) and isinstance(other, float):
            return float(one) == other
        if isinstance(one, float) and isinstance(other, Decimal):
            return abs(Decimal(one) - other) <= decimal.Decimal("1e-18")
        return bool(one == other)
    return bool(one == other) and type(one) is type(other)


def _is_same_text(one: Any, other: Any) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        return one == other
    text, value = (one, other) if isinstance(one, str) else (other, one)
    if isinstance(value, bool):
        return text.lower() in (("true", "1") if value else ("false", "0"))
    if isinstance(value, int | float):
        number = float(text)
        return (
            number == float(value)
            or number != number
            or (isinstance(value, float) and np.float32(number) == np.float32(value))
        )
    if isinstance(value, Decimal):
        return Decimal(text) == value
    if isinstance(value, bytes):
        return text.encode() == value
    if isinstance(value, dt.datetime):
        return dt.datetime.fromisoformat(text) == value
    if isinstance(value, dt.date | dt.time):
        return type(value).fromisoformat(text) == value
    return True  # another spelling of something else
