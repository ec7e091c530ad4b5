"""`aggregate`: an operator that aggregates the tuples of each key, or of the whole stream, natively.

In two steps it is two operators. The first aggregates each run of tuples, has no state, and so may run anywhere on any
tuples of any key. The second merges these partial results by key. A hot key then costs no single replica more work.
Knows no threads, PEs or native code.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rayelastic.errors import ErrorCode, GraphError, SchemaError
from rayelastic.graph.operators.aggregates import (
    AggregateFunction,
    AggregateSpec,
    Emit,
    Named,
    TopK,
    aggregated,
    aggregates_form,
    check_updates,
    fields_of,
)
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.forms import decimal_form
from rayelastic.graph.records.schema import Field, Schema, laid_out
from rayelastic.graph.records.shown import conflict, shown
from rayelastic.graph.spec.declaration import NewOperator
from rayelastic.graph.spec.operator_spec import Lane, OperatorBody, OperatorSpec, StateKind
from rayelastic.graph.spec.order import runs_anywhere
from rayelastic.graph.spec.ports import OUT, OutputPort
from rayelastic.graph.spec.requests import CompiledAggregate
from rayelastic.graph.spec.upstream import Upstream

LARGEST_PRECISION = 38  # digits of a decimal

_SECOND = {  # the function that merges a function's partial results
    AggregateFunction.COUNT: AggregateFunction.SUM,
    AggregateFunction.SUM: AggregateFunction.SUM,
    AggregateFunction.MIN: AggregateFunction.MIN,
    AggregateFunction.MAX: AggregateFunction.MAX,
    AggregateFunction.FIRST: AggregateFunction.FIRST,
    AggregateFunction.LAST: AggregateFunction.LAST,
}

_FUNCTIONS = ("count", "sum", "min", "max", "mean", "first", "last")  # by the names of other systems
_IN_ANY_ORDER = (AggregateFunction.COUNT, AggregateFunction.SUM, AggregateFunction.MIN, AggregateFunction.MAX)


@dataclass(frozen=True, slots=True)
class Aggregation(OperatorBody):
    """What an aggregate operator computes.

    Args:
        aggregates: (output field, aggregate), in declared order.
        emit: When it emits.
        own: A user's own aggregate, instead of `aggregates`.
        partial: Whether it is the first of two steps: it emits a partial result for each run and keeps no state.
    """

    aggregates: tuple[tuple[str, AggregateSpec], ...]
    emit: Emit = Emit.FINAL
    own: CompiledAggregate | None = None
    partial: bool = False
    operator_kind = "aggregate"
    ends_time = True
    takes_turns = True

    @property
    def lane(self) -> Lane:
        """The execution mode."""
        return Lane.BUILT_IN if self.own is None else Lane.COMPILED

    @property
    def ends(self) -> bool:
        """Whether it emits when the input ends."""
        return self.emit is Emit.FINAL

    @property
    def reason(self) -> str:
        """Describe the operator for `explain()`."""
        return aggregated(self.aggregates, self.own) + (", of what comes at a time" if self.partial else "")

    @property
    def runs_user_code(self) -> bool:
        """Whether the aggregate is the user's own."""
        return self.own is not None

    def state_kind(self, keys: tuple[str, ...]) -> StateKind:
        """Return STATELESS for the first of two steps."""
        return StateKind.STATELESS if self.partial else OperatorBody.state_kind(self, keys)

    def keeps_keys(self, keys: tuple[str, ...]) -> bool:  # noqa: ARG002
        """Return False for the first of two steps, which is to run on any tuples of any key."""
        return not self.partial

    def reads(self, spec: OperatorSpec, port: int) -> Collection[str] | None:  # noqa: ARG002
        """Return the aggregated fields; None for a user's own aggregate."""
        return None if self.own is not None else fields_of(self.aggregates)

    def kept_form(self, spec: OperatorSpec) -> str:
        """Describe its state."""
        return f"{spec.key_form}, {aggregates_form(self.aggregates, self.own)}"


def by_name(
    named: Iterable[object], aggregates: Mapping[str, AggregateSpec | TopK]
) -> Mapping[str, AggregateSpec | TopK]:
    """Put aggregates that were passed by position before the others; one without a name has that of its field.

    Raises:
        GraphError: no aggregate, or two of one name.
    """
    found: dict[str, AggregateSpec | TopK] = {}
    for one in named:
        if isinstance(one, AggregateSpec):
            one = one.alias(one.field or one.function.value)
        if not isinstance(one, Named):
            raise GraphError(
                f"{shown(one)} isn't an aggregate",
                hint="Write .aggregate(total=rel.sum('field'), n=rel.count())",
                code=ErrorCode.NOT_AN_AGGREGATE,
            )
        if one.name in found or one.name in aggregates:
            raise GraphError(f"there are two aggregates '{one.name}'", hint="Rename one", code=ErrorCode.DUPLICATE_NAME)
        found[one.name] = one.spec
    return {**found, **aggregates}


def expanded(aggregates: Mapping[str, Any]) -> dict[str, AggregateSpec]:
    """List one aggregate for each output field, in declared order.

    Raises:
        GraphError: not an aggregate, or two for one field.
    """
    found: dict[str, AggregateSpec] = {}
    for output, spec in aggregates.items():
        if not isinstance(spec, AggregateSpec | TopK):
            hint = "Use rel.count(), or rel.sum, mean, min, max, first, last, ... of a field"
            match spec:
                case str(function) | (function,) if function in _FUNCTIONS:
                    hint = f"Write {output}=rel.{function}({'' if function == 'count' else repr(output)})"
                case (str(field), str(function)) if function in _FUNCTIONS:
                    hint = f"Write {output}=rel.{function}({field!r})"
            raise GraphError(f"{output}={shown(spec)} isn't an aggregate", hint=hint, code=ErrorCode.NOT_AN_AGGREGATE)
        for name, one in spec.ranks(output).items() if isinstance(spec, TopK) else [(output, spec)]:
            if name in found:
                raise GraphError(f"there are two aggregates '{name}'", hint="Rename one", code=ErrorCode.DUPLICATE_NAME)
            found[name] = one
    return found


def aggregate(
    up: Upstream,
    name: str,
    aggregates: Mapping[str, AggregateSpec | TopK],
    emit: str | Emit = Emit.FINAL,
    ttl: object = None,
) -> OperatorSpec:
    """See ``Stream.aggregate``."""
    with NewOperator(name, up.operators) as location:
        when = Emit(emit)
        wanted = expanded(aggregates)
        gives = aggregated_schema(name, up.schema, up.keys, wanted)
        check_updates(ttl, when)
        lives = up.time_to_live(ttl, None if up.keys else "key_by(...)", changes="each tuple changes an aggregate")
        return up.operator(
            name,
            Aggregation(tuple(wanted.items()), when),
            location,
            (OutputPort(OUT, gives),),
            keys=up.keys,
            ttl=lives,
        )


def aggregate_in_two_steps(
    up: Upstream, name: str, aggregates: Mapping[str, AggregateSpec | TopK], emit: str | Emit, ttl: object
) -> tuple[OperatorSpec, OperatorSpec]:
    """Declare the two steps `NAME.partial` and `NAME`; see ``Stream.aggregate`` with two_steps=True."""
    with NewOperator(name, up.operators):
        if emit not in (Emit.FINAL, Emit.FINAL.value) or ttl is not None:
            raise conflict(
                "two_steps=True needs emit='final': updates follow each tuple",
                "Leave two_steps=, or emit= and ttl=, out",
            )
        wanted = expanded(aggregates)
        single = [f"{output}={spec}" for output, spec in wanted.items() if spec.function not in _SECOND]
        if single:
            raise GraphError(
                f"two_steps=True, but {', '.join(single)} can't be merged from partial results",
                hint="Use count, sum, min, max, first or last: a mean is a sum and a count",
                code=ErrorCode.NOT_MERGEABLE,
            )
    with NewOperator(f"{name}.partial", up.operators) as location:
        gives = aggregated_schema(f"{name}.partial", up.schema, up.keys, wanted)
        partial = up.operator(
            f"{name}.partial",
            Aggregation(tuple(wanted.items()), partial=True),
            location,
            (OutputPort(OUT, gives),),
            keys=up.keys,
        )
    second = {
        output: AggregateSpec(_SECOND[spec.function], output, first=spec.first) for output, spec in wanted.items()
    }
    return partial, aggregate(up.behind(partial, up.keys), name, second)


def can_have_two_steps(spec: OperatorSpec, operators: Mapping[str, OperatorSpec]) -> bool:
    """Return whether an operator is an aggregate in one step that could be declared in two.

    Args:
        spec: The operator.
        operators: All operators of its topology, by name.
    """
    body = spec.body
    if not isinstance(body, Aggregation) or body.own or body.partial or body.emit is not Emit.FINAL:
        return False
    above = [operators[name].body for name in spec.upstream]
    if any(isinstance(aggregate, Aggregation) and aggregate.partial for aggregate in above):
        return False
    return all(aggregate.function in _SECOND for _, aggregate in body.aggregates)


def has_two_steps_by_itself(spec: OperatorSpec, operators: Mapping[str, OperatorSpec]) -> bool:
    """Return whether an aggregate is split into two steps automatically.

    Two steps help downstream of a Python function that follows a source: otherwise the function may have to be
    replicated by key, too. Next to a Python call, the first step costs little. An aggregate qualifies if
    any order of the tuples has the same results, to the last bit.

    Args:
        spec: The aggregate in one step.
        operators: The operators declared before it.
    """
    if not spec.keys or f"{spec.name}.partial" in operators or not can_have_two_steps(spec, operators):
        return False
    body, gives = spec.body, spec.output_schema
    if not isinstance(body, Aggregation) or gives is None:
        return False
    exact = all(
        aggregate.function in _IN_ANY_ORDER
        and not (aggregate.function is AggregateFunction.SUM and gives.field(output).type is DataType.FLOAT64)
        for output, aggregate in body.aggregates
    )
    return exact and _is_behind_python(spec, operators)


def _is_behind_python(spec: OperatorSpec, operators: Mapping[str, OperatorSpec]) -> bool:
    """Return whether a Python function is upstream, with only operators that run anywhere between it and a source."""
    above = [operators[name] for name in spec.upstream]
    python = len(above) == 1 and runs_anywhere(above[0]) and above[0].lane.needs_python
    while len(above) == 1 and runs_anywhere(above[0]):
        above = [operators[name] for name in above[0].upstream]
    return python and len(above) == 1 and above[0].is_source


def aggregated_schema(
    name: str, source: Schema, keys: tuple[str, ...], aggregates: Mapping[str, AggregateSpec]
) -> Schema:
    """Return the schema that an aggregate emits: the key fields, then the aggregates in declared order.

    Raises:
        GraphError: No aggregate, or one with the name of a key.
        SchemaError: An unknown field, or a sum or mean of a field that isn't numeric.
    """
    if not aggregates:
        hint = "Pass at least one, such as n=rel.count()"
        raise GraphError("no aggregates to compute", hint=hint, code=ErrorCode.MISSING_ARGUMENT)
    columns = [(k, source.field(k).format, source.field(k).nullable) for k in keys]
    for output, spec in aggregates.items():
        if output in keys:
            problem = f"the aggregate '{output}' has the name of a key field"
            raise GraphError(problem, hint="Rename the aggregate", code=ErrorCode.DUPLICATE_FIELD)
        columns.append((output, *_result(spec, source)))
    return laid_out(name, columns)


def _result(spec: AggregateSpec, source: Schema) -> tuple[str, bool]:
    """Return the Arrow format and the nullability of an aggregate's result."""
    if spec.field is None:
        if spec.function is not AggregateFunction.COUNT:
            raise GraphError(f"{spec} needs a field", hint=source.suggestion(""), code=ErrorCode.MISSING_ARGUMENT)
        return DataType.INT64.default_format, False
    field: Field = source.field(spec.field)
    if spec.function is AggregateFunction.DISTINCT and not field.type.is_key:
        raise SchemaError(
            f"{spec} needs a field that can be a key, but field '{field.name}' of {source.name} is {field.type.value}",
            hint="Map what distinguishes them to a field of its own",
            code=ErrorCode.WRONG_FIELD_TYPE,
        )
    if spec.function in (AggregateFunction.COUNT, AggregateFunction.DISTINCT):
        return DataType.INT64.default_format, False
    if spec.function is AggregateFunction.SUM:
        return _sum_format(spec, field, source), field.nullable
    if spec.function is AggregateFunction.LARGEST:
        _check_number(spec, field, source, field.type.is_ordered and field.type.size <= 8)
        return field.format, True
    if spec.function in _OF_NUMBERS:
        averaged = spec.function is AggregateFunction.MEAN and field.type is DataType.DECIMAL
        _check_number(spec, field, source, field.type.is_numeric or field.type is DataType.BOOL or averaged)
        nullable = field.nullable or spec.function is AggregateFunction.STDDEV
        if spec.function is AggregateFunction.WEIGHTED_MEAN:
            weight = source.field(spec.weight or "")
            _check_number(spec, weight, source, weight.type.is_numeric or weight.type is DataType.BOOL)
            nullable = nullable or weight.nullable
        return DataType.FLOAT64.default_format, nullable
    if spec.function in (AggregateFunction.MIN, AggregateFunction.MAX):
        _check_number(spec, field, source, field.type.is_ordered or field.type.is_text)
    return field.format, field.nullable


_OF_NUMBERS = (
    AggregateFunction.MEAN,
    AggregateFunction.WEIGHTED_MEAN,
    AggregateFunction.STDDEV,
    AggregateFunction.QUANTILE,
)


def _sum_format(spec: AggregateSpec, field: Field, source: Schema) -> str:
    summable = field.type.is_numeric or field.type in (DataType.BOOL, DataType.DURATION, DataType.DECIMAL)
    _check_number(spec, field, source, summable)
    if field.type is DataType.DURATION:
        return field.format
    if field.type is DataType.DECIMAL:
        return decimal_form(LARGEST_PRECISION, int(field.format.rpartition(",")[2]))
    return (DataType.FLOAT64 if field.type.is_float else DataType.INT64).default_format


def _check_number(spec: AggregateSpec, field: Field, source: Schema, fits: bool) -> None:
    if not fits:
        raise SchemaError(
            f"{spec} needs a number, but field '{field.name}' of {source.name} is {field.type.value}",
            hint="Map the field to int or float first, or use rel.count(), first or last",
            code=ErrorCode.WRONG_FIELD_TYPE,
        )
