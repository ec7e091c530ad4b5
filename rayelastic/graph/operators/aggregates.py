"""Aggregates: the functions that a key's or a window's tuples are reduced with, and the fields that they emit.

All of them run in C++ over records. Their states can be merged, so overlapping windows share partial results.
Nulls are left out, as in SQL; `first` and `last` can count them. A nullable field has a nullable aggregate, which is
null for a key with only nulls. `count` and `distinct` are never null, `stddev` and `top_k` may always be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from rayelastic.errors import ErrorCode, GraphError
from rayelastic.graph.records.shown import invalid, shown
from rayelastic.graph.spec.location import caller_location
from rayelastic.graph.spec.operator_spec import fields_form
from rayelastic.graph.spec.requests import CompiledAggregate

MOST_RANKS = 1000  # values that top_k keeps for a key; each is a field of the output
LEAST_ERROR = 0.00001  # of a quantile: a sketch then has 115,000 buckets for a factor of ten


class AggregateFunction(Enum):
    """The function that an aggregate computes."""

    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    MEAN = "mean"
    FIRST = "first"
    LAST = "last"
    WEIGHTED_MEAN = "weighted_mean"
    STDDEV = "stddev"
    DISTINCT = "distinct"
    LARGEST = "largest"
    QUANTILE = "quantile"
    TOP = "top"  # whole tuples, of windows, with no aggregate beside it


class Emit(Enum):
    """When an aggregate emits a tuple."""

    FINAL = "final"  # one per key, when the input has ended
    UPDATE = "update"  # the new values of the key, after each tuple

    @classmethod
    def _missing_(cls, value: object) -> Emit:
        raise invalid("emit", value, "Choose 'final' or 'update'", ErrorCode.UNKNOWN_CHOICE)


@dataclass(frozen=True, slots=True)
class AggregateSpec:
    """One aggregate: a function over a field; `count` needs none.

    Args:
        function: The function.
        field: The aggregated field; None counts tuples.
        weight: The weights of a weighted mean; the event time that orders a first or last value, or equal ones of a
            top, None: by arrival.
        first: Of a standard deviation, its degrees of freedom; of a largest value, its rank from 0. Of a quantile, its
            probability; of a first or last value, 1 if it may be a null. Of a top, 1 if the least values are best.
        second: The number of ranks kept for largest values, or of tuples of a top; the relative error of a quantile.
    """

    function: AggregateFunction
    field: str | None = None
    weight: str | None = None
    first: float = 0.0
    second: float = 0.0

    def __post_init__(self) -> None:
        for field in (self.field, self.weight):
            if field is not None and not isinstance(field, str):
                raise GraphError(
                    f"rel.{self.function.value}({shown(field)}) needs the name of a field",
                    location=caller_location(),
                    hint="Write .with_columns(x=lambda t: ...) before, and 'x'",
                    code=ErrorCode.WRONG_TYPE,
                )

    def alias(self, name: str) -> Named:
        """Name the output field: `aggregate(rel.sum("x").alias("total"))` is `aggregate(total=rel.sum("x"))`."""
        return Named(name, self)

    def __str__(self) -> str:
        if self.function is AggregateFunction.TOP:
            return f"{'least' if self.first else 'top'} {self.second:g} by {self.field}"
        arguments = [name for name in (self.field, self.weight) if name is not None]
        if self.function is AggregateFunction.QUANTILE:
            arguments.append(f"{self.first:g}")
        if self.function is AggregateFunction.LARGEST:
            arguments.append(f"{self.first + 1:g}")
        if self.function in (AggregateFunction.FIRST, AggregateFunction.LAST) and self.first:
            arguments.append("nulls")
        return f"{self.function.value}({', '.join(arguments)})"


class Named(NamedTuple):
    """An aggregate with the name of its output field."""

    name: str
    spec: AggregateSpec

    def alias(self, name: str) -> Named:
        """Name the output field anew."""
        return Named(name, self.spec)


@dataclass(frozen=True, slots=True)
class TopK:
    """The k largest values of a field; stands for k aggregates, one a rank."""

    field: str
    k: int

    def ranks(self, output: str) -> dict[str, AggregateSpec]:
        """Name each rank: output_1 is the largest."""
        largest = AggregateFunction.LARGEST
        return {f"{output}_{i + 1}": AggregateSpec(largest, self.field, None, i, self.k) for i in range(self.k)}


def aggregates_form(aggregates: tuple[tuple[str, AggregateSpec], ...], own: CompiledAggregate | None) -> str:
    """Describe the state of aggregates."""
    if own is not None:
        return f"record ({fields_form(own.state_schema)})"
    kept = [
        f"{one} of its tuples" if one.function is AggregateFunction.TOP else f"{one.function.value}({one.field or ''})"
        for _, one in aggregates
    ]
    return f"aggregates {', '.join(kept)}"


def fields_of(aggregates: tuple[tuple[str, AggregateSpec], ...]) -> frozenset[str]:
    """Return the fields that aggregates read."""
    return frozenset(field for _, one in aggregates for field in (one.field, one.weight) if field is not None)


def aggregated(aggregates: tuple[tuple[str, AggregateSpec], ...], own: CompiledAggregate | None) -> str:
    """Return the computed aggregates as text."""
    if own is not None:
        return own.reason
    return ", ".join(f"{name}={spec}" if name else f"{spec}" for name, spec in aggregates)


def count(field: str | None = None) -> AggregateSpec:
    """Count tuples, or those in which a field isn't null ("*": all): int64, never null. As a sink, count all tuples.

    >>> import rayelastic as rel
    >>> from rayelastic import testing
    >>> testing.collect(lambda s: s.aggregate(n=rel.count()), [(1,), (2,)], {"x": int})
    [(2,)]
    """
    return AggregateSpec(AggregateFunction.COUNT, None if field == "*" else field)


def sum(field: str) -> AggregateSpec:  # noqa: A001  (the public name is rel.sum)
    """Sum a field: int64 of integers and bools, float64 of floats, durations of durations.

    Sums of decimals have 38 digits and the same scale. Overflow fails the job.

    >>> import rayelastic as rel
    >>> from rayelastic import testing
    >>> testing.collect(lambda s: s.aggregate(total=rel.sum("x")), [(1,), (2,)], {"x": int})
    [(3,)]
    """
    return AggregateSpec(AggregateFunction.SUM, field)


def min(field: str) -> AggregateSpec:  # noqa: A001  (the public name is rel.min)
    """Find the least value of a field, of the field's type.

    >>> import rayelastic as rel
    >>> from rayelastic import testing
    >>> testing.collect(lambda s: s.aggregate(least=rel.min("x")), [(2,), (1,)], {"x": int})
    [(1,)]
    """
    return AggregateSpec(AggregateFunction.MIN, field)


def max(field: str) -> AggregateSpec:  # noqa: A001  (the public name is rel.max)
    """Find the greatest value of a field, of the field's type.

    >>> import rayelastic as rel
    >>> from rayelastic import testing
    >>> testing.collect(lambda s: s.aggregate(most=rel.max("x")), [(2,), (1,)], {"x": int})
    [(2,)]
    """
    return AggregateSpec(AggregateFunction.MAX, field)


def mean(field: str) -> AggregateSpec:
    """Compute the arithmetic mean of a numeric field, or of one of decimals: float64. ``avg`` is another name of it.

    >>> import rayelastic as rel
    >>> from rayelastic import testing
    >>> testing.collect(lambda s: s.aggregate(mean=rel.mean("x")), [(1,), (2,)], {"x": int})
    [(1.5,)]
    """
    return AggregateSpec(AggregateFunction.MEAN, field)


avg = mean


def first(field: str, *, nulls: bool = False) -> AggregateSpec:
    """Keep the first value of the key, of the field's type. Order and nulls as for ``last``.

    >>> import rayelastic as rel
    >>> from rayelastic import testing
    >>> testing.collect(lambda s: s.aggregate(x=rel.first("x")), [(2,), (1,)], {"x": int})
    [(2,)]
    """
    return AggregateSpec(AggregateFunction.FIRST, field, first=float(nulls))


def last(field: str, *, nulls: bool = False) -> AggregateSpec:
    """Keep the latest value of the key, of the field's type.

    In windows by event time it is the value of the latest time. Otherwise, and at equal times, the last arrival wins.

    Args:
        field: The field. Each one is aggregated by itself, so a result may combine values of several tuples.
        nulls: False ignores nulls (SQL's IGNORE NULLS). True: a null is a value, so that all fields are of one tuple.

    >>> import rayelastic as rel
    >>> topology = rel.Topology("prices")
    >>> rows = rel.rows([(1, 9), (2, None)], schema={"at": int, "price": int | None})
    >>> latest = {"at": rel.last("at"), "known": rel.last("price"), "price": rel.last("price", nulls=True)}
    >>> topology.source(rows, name="rows").aggregate(name="latest", **latest).sink(rel.list(), name="out")
    <sink out>
    >>> [tuple(t) for t in rel.run(topology)["out"]]
    [(2, 9, None)]
    """
    return AggregateSpec(AggregateFunction.LAST, field, first=float(nulls))


def weighted_mean(field: str, weight: str) -> AggregateSpec:
    """Compute sum(field * weight) / sum(weight), such as a volume-weighted average price: float64.

    Args:
        field: The averaged field.
        weight: The field of the weights. Tuples with a null in either are left out; weights that sum to 0 emit NaN.

    >>> print(weighted_mean("price", "volume"))
    weighted_mean(price, volume)
    """
    return AggregateSpec(AggregateFunction.WEIGHTED_MEAN, field, weight)


def stddev(field: str, ddof: int = 1) -> AggregateSpec:
    """Compute the standard deviation of a numeric field: float64, null for `ddof` values or fewer.

    Args:
        field: The field.
        ddof: Degrees of freedom to subtract: 1 for a sample, as in pandas and SQL; 0 for a population.

    Raises:
        GraphError: ddof is less than 0.

    >>> import rayelastic as rel
    >>> from rayelastic import testing
    >>> testing.collect(lambda s: s.aggregate(spread=rel.stddev("x")), [(1,), (3,)], {"x": int})
    [(1.4142135623730951,)]
    """
    if not _is_within(ddof, 0, math.inf, int):
        hint = "Pass 1 for a sample or 0 for a population"
        raise GraphError(f"stddev with ddof={shown(ddof)} is invalid", hint=hint, code=ErrorCode.OUT_OF_RANGE)
    return AggregateSpec(AggregateFunction.STDDEV, field, None, float(ddof))


def distinct(field: str) -> AggregateSpec:
    """Count the different values of a field, exactly: int64. The state holds every value once.

    >>> import rayelastic as rel
    >>> from rayelastic import testing
    >>> testing.collect(lambda s: s.aggregate(n=rel.distinct("x")), [(1,), (1,), (2,)], {"x": int})
    [(2,)]
    """
    return AggregateSpec(AggregateFunction.DISTINCT, field)


def top_k(field: str, k: int) -> TopK:
    """Keep the k largest values of a field: k nullable fields `NAME_1` (the largest) to `NAME_k`, of the field's type.

    Args:
        field: a number or a time; NaNs are left out.
        k: 1 to 1000.

    Raises:
        GraphError: another k.

    >>> import rayelastic as rel
    >>> topology = rel.Topology("top")
    >>> numbers = topology.source(rel.sequence(10), name="numbers")
    >>> numbers.aggregate(name="largest", n=rel.top_k("value", 2)).sink(rel.list(), name="out")
    <sink out>
    >>> [tuple(t) for t in rel.run(topology)["out"]]
    [(9, 8)]
    """
    if not _is_within(k, 1, MOST_RANKS, int):
        raise GraphError(f"top_k(k={shown(k)}) is invalid", hint=f"Pass 1 to {MOST_RANKS}", code=ErrorCode.OUT_OF_RANGE)
    return TopK(field, k)


def quantile(field: str, probability: float, error: float = 0.01) -> AggregateSpec:
    """Estimate a quantile of a numeric field by a DDSketch: float64.

    The answer differs by at most `error`, relatively, from the value of rank floor(probability * (n - 1)). With 0.01, a
    true 100 ms is reported as 99 to 101. Quantiles of one field and error share a sketch. At 1 %, it has 116 buckets
    for each factor of ten that the values span.

    Args:
        field: The field; NaNs are left out, infinities count as the largest numbers.
        probability: From 0 to 1; 0.5 is the median.
        error: From 0.00001 to 0.5, relative.

    Raises:
        GraphError: probability or error is out of range.

    Source: Masson, Rim, Lee, "DDSketch", VLDB 2019.

    >>> import rayelastic as rel
    >>> from rayelastic import testing
    >>> testing.collect(lambda s: s.aggregate(p50=rel.quantile("x", 0.5)), [(100,), (100,), (900,)], {"x": int})
    [(100.4...,)]
    """
    if not _is_within(probability, 0, 1) or not _is_within(error, LEAST_ERROR, 0.5):
        problem = f"quantile with probability={shown(probability)}, error={shown(error)}"
        hint = f"Pass a probability from 0 to 1 and an error from {LEAST_ERROR:.5f} to 0.5"
        raise GraphError(problem, hint=hint, code=ErrorCode.OUT_OF_RANGE)
    return AggregateSpec(AggregateFunction.QUANTILE, field, None, float(probability), float(error))


def _is_within(value: object, least: float, most: float, kind: type = float) -> bool:
    """Return whether a user's value is a number in range. Whole numbers are floats, too; bools aren't numbers."""
    fits = isinstance(value, (int, kind)) and not isinstance(value, bool)
    return fits and least <= value <= most  # type: ignore[operator]


def check_updates(ttl: object, emit: Emit) -> None:
    """Raise GraphError if an aggregate that emits when the input ends has a time to live."""
    if ttl is not None and emit is Emit.FINAL:
        raise GraphError(
            f"ttl={shown(ttl)}: emit='final' emits every key at the end, and some would have expired",
            hint="Use emit='update', or a window",
            code=ErrorCode.STATE_EXPIRES_EARLY,
        )
