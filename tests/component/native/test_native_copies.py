"""Copies of Python values by key: what the operator does while one is read."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any, NamedTuple

import pyarrow as pa

from rayelastic import _native
from rayelastic.compile.code.operator_code import Flags
from rayelastic.graph.records.schema import Schema
from rayelastic.runtime.state.descriptor import StateDescriptor, StateKindOf, columns_of
from rayelastic.runtime.state.tables import table_of

PATIENCE = 60.0
KEYS, ROWS = 500, 2000
SHORT = 32  # records that are taken at once while a copy is read (object_states.hpp)


class Row(NamedTuple):
    key: int
    n: int


class Counting:
    """Counts the rows of each key, and how long the runs are in which they come."""

    def __init__(self) -> None:
        self.runs: list[int] = []
        self._came = threading.Condition()

    def __call__(self, rows: list[Row], states: list[dict[str, int]]) -> list[Row]:
        for state in states:
            state["rows"] = state.get("rows", 0) + 1
        with self._came:
            self.runs.append(len(rows))
            self._came.notify_all()
        return rows

    def longest(self, rows: int) -> int:
        """The longest of the runs since the last time, once so many rows have come in them."""
        with self._came:
            assert self._came.wait_for(lambda: sum(self.runs) >= rows, PATIENCE)
            assert sum(self.runs) == rows
            longest, self.runs = max(self.runs), []
            return longest


def test_runs_are_short_as_long_as_a_copy_is_read(pipelines: Any, make: Any) -> None:
    schema, counting = make.native(Row), Counting()
    state, feeder = _native.KeyedState.objects(schema, ["key"], dict), _native.ArrowFeeder(schema)
    keyed = make.python("count", counting, Row, Row, Flags.ONE_TO_ONE | Flags.KEYED, keyed=state)
    scheduler = _native.Scheduler()
    pipelines.schedulers.append(scheduler)
    numbers = [
        scheduler.add(one)
        for one in (
            _native.Operator.arrow_source("rows", schema, feeder),
            keyed,
            _native.Operator.count_sink("out", schema),
        )
    ]
    source, operator, sink = numbers
    scheduler.connect(source, operator)
    scheduler.connect(operator, sink)
    scheduler.stop_at_epochs([operator])
    scheduler.start(1)

    def give() -> int:
        keys = [n % KEYS for n in range(ROWS)]
        feeder.push(pa.record_batch([keys, list(range(ROWS))], Schema.of(Row).to_arrow()))
        return counting.longest(ROWS)

    assert give() > SHORT
    scheduler.hold([source])
    assert scheduler.send_epoch([source], 1)
    assert scheduler.wait_epoch([operator], 1, PATIENCE) == [operator]
    copy = scheduler.take_copy(operator, 1)
    assert copy is not None
    assert give() == SHORT
    chunks = []
    while (chunk := copy.next_chunk()) is not None:
        chunks.append(chunk[1])
    assert give() > SHORT
    descriptor = StateDescriptor(StateKindOf.VALUE, columns_of(Schema.of(Row), ["key"]))
    found = {row["key"]: row["value"]["rows"] for row in table_of(chunks, descriptor, trusted=True).to_pylist()}
    assert found == Counter(n % KEYS for n in range(ROWS))
    feeder.finish()
    assert scheduler.wait(PATIENCE)
