"""The connectors: the functions that users call, and a line in a table for each source and each sink.

The runtime makes operators of descriptions through the tables, and `rel` takes its names from `__all__`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from rayelastic.connectors.arrow.declaration import ArrowSink, ArrowSource, arrow, pandas
from rayelastic.connectors.arrow.reader import TableReader
from rayelastic.connectors.call.declaration import CallSink, call, print
from rayelastic.connectors.call.writer import call_sink
from rayelastic.connectors.csv.declaration import CsvSink, csv, read_csv
from rayelastic.connectors.csv.form import CsvSource
from rayelastic.connectors.csv.writer import CsvFormat
from rayelastic.connectors.delta.declaration import DeltaSink, DeltaSource, delta
from rayelastic.connectors.delta.reader import DeltaReader
from rayelastic.connectors.delta.writer import delta_sink
from rayelastic.connectors.files.locations import identities
from rayelastic.connectors.generate.declaration import (
    CallableSource,
    GenerateSource,
    SequenceSource,
    callable,
    generate,
    sequence,
)
from rayelastic.connectors.generate.reader import callable_source, generate_source, sequence_source
from rayelastic.connectors.history.declaration import HistorySource, history
from rayelastic.connectors.history.reader import history_source
from rayelastic.connectors.json.declaration import JsonSink, json, read_json
from rayelastic.connectors.json.inference import JsonSource
from rayelastic.connectors.json.writer import JsonFormat, TextFormat
from rayelastic.connectors.kafka.declaration import BadMessages, KafkaSink, KafkaSource, kafka, to_kafka
from rayelastic.connectors.kafka.reader import bad_messages, kafka_source
from rayelastic.connectors.kafka.writer import kafka_sink
from rayelastic.connectors.memory.declaration import CountSink, ListSink, RowsSource, list, rows
from rayelastic.connectors.memory.reader import rows_source
from rayelastic.connectors.memory.writer import collecting_sink, count_sink
from rayelastic.connectors.parquet.declaration import ParquetSink, parquet, read_parquet
from rayelastic.connectors.parquet.growing import GrowingSink
from rayelastic.connectors.parquet.growing_table import growing_sink
from rayelastic.connectors.parquet.inference import ParquetSource
from rayelastic.connectors.parquet.reader import ParquetReader
from rayelastic.connectors.parquet.writer import ParquetFormat
from rayelastic.connectors.polled.declaration import PolledSource, polled
from rayelastic.connectors.polled.interval import interval
from rayelastic.connectors.polled.reader import polled_source
from rayelastic.connectors.postgres.declaration import PostgresSink, postgres
from rayelastic.connectors.postgres.writer import postgres_sink
from rayelastic.connectors.pushed.declaration import IngestSource
from rayelastic.connectors.pushed.reader import pushed_source
from rayelastic.connectors.row_files import BadRows
from rayelastic.connectors.row_reader import BadRowReader, RowReader
from rayelastic.connectors.secret import secret
from rayelastic.connectors.sink import NewSink, Past, SinkOperator, file_sink
from rayelastic.connectors.source import BatchReader, SourceOperator, batch_source
from rayelastic.connectors.text.declaration import TextSink, TextSource, read_text, text
from rayelastic.connectors.text.reader import text_source
from rayelastic.errors import ErrorCode, SinkError, SourceError, StateError
from rayelastic.graph.words import with_known_arguments

if TYPE_CHECKING:
    from rayelastic import _native
    from rayelastic.graph.spec.operator_spec import OperatorSpec

__all__ = [  # what users call as `rel.csv(...)`
    "arrow",
    "call",
    "callable",
    "csv",
    "delta",
    "generate",
    "history",
    "interval",
    "json",
    "kafka",
    "list",
    "pandas",
    "parquet",
    "polled",
    "postgres",
    "print",
    "read_csv",
    "read_json",
    "read_parquet",
    "read_text",
    "rows",
    "secret",
    "sequence",
    "text",
    "to_kafka",
]

globals().update({name: with_known_arguments(globals()[name]) for name in __all__})

T = TypeVar("T")

# Sources that a reader yields in batches, in a thread of its own.
READERS: dict[type, Callable[[Any], BatchReader]] = {
    ArrowSource: TableReader,
    BadRows: BadRowReader,
    CsvSource: RowReader,
    DeltaSource: DeltaReader,
    JsonSource: RowReader,
    ParquetSource: ParquetReader,
}

# Sources that make their native operator themselves.
SOURCES: dict[type, Callable[[OperatorSpec, _native.Schema, Any], SourceOperator]] = {
    CallableSource: callable_source,
    GenerateSource: generate_source,
    HistorySource: lambda *of: history_source(source_operator, *of),
    IngestSource: pushed_source,
    BadMessages: bad_messages,
    KafkaSource: kafka_source,
    PolledSource: polled_source,
    RowsSource: rows_source,
    SequenceSource: sequence_source,
    TextSource: text_source,
}

SINKS: dict[type, Callable[[NewSink, Any], SinkOperator]] = {
    ArrowSink: collecting_sink,
    CallSink: call_sink,
    CountSink: count_sink,
    CsvSink: partial(file_sink, CsvFormat),
    DeltaSink: delta_sink,
    GrowingSink: growing_sink,
    JsonSink: partial(file_sink, JsonFormat),
    KafkaSink: kafka_sink,
    ListSink: collecting_sink,
    ParquetSink: partial(file_sink, ParquetFormat),
    PostgresSink: postgres_sink,
    TextSink: partial(file_sink, TextFormat),
}


def source_operator(spec: OperatorSpec, schema: _native.Schema) -> SourceOperator:
    """Make a source, ready to be added to a scheduler.

    Args:
        spec: The source.
        schema: The schema of its tuples.

    Raises:
        SourceError: The description has no reader, or it can't be read.
    """
    body = spec.body
    if (reader := _of(READERS, body)) is not None:
        source = batch_source(spec, schema, reader(body))
    elif (make := _of(SOURCES, body)) is not None:
        try:
            source = make(spec, schema, body)
        except SourceError as error:
            raise error.at(spec.name, spec.location) from error.__cause__
    else:
        raise SourceError(
            f"{type(body).__name__} can't be read here",
            operator=spec.name,
            hint="Use one of the sources of rayelastic",
            code=ErrorCode.NOT_A_SOURCE,
        )
    return replace(source, files=files) if (files := identities(getattr(body, "paths", ()))) else source


def sink_operator(spec: OperatorSpec, schema: _native.Schema, past: Past, blobs: str) -> SinkOperator:
    """Make the native operator of a sink.

    Args:
        spec: The sink.
        schema: The schema of its tuples.
        past: The run that it continues.
        blobs: The prefix of the names of its blobs in a checkpoint: safe as a file's, and unique among sinks.

    Raises:
        SinkError: The description has no writer, or it can't be written there.
        StateError: The output isn't what the earlier run left.
    """
    if (make := _of(SINKS, spec.body)) is None:
        raise SinkError(
            f"{type(spec.body).__name__} can't be written here",
            operator=spec.name,
            hint="Use one of the sinks of rayelastic",
            code=ErrorCode.NOT_A_SINK,
        )
    try:
        return make(NewSink(spec, schema, past, blobs), spec.body)
    except (SinkError, StateError) as error:
        raise error.at(spec.name, spec.location) from error.__cause__


def _of(table: Mapping[type, T], body: object) -> T | None:
    """Return the entry of a description's class, or of the nearest class that it inherits from."""
    return next((table[kind] for kind in type(body).__mro__ if kind in table), None)
