"""Makes native operators of user-defined functions and aggregates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rayelastic import _native
from rayelastic.compile import OperatorCode, load
from rayelastic.compile.code.answers import answers
from rayelastic.compile.lanes.ports_lane import chosen
from rayelastic.graph.operators.aggregates import Aggregation
from rayelastic.graph.operators.patterns import Matching
from rayelastic.graph.operators.splits import Split
from rayelastic.graph.spec.dead_letters import OnError
from rayelastic.graph.spec.operator_spec import Lane
from rayelastic.runtime.operators.native_schema import native_schema
from rayelastic.runtime.operators.own_aggregates import own_aggregate
from rayelastic.runtime.operators.tolerant import tolerant_operator, ttl_of

if TYPE_CHECKING:
    from rayelastic.graph.operators.aggregates import AggregateSpec
    from rayelastic.graph.spec.operator_spec import CompiledFunction, OperatorSpec

NativeAggregate = tuple[str, str, str, float, float]  # function, field, field of the weights, two parameters


def function_operator(spec: OperatorSpec) -> _native.Operator:
    """Make the operator of a user's function in its execution mode."""
    code = spec.body
    assert isinstance(code, OperatorCode)
    loaded = load(code)
    source, target = native_schema(code.input_schema), native_schema(code.output_schema)
    keys = list(code.keys)
    if code.lane is Lane.COMPILED:
        keyed = None
        if code.state_schema is not None:
            record = native_schema(code.state_schema)
            keyed = _native.KeyedState(source, keys, record, loaded.state_initial, ttl_of(spec))
        owner = loaded.owner
        operator = _native.Operator.compiled(
            spec.name, loaded.address, loaded.flags, [source], [target], keyed, owner=owner
        )
        if code.state is None:
            operator = _native.Operator.answered(operator, answers(code))
        return operator if spec.on_error is OnError.FAIL else tolerant_operator(spec, loaded, operator)
    if len(spec.outputs) > 1 or spec.on_error is not OnError.FAIL:
        return tolerant_operator(spec, loaded, None)
    assert loaded.function is not None
    return _native.Operator.python(
        spec.name,
        loaded.function,
        source,
        target,
        code.input_schema.tuple_type,
        view=code.view.value,
        flags=loaded.flags,
        keyed=_native.KeyedState.objects(source, keys, code.state, ttl_of(spec)) if code.state is not None else None,
    )


def split_operator(spec: OperatorSpec) -> _native.Operator:
    """Make the operator of a split."""
    body = spec.body
    assert isinstance(body, Split)
    assert spec.input_schema is not None
    schema = native_schema(spec.input_schema)
    if body.choice is None:
        return _native.Operator.split(spec.name, schema, body.ports, list(body.keys))
    code = body.choice
    assert isinstance(code, OperatorCode)
    if code.lane is Lane.COMPILED:
        loaded = load(code)
        numbers = native_schema(code.output_schema)
        choice = _native.Operator.compiled(
            spec.name, loaded.address, loaded.flags, [schema], [numbers], owner=loaded.owner
        )
        return _native.Operator.choice(choice, body.ports)
    return _native.Operator.python_ports(
        spec.name, chosen(code.function, body.ports), [schema], [schema] * body.ports, [code.input_schema.tuple_type]
    )


def match_operator(spec: OperatorSpec) -> _native.Operator:
    """Make the operator that finds sequences of tuples."""
    body = spec.body
    assert isinstance(body, Matching)
    return _native.Operator.pattern(
        inner_operator(spec.name, body.marks),
        native_schema(spec.outputs[0].schema),
        list(spec.keys),
        fields=list(body.fields),
        outer=body.outer,
        **pattern_arguments(spec),
    )


def pattern_arguments(spec: OperatorSpec) -> dict[str, Any]:
    """Return the arguments of a native pattern by name that its state depends on."""
    body = spec.body
    assert isinstance(body, Matching)
    return {"time": body.time.field, "shift": body.time.shift, "steps": list(body.steps)}


def inner_operator(name: str, code: CompiledFunction) -> _native.Operator:
    """Make the operator of a stateless user-defined function that another operator calls."""
    assert isinstance(code, OperatorCode)
    loaded = load(code)
    source, target = native_schema(code.input_schema), native_schema(code.output_schema)
    if code.lane is Lane.COMPILED:
        return _native.Operator.compiled(name, loaded.address, loaded.flags, [source], [target], owner=loaded.owner)
    assert loaded.function is not None
    record = code.input_schema.tuple_type
    return _native.Operator.python(
        name, loaded.function, source, target, record, view=code.view.value, flags=loaded.flags
    )


def native_aggregates(aggregates: tuple[tuple[str, AggregateSpec], ...]) -> list[NativeAggregate]:
    """Return aggregates for the native layer."""
    return [(a.function.value, a.field or "", a.weight or "", a.first, a.second) for _, a in aggregates]


def aggregate_operator(spec: OperatorSpec) -> _native.Operator:
    """Make the operator of an aggregate."""
    body = spec.body
    assert isinstance(body, Aggregation)
    assert spec.input_schema is not None
    assert spec.output_schema is not None
    return _native.Operator.aggregate(
        spec.name,
        native_schema(spec.input_schema),
        native_schema(spec.output_schema),
        list(spec.keys),
        native_aggregates(body.aggregates),
        "run" if body.partial else body.emit.value,
        ttl_of(spec),
        own_aggregate(spec.name, body.own),
    )
