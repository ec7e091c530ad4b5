"""What a user declares: streams, operators, schemas, keys, state. Knows no threads, PEs, Ray or native code.

`records <- spec <- operators`: each folder knows only those before it.
"""

from rayelastic.graph.records.schema import DataType, Field, Schema
from rayelastic.graph.spec.operator_spec import (
    CompiledFunction,
    Lane,
    OperatorSpec,
    SinkDescription,
    SourceDescription,
    StateKind,
)
from rayelastic.graph.spec.requests import FunctionCompiler, FunctionKind, FunctionRequest

__all__ = [
    "CompiledFunction",
    "DataType",
    "Field",
    "FunctionCompiler",
    "FunctionKind",
    "FunctionRequest",
    "Lane",
    "OperatorSpec",
    "Schema",
    "SinkDescription",
    "SourceDescription",
    "StateKind",
]
