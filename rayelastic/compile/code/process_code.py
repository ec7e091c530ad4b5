"""What a class with timers became: machine code of its methods, as a value that can be shipped."""

from __future__ import annotations

from dataclasses import dataclass

from rayelastic.compile.code.operator_code import MachineCode
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import ProcessRequest

__all__ = ["ProcessCode"]


@dataclass(frozen=True, slots=True)
class ProcessCode:
    """The methods of a class with timers. Picklable with cloudpickle.

    Args:
        request: what it was made of.
        methods: on_tuple, on_time and on_end; None where the class has none.
        moment: of the records that on_time and on_end are called with: the keys, then the time.
        state_schema: layout of the state of a key.
        state_initial: the record of a key that comes first.
    """

    request: ProcessRequest
    methods: tuple[MachineCode | None, ...]
    moment: Schema
    state_schema: Schema
    state_initial: bytes
