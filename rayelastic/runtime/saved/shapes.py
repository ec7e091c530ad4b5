"""How the state of an operator is laid out, so that it can be read without the topology: a part of each manifest.

Knows declarations; neither files nor native tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from rayelastic.compile.code.aggregate_code import AggregateCode
from rayelastic.compile.code.operator_code import OperatorCode
from rayelastic.compile.code.ports_code import PortsCode
from rayelastic.errors import StateError
from rayelastic.graph.operators.aggregates import Aggregation
from rayelastic.graph.operators.gates import Holding
from rayelastic.graph.operators.joins.by_key import Join, JoinKind
from rayelastic.graph.operators.joins.merge import Merge
from rayelastic.graph.operators.pacing import Delay
from rayelastic.graph.operators.patterns import Matching
from rayelastic.graph.operators.processes import KeyedProcess
from rayelastic.graph.operators.windows import Windowing
from rayelastic.graph.records.forms import plain_form
from rayelastic.graph.records.schema import Schema, laid_out
from rayelastic.graph.spec.operator_spec import StateKind
from rayelastic.runtime.operators.functions import NativeAggregate, native_aggregates
from rayelastic.runtime.operators.timed import NativeWindow, native_window

if TYPE_CHECKING:
    from rayelastic.graph.records.data_type import Column
    from rayelastic.graph.spec.operator_spec import OperatorSpec

__all__ = ["CROSS", "Columns", "Shape", "StateKindOf", "required", "shape_of", "shapes_of"]

Columns = tuple["Column", ...]
CROSS = "cross"  # the flag of joins that aren't by key
NO_TTL = (0, "", 0, "last")  # as the native layer takes it


class StateKindOf(Enum):
    """What there is of a key."""

    RECORD = "record"  # of fixed layout
    VALUE = "value"  # any Python value, pickled
    TIMERS = "timers"  # the same, with timers
    AGGREGATE = "aggregate"  # what aggregates need, whose results are shown
    WINDOW = "window"  # the same of windows that are open
    JOIN = "join"  # tuples of either side
    PATTERN = "pattern"  # tuples of sequences that have begun
    DELAY = "delay"  # tuples, and when they are due
    MERGE = "merge"  # tuples, and by which input they came
    HOLDING = "holding"  # what lets tuples wait is set to, and these, pickled
    OBJECT = "object"  # what the object of a class keeps, pickled


@dataclass(frozen=True, slots=True)
class Shape:
    """Of the keyed state of one operator. Goes through JSON by `asdict` and `Shape.from_json`.

    Args:
        kind: what there is of a key.
        keys: the key fields.
        values: of a record its fields, of aggregates what they give, of patterns and what waits the fields of tuples.
        ttl: time to live, as the native layer takes it; zeros: none.
        takes: of aggregates, the fields of the tuples; of joins, those of the left side, `values` being of the right.
        aggregates: as the native layer takes them.
        emit: when aggregates give their results.
        window: of windows, which; as the native layer takes it.
        flags: of joins, what is kept besides right tuples: 'symmetric', left ones, too; 'right', which had a match;
            'cross', it isn't by key. Of patterns the names of the steps, of merges those of the inputs, of what lets
            tuples wait that of what it is set to.
    """

    kind: StateKindOf
    keys: Columns
    values: Columns = ()
    ttl: tuple[int, str, int, str] = NO_TTL
    takes: Columns = ()
    aggregates: tuple[NativeAggregate, ...] = ()
    emit: str = ""
    window: NativeWindow | None = None
    flags: tuple[str, ...] = ()

    @property
    def is_by_key(self) -> bool:
        """Whether there is one thing of each key, to be looked up by it."""
        return self.kind in (StateKindOf.RECORD, StateKindOf.VALUE, StateKindOf.TIMERS, StateKindOf.AGGREGATE)

    def to_json(self) -> dict[str, Any]:
        """Return the same as JSON has it."""
        return {
            "kind": self.kind.value,
            "keys": self.keys,
            "values": self.values,
            "ttl": self.ttl,
            "takes": self.takes,
            "aggregates": self.aggregates,
            "emit": self.emit,
            "window": self.window,
            "flags": self.flags,
        }

    @staticmethod
    def from_json(held: Mapping[str, Any]) -> Shape:
        """Raise LookupError, TypeError or ValueError for what isn't one."""
        return Shape(
            StateKindOf(held["kind"]),
            _columns(held["keys"]),
            _columns(held["values"]),
            (int(held["ttl"][0]), str(held["ttl"][1]), int(held["ttl"][2]), str(held["ttl"][3])),
            _columns(held["takes"]),
            tuple((str(f), str(a), str(w), float(x), float(y)) for f, a, w, x, y in held["aggregates"]),
            str(held["emit"]),
            _window(held.get("window")),
            tuple(map(str, held.get("flags", ()))),
        )

    @property
    def key_schema(self) -> Schema:
        """Of the keys."""
        return laid_out("Key", self.keys)

    @property
    def every_column(self) -> Columns:
        """Of keys, of what is kept, of what an aggregate takes."""
        return (*self.keys, *self.values, *self.takes)

    @property
    def holds_objects(self) -> bool:
        """Whether objects of Python's, under the seal of the job's topology, are in what aggregates keep."""
        return any(plain_form(text).holds_objects for _, text, _ in self.every_column)

    @property
    def value_schema(self) -> Schema:
        """Of a state record."""
        return laid_out("State", self.values)


def _window(held: Sequence[Any] | None) -> NativeWindow | None:
    if held is None:
        return None
    kind, size, slide, field, shift, rest, lateness, *times = held
    offset, zone, per_second = times or (0, "", 1)
    return NativeWindow(
        str(kind), int(size), int(slide), str(field), int(shift), bool(rest), int(lateness),
        int(offset), str(zone), int(per_second),
    )  # fmt: skip


def _columns(held: Iterable[Sequence[Any]]) -> Columns:
    return tuple((str(name), str(text), bool(nullable)) for name, text, nullable in held)


def columns_of(schema: Schema, names: Sequence[str] | None = None) -> Columns:
    """Return the fields of a schema, or some of them in this order."""
    fields = schema.fields if names is None else [schema.field(name) for name in names]
    return tuple((field.name, field.format, field.nullable) for field in fields)


def shape_of(spec: OperatorSpec) -> Shape | None:
    """How the state of an operator is laid out; None if it keeps none by key, or none that can be shown."""
    body, schema = spec.body, spec.input_schema
    if schema is None:
        return None
    keys = columns_of(schema, spec.keys)
    ttl = NO_TTL if spec.ttl is None else spec.ttl.described
    match body:
        case OperatorCode(state_schema=Schema() as record):
            return Shape(StateKindOf.RECORD, keys, columns_of(record), ttl)
        case OperatorCode() if body.state is not None:
            return Shape(StateKindOf.VALUE, keys, (), ttl)
        case KeyedProcess(code=None):
            return Shape(StateKindOf.TIMERS, keys, (), ttl)
        case Aggregation(own=AggregateCode() as own):
            return Shape(StateKindOf.RECORD, keys, columns_of(own.state_schema), ttl)
        case Aggregation(partial=False) if spec.output_schema is not None:
            gives, made = columns_of(spec.output_schema), tuple(native_aggregates(body.aggregates))
            taken = {name for _, one in body.aggregates for name in (one.field, one.weight) if name is not None}
            takes = columns_of(schema, [name for name in schema.names if name in taken.union(spec.keys)])
            return Shape(StateKindOf.AGGREGATE, keys, gives, ttl, takes, made, body.emit.value)
        case Windowing(own=None) if spec.output_schema is not None:
            made, at = tuple(native_aggregates(body.aggregates)), native_window(body.window)
            gives = columns_of(spec.output_schema)
            return Shape(StateKindOf.WINDOW, keys, gives, ttl, columns_of(schema), made, window=at)
        case Join():
            of_pairs = body.kind is JoinKind.PAIRS
            is_so = {
                "symmetric": body.symmetric or of_pairs,
                "right": body.how.of_right or of_pairs or (ttl != NO_TTL and body.left_time is not None),
                CROSS: body.kind is JoinKind.CROSS,
            }
            flags = tuple(flag for flag, holds in is_so.items() if holds)
            left, right = (columns_of(port.schema) for port in spec.inputs)
            return Shape(StateKindOf.JOIN, keys, right, ttl, left, flags=flags)
        case Matching():
            return Shape(
                StateKindOf.PATTERN, keys, columns_of(schema), ttl, flags=tuple(name for name, _, _ in body.steps)
            )
        case Delay():
            return Shape(StateKindOf.DELAY, (), columns_of(schema))
        case Merge():
            return Shape(StateKindOf.MERGE, (), columns_of(schema), flags=tuple(port.name for port in spec.inputs))
        case PortsCode() if body.state is not None:
            return Shape(StateKindOf.VALUE, keys, (), ttl)
        case PortsCode(instance=Holding() as holding):
            return Shape(StateKindOf.HOLDING, (), columns_of(schema), flags=(holding.setting,))
        case PortsCode() if spec.state_kind is StateKind.STATEFUL and not body.is_conjunctive:
            return Shape(StateKindOf.OBJECT, ())
    return None


def shapes_of(operators: Iterable[OperatorSpec]) -> dict[str, dict[str, Any]]:
    """Those of all operators that have one, for a manifest; not with objects, which only their job opens."""
    shapes = {spec.name: shape_of(spec) for spec in operators}
    return {name: shape.to_json() for name, shape in shapes.items() if shape is not None and not shape.holds_objects}


def required(shape: Shape | None, operator: str, form: str | None) -> Shape:
    """Return the shape, if there is one.

    Raises:
        StateError: the operator keeps nothing by key, or nothing that can be shown.
    """
    if shape is not None:
        return shape
    if form is None:
        raise StateError("it keeps no state", operator=operator, hint="Name an operator that keeps state by key")
    raise StateError(
        f"what it keeps ({form}) can't be looked at: what keys have, and tuples that wait in time can",
        operator=operator,
        hint="Look at what it gives",
    )
