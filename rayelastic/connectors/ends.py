"""The operators at the ends of a graph: sources, with their side sources, and sinks. Know no engine."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from rayelastic.connectors.arrow.declaration import arrow_source
from rayelastic.connectors.call.declaration import CallSink, call
from rayelastic.connectors.description import Sink
from rayelastic.connectors.memory.declaration import CountSink, rows
from rayelastic.errors import ErrorCode, GraphError
from rayelastic.graph.operators.aggregates import AggregateFunction, AggregateSpec
from rayelastic.graph.records.shown import shown
from rayelastic.graph.spec.declaration import NewOperator, check_new
from rayelastic.graph.spec.operator_spec import (
    OperatorBody,
    OperatorSpec,
    SinkDescription,
    SourceDescription,
    StateKind,
)
from rayelastic.graph.spec.ports import OUT, OutputPort, side_source
from rayelastic.graph.spec.upstream import Upstream


def source_operators(name: str, source: Any, operators: Mapping[str, OperatorSpec]) -> tuple[OperatorSpec, ...]:
    """See ``Topology.source``; the source comes last, after its side sources."""
    with NewOperator(name, operators) as location:
        body = source_description(source, name)
        body.check(name)
        sides = {side_source(name, port): side for port, side in body.side_sources.items()}
        for side in sides:
            check_new(side, operators)
        return tuple(_source(each, described, location) for each, described in (*sides.items(), (name, body)))


def _source(name: str, body: SourceDescription, location: str) -> OperatorSpec:
    outputs = (OutputPort(OUT, body.schema),)
    return OperatorSpec(name, (), outputs, StateKind.STATEFUL, body, location)


def source_description(source: Any, operator: str) -> SourceDescription:
    """Describe what a user passes as a source.

    Raises:
        GraphError: It isn't a source.
    """
    if hasattr(source, "as_source"):
        description: SourceDescription = source.as_source(operator)
        return description
    if isinstance(source, list | tuple | range):
        source = rows(source)
    elif hasattr(source, "__arrow_c_stream__") or hasattr(source, "iloc"):  # of pyarrow and Polars; of pandas
        source = arrow_source(source)
    if not isinstance(source, SourceDescription):
        hint = "Use rel.rows, text, csv, json, parquet, arrow, callable or polled"
        if callable(source) or isinstance(source, Iterator):
            name = getattr(source, "__name__", "fn")
            hint = f"Write topology.source(rel.callable({name}, schema={{'value': int}})) with its types"
        raise GraphError(f"{shown(source)} isn't a source", hint=hint, code=ErrorCode.NOT_A_SOURCE)
    return source


def sink_operator(up: Upstream, name: str, sink: Any) -> OperatorSpec:
    """See ``Stream.sink``."""
    with NewOperator(name, up.operators) as location:
        body = _sink_description(sink, name)
        body.check(name)
        if isinstance(body, Sink):
            body.check_schema(up.schema)
        if isinstance(body, CallSink) and (inspect.isfunction(body.function) or inspect.ismethod(body.function)):
            called = up.compiler.of_record(body.function, up.schema, 3 if body.numbered else 1)
            body = replace(body, function=called)
        return up.operator(name, body, location, outputs=())


def _sink_description(sink: Any, operator: str) -> SinkDescription:
    if isinstance(sink, AggregateSpec) and sink == AggregateSpec(AggregateFunction.COUNT):
        return CountSink()
    if hasattr(sink, "as_sink"):
        description: SinkDescription = sink.as_sink(operator)
        return description
    if callable(sink) and not isinstance(sink, OperatorBody) and not _is_own(sink):
        return call(sink)
    if not isinstance(sink, SinkDescription):
        hint = "Use rel.parquet, csv, json of a path, rel.call(fn), rel.list(), count(), arrow(), print()"
        if _is_own(sink):
            hint = f"Call it: .sink(rel.{sink.__name__}(...))"
        elif hasattr(sink, "write"):
            hint = "Write its method write(t) as __call__(t), open() as initialize() and close() as shutdown()"
        raise GraphError(f"{shown(sink)} isn't a sink", hint=hint, code=ErrorCode.NOT_A_SINK)
    return sink


def _is_own(sink: Any) -> bool:
    """Whether it is a function that makes sinks, such as rel.list without its parentheses."""
    return inspect.isfunction(sink) and sink.__module__.startswith("rayelastic.connectors.")
