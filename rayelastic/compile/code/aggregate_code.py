"""A compiled user's aggregate: machine code of its methods, as a value that can be shipped."""

from __future__ import annotations

from dataclasses import dataclass

from rayelastic.compile.code.operator_code import MachineCode
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.requests import AggregateRequest


@dataclass(frozen=True, slots=True)
class AggregateCode:
    """The methods of an object that aggregates. Picklable with cloudpickle.

    Args:
        request: The aggregate.
        methods: add, merge and result; None for each that the class hasn't.
        state_schema: The layout of a state.
        state_initial: The record of the initial state.
        output_schema: The schema of results.
    """

    request: AggregateRequest
    methods: tuple[MachineCode | None, ...]
    state_schema: Schema
    state_initial: bytes
    output_schema: Schema

    @property
    def reason(self) -> str:
        """What runs, in words."""
        return (
            self.request.what or f"an object of class {type(self.request.instance).__name__}, compiled to machine code"
        )

    @property
    def merges(self) -> bool:
        """Whether states can be merged."""
        return self.methods[1] is not None
