"""Programs about files that others write, pandas, Polars, DuckDB and pyarrow, and about frames of pandas and Polars."""

# ruff: noqa: E501  (tables of values)

from __future__ import annotations

import datetime as dt
import functools
import io
import math
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Optional

import pyarrow as pa
import pyarrow.csv as pa_csv

from tests.oracle_io.program import Expected, Program, fields
from tests.oracle_io.table_programs import TYPES, is_same

PLAIN = (
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float64", "float32", "bool", "string", "large_string", "category",
    "date32", "timestamp_s", "timestamp_ms", "timestamp_us", "timestamp_ns", "timestamp_utc", "time64", "duration", "decimal", "short decimal", "uuid",
)  # fmt: skip
TREES = ("list", "list of texts", "struct", "deep")
ALL = (*PLAIN, *TREES, "binary")
INFERRED = 0.3  # of files of CSV and JSON


@dataclass(frozen=True)
class Writer:
    """How somebody writes a table.

    Args:
        reader: of what it makes; of 'arrow' that is a frame.
        write: makes the content of a file, or a frame.
        kinds: of columns that it may have; see `TYPES`.
        without: kinds that it doesn't write, or not as what they are.
        lost: values that it writes as nulls.
        floats: those that it keeps; none: all.
    """

    reader: str
    write: Callable[[Any, random.Random], Any]
    kinds: tuple[str, ...] = ALL
    without: tuple[str, ...] = ()
    lost: Callable[[Any], bool] = lambda value: False
    floats: tuple[float, ...] = ()


def _is_unfinite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _arrow_frame(table: Any) -> Any:
    """A frame of pandas with Arrow's types."""
    import pandas as pd

    return table.to_pandas(types_mapper=pd.ArrowDtype)


def _objects(table: Any) -> Any:
    """A frame of NumPy's types, in which whole numbers beside nulls stay whole."""
    import pandas as pd

    frame = table.to_pandas(integer_object_nulls=True)
    for name, column in zip(table.schema.names, table.columns, strict=True):
        if column.type == pa.uint64() and column.null_count:  # Arrow would take objects for int64
            frame[name] = column.to_pandas(types_mapper={pa.uint64(): pd.UInt64Dtype()}.get)
    return frame


def _pandas_csv(table: Any, chance: random.Random) -> bytes:
    text: str = _objects(table).to_csv(index=False, lineterminator=chance.choice(["\n", "\r\n"]))
    return text.encode()


def _pandas_json(table: Any, chance: random.Random) -> bytes:
    text: str = _objects(table).to_json(
        orient="records", lines=True, date_format="iso", date_unit="ns", double_precision=15
    )
    return text.encode()


def _by(frame: Callable[[Any], Any], method: str, **options: Any) -> Callable[[Any, random.Random], bytes]:
    """Writes a frame of a table into memory."""

    def content(table: Any, chance: random.Random) -> bytes:
        into = io.BytesIO()
        getattr(frame(table), method)(into, **options)
        return into.getvalue()

    return content


def _polars(table: Any) -> Any:
    import polars as pl

    return pl.from_arrow(table)


@functools.cache
def _connection() -> Any:
    import duckdb

    return duckdb.connect(config={"autoinstall_known_extensions": "false", "threads": "1"})


def _duckdb(form: str) -> Callable[[Any, random.Random], bytes]:
    def content(table: Any, chance: random.Random) -> bytes:
        connection = _connection()
        connection.register("given", table)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "out"
            connection.execute(f"copy given to '{path}' (format {form})")
            return path.read_bytes()

    return content


def _arrow_csv(table: Any, chance: random.Random) -> bytes:
    into = io.BytesIO()
    style = chance.choice(["needed", "all_valid"])
    pa_csv.write_csv(table, into, pa_csv.WriteOptions(quoting_style=style, batch_size=chance.choice([1, 1024])))
    return into.getvalue()


WRITERS = {
    "pandas csv": Writer("csv", _pandas_csv, PLAIN, lost=lambda value: value == "" or _is_nan(value)),
    "pandas json": Writer("json", _pandas_json, (*PLAIN, *TREES), ("date32", "uuid", "float32"), floats=(1.5, 7.0, 0.25)),
    "pandas parquet": Writer("parquet", _by(_objects, "to_parquet", index=False), lost=_is_nan),
    "pandas parquet, Arrow": Writer("parquet", _by(_arrow_frame, "to_parquet", index=False)),
    "pandas": Writer("arrow", lambda table, _: _objects(table), lost=_is_nan),
    "pandas, Arrow": Writer("arrow", lambda table, _: _arrow_frame(table)),
    "polars csv": Writer("csv", _by(_polars, "write_csv"), PLAIN, ("duration", "uuid")),
    "polars json": Writer("json", _by(_polars, "write_ndjson"), (*PLAIN, *TREES), ("uuid",), _is_unfinite),
    "polars parquet": Writer("parquet", _by(_polars, "write_parquet"), without=("uuid",)),
    "polars": Writer("arrow", lambda table, _: _polars(table), without=("uuid",)),
    "duckdb csv": Writer("csv", _duckdb("csv"), PLAIN),
    "duckdb json": Writer("json", _duckdb("json"), (*PLAIN, *TREES)),
    "duckdb parquet": Writer("parquet", _duckdb("parquet"), without=("duration",)),
    "pyarrow csv": Writer("csv", _arrow_csv, PLAIN, ("duration", "uuid")),
}  # fmt: skip


def writer_program(chance: random.Random) -> Program:
    """Makes a program."""
    name = chance.choice(list(WRITERS))
    writer = WRITERS[name]
    names, renaming = fields(chance, chance.randint(2 if writer.reader == "csv" else 1, 5))  # no blank lines
    if name.startswith(("duckdb", "polars")):  # know no difference between A and a, or no empty name
        names, renaming = (
            [f"{at} {one}" for at, one in enumerate(names)],
            {f"{at} {one}": f"f{at}" for at, one in enumerate(names)},
        )
    kinds = [chance.choice([kind for kind in writer.kinds if kind not in writer.without]) for _ in names]
    count = chance.randint(1, 10)
    columns = [pa.array([_drawn(chance, writer, kind) for _ in range(count)], TYPES[kind][0]) for kind in kinds]
    table = pa.Table.from_arrays(columns, names=names)
    rows = [
        tuple(None if writer.lost(value) else value for value in row)
        for row in zip(*(column.to_pylist() for column in table.columns), strict=True)
    ]
    made = writer.write(table, chance)
    options: dict[str, Any] = {"columns": renaming} if renaming else {}
    if writer.reader in ("arrow", "parquet"):
        files = [] if writer.reader == "arrow" else [made]
        return Program(writer.reader, files, options, Expected(rows), table=made)
    if chance.random() < INFERRED:
        return Program(writer.reader, [made], options, Expected(None, may_fail=True, check=_like(rows)))
    options["types"] = {
        (renaming or {}).get(name, name): Optional[Annotated[object, _declared(kind)]]  # noqa: UP045
        for name, kind in zip(names, kinds, strict=True)
    }
    return Program(writer.reader, [made], options, Expected(rows))


def _declared(kind: str) -> Any:
    return pa.string() if kind == "category" else TYPES[kind][0]


def _drawn(chance: random.Random, writer: Writer, kind: str) -> Any:
    if chance.random() < 0.15:
        return None
    return chance.choice(writer.floats if writer.floats and kind == "float64" else TYPES[kind][1])


def _like(wanted: list[tuple[Any, ...]]) -> Callable[[list[tuple[Any, ...]], Any], str | None]:
    """What is inferred may be of another type, but not of another value."""

    def check(rows: list[tuple[Any, ...]], schema: Any) -> str | None:
        if len(rows) != len(wanted):
            return f"{len(rows)} rows of {len(wanted)}"
        for row, want in zip(rows, wanted, strict=True):
            for one, other in zip(want, row, strict=True):
                is_empty = one == "" and other is None  # a quoted empty text in a column of numbers
                if not isinstance(one, dt.timedelta) and not is_empty and not is_same(one, other, "float"):
                    return f"{other!r} for {one!r}"
        return None

    return check
