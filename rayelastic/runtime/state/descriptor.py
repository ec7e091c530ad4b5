"""Descriptors of operators' state, a part of each manifest, so that state is read without the topology.

A descriptor has what the native operator is made of, without the user's functions. That operator imports exported state
and returns its rows (tables.py). Nothing here knows how state is laid out in bytes. Knows declarations, no files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from rayelastic.compile.code.aggregate_code import AggregateCode
from rayelastic.compile.code.operator_code import OperatorCode
from rayelastic.compile.code.ports_code import PortsCode
from rayelastic.errors import ErrorCode, StateError
from rayelastic.graph.operators.aggregation import Aggregation
from rayelastic.graph.operators.gates import Holding
from rayelastic.graph.operators.joins.by_key import Join
from rayelastic.graph.operators.joins.merge import Merge
from rayelastic.graph.operators.pacing import Delay
from rayelastic.graph.operators.patterns import Matching
from rayelastic.graph.operators.processes import KeyedProcess
from rayelastic.graph.operators.window_function import WindowFunction
from rayelastic.graph.operators.windows import Windowing
from rayelastic.graph.records.forms import plain_form
from rayelastic.graph.records.schema import Schema, laid_out
from rayelastic.graph.spec.operator_spec import StateKind
from rayelastic.runtime.operators.natives import (
    NativeAggregate,
    join_arguments,
    merge_arguments,
    native_aggregates,
    pattern_arguments,
    window_arguments,
)

if TYPE_CHECKING:
    from rayelastic.graph.records.data_type import Column
    from rayelastic.graph.spec.operator_spec import OperatorSpec

Columns = tuple["Column", ...]
NO_TTL = (0, "", 0, "last")  # as the native layer takes it
_OLDER = ("kind", "size", "slide", "time", "shift", "rest", "lateness")
WIDER = {"c": "sil", "s": "il", "i": "l", "C": "SILsil", "S": "ILil", "I": "Ll", "e": "fg", "f": "g"}  # Arrow formats


class StateKindOf(Enum):
    """The kind of a key's state."""

    RECORD = "record"  # of fixed layout
    VALUE = "value"  # any Python value, pickled
    TIMERS = "timers"  # the same, with timers
    AGGREGATE = "aggregate"  # the state of aggregates, shown as their results
    WINDOW = "window"  # the same of open windows
    FUNCTION = "function"  # open windows of functions: any Python values, pickled
    FOLD = "fold"  # the same, compiled: the fields that are emitted
    JOIN = "join"  # tuples of either side
    PATTERN = "pattern"  # tuples of open sequences
    DELAY = "delay"  # tuples, and when they are due
    MERGE = "merge"  # tuples, and their input
    HOLDING = "holding"  # the setting of a switch or gate, and its tuples, pickled
    OBJECT = "object"  # the state of a class's object, pickled


@dataclass(frozen=True, slots=True)
class StateDescriptor:
    """What the native operator that keeps some state is made of. Converted to JSON and back.

    Args:
        kind: The kind of a key's state.
        keys: The key fields.
        values: The fields of a record, of an aggregate's results, or of the kept tuples.
        ttl: The time to live, for the native layer; zeros: none.
        takes: For aggregates, the fields of their input; for joins, those of the left, `values` being the right's.
        aggregates: The aggregates, for the native layer.
        flags: For patterns the names of the steps, for merges those of the inputs, for switches and gates that of
            their setting.
        arguments: Of windows, joins, patterns and merges, further arguments of the native operator by name.
        record: Of compiled windows of functions, the fields of the state of one.
    """

    kind: StateKindOf
    keys: Columns
    values: Columns = ()
    ttl: tuple[int, str, int, str] = NO_TTL
    takes: Columns = ()
    aggregates: tuple[NativeAggregate, ...] = ()
    flags: tuple[str, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    record: Columns = ()

    @property
    def is_by_key(self) -> bool:
        """Whether each key has one value, to be looked up by the key."""
        return self.kind in (
            StateKindOf.RECORD,
            StateKindOf.VALUE,
            StateKindOf.TIMERS,
            StateKindOf.AGGREGATE,
            StateKindOf.FUNCTION,
            StateKindOf.FOLD,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the same as JSON has it."""
        return {part.name: getattr(self, part.name) for part in fields(self)} | {"kind": self.kind.value}

    @staticmethod
    def from_json(held: Mapping[str, Any]) -> StateDescriptor:
        """Raise LookupError, TypeError or ValueError for what isn't one."""
        return StateDescriptor(
            StateKindOf(held["kind"]),
            _columns(held["keys"]),
            _columns(held["values"]),
            (int(held["ttl"][0]), str(held["ttl"][1]), int(held["ttl"][2]), str(held["ttl"][3])),
            _columns(held["takes"]),
            tuple((str(f), str(a), str(w), float(x), float(y)) for f, a, w, x, y in held["aggregates"]),
            tuple(map(str, held.get("flags", ()))),
            _arguments(held),
            _columns(held.get("record", ())),
        )

    @property
    def key_schema(self) -> Schema:
        """The schema of the keys."""
        return laid_out("Key", self.keys)

    @property
    def key_names(self) -> list[str]:
        """The names of the key fields."""
        return [name for name, _, _ in self.keys]

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
        """The schema of a state record, or of the tuples that are kept."""
        return laid_out("State", self.values)

    @property
    def accumulated(self) -> Columns:
        """Of compiled windows of functions, the fields behind those of the window."""
        return self.values[len(self.keys) + (3 if self.arguments["lateness"] else 2) :]

    @property
    def left_schema(self) -> Schema:
        """The schema of a join's left tuples, or of an aggregate's input."""
        return laid_out("Input", self.takes)


def _arguments(held: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments; those of windows were a list in snapshots before 0.3."""
    older = held.get("window")
    if older is None:
        return dict(held.get("arguments", {}))
    *options, offset, zone, per_second = older if len(older) > len(_OLDER) else (*older, 0, "", 1)
    return {**dict(zip(_OLDER, options, strict=True)), "times": (offset, zone, per_second)}


def _columns(held: Iterable[Sequence[Any]]) -> Columns:
    return tuple((str(name), str(text), bool(nullable)) for name, text, nullable in held)


def columns_of(schema: Schema, names: Sequence[str] | None = None) -> Columns:
    """Return the fields of a schema, or some of them in this order."""
    fields = schema.fields if names is None else [schema.field(name) for name in names]
    return tuple((field.name, field.format, field.nullable) for field in fields)


def descriptor_of(spec: OperatorSpec) -> StateDescriptor | None:
    """Return the descriptor of an operator's state; None if it keeps none by key, or none that can be shown."""
    body, schema = spec.body, spec.input_schema
    if schema is None:
        return None
    keys = columns_of(schema, spec.keys)
    ttl = NO_TTL if spec.ttl is None else spec.ttl.described
    match body:
        case OperatorCode(state_schema=Schema() as record):
            return StateDescriptor(StateKindOf.RECORD, keys, columns_of(record), ttl)
        case OperatorCode() if body.state is not None:
            return StateDescriptor(StateKindOf.VALUE, keys, (), ttl)
        case KeyedProcess(code=None):
            return StateDescriptor(StateKindOf.TIMERS, keys, (), ttl)
        case Aggregation(own=AggregateCode() as own):
            return StateDescriptor(StateKindOf.RECORD, keys, columns_of(own.state_schema), ttl)
        case Aggregation(partial=False) if spec.output_schema is not None:
            results, aggregates = columns_of(spec.output_schema), tuple(native_aggregates(body.aggregates))
            taken = {name for _, aggregate in body.aggregates for name in (aggregate.field, aggregate.weight)}
            takes = columns_of(schema, [name for name in schema.names if name in {*taken, *spec.keys, ttl[1]}])
            return StateDescriptor(StateKindOf.AGGREGATE, keys, results, ttl, takes, aggregates)
        case Windowing(function=WindowFunction(moment=moment)):
            takes, arguments = columns_of(schema), window_arguments(body.window)
            return StateDescriptor(StateKindOf.FUNCTION, keys, columns_of(moment), ttl, takes, arguments=arguments)
        case Windowing(own=AggregateCode() as own, in_order=True) if spec.output_schema is not None:
            results, takes, arguments = (
                columns_of(spec.output_schema),
                columns_of(schema),
                window_arguments(body.window),
            )
            return StateDescriptor(
                StateKindOf.FOLD,
                keys,
                results,
                takes=takes,
                arguments={**arguments, "in_order": True},
                record=columns_of(own.state_schema),
            )
        case Windowing(own=None) if spec.output_schema is not None:
            aggregates, arguments = tuple(native_aggregates(body.aggregates)), window_arguments(body.window)
            results, takes = columns_of(spec.output_schema), columns_of(schema)
            return StateDescriptor(StateKindOf.WINDOW, keys, results, ttl, takes, aggregates, arguments=arguments)
        case Join():
            left, right = (columns_of(port.schema) for port in spec.inputs)
            return StateDescriptor(StateKindOf.JOIN, keys, right, ttl, left, arguments=join_arguments(spec))
        case Matching():
            steps = tuple(name for name, _, _ in body.steps)
            arguments = pattern_arguments(spec)
            return StateDescriptor(StateKindOf.PATTERN, keys, columns_of(schema), ttl, flags=steps, arguments=arguments)
        case Delay():
            return StateDescriptor(StateKindOf.DELAY, (), columns_of(schema))
        case Merge():
            inputs, arguments = tuple(port.name for port in spec.inputs), merge_arguments(spec)
            return StateDescriptor(StateKindOf.MERGE, (), columns_of(schema), flags=inputs, arguments=arguments)
        case PortsCode() if body.state is not None:
            return StateDescriptor(StateKindOf.VALUE, keys, (), ttl)
        case PortsCode(instance=Holding() as holding):
            return StateDescriptor(StateKindOf.HOLDING, (), columns_of(schema), flags=(holding.setting,))
        case PortsCode() if spec.state_kind is StateKind.STATEFUL and not body.is_conjunctive:
            return StateDescriptor(StateKindOf.OBJECT, ())
    return None


def descriptors_of(operators: Iterable[OperatorSpec]) -> dict[str, dict[str, Any]]:
    """Return the descriptors of all operators that have one, for a manifest; not those with sealed objects."""
    known = ((spec.name, descriptor_of(spec)) for spec in operators)
    return {name: state.to_json() for name, state in known if state is not None and not state.holds_objects}


def keeps_objects(spec: OperatorSpec) -> bool:
    """Return whether native state of an operator has Python objects, which only the topology's seal opens."""
    state, schema = descriptor_of(spec), spec.input_schema
    if state is None or schema is None:
        return False
    if isinstance(spec.body, Windowing) and not spec.body.keeps_tuples:  # but what it aggregates
        names = {name for _, one in spec.body.aggregates for name in (one.field, one.weight)}
        columns = columns_of(schema, [name for name in schema.names if name in names])
        return replace(state, values=(), takes=columns).holds_objects
    return state.holds_objects


def required(descriptor: StateDescriptor | None, operator: str, form: str | None) -> StateDescriptor:
    """Return the descriptor, if there is one.

    Raises:
        StateError: The operator keeps nothing by key, or nothing that can be shown.
    """
    if descriptor is not None:
        return descriptor
    if form is None:
        hint = "Name an operator that keeps state by key"
        raise StateError("it keeps no state", operator=operator, hint=hint, code=ErrorCode.NO_STATE)
    problem = f"what it keeps ({form}) can't be read: only the state of keys and waiting tuples can"
    raise StateError(problem, operator=operator, hint="Read what it emits", code=ErrorCode.STATE_NOT_READABLE)


def older_records(held: Mapping[str, Any] | None, spec: OperatorSpec) -> StateDescriptor | None:
    """Return the descriptor of saved records that the operator's state can import as older ones.

    Args:
        held: The manifest's descriptor of the state.
        spec: The operator.

    Returns:
        The descriptor; None if the records don't fit, or are as they are declared now.
    """
    new = descriptor_of(spec)
    if held is None or new is None or new.kind is not StateKindOf.RECORD or not isinstance(spec.body, OperatorCode):
        return None
    try:
        old = StateDescriptor.from_json(held)
    except (LookupError, TypeError, ValueError):  # a changed manifest: the check of its forms reports the difference
        return None
    if (old.kind, old.keys, old.ttl) != (new.kind, new.keys, new.ttl) or old.values == new.values:
        return None
    now = {column[0]: column for column in new.values}
    return old if all(column[0] in now and _fits(column, now[column[0]]) for column in old.values) else None


def _fits(old: Column, new: Column) -> bool:
    _, was, could_be_null = old
    _, now, may_be_null = new
    return (was == now or now in WIDER.get(was, "")) and (may_be_null or not could_be_null)
