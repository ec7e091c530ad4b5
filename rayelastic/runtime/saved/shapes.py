"""How the state of an operator is laid out, so that it can be read without the topology: a part of each manifest.

Knows declarations; neither files nor native tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from rayelastic.compile.code.operator_code import OperatorCode
from rayelastic.errors import StateError
from rayelastic.graph.operators.aggregates import Aggregation
from rayelastic.graph.operators.processes import KeyedProcess
from rayelastic.graph.records.schema import Schema, laid_out
from rayelastic.runtime.operators.functions import NativeAggregate, native_aggregates

if TYPE_CHECKING:
    from rayelastic.graph.records.data_type import Column
    from rayelastic.graph.spec.operator_spec import OperatorSpec

__all__ = ["Shape", "StateKindOf", "required", "shape_of", "shapes_of"]

Columns = tuple["Column", ...]
NO_TTL = (0, "", 0, "last")  # as the native layer takes it


class StateKindOf(Enum):
    """What there is of a key."""

    RECORD = "record"  # of fixed layout
    VALUE = "value"  # any Python value, pickled
    TIMERS = "timers"  # the same, with timers
    AGGREGATE = "aggregate"  # what aggregates need, whose results are shown


@dataclass(frozen=True, slots=True)
class Shape:
    """Of the keyed state of one operator. Goes through JSON by `asdict` and `Shape.from_json`.

    Args:
        kind: what there is of a key.
        keys: the key fields.
        values: of a record its fields, of aggregates what they give.
        ttl: time to live, as the native layer takes it; zeros: none.
        takes: of aggregates, the fields of the tuples.
        aggregates: as the native layer takes them.
        emit: when aggregates give their results.
    """

    kind: StateKindOf
    keys: Columns
    values: Columns = ()
    ttl: tuple[int, str, int, str] = NO_TTL
    takes: Columns = ()
    aggregates: tuple[NativeAggregate, ...] = ()
    emit: str = ""

    def to_json(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return {
            "kind": self.kind.value,
            "keys": self.keys,
            "values": self.values,
            "ttl": self.ttl,
            "takes": self.takes,
            "aggregates": self.aggregates,
            "emit": self.emit,
        }

    @staticmethod
    def from_json(held: Mapping[str, Any]) -> Shape:
        """Raises LookupError, TypeError or ValueError for what isn't one."""
        return Shape(
            StateKindOf(held["kind"]),
            _columns(held["keys"]),
            _columns(held["values"]),
            (int(held["ttl"][0]), str(held["ttl"][1]), int(held["ttl"][2]), str(held["ttl"][3])),
            _columns(held["takes"]),
            tuple((str(f), str(a), str(w), float(x), float(y)) for f, a, w, x, y in held["aggregates"]),
            str(held["emit"]),
        )

    @property
    def key_schema(self) -> Schema:
        """Of the keys."""
        return laid_out("Key", self.keys)

    @property
    def value_schema(self) -> Schema:
        """Of a state record."""
        return laid_out("State", self.values)


def _columns(held: Iterable[Sequence[Any]]) -> Columns:
    return tuple((str(name), str(text), bool(nullable)) for name, text, nullable in held)


def columns_of(schema: Schema, names: Sequence[str] | None = None) -> Columns:
    """The fields of a schema, or some of them in this order."""
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
        case Aggregation() if spec.output_schema is not None:
            gives, made = columns_of(spec.output_schema), tuple(native_aggregates(body.aggregates))
            return Shape(StateKindOf.AGGREGATE, keys, gives, ttl, columns_of(schema), made, body.emit.value)
    return None


def shapes_of(operators: Iterable[OperatorSpec]) -> dict[str, dict[str, Any]]:
    """Those of all operators that have one, for a manifest."""
    shapes = {spec.name: shape_of(spec) for spec in operators}
    return {name: shape.to_json() for name, shape in shapes.items() if shape is not None}


def required(shape: Shape | None, operator: str, form: str | None) -> Shape:
    """The shape, if there is one.

    Raises:
        StateError: the operator keeps nothing by key, or nothing that can be shown.
    """
    if shape is not None:
        return shape
    if form is None:
        raise StateError("it keeps no state", operator=operator, way_out="Name an operator that keeps state by key")
    raise StateError(
        f"what it keeps ({form}) can't be looked at: only the state of keys and aggregates can",
        operator=operator,
        way_out="Look at what it gives",
    )
