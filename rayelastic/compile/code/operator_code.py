"""What a user's function became: a value that can be shipped.

Architecture section 4. Holds no Numba object: machine code is bytes here, an address after `load`. Knows nothing of
plans, schedulers or Ray.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntFlag
from typing import Any

from rayelastic.compile.reading.kept_fields import kept_fields
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.concurrency import Concurrency
from rayelastic.graph.spec.operator_spec import Lane, OperatorKind

__all__ = ["Flags", "MachineCode", "OperatorCode", "View"]


class Flags(IntFlag):
    """What the scheduler has to know of an operator function: rel_flags of native_sched/include/rayelastic/abi.h."""

    ONE_TO_ONE = 1
    FILTER = 2
    IN_PLACE = 4
    KEYED = 8
    NEEDS_TOKEN = 16
    SOURCE = 32
    SINK = 64
    ON_FINISH = 128
    ON_WATERMARK = 256


class View(Enum):
    """What a Python function is called with."""

    TUPLES = "tuples"  # one tuple at a time
    NUMPY = "numpy"  # a structured array over the records of a run
    ARROW = "arrow"  # a pyarrow.RecordBatch of a run


@dataclass(frozen=True, slots=True)
class MachineCode:
    """Relocatable machine code of one operator function.

    Args:
        entry: symbol with the signature rel_process of abi.h.
        image: an object file; refers to engine services and libc by name, never by address.
        imports: names that it needs from outside.
        target: processor and features that it was compiled for.
        key: hash of all that it was made of.
        in_place: whether the output buffer may be the input buffer.
    """

    entry: str
    image: bytes
    imports: tuple[str, ...]
    target: str
    key: str
    in_place: bool


@dataclass(frozen=True, slots=True)
class OperatorCode:
    """A user's function in its lane. Picklable with cloudpickle; `load` makes it runnable.

    Args:
        operator: its name, for messages.
        kind: MAP, FILTER or FLAT_MAP.
        lane: COMPILED, VECTORISED or PYTHON.
        reason: why that lane, in words.
        function: what the user wrote.
        input_schema: of the tuples that it gets.
        output_schema: of the tuples that it gives.
        keys: key fields where it is keyed, else empty.
        state: what makes the initial state of a key, None if stateless.
        state_schema: layout of the state record where it has one (compiled lane, keyed), else None.
        state_initial: the record of a key seen for the first time, `state_schema.record_size` bytes.
        view: what the function is called with.
        machine: the machine code in the compiled lane, else None.
        frozen: names of data outside a compiled function, which it takes as it was at declaration.
        frozen_digest: a hash of that data; None if it has none.
        location: 'file.py:12' of the declaration.
        concurrent: how many calls wait at the same time; None: one comes after the other.
    """

    operator: str
    kind: OperatorKind
    lane: Lane
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

    @property
    def kept(self) -> frozenset[str]:
        """The fields that every tuple has as the one had that it was made of, as far as can be told."""
        if self.kind is OperatorKind.FILTER:
            return frozenset(self.input_schema.names)
        if self.view is not View.TUPLES or self.concurrent is not None:
            return frozenset()
        flat = self.kind is OperatorKind.FLAT_MAP
        return kept_fields(self.function, self.input_schema, self.output_schema, flat=flat)

    @property
    def flags(self) -> Flags:
        """What the scheduler has to know of it."""
        flags = Flags.NEEDS_TOKEN if self.lane.needs_python else Flags(0)
        if self.kind is OperatorKind.MAP:
            flags |= Flags.ONE_TO_ONE
        if self.kind is OperatorKind.FILTER:
            flags |= Flags.FILTER
        if self.state is not None:
            flags |= Flags.KEYED
        if self.machine is not None and self.machine.in_place:
            flags |= Flags.IN_PLACE
        return flags
