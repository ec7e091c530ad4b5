"""Reads the rows of CSV and JSON files, one file after the other: those of the schema, or the bad ones."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from rayelastic.connectors.csv.form import CsvSource
from rayelastic.connectors.csv.reader import csv_batches
from rayelastic.connectors.files.bad_rows import BadRow, Files, LeftOut, PutAside, rejected
from rayelastic.connectors.files.row_files import BadRows
from rayelastic.connectors.json.inference import JsonSource
from rayelastic.connectors.json.reader import json_batches
from rayelastic.graph.spec.dead_letters import OnError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["bad_row_batches", "good_row_batches"]


def good_row_batches(
    body: CsvSource | JsonSource, left_out: LeftOut, files: Files | None = None
) -> Iterator[pa.RecordBatch | int]:
    """Yield the rows of all files that are of the schema; the number of each file precedes its batches.

    Args:
        body: The source.
        left_out: Counts the others.
        files: The file to begin with; records where they begin.

    Raises:
        SourceError: A file can't be read further, or has a row that isn't of the schema, with on_bad_row='fail'.
    """
    kept = {OnError.FAIL: rejected, OnError.SKIP: left_out.add, OnError.DIVERT: lambda _: None}  # read by BadRows
    put_aside, files, rows = kept[body.on_bad_row], files or Files(len(body.paths)), 0
    for number, path in enumerate(body.paths[files.first :], files.first):
        files.begin(rows)
        yield number
        for batch in _batches(path, body, put_aside):
            rows += batch.num_rows
            yield batch


def bad_row_batches(body: BadRows) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all files that aren't of the schema.

    Raises:
        SourceError: A file can't be read further.
    """
    import pyarrow as pa

    for path in body.of.paths:
        waiting: list[BadRow] = []
        for _ in itertools.chain(_batches(path, body.of, waiting.append), [None]):
            if waiting:
                rows = [{**asdict(bad), "operator": body.name} for bad in waiting]
                yield pa.RecordBatch.from_pylist(rows, schema=body.schema.to_arrow())
                waiting.clear()


def _batches(path: str, body: object, put_aside: PutAside) -> Iterator[pa.RecordBatch]:
    if isinstance(body, JsonSource):
        return json_batches(path, body, put_aside)
    assert isinstance(body, CsvSource)
    return csv_batches(path, body, put_aside)
