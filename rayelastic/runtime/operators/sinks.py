"""Sink descriptions become native sink operators, with what they collected or where they wrote at the end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from rayelastic import _native
from rayelastic.compile import Flags
from rayelastic.compile.lanes.python_lane import call_each
from rayelastic.errors import SinkError, StateError
from rayelastic.graph.edges.sinks import ArrowSink, CallSink, CountSink, CsvSink, GrowingSink, ListSink, ParquetSink
from rayelastic.runtime.files.file_writer import CsvFormat, FileFormat, FileWriter, Output, ParquetFormat
from rayelastic.runtime.files.growing_table import GrowingTable
from rayelastic.runtime.operators.native_schema import native_schema

if TYPE_CHECKING:
    import pyarrow as pa

    from rayelastic.graph.records.schema import Schema
    from rayelastic.graph.spec.operator_spec import OperatorSpec

BATCH_ROWS = 65_536  # rows of one Arrow batch that a sink gets


class BatchWriter(Protocol):
    """Takes the batches of a sink, one at a time."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Takes a batch."""
        ...

    def close(self) -> Any:
        """Ends, and gives what the sink leaves."""
        ...


def _nothing(rows: int) -> Output | None:  # noqa: ARG001  (what is kept in memory isn't there for a later run)
    return None


class SinkOperator:
    """A sink, ready to be added to a scheduler.

    Args:
        native: the operator.
        close: ends the sink and gives what it leaves; called once, when its stream is final.
        output: what it will have written once it is closed, when it has taken so many rows.
    """

    def __init__(
        self,
        native: _native.Operator,
        close: Callable[[], Any] = lambda: None,
        output: Callable[[int], Output | None] = _nothing,
    ) -> None:
        self.native = native
        self.output = output
        self._close = close
        self._lock = threading.Lock()
        self._closed = False
        self._value: Any = None

    def close(self) -> Any:
        """Ends the sink, once, and gives what it leaves."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._value = self._close()
            return self._value


def sink_operator(spec: OperatorSpec, outputs: Mapping[str, Output]) -> SinkOperator:
    """Makes the native operator of a sink.

    Args:
        spec: the sink.
        outputs: what the run to go on from has written; a sink that writes to the same place goes on there.

    Raises:
        SinkError: nobody knows how to write such a description, or it can't be written there.
        StateError: what is there isn't what the earlier run left.
    """
    try:
        return _sink_operator(spec, outputs)
    except (SinkError, StateError) as error:
        raise error.at(spec.name, spec.location) from error.__cause__


def _sink_operator(spec: OperatorSpec, outputs: Mapping[str, Output]) -> SinkOperator:
    assert spec.input_schema is not None
    name, body, schema = spec.name, spec.body, native_schema(spec.input_schema)
    match body:
        case CountSink():
            return SinkOperator(_native.Operator.count_sink(name, schema))
        case CallSink():
            function, flags = call_each(body.function), Flags.SINK | Flags.NEEDS_TOKEN
            shown = spec.input_schema.tuple_type
            return SinkOperator(_native.Operator.python(name, function, schema, None, shown, flags=flags))
        case ArrowSink() | ListSink():
            return _batch_sink(name, schema, _TableWriter(spec.input_schema))
        case GrowingSink():
            table = GrowingTable(body.path, spec.input_schema, body.period, Output.at(body.path, outputs))
            flags = Flags.SINK | Flags.NEEDS_TOKEN
            native = _native.Operator.python(name, table.write, schema, None, view="arrow", flags=flags)
            return SinkOperator(native, table.close, table.output)
        case ParquetSink():
            form: FileFormat = ParquetFormat(spec.input_schema)
        case CsvSink():
            form = CsvFormat(spec.input_schema)
        case _:
            raise SinkError(
                f"{type(body).__name__} can't be written here",
                operator=name,
                way_out="Use one of the sinks of rayelastic",
            )
    writer = FileWriter(body.path, form, Output.at(body.path, outputs))
    return _batch_sink(name, schema, writer, writer.output)


def _batch_sink(
    name: str, schema: _native.Schema, writer: BatchWriter, output: Callable[[int], Output | None] = _nothing
) -> SinkOperator:
    return SinkOperator(_native.Operator.arrow_sink(name, schema, writer.write, BATCH_ROWS), writer.close, output)


class _TableWriter:
    """Collects a table."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema.to_arrow()
        self._batches: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)

    def close(self) -> pa.Table:
        import pyarrow as pa

        return pa.Table.from_batches(self._batches, self._schema)
