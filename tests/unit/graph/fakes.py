"""A compiler for tests: takes any function, gives it the lane that was asked for, runs nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rayelastic.errors import LaneError
from rayelastic.graph import (
    CompiledFunction,
    FunctionKind,
    FunctionRequest,
    Lane,
    OperatorSpec,
    Schema,
    StateKind,
)
from rayelastic.graph.spec.requests import AggregateRequest, OperatorRequest, ProcessRequest

CHANGES = "it changes all fields"  # of a function


@dataclass(frozen=True, slots=True)
class FakeCode(CompiledFunction):
    lane: Lane = field()
    reason: str
    output_schema: Schema
    function: Any = None
    kind: FunctionKind | None = FunctionKind.MAP
    word: str = "operator"
    state: Any = None
    takes_turns = True

    @property
    def operator_kind(self) -> str:
        return self.word if self.kind is None else self.kind.value

    def state_kind(self, keys: tuple[str, ...]) -> StateKind:
        return StateKind.STATELESS if self.state is None else StateKind.PARTITIONED

    def keeps_keys(self, keys: tuple[str, ...]) -> bool:
        """What it reads it leaves as it is, unless it says otherwise."""
        kept = frozenset() if self.reason == CHANGES else frozenset(self.output_schema.names)
        return self.kind is FunctionKind.FILTER or (self.kind is not None and kept.issuperset(keys))

    def keeps_splits(self, spec: OperatorSpec) -> bool:
        return self.state is None and not spec.loop_edges


class FakeCompiler:
    def __init__(self) -> None:
        self.requests: list[FunctionRequest] = []

    def compile(self, request: FunctionRequest) -> FakeCode:
        self.requests.append(request)
        output = request.input_schema if request.kind is FunctionKind.FILTER else request.output
        lane = Lane.COMPILED if request.lane == "auto" else request.lane
        return FakeCode(
            lane,
            "a fake takes anything",
            output or request.input_schema,
            request.function,
            request.kind,
            state=request.state,
        )

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
        return FakeCode(lane, "a fake takes anything", request.inputs[0].schema, request.instance, None)
