"""What the graph needs of a compiler of functions."""

from __future__ import annotations

from typing import Protocol

from rayelastic.graph.spec.operator_spec import (
    AggregateRequest,
    CompiledAggregate,
    CompiledFunction,
    CompiledProcess,
    FunctionRequest,
    OperatorBody,
    OperatorRequest,
    ProcessRequest,
)

__all__ = ["FunctionCompiler"]


class FunctionCompiler(Protocol):
    """Makes operator functions of Python functions."""

    def compile(self, request: FunctionRequest) -> CompiledFunction:
        """Compile, or find the python lane. Raises LaneError or SchemaError naming the operator."""
        ...

    def compile_operator(self, request: OperatorRequest) -> OperatorBody:
        """Find the lane of an operator class. Raises LaneError or SchemaError naming the operator."""
        ...

    def compile_process(self, request: ProcessRequest) -> CompiledProcess | str:
        """Compile an object with timers, or say why it can't be. Raises SchemaError naming the operator."""
        ...

    def compile_aggregate(self, request: AggregateRequest) -> CompiledAggregate | str:
        """Compile an object that aggregates, or say why it can't be. Raises SchemaError naming the operator."""
        ...

    def remembered(self, body: OperatorBody) -> tuple[str, ...]:
        """Name what the functions and objects in a body are known to change outside their state."""
        ...
