"""Converts the tuples that joins, patterns, delays, merges, switches and gates keep to tables.

The layout of the exports is in `native_sched/src/operators/{time/{join,cross_join,pattern,time_merge},delay}.cpp` and
`native_sched/src/state/{timed_state.hpp,waiting_records.cpp,keyless/buffered_records.hpp}`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from rayelastic import _native
from rayelastic.compile import Flags
from rayelastic.errors import DamagedError
from rayelastic.graph.records.schema import laid_out
from rayelastic.runtime.operators.native_schema import native_schema
from rayelastic.runtime.saved.chunks import (
    Reader,
    exported_record,
    given_by,
    kept_objects,
    opened,
    record_cells,
)
from rayelastic.runtime.saved.columns import Cell, column_of, turned
from rayelastic.runtime.saved.shapes import CROSS

if TYPE_CHECKING:
    import pyarrow as pa

    from rayelastic.graph.records.schema import Schema
    from rayelastic.runtime.saved.shapes import Columns, Shape

__all__ = ["delay_table", "holding_table", "join_table", "merge_table", "pattern_table"]

LEFT, RIGHT = "left", "right"
SIDE = "side"
_REACHED = struct.calcsize("<qB")  # the watermark, and whether all keys are there
_NULL = 1  # whether a key is null
_TOUCHED = 8  # bytes of a time, or of an age
_MATCHED = 1  # whether a right tuple has had a match
_PORT = struct.Struct("<I")  # the input of a waiting tuple
_MARK = 8  # the bytes of a waiting tuple's mask: the steps of a pattern that it matches
_BEGUN = struct.Struct("<qI")  # of a sequence: its deadline, and the number of its tuples
_COUNT = struct.Struct("<Q")
_DELAYED = struct.Struct("<qQq")  # nanoseconds to go, tuples, and the value of a mark, where there are none
_MICROSECOND = 1000  # nanoseconds


def join_table(chunks: Iterable[bytes], shape: Shape) -> pa.Table:
    """Return the tuples that a join keeps, a row each: its side, and the fields of both sides, null on the other.

    Args:
        chunks: Exports of the join.
        shape: The layout of its state.

    Raises:
        StateError: A chunk is damaged.
    """
    import pyarrow as pa

    left, right = laid_out("Left", shape.takes), shape.value_schema
    nothing: dict[str, list[Cell]] = {LEFT: [None] * len(left.names), RIGHT: [None] * len(right.names)}
    sides, rows = [], []
    kept = _crossed(chunks, shape, left, right) if CROSS in shape.flags else _joined(chunks, shape, left, right)
    for side, cells in kept:
        sides.append(side)
        rows.append([*cells, *nothing[RIGHT]] if side == LEFT else [*nothing[LEFT], *cells])
    taken = {SIDE, *left.names}
    names = [SIDE, *left.names, *(name if name not in taken else f"right_{name}" for name in right.names)]
    return pa.table([pa.array(sides, pa.string()), *_columns(rows, (*shape.takes, *shape.values))], names)


def _joined(chunks: Iterable[bytes], shape: Shape, left: Schema, right: Schema) -> Iterator[tuple[str, list[Cell]]]:
    sides = [(RIGHT, right), *([(LEFT, left)] if "symmetric" in shape.flags else [])]
    for chunk in chunks:
        reader, keys = opened(chunk, b"RELTIME2")
        reader.take(_REACHED)
        for _ in range(keys):
            reader.take(_NULL + reader.number())
            for side, schema in sides:
                for _ in range(reader.number()):
                    yield side, record_cells(exported_record(reader, schema), schema)
                    reader.take(_MATCHED if "right" in shape.flags else 0)
            reader.take(_TOUCHED if shape.ttl[0] else 0)
        yield from ((LEFT, cells) for cells in _waiting(reader, left))


def _crossed(chunks: Iterable[bytes], shape: Shape, left: Schema, right: Schema) -> Iterator[tuple[str, list[Cell]]]:
    """Yield the tuples of joins that aren't by key: each chunk has all right tuples."""
    ticks, time, *_ = shape.ttl
    age = _TOUCHED if ticks and not time else 0
    known = False
    for chunk in chunks:
        reader, _ = opened(chunk, b"RELTIME2")
        reader.take(_REACHED)
        rights = []
        for _ in range(reader.number()):
            rights.append(record_cells(exported_record(reader, right), right))
            reader.take(age)
        if not known:
            yield from ((RIGHT, cells) for cells in rights)
        known = known or bool(rights)
        yield from ((LEFT, cells) for cells in _waiting(reader, left))


class Taken(NamedTuple):
    """A tuple of a pattern: its sequence, its step, and the deadline of the next one."""

    sequence: int | None
    step: str | None
    until: int | None
    cells: list[Cell]


def pattern_table(chunks: Iterable[bytes], shape: Shape) -> pa.Table:
    """Return the tuples that a pattern keeps, a row each.

    Args:
        chunks: Exports of the operator.
        shape: The layout of its state.

    Returns:
        A table with the columns `sequence` (number of the tuple's sequence), `step` (its step in it), `until` (deadline
        of the next step), and its fields. The first three are null if it waits for the watermark.

    Raises:
        StateError: A chunk is damaged.
    """
    import pyarrow as pa

    schema = shape.value_schema
    kept = list(_sequences(chunks, shape.flags, schema))
    about = [
        pa.array([tuple_kept.sequence for tuple_kept in kept], pa.int64()),
        pa.array([tuple_kept.step for tuple_kept in kept], pa.string()),
        pa.array([tuple_kept.until for tuple_kept in kept], pa.int64()),
    ]
    names = ["sequence", "step", "until"]
    columns = _columns([tuple_kept.cells for tuple_kept in kept], shape.values)
    return pa.table([*about, *columns], [*names, *_beside(names, schema.names)])


def _sequences(chunks: Iterable[bytes], steps: Sequence[str], schema: Schema) -> Iterator[Taken]:
    number = 0
    for chunk in chunks:
        reader, keys = opened(chunk, b"RELTIME2")
        reader.take(_REACHED)
        for _ in range(keys):
            reader.take(_NULL + reader.number())
            for _ in range(reader.number()):
                until, count = reader.numbers(_BEGUN)
                if count >= len(steps):
                    raise DamagedError("a pattern has more tuples than steps", hint="Use an earlier snapshot")
                for step in steps[:count]:
                    yield Taken(number, step, until, record_cells(exported_record(reader, schema), schema))
                number += 1
        yield from (Taken(None, None, None, cells) for cells in _waiting(reader, schema, _MARK))


def delay_table(chunks: Iterable[bytes], shape: Shape) -> pa.Table:
    """Return the tuples that a delay keeps, a row each: `due_in`, the rest of its delay, then its fields.

    Args:
        chunks: Exports of the operator.
        shape: The layout of its state.

    Raises:
        StateError: A chunk is damaged.
    """
    import pyarrow as pa

    schema = shape.value_schema
    due: list[int] = []
    rows: list[list[Cell]] = []
    for chunk in chunks:
        reader, _ = opened(chunk, b"RELWHOL1")
        items = [reader.numbers(_DELAYED) for _ in range(reader.numbers(_COUNT)[0])]
        due += [left // _MICROSECOND for left, tuples, _ in items for _ in range(tuples)]
        rows += [record_cells(exported_record(reader, schema), schema) for _ in range(reader.numbers(_COUNT)[0])]
    if len(due) != len(rows):
        raise DamagedError("a delay has a wrong number of tuples", hint="Use an earlier snapshot")
    names = ["due_in"]
    columns = [pa.array(due, pa.duration("us")), *_columns(rows, shape.values)]
    return pa.table(columns, [*names, *_beside(names, schema.names)])


def merge_table(chunks: Iterable[bytes], shape: Shape) -> pa.Table:
    """Return the tuples that wait in a merge, a row each, in the order of their times: `input`, then its fields.

    Args:
        chunks: Exports of the operator.
        shape: The layout of its state.

    Raises:
        StateError: A chunk is damaged.
    """
    import pyarrow as pa

    schema = shape.value_schema
    kept: list[tuple[int, list[Cell]]] = []
    for chunk in chunks:
        reader, _ = opened(chunk, b"RELTIME2")
        reader.take(_REACHED)
        kept += _waiting_at_ports(reader, schema)
    if any(port >= len(shape.flags) for port, _ in kept):
        raise DamagedError("a merge has a tuple of an unknown input", hint="Use an earlier snapshot")
    names = ["input"]
    ports = pa.array([shape.flags[port] for port, _ in kept], pa.string())
    return pa.table(
        [ports, *_columns([cells for _, cells in kept], shape.values)], [*names, *_beside(names, schema.names)]
    )


def holding_table(chunks: Iterable[bytes], shape: Shape, *, trusted: bool) -> pa.Table:
    """Return the state of a switch or gate as one row: `on` or `may_pass`, and `waiting`, the tuples in their order.

    Args:
        chunks: Exports of the operator.
        shape: The layout of its state.
        trusted: Whether pickled data in them may be loaded.

    Raises:
        StateError: A chunk is damaged, or isn't trusted.
    """
    import pyarrow as pa

    schema = shape.value_schema
    (setting,) = shape.flags
    kept = kept_objects(chunks, trusted=trusted)
    waiting = [one for _, tuples in kept for one in tuples]
    never_waits = Flags.SOURCE | Flags.NEEDS_TOKEN
    source = _native.Operator.python("waiting", lambda: iter(waiting), None, native_schema(schema), flags=never_waits)
    rows = given_by([source], schema).combine_chunks().to_struct_array().combine_chunks()
    ends = [0, *accumulate(len(tuples) for _, tuples in kept)]
    lists = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), rows)
    return pa.table([pa.array([set_to for set_to, _ in kept]), lists], [setting, "waiting"])


def _waiting(reader: Reader, schema: Schema, front: int = 0) -> Iterator[list[Cell]]:
    return (cells for _, cells in _waiting_at_ports(reader, schema, front))


def _waiting_at_ports(reader: Reader, schema: Schema, front: int = 0) -> Iterator[tuple[int, list[Cell]]]:
    """Yield the tuples that wait for the watermark, with their input.

    Args:
        reader: A reader after the keys.
        schema: The schema of the tuples.
        front: Bytes between the input and the tuple.
    """
    while reader.at < len(reader.data):
        (port,) = reader.numbers(_PORT)
        reader.take(front)
        yield port, record_cells(exported_record(reader, schema), schema)


def _columns(rows: Sequence[Sequence[Cell]], of: Columns) -> list[Any]:
    return [column_of(cells, text) for cells, (_, text, _) in zip(turned(rows, len(of)), of, strict=True)]


def _beside(names: Sequence[str], fields: Sequence[str]) -> list[str]:
    """Return names of fields that differ from other columns."""
    return [name if name not in names else f"tuple_{name}" for name in fields]
