"""A Ray Dataset as a source: a Ray task on the block's node pushes each of its blocks into the data port.

The rows never pass through the driver, which handles references only. The same numbered protocol as Spark's
(runtime/ingest.py) keeps a task that Ray retries from doubling rows.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, overload

from rayelastic.connectors.pushed.declaration import IngestSource
from rayelastic.connectors.typed import Declared, SourceOf
from rayelastic.errors import ErrorCode, SchemaError, SourceError
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import Lane, SourceDescription
from rayelastic.on_ray.connect import ensure_ray
from rayelastic.runtime.ingest.client import PushError, push_partition

if TYPE_CHECKING:
    import pyarrow as pa
    from ray import ObjectRef
    from ray.data import Dataset
    from ray.exceptions import RayTaskError

    from rayelastic.runtime.ingest.feed import Feed
    from rayelastic.runtime.values.specs import IngestAddress

T = TypeVar("T")

BLOCKS_AT_ONCE = 4  # tasks that push; more don't help one source, and their rows interleave
POLL = 0.5  # seconds between two checks whether the push was cancelled


@dataclass(frozen=True, slots=True, eq=False)
class DatasetSource(SourceDescription, SourceOf[T]):
    """A Ray Dataset that feeds a source; made by `rel.dataset`.

    Args:
        dataset: The Dataset; it may be lazy, its blocks are pushed as they are computed.
        schema: The schema of the tuples.
        time_ordered: Whether the event times of a block follow those of the one before.
        cancelled: Set when the push has to end.
    """

    dataset: Dataset
    schema: Schema
    time_ordered: bool = False
    cancelled: threading.Event = field(default_factory=threading.Event)

    @property
    def lane(self) -> Lane:
        """How it runs."""
        return Lane.BUILT_IN

    @property
    def reason(self) -> str:
        """The reason for the execution mode."""
        return "Ray tasks push the Dataset's blocks into the data port"

    def check(self, operator: str) -> None:
        """Do nothing: the schema was checked when the source was declared."""

    def push(self, feed: Feed) -> dict[int, int]:
        """Push every block, and return when all were acknowledged.

        Args:
            feed: the source that takes the rows.

        Returns:
            The number of rows of each block, by its number.

        Raises:
            SourceError: a task failed, or the push was cancelled.
        """
        import ray

        self.cancelled.clear()
        self.dataset.context.execution_options.preserve_order = True  # a block has its number whenever it is made again
        address, operator = feed.address(), feed.operator
        task = ray.remote(_push_block).options(num_cpus=0)  # it mostly waits; its CPU time counts as the Dataset's
        rows: dict[int, int] = {}
        running: dict[ObjectRef[Any], int] = {}

        def collect(at_most: int) -> None:
            while len(running) > at_most:
                done, _ = ray.wait(list(running), timeout=POLL)
                if self.cancelled.is_set():
                    raise SourceError("the push was cancelled", operator=operator, code=ErrorCode.PUSH_CANCELLED)
                for reference in done:
                    rows[running.pop(reference)] = ray.get(reference)

        try:
            for number, block in enumerate(_blocks(self.dataset)):
                collect(BLOCKS_AT_ONCE - 1)
                running[task.remote(block, number, self.schema.to_arrow(), address)] = number
            collect(0)
        except ray.exceptions.RayTaskError as error:
            raise SourceError(
                f"a task of the Ray Dataset failed: {_reason(error)}", operator=operator, code=ErrorCode.FEED_FAILED
            ) from error
        return rows

    def cancel(self) -> None:
        """Make a running `push` end."""
        self.cancelled.set()

    def for_pe(self) -> IngestSource:
        """Return the description for the PE."""
        return IngestSource(self.schema, self.reason, time_ordered=self.time_ordered)

    @property
    def has_splits(self) -> bool:
        """Whether each block has its own watermark."""
        return self.for_pe().has_splits


@overload
def dataset(dataset: Dataset, schema: type[Mapping[str, Any]], *, time_ordered: bool = False) -> DatasetSource[Any]: ...


@overload
def dataset(dataset: Dataset, schema: type[T], *, time_ordered: bool = False) -> DatasetSource[T]: ...


@overload
def dataset(dataset: Dataset, schema: Declared | None = None, *, time_ordered: bool = False) -> DatasetSource[Any]: ...


def dataset(dataset: Dataset, schema: object = None, *, time_ordered: bool = False) -> DatasetSource[Any]:
    """Feed a stream with the rows of a Ray Dataset.

    Args:
        dataset: Any Dataset with named columns.
        schema: The schema of the tuples, as for `rel.Schema.of`; the Dataset's own columns by default.
        time_ordered: Whether the event times of a block follow those of the one before. Then windows close as blocks
            are pushed; by default each block may begin at any time, and they close at the end.

    Raises:
        SchemaError: A column is missing, or of a type that a record can't hold.

    Example:
        >>> rows = topo.source(rel.dataset(ray.data.read_parquet("trades/")), name="rows")  # doctest: +SKIP
    """
    ensure_ray()
    columns = dataset.schema(fetch_if_missing=schema is None)  # an unknown schema requires running its first tasks
    base = getattr(columns, "base_schema", None)
    names = list(columns.names) if columns is not None else []
    if schema is None:
        if not _is_arrow(base):
            raise SchemaError(
                "the Dataset has no Arrow schema",
                hint="Pass schema=",
                code=ErrorCode.NO_SCHEMA,
            )
        return DatasetSource(dataset, Schema.of(base), time_ordered)
    wanted = Schema.of(schema)
    missing = [name for name in wanted.names if name not in names]
    if columns is not None and missing:
        raise SchemaError(
            f"the Dataset has no column {missing[0]!r}; it has {', '.join(names)}",
            hint="Rename it: dataset.rename_columns({...})",
            code=ErrorCode.UNKNOWN_COLUMN,
        )
    return DatasetSource(dataset, wanted, time_ordered)


def _reason(error: RayTaskError) -> str:
    """Return a task's exception: Ray's text begins with the innermost one, and wraps it in its own."""
    if isinstance(error.cause, PushError):
        return str(error.cause)
    first = re.search(r"^[\w.]+(?:Error|Exception): .*", str(error), re.MULTILINE)
    return first[0] if first else str(error.cause)


def _is_arrow(schema: object) -> bool:
    import pyarrow as pa

    return isinstance(schema, pa.Schema)


def _blocks(dataset: Dataset) -> Iterator[ObjectRef[Any]]:
    for bundle in dataset.iter_internal_ref_bundles():
        yield from bundle.block_refs


def _push_block(block: Any, number: int, schema: pa.Schema, address: IngestAddress) -> int:
    """Push a block; runs as a Ray task, once for each block."""
    from ray.data.block import BlockAccessor

    table = BlockAccessor.for_block(block).to_arrow().select(schema.names)
    return push_partition(address, schema, number, table.to_batches(), sender=f"block-{number}")
