"""The objects of JSON files as Arrow batches of a source's schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rayelastic.graph.edges.json_files import JsonSource, json_reader, reading_json

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["json_batches"]


def json_batches(body: JsonSource) -> Iterator[pa.RecordBatch]:
    """Read all files, one after the other.

    Raises:
        SourceError: a file can't be read, or has a value that isn't of the schema.
    """
    wanted = body.schema.to_arrow()
    for path in body.paths:
        with reading_json(path), json_reader(path, wanted) as reader:
            yield from reader
