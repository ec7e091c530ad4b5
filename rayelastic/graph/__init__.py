"""What the user declared: streams, operators, schemas, keys, state. Nothing of threads, PEs, Ray or native code."""

from rayelastic.graph.operator_spec import (
    CompiledFunction,
    FunctionCompiler,
    FunctionRequest,
    Lane,
    OperatorKind,
    OperatorSpec,
    SinkDescription,
    SourceDescription,
    StateKind,
)
from rayelastic.graph.schema import DataType, Field, Schema
from rayelastic.graph.stream import KeyedStream, Stream
from rayelastic.graph.topology import Topology

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
