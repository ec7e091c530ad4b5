"""What joins keep, as a table: the tuples of either side that may meet others yet.

The exports are laid out as native_sched/src/operators/time/join.cpp and src/state/timed_state.hpp say.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rayelastic.errors import DamagedError
from rayelastic.graph.records.schema import laid_out
from rayelastic.runtime.saved.chunks import HEADER, Cell, Reader, column_of, exported_record, record_cells, turned

if TYPE_CHECKING:
    import pyarrow as pa

    from rayelastic.graph.records.schema import Schema
    from rayelastic.runtime.saved.shapes import Shape

__all__ = ["join_table"]

LEFT, RIGHT = "left", "right"
SIDE = "side"
_REACHED = struct.calcsize("<qB")  # the watermark, and whether all keys are there
_NULL = 1  # whether a key is null
_MATCHED = 1  # whether a right tuple has had a match
_PORT = 4  # of a left tuple that waits: there is one


def join_table(chunks: Iterable[bytes], shape: Shape) -> pa.Table:
    """The tuples that a join keeps, a row each: its side, and the fields of both sides, null on the other.

    Args:
        chunks: exports of the join.
        shape: of it.

    Raises:
        StateError: a chunk is damaged.
    """
    import pyarrow as pa

    left, right = laid_out("Left", shape.takes), shape.value_schema
    nothing: dict[str, list[Cell]] = {LEFT: [None] * len(left.names), RIGHT: [None] * len(right.names)}
    sides, rows = [], []
    for chunk in chunks:
        for side, cells in _kept(chunk, shape, left, right):
            sides.append(side)
            rows.append([*cells, *nothing[RIGHT]] if side == LEFT else [*nothing[LEFT], *cells])
    texts = [text for _, text, _ in (*shape.takes, *shape.values)]
    taken = {SIDE, *left.names}
    names = [SIDE, *left.names, *(name if name not in taken else f"right_{name}" for name in right.names)]
    columns = [column_of(cells, text) for cells, text in zip(turned(rows, len(texts)), texts, strict=True)]
    return pa.table([pa.array(sides, pa.string()), *columns], names)


def _kept(chunk: bytes, shape: Shape, left: Schema, right: Schema) -> Iterator[tuple[str, list[Cell]]]:
    reader = Reader(chunk)
    magic, _, keys, size = HEADER.unpack(reader.take(HEADER.size))
    if magic != b"RELTIME2" or size != len(chunk) - HEADER.size:
        raise DamagedError("these bytes aren't exported state of this kind", way_out="Use an earlier snapshot")
    reader.take(_REACHED)
    sides = [(RIGHT, right), *([(LEFT, left)] if "symmetric" in shape.flags else [])]
    for _ in range(keys):
        length = reader.number()
        reader.take(_NULL + length)
        for side, schema in sides:
            for _ in range(reader.number()):
                yield side, record_cells(exported_record(reader, schema), schema)
                reader.take(_MATCHED if "right" in shape.flags else 0)
    while reader.at < len(chunk):
        reader.take(_PORT)
        yield LEFT, record_cells(exported_record(reader, left), left)
