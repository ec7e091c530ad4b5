"""A compiler for tests: takes any function, gives it the lane that was asked for, runs nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rayelastic.errors import LaneError
from rayelastic.graph import FunctionRequest, Lane, OperatorKind, Schema
from rayelastic.graph.spec.operator_spec import AggregateRequest, OperatorRequest, ProcessRequest

CHANGES = "it changes all fields"  # of a function


@dataclass(frozen=True)
class FakeCode:
    lane: Lane
    reason: str
    output_schema: Schema
    function: Any = None

    @property
    def kept(self) -> frozenset[str]:
        """What it reads it leaves as it is, unless it says otherwise."""
        return frozenset() if self.reason == CHANGES else frozenset(self.output_schema.names)


class FakeCompiler:
    def __init__(self) -> None:
        self.requests: list[FunctionRequest] = []

    def compile(self, request: FunctionRequest) -> FakeCode:
        self.requests.append(request)
        output = request.input_schema if request.kind is OperatorKind.FILTER else request.output
        lane = Lane.COMPILED if request.lane == "auto" else request.lane
        return FakeCode(lane, "a fake takes anything", output or request.input_schema, request.function)

    def remembered(self, body: Any) -> tuple[str, ...]:
        return ()

    def of_record(self, function: Any, schema: Any, given: int) -> Any:
        return function

    def compile_process(self, request: ProcessRequest) -> Any:
        raise LaneError("a fake compiles no timers")

    def compile_aggregate(self, request: AggregateRequest) -> Any:
        raise LaneError("a fake compiles no aggregates")

    def compile_operator(self, request: OperatorRequest) -> FakeCode:
        lane = Lane.PYTHON if request.lane == "auto" else request.lane
        return FakeCode(lane, "a fake takes anything", request.inputs[0].schema, request.instance)
