"""Receives the rows that clients push."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rayelastic.connectors.pushed.partition_splits import PartitionSplits
from rayelastic.connectors.pushed.receiver import IngestServer
from rayelastic.connectors.source import SourceOperator, native_feeder

if TYPE_CHECKING:
    from rayelastic import _native
    from rayelastic.connectors.inputs import Input
    from rayelastic.connectors.pushed.declaration import IngestSource
    from rayelastic.graph.spec.operator_spec import OperatorSpec


@dataclass(slots=True, kw_only=True)
class PushedOperator(SourceOperator):
    """A source that is fed from outside.

    Args:
        ingest: Serves the connections of clients.
    """

    ingest: IngestServer


def pushed_source(spec: OperatorSpec, schema: _native.Schema, body: IngestSource) -> PushedOperator:
    """Make a source with a server for the connections of its clients."""
    native, feeder = native_feeder(spec, schema)
    splits = PartitionSplits(feeder, time_ordered=body.time_ordered) if body.has_splits else None
    ingest = IngestServer(spec.name, body.schema.to_arrow(), feeder, splits=splits)

    def seek(_: int, saved: Input | None) -> int:
        if saved is not None and saved.position is not None:
            ingest.restore(saved.position)
        return 0  # the client pushes all again, and repeated rows are dropped

    return PushedOperator(native, ingest=ingest, seek=seek, position=ingest.position, stop=ingest.close)
