"""Reads the rows of CSV and JSON files, one file after the other: those of the schema, or the bad ones."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rayelastic.connectors.csv.form import CsvSource
from rayelastic.connectors.csv.reader import csv_batches
from rayelastic.connectors.files.bad_rows import BadRow, Files, rejected
from rayelastic.connectors.inputs import Input
from rayelastic.connectors.json.inference import JsonSource
from rayelastic.connectors.json.reader import json_batches
from rayelastic.connectors.source import BatchReader
from rayelastic.graph.spec.dead_letters import OnError

if TYPE_CHECKING:
    import pyarrow as pa

_BATCHES: dict[type, Callable[..., Iterator[pa.RecordBatch]]] = {CsvSource: csv_batches, JsonSource: json_batches}


class RowReader(BatchReader):
    """Reads the rows that are of the schema. It can begin with any file.

    Raises:
        SourceError: A file can't be read further, or has a row that isn't of the schema, with on_bad_row='fail'.
    """

    def __init__(self, body: CsvSource | JsonSource) -> None:
        super().__init__(body)
        self._files = Files(len(body.paths))
        self._before = 0  # rows emitted in earlier runs

    def batches(self) -> Iterator[pa.RecordBatch | int]:
        """Yield the rows of all files; the number of each file precedes its batches."""
        body, files, rows = self.body, self._files, 0
        bad = {OnError.FAIL: rejected, OnError.SKIP: self.left_out.add, OnError.DIVERT: lambda _: None}  # by BadRows
        for number, path in enumerate(body.paths[files.first :], files.first):
            files.begin(rows)
            yield number
            for batch in _BATCHES[type(body)](path, body, bad[body.on_bad_row]):
                rows += batch.num_rows
                yield batch

    def seek(self, position: int, saved: Input | None) -> int:
        """Begin with the saved file."""
        self._before = position
        return self._files.seek(position, saved.position if saved is not None else None)

    def position(self, emitted: int) -> object:
        """Return the file of the next row, and the number of rows before that file."""
        return self._files.position(self._before + emitted)


class BadRowReader(BatchReader):
    """Reads the rows that aren't of the schema.

    Raises:
        SourceError: A file can't be read further.
    """

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield descriptions of the bad rows."""
        import pyarrow as pa

        body: Any = self.body
        for path in body.paths:
            waiting: list[BadRow] = []
            for _ in itertools.chain(_BATCHES[type(body.of)](path, body.of, waiting.append), [None]):
                if waiting:
                    rows = [{**asdict(bad), "operator": body.name} for bad in waiting]
                    yield pa.RecordBatch.from_pylist(rows, schema=body.schema.to_arrow())
                    waiting.clear()
