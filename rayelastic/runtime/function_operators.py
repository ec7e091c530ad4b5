"""User functions and aggregates become native operators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayelastic import _native
from rayelastic.compile import OperatorCode, load
from rayelastic.graph.aggregates import Aggregation
from rayelastic.graph.operator_spec import Lane
from rayelastic.runtime.native_schema import native_schema

if TYPE_CHECKING:
    from rayelastic.graph.aggregates import AggregateSpec
    from rayelastic.graph.operator_spec import OperatorSpec

NativeAggregate = tuple[str, str, str, float, float]  # function, field, field of the weights, two parameters


def function_operator(spec: OperatorSpec) -> _native.Operator:
    """Makes the operator of a user's function in its lane."""
    code = spec.body
    assert isinstance(code, OperatorCode)
    loaded = load(code)
    source, target = native_schema(code.input_schema), native_schema(code.output_schema)
    keys = list(code.keys)
    if code.lane is Lane.COMPILED:
        keyed = None
        if code.state_schema is not None:
            texts = [field.offset for field in code.state_schema.fields if field.type.is_text]
            keyed = _native.KeyedState(source, keys, loaded.state_size, loaded.state_initial, texts)
        owner = loaded.owner
        return _native.Operator.compiled(spec.name, loaded.address, loaded.flags, source, target, keyed, owner=owner)
    assert loaded.function is not None
    return _native.Operator.python(
        spec.name,
        loaded.function,
        source,
        target,
        code.input_schema.tuple_type,
        view=code.view.value,
        flags=loaded.flags,
        keyed=_native.KeyedState.objects(source, keys, code.state) if code.state is not None else None,
    )


def native_aggregates(aggregates: tuple[tuple[str, AggregateSpec], ...]) -> list[NativeAggregate]:
    """Aggregates as the native layer takes them."""
    return [(a.function.value, a.field or "", a.weight or "", a.first, a.second) for _, a in aggregates]


def aggregate_operator(spec: OperatorSpec) -> _native.Operator:
    """Makes the operator of an aggregate."""
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
        body.emit.value,
    )
