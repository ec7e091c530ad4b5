"""Sink descriptions become native sink operators, with what they collected or where they wrote at the end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from rayelastic import _native
from rayelastic.compile import Flags
from rayelastic.compile.lanes.python_lane import call_each
from rayelastic.errors import SinkError
from rayelastic.graph.edges.sinks import ArrowSink, CallSink, CountSink, CsvSink, GrowingSink, ListSink, ParquetSink
from rayelastic.runtime.files.growing_table import GrowingTable
from rayelastic.runtime.files.output_folder import OutputFolder
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


class SinkOperator:
    """A sink, ready to be added to a scheduler.

    Args:
        native: the operator.
        close: ends the sink and gives what it leaves; called once, when its stream is final.
    """

    def __init__(self, native: _native.Operator, close: Callable[[], Any] = lambda: None) -> None:
        self.native = native
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


def sink_operator(spec: OperatorSpec) -> SinkOperator:
    """Makes the native operator of a sink.

    Raises:
        SinkError: nobody knows how to write such a description.
    """
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
            table = GrowingTable(body.path, spec.input_schema, body.period)
            flags = Flags.SINK | Flags.NEEDS_TOKEN
            native = _native.Operator.python(name, table.write, schema, None, view="arrow", flags=flags)
            return SinkOperator(native, table.close)
        case ParquetSink():
            return _batch_sink(name, schema, _parquet_writer(body.path, spec.input_schema))
        case CsvSink():
            return _batch_sink(name, schema, _csv_writer(body.path, spec.input_schema))
    raise SinkError(
        f"{type(body).__name__} can't be written here", operator=name, way_out="Use one of the sinks of rayelastic"
    )


def _batch_sink(name: str, schema: _native.Schema, writer: BatchWriter) -> SinkOperator:
    return SinkOperator(_native.Operator.arrow_sink(name, schema, writer.write, BATCH_ROWS), writer.close)


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


class _FileWriter:
    """Writes to a file, or to a part file in a folder, and shows it only when it is complete.

    Args:
        location: a path or URI of a file, or of a folder if it has no suffix.
        suffix: of the part file in a folder.
        make_writer: makes a pyarrow writer with `write_batch` and `close` on an open file.
    """

    def __init__(self, location: str, suffix: str, make_writer: Callable[[Any], Any]) -> None:
        self._location = location
        self._folder = OutputFolder(location, is_file=True)
        self._name = self._folder.file or f"part-0{suffix}"
        self._make_writer = make_writer
        self._file: Any = None
        self._writer: Any = None

    def write(self, batch: pa.RecordBatch) -> None:
        self._opened().write_batch(batch)

    def close(self) -> str:
        self._opened().close()  # an empty stream leaves a file with a schema and no rows
        self._folder.close(self._file, self._name)
        return self._location

    def _opened(self) -> Any:
        if self._writer is None:
            self._file = self._folder.open(self._name)
            self._writer = self._make_writer(self._file)
        return self._writer


def _parquet_writer(path: str, schema: Schema) -> _FileWriter:
    from pyarrow.parquet import ParquetWriter

    return _FileWriter(path, ".parquet", lambda file: ParquetWriter(file, schema.to_arrow()))


def _csv_writer(path: str, schema: Schema) -> _FileWriter:
    from pyarrow.csv import CSVWriter

    return _FileWriter(path, ".csv", lambda file: CSVWriter(file, schema.to_arrow()))
