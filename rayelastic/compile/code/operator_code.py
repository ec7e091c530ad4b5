"""A user's function as a value that can be shipped (architecture section 4).

Holds no Numba object: machine code is bytes here, an address after `load`. Knows nothing of plans, schedulers or Ray.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntFlag
from typing import Any

from rayelastic.compile.reading.kept_fields import kept_fields
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.concurrency import Concurrency
from rayelastic.graph.spec.operator_spec import (
    PICKLED,
    CompiledFunction,
    Lane,
    OperatorSpec,
    Ordered,
    StateKind,
    fields_form,
)
from rayelastic.graph.spec.ports import OUT
from rayelastic.graph.spec.requests import FunctionKind
from rayelastic.graph.spec.unread import fields_read


class Flags(IntFlag):
    """The properties of an operator function that the scheduler uses: rel_flags of abi.h."""

    ONE_TO_ONE = 1
    FILTER = 2
    IN_PLACE = 4
    KEYED = 8
    NEEDS_TOKEN = 16
    SOURCE = 32
    SINK = 64
    ON_FINISH = 128
    ON_WATERMARK = 256
    ON_COMMAND = 2048


class View(Enum):
    """The argument of a Python function."""

    TUPLES = "tuples"  # one tuple at a time
    NUMPY = "numpy"  # a structured array over the records of a run
    ARROW = "arrow"  # a pyarrow.RecordBatch of a run


@dataclass(frozen=True, slots=True)
class MachineCode:
    """Relocatable machine code of one operator function.

    Args:
        entry: A symbol with the signature rel_process of abi.h.
        image: An object file; it refers to engine services and libc by name, never by address.
        imports: The names that it imports.
        target: The processor and features that it was compiled for.
        key: The hash of all its inputs.
        in_place: Whether the output buffer may be the input buffer.
    """

    entry: str
    image: bytes
    imports: tuple[str, ...]
    target: str
    key: str
    in_place: bool


@dataclass(frozen=True, slots=True)
class OperatorCode(CompiledFunction):
    """A user's function in its execution mode. Picklable with cloudpickle; `load` makes it runnable.

    Args:
        operator: The operator's name, for messages.
        kind: MAP, FILTER or FLAT_MAP.
        lane: COMPILED, VECTORISED or PYTHON.
        reason: The reason for the execution mode.
        function: The user's function.
        input_schema: The schema of its input.
        output_schema: The schema of its output.
        keys: The key fields; empty if it isn't keyed.
        state: Makes the initial state of a key; None if stateless.
        state_schema: The layout of the state record if it has one (compiled, keyed), else None.
        state_initial: The record of a new key, `state_schema.record_size` bytes.
        view: The function's argument.
        machine: The machine code if compiled, else None.
        frozen: Names of data outside a compiled function, which it copied at declaration.
        frozen_digest: A hash of that data; None if it has none.
        location: 'file.py:12' of the declaration.
        concurrent: The limits of concurrent calls; None: one call after the other.
        refusal: The code and values of why it isn't compiled (reasons.py), if that was tried.
    """

    operator: str
    kind: FunctionKind
    lane: Lane = field()
    reason: str
    function: Callable[..., Any]
    input_schema: Schema
    output_schema: Schema
    keys: tuple[str, ...] = ()
    state: Callable[[], Any] | None = None
    state_schema: Schema | None = None
    state_initial: bytes = b""
    view: View = View.TUPLES
    machine: MachineCode | None = None
    frozen: tuple[str, ...] = ()
    frozen_digest: str | None = None
    location: str = ""
    concurrent: Concurrency | None = None
    refusal: Mapping[str, Any] | None = None

    object_field = "function"
    takes_turns = True

    @property
    def operator_kind(self) -> str:
        """The name of its kind."""
        return self.kind.value

    @property
    def user_function(self) -> OperatorCode:
        """Itself."""
        return self

    def reads(self, spec: OperatorSpec, port: int) -> frozenset[str] | None:  # noqa: ARG002
        """Return the fields that the function reads, if its code shows them."""
        by_tuple = self.view is View.TUPLES and self.lane is not Lane.VECTORISED and self.concurrent is None
        return fields_read(self.function, self.input_schema) if by_tuple else None

    def passes(self, spec: OperatorSpec) -> tuple[str, ...]:  # noqa: ARG002
        """Return its output port if it is a filter."""
        return (OUT,) if self.kind is FunctionKind.FILTER else ()

    @property
    def passes_objects(self) -> bool:
        """Whether Python calls it with one tuple after the other, for tuples of its own."""
        by_tuple = self.lane is Lane.PYTHON and self.view is View.TUPLES and self.concurrent is None
        return by_tuple and self.kind is not FunctionKind.FILTER

    def state_kind(self, keys: tuple[str, ...]) -> StateKind:  # noqa: ARG002
        """Return whether it keeps state of keys."""
        return StateKind.STATELESS if self.state is None else StateKind.PARTITIONED

    def keeps_keys(self, keys: tuple[str, ...]) -> bool:
        """Return whether every output tuple copies these fields from its input tuple, as far as the code shows."""
        if self.kind is FunctionKind.FILTER:
            return True
        if self.view is not View.TUPLES or self.concurrent is not None:
            return not keys
        flat = self.kind is FunctionKind.FLAT_MAP
        return kept_fields(self.function, self.input_schema, self.output_schema, flat=flat).issuperset(keys)

    @property
    def one_to_one(self) -> bool:
        """Whether it is a `map`."""
        return self.kind is FunctionKind.MAP

    def keeps_splits(self, spec: OperatorSpec) -> bool:
        """Forward announced splits, if it is stateless, calls one after the other and keeps its input's order."""
        in_order = spec.ordered in (None, Ordered.AS_INPUT)
        return self.state is None and self.concurrent is None and in_order and not spec.loop_edges

    def kept_form(self, spec: OperatorSpec) -> str:
        """Describe its state."""
        state = PICKLED if self.state_schema is None else f"record ({fields_form(self.state_schema)})"
        return f"{spec.key_form}, {state}"

    @property
    def flags(self) -> Flags:
        """The properties that the scheduler uses."""
        flags = Flags.NEEDS_TOKEN if self.lane.needs_python else Flags(0)
        if self.one_to_one:
            flags |= Flags.ONE_TO_ONE
        if self.kind is FunctionKind.FILTER:
            flags |= Flags.FILTER
        if self.state is not None:
            flags |= Flags.KEYED
        if self.machine is not None and self.machine.in_place:
            flags |= Flags.IN_PLACE
        return flags
