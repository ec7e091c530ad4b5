"""Converts exported state to tables: the bytes that native tables export (state_bytes.hpp), by key, and as columns.

Reading trusts nothing: malformed bytes are a StateError. Python values are unpickled only if the caller says that the
bytes are trusted.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, is_dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from rayelastic import _native
from rayelastic.errors import DamagedError, ErrorCode, StateError
from rayelastic.graph.records.forms import plain_form
from rayelastic.graph.records.schema import laid_out
from rayelastic.runtime.operators.native_schema import native_schema
from rayelastic.runtime.saved.columns import Cell, column_of, turned, values_of
from rayelastic.runtime.saved.shapes import Shape, StateKindOf

if TYPE_CHECKING:
    import pyarrow as pa

    from rayelastic.graph.records.data_type import Column
    from rayelastic.graph.records.schema import Schema

__all__ = [
    "HEADER",
    "Entry",
    "Reader",
    "entries",
    "exported_record",
    "given_by",
    "kept_objects",
    "keys_in",
    "object_table",
    "opened",
    "pairs_of",
    "record_bytes",
    "record_cells",
    "shown_key",
    "table_of",
]

HEADER = struct.Struct("<8sQQQ")  # magic, layout, keys, bytes that follow
_KEY = struct.Struct("<IB")  # bytes, 1 if null
_LENGTH = struct.Struct("<I")
_LONG = struct.Struct("<Q")
_TOUCH_BYTES = 8  # the time of a key's last touch, if it has a time to live
_INLINE = 12  # bytes of an inline text
_EVERYTHING = ((0, (1 << 64) - 1),)


class Entry(NamedTuple):
    """A key in an export: its bytes, when it was touched, and its state."""

    key: bytes
    is_null: bool
    touch: bytes
    payload: bytes


class Reader:
    """Reads bytes one after the other."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        """Return the next bytes, so many; raise DamagedError if there are fewer."""
        end = self.at + size
        if end > len(self.data):
            raise DamagedError("exported state ends in the middle of a key", hint="Use an earlier snapshot")
        taken, self.at = self.data[self.at : end], end
        return taken

    def number(self) -> int:
        """Return the next number of 4 bytes."""
        return self.numbers(_LENGTH)[0]

    def numbers(self, of: struct.Struct) -> tuple[int, ...]:
        """Return the next numbers, of such sizes."""
        return of.unpack(self.take(of.size))


def opened(chunk: bytes, magic: bytes) -> tuple[Reader, int]:
    """Return a reader after the header of an export, and its number of keys.

    Args:
        chunk: The export.
        magic: Its magic.

    Raises:
        StateError: It isn't such an export, or is incomplete.
    """
    reader = Reader(chunk)
    magic_found, _, keys, size = HEADER.unpack(reader.take(HEADER.size))
    if magic_found != magic or size != len(chunk) - HEADER.size:
        raise DamagedError("these bytes aren't exported state of this kind", hint="Use an earlier snapshot")
    return reader, int(keys)


def keys_in(chunk: bytes) -> int:
    """Return the number of keys of an export, from its header."""
    return int(HEADER.unpack_from(chunk)[2])


def entries(chunk: bytes, shape: Shape) -> Iterator[Entry]:
    """Yield the keys of an export of records or of Python values, one after the other.

    Raises:
        StateError: These bytes aren't such an export.
    """
    reader, keys = opened(chunk, b"RELKEYS1" if shape.kind is StateKindOf.RECORD else b"RELPICK1")
    schema = shape.value_schema if shape.kind is StateKindOf.RECORD else None
    for _ in range(keys):
        length, null = _KEY.unpack(reader.take(_KEY.size))
        key = reader.take(length)
        touch = reader.take(_TOUCH_BYTES if shape.ttl[0] else 0)
        payload = reader.take(reader.number()) if schema is None else exported_record(reader, schema)
        yield Entry(key, bool(null), touch, payload)


def exported_record(reader: Reader, schema: Schema) -> bytes:
    """Return the bytes of a record, with its long texts, for `record_cells`."""
    record = reader.take(schema.record_size)
    lengths = (_LENGTH.unpack_from(record, field.offset)[0] for field in schema.fields if field.type.is_variable)
    return record + b"".join(reader.take(length) for length in lengths if length > _INLINE)


def record_cells(payload: bytes, schema: Schema) -> list[Cell]:
    """Return the values of an exported record, field by field."""
    cells: list[Cell] = []
    behind = schema.record_size
    for field in schema.fields:
        cell = payload[field.offset : field.offset + field.type.size]
        if field.type.is_variable:
            (length,) = _LENGTH.unpack_from(cell)
            if length > _INLINE:
                cell, behind = payload[behind : behind + length], behind + length
            else:
                cell = cell[_LENGTH.size : _LENGTH.size + length]
        bit = field.validity
        valid = bit < 0 or payload[schema.validity_offset + bit // 8] >> (bit % 8) & 1
        cells.append(cell if valid else None)
    return cells


def record_bytes(cells: Sequence[Cell], schema: Schema) -> bytes:
    """Return an exported record of such values: the inverse of `record_cells`."""
    record, behind = bytearray(schema.record_size), bytearray()
    for field, cell in zip(schema.fields, cells, strict=True):
        if cell is None:
            continue
        if field.validity >= 0:
            record[schema.validity_offset + field.validity // 8] |= 1 << (field.validity % 8)
        if field.type.is_variable:
            _LENGTH.pack_into(record, field.offset, len(cell))
            start = field.offset + _LENGTH.size
            shown = cell if len(cell) <= _INLINE else cell[:4]
            record[start : start + len(shown)] = shown
            behind += b"" if len(cell) <= _INLINE else cell
        else:
            record[field.offset : field.offset + field.type.size] = cell
    return bytes(record + behind)


# --- keys -----------------------------------------------------------------------------------------------------------


def _key_cells(entry: Entry, keys: Sequence[Column]) -> list[Cell]:
    if len(keys) == 1:
        return [None if entry.is_null else entry.key]
    reader, cells = Reader(entry.key), []
    for _, text, _ in keys:
        kind, valid = plain_form(text).kind, reader.take(1) == b"\1"
        cells.append(None if not valid else reader.take(reader.number() if kind.is_variable else kind.size))
    return cells


def shown_key(key: bytes, keys: Sequence[Column], *, null: bool) -> str:
    """Return a key as one would write it in Python; of several fields a tuple.

    Args:
        key: Its bytes in native tables.
        keys: The key fields.
        null: Whether it is the key of one field that is null.

    >>> shown_key(b"home", [("page", "u", False)], null=False)
    "'home'"
    """
    cells = _key_cells(Entry(key, null, b"", b""), keys)
    columns = [values_of(column_of([cell], text), text) for cell, (_, text, _) in zip(cells, keys, strict=True)]
    values = tuple(value for (value,) in columns)
    return repr(values[0] if len(values) == 1 else values)


# --- tables -----------------------------------------------------------------------------------------------------------


def table_of(chunks: Iterable[bytes], shape: Shape, *, trusted: bool) -> pa.Table:
    """Return the keys of exports and their state, a row each.

    Args:
        chunks: The exports.
        shape: The layout of the state.
        trusted: Whether Python values in them may be unpickled.

    Raises:
        StateError: A chunk is damaged, holds Python values of an unknown class, or isn't trusted.
    """
    if shape.kind in (StateKindOf.AGGREGATE, StateKindOf.WINDOW):
        return _results(chunks, shape)
    import pyarrow as pa

    found = [entry for chunk in chunks for entry in entries(chunk, shape)]
    keys = [_key_cells(entry, shape.keys) for entry in found]
    columns = [
        column_of(cells, text) for cells, (_, text, _) in zip(turned(keys, len(shape.keys)), shape.keys, strict=True)
    ]
    names = [name for name, _, _ in shape.keys]
    if shape.kind is StateKindOf.RECORD:
        schema = shape.value_schema
        values = turned([record_cells(entry.payload, schema) for entry in found], len(shape.values))
        columns += [column_of(cells, text) for cells, (_, text, _) in zip(values, shape.values, strict=True)]
        return pa.table(columns, [*names, *(name if name not in names else f"state_{name}" for name in schema.names)])
    if found:
        _check_trusted(trusted)
    objects = [_unpickled(entry.payload) for entry in found]
    if shape.kind is StateKindOf.TIMERS:
        timers = pa.array([sorted(kept.timers) for kept in objects], pa.list_(pa.int64()))
        title, values = _values([kept.state for kept in objects])
        return pa.table([*columns, values, timers], [*names, title, "timers"])
    title, values = _values(objects)
    return pa.table([*columns, values], [*names, title])


def kept_objects(chunks: Iterable[bytes], *, trusted: bool) -> list[Any]:
    """Return the state of a class's objects, as Python values; see `table_of`."""
    kept = [reader.take(reader.numbers(_LONG)[0]) for reader, _ in (opened(chunk, b"RELWHOL1") for chunk in chunks)]
    if kept:
        _check_trusted(trusted)
    return [_unpickled(pickled) for pickled in kept]


def object_table(chunks: Iterable[bytes], *, trusted: bool) -> pa.Table:
    """Return the same, a row each: a column `value`, or `value_as_text`."""
    import pyarrow as pa

    title, values = _values(kept_objects(chunks, trusted=trusted))
    return pa.table([values], [title])


def _check_trusted(trusted: bool) -> None:
    if not trusted:
        raise StateError(
            "it holds pickled Python values, which are read from signed snapshots only",
            hint="Pass the key with which it was written, as rel.Snapshot(folder, key=...)",
            code=ErrorCode.UNSIGNED_VALUES,
        )


def _unpickled(data: bytes) -> Any:
    try:
        return pickle.loads(data)  # noqa: S301  (signed, or of our own job: the caller says so)
    except Exception as error:  # an unknown or changed class may raise anything
        raise StateError(
            f"a value of it can't be loaded here: {type(error).__name__}: {error}",
            hint="Make the classes of its state importable here",
            code=ErrorCode.MISSING_MODULE,
        ) from None


def _values(objects: Sequence[Any]) -> tuple[str, pa.Array]:
    """Return a column of Python values; it has another name if they are shown as Python writes them."""
    import pyarrow as pa

    try:
        return "value", pa.array([_plain(value) for value in objects])
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return "value_as_text", pa.array([repr(value) for value in objects], pa.string())


def _plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return value._asdict()
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def _results(chunks: Iterable[bytes], shape: Shape) -> pa.Table:
    """Return what aggregates, or open windows, would emit now, by the very operator that keeps them."""
    takes, gives = laid_out("Takes", shape.takes), laid_out("Gives", shape.values)
    keys, made = [name for name, _, _ in shape.keys], list(shape.aggregates)
    if shape.window is None:
        final = _native.Operator.aggregate("state", native_schema(takes), native_schema(gives), keys, made)
    else:
        window = shape.window._replace(rest=not shape.ttl[0])  # also incomplete windows by count
        final = _native.Operator.window(
            "state", native_schema(takes), native_schema(gives), keys, *window[:7], window.times, made,
            ttl=shape.ttl,
        )  # fmt: skip
    state = final.state
    assert state is not None
    try:
        for chunk in (
            chunks if not shape.ttl[0] or shape.window is not None else _without_touches(chunks, shape, state.layout)
        ):
            state.import_(chunk)
    except _native.StateError as error:
        raise DamagedError(f"{error}", hint="Use an earlier snapshot") from None
    feeder = _native.ArrowFeeder(native_schema(takes))
    feeder.finish()
    return given_by([_native.Operator.arrow_source("nothing", native_schema(takes), feeder), final], gives)


def given_by(operators: Sequence[_native.Operator], schema: Schema) -> pa.Table:
    """Return the output of a chain of operators, of which the first is a source.

    Args:
        operators: Native operators.
        schema: The schema of the last one's output.

    Raises:
        StateError: One has failed.
    """
    import pyarrow as pa

    batches: list[pa.RecordBatch] = []
    scheduler = _native.Scheduler()
    sink = _native.Operator.arrow_sink("results", native_schema(schema), batches.append)
    for one, other in pairwise([scheduler.add(operator) for operator in (*operators, sink)]):
        scheduler.connect(one, other)
    scheduler.start(1)
    scheduler.wait()
    failure = scheduler.failure()
    scheduler.stop()
    if failure is not None:
        raise DamagedError(f"its content is invalid: {failure.message}", hint="Use an earlier snapshot")
    return pa.Table.from_batches(batches, schema.to_arrow())


def _without_touches(chunks: Iterable[bytes], shape: Shape, layout: int) -> Iterator[bytes]:
    """Yield exports of aggregates with a time to live as those of aggregates without, one for each key."""
    takes, gives = native_schema(laid_out("Takes", shape.takes)), native_schema(laid_out("Gives", shape.values))
    keys, made = [name for name, _, _ in shape.keys], list(shape.aggregates)
    mortal = _native.Operator.aggregate("state", takes, gives, keys, made, shape.emit, shape.ttl).state
    assert mortal is not None
    for chunk in chunks:
        mortal.import_(chunk)
    selected, at = mortal.select(_EVERYTHING), 0
    while mortal.size:
        one, at = mortal.export_chunk(selected, at, 1)
        magic, _, count, size = HEADER.unpack_from(one)
        if count:
            (length, _) = _KEY.unpack_from(one, HEADER.size)
            end = HEADER.size + _KEY.size + length
            header = HEADER.pack(magic, layout, count, size - _TOUCH_BYTES)
            yield header + one[HEADER.size : end] + one[end + _TOUCH_BYTES :]
        if at == 0:
            return


def pairs_of(chunks: Sequence[bytes], shape: Shape) -> Iterator[tuple[Any, Any]]:
    """Yield each key with its state, as Python values; the exports are of our own job.

    A key of one field is its value, another one a tuple. The state of records and aggregates is a tuple with the names
    of their fields, that of operators with timers the user's own state.
    """
    keys = [name for name, _, _ in shape.keys]
    if shape.kind in (StateKindOf.VALUE, StateKindOf.TIMERS):
        key_entries = [entry for chunk in chunks for entry in entries(chunk, shape)]
        cells = turned([_key_cells(entry, shape.keys) for entry in key_entries], len(keys))
        columns = [values_of(column_of(some, text), text) for some, (_, text, _) in zip(cells, shape.keys, strict=True)]
        objects = (_unpickled(entry.payload) for entry in key_entries)
        values = [one.state if shape.kind is StateKindOf.TIMERS else one for one in objects]
    else:
        table = table_of(chunks, shape, trusted=True)
        shown = [one for one in shape.values if shape.kind is StateKindOf.RECORD or one[0] not in keys]
        texts = [text for _, text, _ in (*shape.keys, *shown)]
        listed = [values_of(column, text) for column, text in zip(table.columns, texts, strict=True)]
        columns, schema = listed[: len(keys)], laid_out("State", shown)
        rows = zip(*listed[len(keys) :], strict=True)
        values = [schema.tuple_type(*row) for row in rows]
    for number, value in enumerate(values):
        key = tuple(column[number] for column in columns)
        yield (key[0] if len(key) == 1 else key), value
