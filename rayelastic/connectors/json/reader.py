"""Reads the objects of JSON files as Arrow batches of a source's schema, and finds the lines that aren't of it.

pyarrow parses and converts blocks of whole lines. As it crashes on deep nesting, and on a `null` in place of an object,
a native scan checks the blocks first. If the scan or pyarrow rejects something, or a value could have changed, the
lines of the block are converted one by one.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from rayelastic import _native
from rayelastic.connectors.files.bad_rows import BadRow, PutAside
from rayelastic.connectors.files.casts import cast_column, has_digits
from rayelastic.connectors.files.locations import shown_location
from rayelastic.connectors.json.inference import JsonSource
from rayelastic.connectors.json.lines import DEEPEST, BadLineError, Blocks, object_of
from rayelastic.connectors.json.values import Lines, read_type
from rayelastic.graph.records.conversion import with_nullable_parts
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.forms import Form, members_of, plain_form

if TYPE_CHECKING:
    import pyarrow as pa

THREADS = min(2, os.cpu_count() or 1)  # that parse blocks of a file: later stages are slower than two of them
AHEAD = THREADS + 1  # blocks that are parsed ahead


def json_batches(path: str, body: JsonSource, put_aside: PutAside) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file.

    Args:
        path: The file.
        body: The source.
        put_aside: Called with each line that isn't of the schema.

    Raises:
        SourceError: The file can't be read further.
    """
    reader, lines, shown = _Reader(body), Lines(body), shown_location(path)
    waiting: deque[tuple[int, bytes, Future[pa.RecordBatch | None]]] = deque()

    def finished() -> Iterator[pa.RecordBatch]:
        first, block, parsed = waiting.popleft()
        batch = parsed.result()
        if batch is None:
            batch = _one_by_one(first, block, lines, shown, put_aside)
        if batch.num_rows:
            yield batch

    with contextlib.closing(Blocks(path, body.encoding)) as blocks, ThreadPoolExecutor(THREADS) as pool:
        for first, block in blocks:
            waiting.append((first, block, pool.submit(reader.parsed, block)))
            if len(waiting) > AHEAD:
                yield from finished()
        while waiting:
            yield from finished()


def _one_by_one(first: int, block: bytes, lines: Lines, shown: str, put_aside: PutAside) -> pa.RecordBatch:
    """Return the rows of a block whose lines are converted one by one."""
    rows = []
    for number, line in enumerate(block.split(b"\n"), first):
        if not line.strip(b" \t\r"):
            continue
        try:
            rows.append(lines.row(object_of(line)))
        except BadLineError as error:
            put_aside(BadRow(shown, number, line.decode(errors="replace").strip("\r"), str(error)))
    return lines.batch(rows)


class _Reader:
    """Parses blocks by pyarrow.

    Args:
        body: the source.
    """

    def __init__(self, body: JsonSource) -> None:
        import pyarrow as pa

        target = body.schema.to_arrow()
        self._forms = [(plain_form(field.format), field.nullable) for field in body.schema.fields]
        named = zip(body.columns, target, strict=True)
        self._read = pa.schema([pa.field(c, with_nullable_parts(f.type, read_type), f.nullable) for c, f in named])
        self._wanted = pa.schema([field.with_type(with_nullable_parts(field.type)) for field in target])
        self._is_plain = not any(map(_is_by_line, (form for form, _ in self._forms)))
        inferred = [
            (c, form)
            for c, f, (form, _) in zip(body.columns, body.schema.fields, self._forms, strict=True)
            if f.name in body.inferred
        ]
        nested = any(form.parts for _, form in inferred)
        self._unexpected = "error" if body.is_whole else "infer" if nested else "ignore"
        floats = [name for column, form in inferred for name in _float_names(column, form)]
        self._floats = "\n".join(floats)
        self._has_floats = bool(floats)

    def parsed(self, block: bytes) -> pa.RecordBatch | None:
        """Return the rows of a block; None if its lines have to be converted one by one."""
        if not self._is_plain or not _native.are_json_objects(block, DEEPEST):
            return None
        if self._has_floats and _native.has_long_whole_number(block, self._floats):
            return None
        return self._batch(block)

    def _batch(self, block: bytes) -> pa.RecordBatch | None:
        import pyarrow as pa
        from pyarrow import json

        try:
            table = json.read_json(
                pa.BufferReader(block),
                json.ReadOptions(use_threads=False, block_size=len(block) + 1),
                json.ParseOptions(self._read, unexpected_field_behavior=self._unexpected),
            )
            columns = []
            for read, kind, (form, optional) in zip(self._read, self._wanted.types, self._forms, strict=True):
                column = _single(table.column(read.name))
                if column.type != read.type or not _fits(column, form, optional):
                    return None
                columns.append(cast_column(column, kind))
            return pa.RecordBatch.from_arrays(columns, schema=self._wanted)
        except (pa.ArrowException, ValueError, KeyError):
            return None


def _single(column: Any) -> Any:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _is_by_line(form: Form) -> bool:
    """Return whether pyarrow's reader lacks such values, or reads them differently."""
    by_line = (DataType.JSON, DataType.MAP, DataType.BINARY)
    return form.kind in by_line or any(_is_by_line(part) for _, part, _ in form.parts)


def _float_names(name: str, form: Form) -> Iterator[str]:
    """Yield the names before floats; '' for items of a list."""
    if form.kind is DataType.FLOAT64:
        yield name
    for part, inner, _ in form.parts:
        yield from _float_names("" if form.kind is DataType.LIST else part, inner)


def _fits(column: Any, form: Form, optional: bool) -> bool:
    """Check what pyarrow doesn't: members, digits of decimals, floats, nulls."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count and not optional:
        return False
    if form.kind.is_float:
        return not pc.any(pc.is_inf(column)).as_py()
    if form.kind is DataType.DECIMAL:
        return has_digits(column)
    if form.kind is DataType.ENUM:
        return bool(pc.all(pc.is_in(column.drop_null(), pa.array(members_of(form), column.type))).as_py() is not False)
    if form.kind is DataType.LIST:
        return _fits(column.flatten(), form.parts[0][1], form.parts[0][2])
    if form.kind is DataType.STRUCT:
        present = column.drop_null() if column.null_count else column
        parts = zip(present.flatten(), form.parts, strict=True)
        return all(_fits(part, inner, may_be_none) for part, (_, inner, may_be_none) in parts)
    return True
