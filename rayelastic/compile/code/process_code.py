"""A compiled class with timers: machine code of its methods, as a value that can be shipped."""

from __future__ import annotations

from dataclasses import dataclass

from rayelastic.compile.code.operator_code import MachineCode
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.requests import ProcessRequest


@dataclass(frozen=True, slots=True)
class ProcessCode:
    """The methods of a class with timers. Picklable with cloudpickle.

    Args:
        request: The class.
        methods: on_tuple, on_time and on_end; None for those that the class lacks.
        moment: The schema of the argument of on_time and on_end: the keys, then the time.
        state_schema: The layout of a key's state.
        state_initial: The record of a new key.
    """

    request: ProcessRequest
    methods: tuple[MachineCode | None, ...]
    moment: Schema
    state_schema: Schema
    state_initial: bytes
