"""What the user declared: streams, operators, schemas, keys, state. Nothing of threads, PEs, Ray or native code.

`records <- spec <- operators <- edges <- fluent`: each knows those before it and none behind.
"""

from rayelastic.graph.fluent.stream import KeyedStream, Stream
from rayelastic.graph.fluent.topology import Topology
from rayelastic.graph.records.schema import DataType, Field, Schema
from rayelastic.graph.spec.operator_spec import (
    CompiledFunction,
    FunctionRequest,
    Lane,
    OperatorKind,
    OperatorSpec,
    SinkDescription,
    SourceDescription,
    StateKind,
)
from rayelastic.graph.spec.upstream import FunctionCompiler

__all__ = [
    "CompiledFunction",
    "DataType",
    "Field",
    "FunctionCompiler",
    "FunctionRequest",
    "KeyedStream",
    "Lane",
    "OperatorKind",
    "OperatorSpec",
    "Schema",
    "SinkDescription",
    "SourceDescription",
    "StateKind",
    "Stream",
    "Topology",
]
