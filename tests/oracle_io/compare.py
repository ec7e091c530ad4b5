"""What a program gives, and how that differs from what it has to."""

# ruff: noqa: E501  (tables of values, and times without a zone)

from __future__ import annotations

import json
import tempfile
import uuid
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa

import rayelastic as rel
from rayelastic.connectors.arrow.declaration import ArrowSource
from rayelastic.connectors.csv import inference as csv_files
from rayelastic.connectors.csv import reader as csv_batches
from rayelastic.connectors.files.bad_rows import LeftOut
from rayelastic.connectors.json import lines as json_text
from rayelastic.connectors.parquet import reader as parquet_files
from rayelastic.connectors.row_files import BadRows
from rayelastic.connectors.row_reader import BadRowReader, RowReader
from rayelastic.errors import RayelasticError
from rayelastic.graph.records.data_type import DataType
from tests.oracle_io.program import Program
from tests.oracle_io.values import Side

ROWS = 1000


@dataclass(frozen=True)
class Difference:
    """What is wrong with what came of a program.

    Args:
        kind: 'value', 'error', 'untyped', 'row', 'counted', 'engine' or 'round trip'.
        text: in words.
    """

    kind: str
    text: str


def differences(program: Program, *, engine: bool, block: int | None = None) -> list[Difference]:
    """Runs a program.

    Args:
        program: it.
        engine: whether a job reads and writes as well.
        block: bytes of the first block, of which types are inferred; None: as users have it.
    """
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        if block is not None:
            stack.enter_context(mock.patch.object(json_text, "BLOCK_BYTES", block))
            stack.enter_context(mock.patch.object(json_text, "SAMPLE_BYTES", block))
            stack.enter_context(mock.patch.object(csv_files, "SAMPLE_BYTES", 2000))
            stack.enter_context(mock.patch.object(csv_batches, "BLOCK_BYTES", 2000))
        return _Run(program, Path(folder), may_fail=block is not None).run(engine=engine)


class _Run:
    def __init__(self, program: Program, folder: Path, *, may_fail: bool) -> None:
        self.program, self.folder, self.expected = program, folder, program.expected
        self.may_fail = program.expected.may_fail or (may_fail and program.expected.rows is None)

    def source(self) -> Any:
        read = getattr(rel, self.program.reader)
        if self.program.reader == "arrow":
            return read(self.program.table, **self.program.options)
        return read(self.program.written(self.folder), **self.program.options)

    def run(self, *, engine: bool) -> list[Difference]:
        try:
            source = self.source()
            body = source.as_source("rows") if hasattr(source, "as_source") else source
        except RayelasticError as error:
            return [] if self.may_fail or self.is_first_bad(error) else [Difference("error", str(error))]
        except Exception as error:
            return [Difference("untyped", f"{type(error).__name__}: {error}")]
        if self.program.reader == "text":
            return self.by_engine(source, body, None)
        return self.compared(source, body, engine=engine)

    def is_first_bad(self, error: Exception) -> bool:
        """Whether a typed error names the first bad row, and may be raised."""
        if not self.expected.bad or self.program.options.get("on_bad_row") != "fail":
            return False
        return any(f"row {number:,}:" in str(error) for _, number in self.expected.bad)  # CSV counts fields first

    def compared(self, source: Any, body: Any, *, engine: bool) -> list[Difference]:
        left_out = LeftOut()
        try:
            table = _table(body, left_out)
        except RayelasticError as error:
            return [] if self.may_fail or self.is_first_bad(error) else [Difference("row", str(error))]
        except Exception as error:
            return [Difference("untyped", f"{type(error).__name__}: {error}")]
        try:
            rows = shown_rows(table, body.schema)
        except OverflowError:  # a time that Python doesn't have
            return []
        if self.expected.bad and self.program.options.get("on_bad_row") == "fail":
            return [Difference("row", f"rows {self.expected.bad} aren't of the schema, and nothing was said")]
        if (problem := self.wrong(rows, body.schema)) is not None:
            return [Difference("value", problem)]
        found = self.counted(body, left_out)
        return found or (self.by_engine(source, body, table) if engine else [])

    def wrong(self, rows: list[tuple[Any, ...]], schema: Any) -> str | None:
        if self.expected.rows is None:
            return self.expected.check(rows, schema)
        wanted = [tuple(map(plain, row)) for row in self.expected.rows]
        if len(rows) != len(wanted):
            return f"{len(rows)} rows, not {len(wanted)}"
        for row, want in zip(rows, wanted, strict=True):
            if not all(map(same, row, want)):
                return f"{row!r}, not {want!r}"
        return None

    def counted(self, body: Any, left_out: LeftOut) -> list[Difference]:
        wanted = [number for _, number in self.expected.bad]
        match self.program.options.get("on_bad_row"):
            case "skip" if left_out.count != len(wanted):
                return [Difference("counted", f"{left_out.count} rows left out, not {len(wanted)}: {left_out.first}")]
            case "divert":
                numbers = [
                    n
                    for batch in BadRowReader(BadRows(body, "rows")).batches()
                    for n in batch.column("row").to_pylist()
                ]
                if sorted(numbers) != wanted:
                    return [Difference("counted", f"rows {numbers} diverted, not {wanted}")]
        return []

    # --- a job ----------------------------------------------------------------------------------------------------------

    def by_engine(self, source: Any, body: Any, table: Any) -> list[Difference]:
        """What a job gives, and what is read of the files that it writes."""
        topology = rel.Topology("oracle")
        stream = topology.source(source, name="rows")
        if self.program.options.get("on_bad_row") == "divert":
            stream.errors.sink(rel.count(), name="bad")
        stream.sink(rel.arrow(), name="table")
        stream.sink(rel.list(), name="tuples")
        kinds = {kind for field in body.schema.fields for kind in kinds_of(field.format)}
        trips = (
            {"parquet": set[DataType](), "json": _NO_JSON, "csv": _NO_CSV}
            if self.program.round_trip and table is not None
            else {}
        )
        trips = {name: without for name, without in trips.items() if not kinds & without}
        for name in trips:
            stream.sink(getattr(rel, name)(str(self.folder / f"out.{name}")), name=name)
        try:
            result = rel.run(topology)
        except RayelasticError as error:
            return [Difference("engine", str(error))]
        made = result["table"]
        rows = shown_rows(made, body.schema)
        if table is None and (problem := self.wrong(rows, body.schema)) is not None:
            return [Difference("value", problem)]
        if table is not None and not all(map(same, rows, shown_rows(table, body.schema))):
            return [Difference("engine", f"{rows}, not {shown_rows(table, body.schema)}")]
        if len(result["tuples"]) != len(rows):
            return [Difference("engine", f"{len(result['tuples'])} tuples of {len(rows)} rows")]
        return [found for name in trips if (found := self.trip(name, body, rows)) is not None]

    def trip(self, name: str, body: Any, rows: list[tuple[Any, ...]]) -> Difference | None:
        path = str(self.folder / f"out.{name}")
        try:
            back = getattr(rel, name)(path, body.schema).as_source("back")
            table = _table(back, LeftOut())
        except RayelasticError as error:
            return Difference("round trip", f"{name}: {error}")
        read = shown_rows(table, body.schema)
        if name == "csv":  # has no other null than an empty field
            texts = [field.type is DataType.STRING for field in body.schema.fields]
            rows, read = (
                [tuple(v or None if t else v for v, t in zip(r, texts, strict=True)) for r in one]
                for one in (rows, read)
            )
        if len(read) != len(rows) or not all(map(same, read, rows)):
            return Difference("round trip", f"{name}: {read}, not {rows}")
        return None


_NO_JSON: set[DataType] = set()
_NO_CSV = {
    DataType.LIST,
    DataType.STRUCT,
    DataType.MAP,
    DataType.BINARY,
    DataType.FLOAT16,
    DataType.JSON,
}


def _table(body: Any, left_out: LeftOut) -> Any:
    read = [one for one in batches(body, left_out) if not isinstance(one, int)]  # between files their numbers
    return pa.Table.from_batches(read, read[0].schema if read else body.schema.to_arrow())


def kinds_of(text: str) -> set[DataType]:
    from rayelastic.graph.records.forms import plain_form

    form = plain_form(text)
    return {form.kind}.union(*(kinds_of(part) for _, part, _ in form.parts))


def batches(body: Any, left_out: LeftOut) -> Any:
    """The batches of a source, without a job."""
    if isinstance(body, ArrowSource):
        return body.table.to_batches()
    if hasattr(body, "constants"):
        with mock.patch.object(parquet_files, "BATCH_ROWS", ROWS):
            return [one for one in parquet_files.ParquetReader(body).batches() if not isinstance(one, int)]
    reader = RowReader(body)
    reader.left_out = left_out
    return [one for one in reader.batches() if not isinstance(one, int)]


def shown_rows(table: Any, schema: Any) -> list[tuple[Any, ...]]:
    """The rows of a table in Python, what is JSON as its values."""
    from rayelastic.graph.records.forms import plain_form

    columns = [
        [of_json(value, plain_form(field.format)) for value in column.to_pylist()]
        for field, column in zip(schema.fields, table.columns, strict=True)
    ]
    return [tuple(map(plain, row)) for row in zip(*columns, strict=True)]


def of_json(value: Any, form: Any) -> Any:
    if value is None:
        return None
    if form.kind is DataType.JSON:
        return json.loads(value)
    if form.kind is DataType.LIST:
        return [of_json(item, form.parts[0][1]) for item in value]
    if form.kind is DataType.MAP:
        return [(of_json(key, form.parts[0][1]), of_json(item, form.parts[1][1])) for key, item in value]
    if form.kind is DataType.STRUCT:
        return {name: of_json(value[name], part) for name, part, _ in form.parts}
    return value


def plain(value: Any) -> Any:
    """A value as both sides write it."""
    if isinstance(value, Side):
        return value.value
    return uuid.UUID(bytes=value) if isinstance(value, bytes) and False else value


def same(one: Any, other: Any) -> bool:
    """Whether two values are one, their types and signs, too."""
    if isinstance(one, float) and isinstance(other, float):
        return repr(one) == repr(other)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return set(one) == set(other) and all(same(one[name], other[name]) for name in one)
    return (
        type(one) is type(other)
        and bool(one == other)
        and getattr(one, "nanosecond", 0) == getattr(other, "nanosecond", 0)
    )
