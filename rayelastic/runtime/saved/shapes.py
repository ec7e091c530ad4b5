"""The layout of an operator's state, a part of each manifest, so that it can be read without the topology.

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
from rayelastic.errors import ErrorCode, StateError
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
    """The kind of a key's state."""

    RECORD = "record"  # of fixed layout
    VALUE = "value"  # any Python value, pickled
    TIMERS = "timers"  # the same, with timers
    AGGREGATE = "aggregate"  # the state of aggregates, shown as their results
    WINDOW = "window"  # the same of open windows
    JOIN = "join"  # tuples of either side
    PATTERN = "pattern"  # tuples of open sequences
    DELAY = "delay"  # tuples, and when they are due
    MERGE = "merge"  # tuples, and their input
    HOLDING = "holding"  # the setting of a switch or gate, and its tuples, pickled
    OBJECT = "object"  # the state of a class's object, pickled


@dataclass(frozen=True, slots=True)
class Shape:
    """The layout of one operator's keyed state. Converted to JSON and back by `asdict` and `Shape.from_json`.

    Args:
        kind: The kind of a key's state.
        keys: The key fields.
        values: The fields of a record, of an aggregate's results, or of the kept tuples.
        ttl: The time to live, for the native layer; zeros: none.
        takes: For aggregates, the fields of their input; for joins, those of the left, `values` being the right's.
        aggregates: The aggregates, for the native layer.
        emit: When aggregates emit their results.
        window: The window, for the native layer.
        flags: For joins, what is kept besides right tuples: 'symmetric', left ones, too; 'right', which had a match;
            'cross', it isn't by key. For patterns the names of the steps, for merges those of the inputs, for switches
            and gates that of their setting.
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
        """Whether each key has one value, to be looked up by the key."""
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
        """The schema of the keys."""
        return laid_out("Key", self.keys)

    @property
    def every_column(self) -> Columns:
        """Columns of keys, of the state, and of an aggregate's input."""
        return (*self.keys, *self.values, *self.takes)

    @property
    def holds_objects(self) -> bool:
        """Whether the state of aggregates has Python objects, under the seal of the job's topology."""
        return any(plain_form(text).holds_objects for _, text, _ in self.every_column)

    @property
    def value_schema(self) -> Schema:
        """The schema of a state record."""
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
    """Return the layout of an operator's state; None if it keeps none by key, or none that can be shown."""
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
            taken = {
                name
                for _, aggregate in body.aggregates
                for name in (aggregate.field, aggregate.weight)
                if name is not None
            }
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
    """Return the layouts of all operators that have one, for a manifest; not those with sealed objects."""
    shapes = {spec.name: shape_of(spec) for spec in operators}
    return {name: shape.to_json() for name, shape in shapes.items() if shape is not None and not shape.holds_objects}


def required(shape: Shape | None, operator: str, form: str | None) -> Shape:
    """Return the shape, if there is one.

    Raises:
        StateError: The operator keeps nothing by key, or nothing that can be shown.
    """
    if shape is not None:
        return shape
    if form is None:
        raise StateError(
            "it keeps no state",
            operator=operator,
            hint="Name an operator that keeps state by key",
            code=ErrorCode.NO_STATE,
        )
    raise StateError(
        f"what it keeps ({form}) can't be read: only the state of keys and waiting tuples can",
        operator=operator,
        hint="Read what it emits",
        code=ErrorCode.STATE_NOT_READABLE,
    )
