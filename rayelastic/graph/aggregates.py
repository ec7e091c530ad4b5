"""Aggregates: what can be computed over the tuples of a key, and which fields come out.

All of them run in C++ over records. Nulls are left out by sum, min, max and mean, as in SQL; a key that had nothing but
nulls gives null, so their output is nullable where the field is. `count` counts tuples and is never null.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from rayelastic.errors import GraphError, SchemaError
from rayelastic.graph.schema import DataType, Field, Schema, laid_out
from rayelastic.graph.shown import shown

__all__ = [
    "AggregateFunction",
    "AggregateSpec",
    "Aggregation",
    "Emit",
    "count",
    "first",
    "last",
    "max",
    "mean",
    "min",
    "sum",
]


class AggregateFunction(Enum):
    """What is computed."""

    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    MEAN = "mean"
    FIRST = "first"
    LAST = "last"


class Emit(Enum):
    """When an aggregate gives a tuple."""

    FINAL = "final"  # one per key, when the input has ended
    UPDATE = "update"  # the new values of the key, after each tuple


@dataclass(frozen=True, slots=True)
class AggregateSpec:
    """One aggregate: a function over a field; `count` has none."""

    function: AggregateFunction
    field: str | None = None

    def __str__(self) -> str:
        return f"{self.function.value}({self.field or ''})"


@dataclass(frozen=True, slots=True)
class Aggregation:
    """What an aggregate operator computes: (output field, aggregate) in declared order, and when it emits."""

    aggregates: tuple[tuple[str, AggregateSpec], ...]
    emit: Emit = Emit.FINAL

    @property
    def reason(self) -> str:
        """What runs, in words."""
        return ", ".join(f"{name}={spec}" for name, spec in self.aggregates)


def count(field: str | None = None) -> AggregateSpec:
    """Count tuples, or those in which a field isn't null: int64, never null. As a sink, count the tuples of the stream.

    >>> print(count())
    count()
    """
    return AggregateSpec(AggregateFunction.COUNT, field)


def sum(field: str) -> AggregateSpec:  # noqa: A001  (the public name is rel.sum)
    """Sum a field: int64 of integers and bools, float64 of floats, durations of durations. Overflow fails the job."""
    return AggregateSpec(AggregateFunction.SUM, field)


def min(field: str) -> AggregateSpec:  # noqa: A001  (the public name is rel.min)
    """Find the least value of a field, of the field's type."""
    return AggregateSpec(AggregateFunction.MIN, field)


def max(field: str) -> AggregateSpec:  # noqa: A001  (the public name is rel.max)
    """Find the greatest value of a field, of the field's type."""
    return AggregateSpec(AggregateFunction.MAX, field)


def mean(field: str) -> AggregateSpec:
    """Compute the arithmetic mean of a numeric field: float64."""
    return AggregateSpec(AggregateFunction.MEAN, field)


def first(field: str) -> AggregateSpec:
    """Keep the value in the key's first tuple, of the field's type; null if that was null."""
    return AggregateSpec(AggregateFunction.FIRST, field)


def last(field: str) -> AggregateSpec:
    """Keep the value in the key's latest tuple, of the field's type; null if that was null."""
    return AggregateSpec(AggregateFunction.LAST, field)


def aggregated_schema(
    name: str, source: Schema, keys: tuple[str, ...], aggregates: Mapping[str, AggregateSpec]
) -> Schema:
    """Lay out the schema that an aggregate gives: the key fields, then one field per aggregate, in declared order.

    Raises:
        GraphError: no aggregate, not an aggregate, or one named like a key.
        SchemaError: unknown field, or a sum or mean of something that is no number.
    """
    if not aggregates:
        raise GraphError("nothing to aggregate", way_out="Name at least one aggregate, such as count=rel.count()")
    columns = [(k, source.field(k).format, source.field(k).nullable) for k in keys]
    for output, spec in aggregates.items():
        if not isinstance(spec, AggregateSpec):
            raise GraphError(
                f"{output}={shown(spec)} is no aggregate",
                way_out="Use rel.count(), or rel.sum, min, max, mean, first or last of a field",
            )
        if output in keys:
            raise GraphError(f"the aggregate '{output}' has the name of a key field", way_out="Give it another name")
        columns.append((output, *_result(spec, source)))
    return laid_out(name, columns)


def _result(spec: AggregateSpec, source: Schema) -> tuple[str, bool]:
    """Arrow format and nullability of an aggregate's result."""
    if spec.field is None:
        if spec.function is not AggregateFunction.COUNT:
            raise GraphError(f"{spec} needs a field", way_out=source.suggestion(""))
        return DataType.INT64.default_format, False
    field: Field = source.field(spec.field)
    if spec.function is AggregateFunction.COUNT:
        return DataType.INT64.default_format, False
    if spec.function is AggregateFunction.SUM:
        return _sum_format(spec, field, source), field.nullable
    if spec.function is AggregateFunction.MEAN:
        _check_number(spec, field, source, field.type.is_numeric)
        return DataType.FLOAT64.default_format, field.nullable
    return field.format, field.nullable


def _sum_format(spec: AggregateSpec, field: Field, source: Schema) -> str:
    summable = field.type.is_numeric or field.type in (DataType.BOOL, DataType.DURATION)
    _check_number(spec, field, source, summable)
    if field.type is DataType.DURATION:
        return field.format
    return (DataType.FLOAT64 if field.type.is_float else DataType.INT64).default_format


def _check_number(spec: AggregateSpec, field: Field, source: Schema, fits: bool) -> None:
    if not fits:
        raise SchemaError(
            f"{spec} needs a number, but field '{field.name}' of {source.name} is {field.type.value}",
            way_out="Map the field to int or float first, or use rel.count(), first or last",
        )
