"""Makes native sink operators of sink descriptions, with their results at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rayelastic import _native
from rayelastic.compile import Flags
from rayelastic.compile.lanes.python_lane import error_text
from rayelastic.connectors.arrow.declaration import ArrowSink
from rayelastic.connectors.call.declaration import CallSink
from rayelastic.connectors.call.writer import Called
from rayelastic.connectors.csv.declaration import CsvSink
from rayelastic.connectors.json.declaration import JsonSink
from rayelastic.connectors.json.writer import JsonFormat, TextFormat
from rayelastic.connectors.memory.declaration import CountSink, ListSink
from rayelastic.connectors.output.folder import OutputFolder
from rayelastic.connectors.output.formats import CsvFormat, FileFormat, ParquetFormat
from rayelastic.connectors.output.kept_rows import KeptRows
from rayelastic.connectors.output.part_folder import PartFolder
from rayelastic.connectors.output.record import SinkContext
from rayelastic.connectors.output.single_file import SingleFile
from rayelastic.connectors.parquet.declaration import ParquetSink
from rayelastic.connectors.parquet.growing import GrowingSink
from rayelastic.connectors.parquet.growing_table import GrowingTable
from rayelastic.connectors.postgres.declaration import PostgresSink
from rayelastic.connectors.postgres.writer import PostgresTable
from rayelastic.connectors.problem import Problem
from rayelastic.connectors.sink import Counted, OwnedWriter, Past, SinkOperator
from rayelastic.connectors.text.declaration import TextSink
from rayelastic.errors import ErrorCode, SinkError, StateError

if TYPE_CHECKING:
    import pyarrow as pa

    from rayelastic.graph.spec.operator_spec import OperatorSpec

BATCH_ROWS = 65_536  # rows of one Arrow batch for a sink


def sink_operator(spec: OperatorSpec, native: _native.Schema, past: Past, blobs: str) -> SinkOperator:
    """Make the native operator of a sink.

    Args:
        spec: The sink.
        native: The schema of its tuples.
        past: The run that it continues.
        blobs: The prefix of the names of its blobs in a checkpoint: safe as a file's, and unique among sinks.

    Raises:
        SinkError: The description has no writer, or it can't be written there.
        StateError: The output isn't what the earlier run left.
    """
    try:
        return _sink_operator(spec, native, past, blobs)
    except (SinkError, StateError) as error:
        raise error.at(spec.name, spec.location) from error.__cause__


def _sink_operator(spec: OperatorSpec, native: _native.Schema, past: Past, blobs: str) -> SinkOperator:
    assert spec.input_schema is not None
    name, body, schema = spec.name, spec.body, spec.input_schema
    context = SinkContext(past.job, name, past.run, past.outputs, past.store, past.keep, past.own, blobs)
    match body:
        case CountSink():
            operator = _native.Operator.count_sink(name, native)
            return SinkOperator(operator, Counted(lambda: operator.count or 0, past.taken(name)), past.taken(name))
        case CallSink():
            return _called(spec, native, body, past)
        case ArrowSink() | ListSink():
            rows = KeptRows(schema, blobs, past.kept(name), past.store, past.keep, own=past.own)
            return SinkOperator(_batches(name, native, rows.write), rows, past.taken(name))
        case GrowingSink():
            table = GrowingTable(body.path, schema, body.period, context, by_epoch=past.by_epoch)
            return _owned(_viewed, name, native, table, past.taken(name))
        case ParquetSink():
            return _filed(spec, native, body.path, ParquetFormat(schema), context, past.taken(name))
        case PostgresSink():
            to_server = PostgresTable(body, schema, context)
            return _owned(_batches, name, native, to_server, past.taken(name))
        case CsvSink():
            return _filed(spec, native, body.path, CsvFormat(schema), context, past.taken(name))
        case JsonSink():
            return _filed(spec, native, body.path, JsonFormat(schema), context, past.taken(name))
        case TextSink():
            return _filed(spec, native, body.path, TextFormat(schema), context, past.taken(name))
    raise SinkError(
        f"{type(body).__name__} can't be written here",
        operator=name,
        hint="Use one of the sinks of rayelastic",
        code=ErrorCode.NOT_A_SINK,
    )


def _called(spec: OperatorSpec, schema: _native.Schema, body: CallSink, past: Past) -> SinkOperator:
    assert spec.input_schema is not None
    try:
        called = Called(body, past.kept(spec.name))
    except Exception as error:  # whatever the user's object raises
        raise SinkError(
            f"it can't be restored to the checkpoint: {error_text(error)}",
            hint="Check its methods commit and abort",
        ) from error
    flags = Flags.SINK | Flags.NEEDS_TOKEN
    problem, shown = Problem(), spec.input_schema.tuple_type
    native = _native.Operator.python(spec.name, problem.of(called.run), schema, None, shown, flags=flags)
    return SinkOperator(native, called, past.taken(spec.name), stops=called.stop, problem=problem)


def _filed(
    spec: OperatorSpec, schema: _native.Schema, path: str, form: FileFormat, context: SinkContext, taken: int
) -> SinkOperator:
    is_file = bool(OutputFolder(path, is_file=True).file)
    writer = SingleFile(path, form, context) if is_file else PartFolder(path, form, context)
    return _owned(_viewed if spec.lane.needs_python else _batches, spec.name, schema, writer, taken)


def _owned(
    how: Callable[[str, _native.Schema, Callable[[pa.RecordBatch], Any]], _native.Operator],
    name: str,
    schema: _native.Schema,
    writer: OwnedWriter,
    taken: int,
) -> SinkOperator:
    problem = Problem()
    native = how(name, schema, problem.of(writer.write))
    return SinkOperator(native, writer, taken, writer.abandon, begin=writer.begin, problem=problem)


def _batches(name: str, schema: _native.Schema, write: Callable[[pa.RecordBatch], Any]) -> _native.Operator:
    return _native.Operator.arrow_sink(name, schema, write, BATCH_ROWS)


def _viewed(name: str, schema: _native.Schema, write: Callable[[pa.RecordBatch], Any]) -> _native.Operator:
    """Make a sink that calls Python under the token, run by run."""
    flags = Flags.SINK | Flags.NEEDS_TOKEN
    return _native.Operator.python(name, write, schema, None, view="arrow", flags=flags)
