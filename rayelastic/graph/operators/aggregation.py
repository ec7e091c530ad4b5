"""`aggregate`: an operator that aggregates the tuples of each key, or of the whole stream. What runs is native.

Or two of them: one that aggregates whatever comes in a run, has no state, and so may run anywhere, on any tuples of any
key; and one behind it that brings together what these gave. A hot key is then no more work for one than for another.
Knows no threads, PEs or native code.
"""

from __future__ import annotations

from collections.abc import Mapping

from rayelastic.errors import GraphError
from rayelastic.graph.operators.aggregates import (
    AggregateFunction,
    AggregateSpec,
    Aggregation,
    Emit,
    TopK,
    aggregated_schema,
    check_updates,
    expanded,
)
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.spec.declaration import NewOperator
from rayelastic.graph.spec.operator_spec import OperatorKind, OperatorSpec, StateKind
from rayelastic.graph.spec.order import runs_anywhere
from rayelastic.graph.spec.ports import OUT, OutputPort
from rayelastic.graph.spec.upstream import Upstream

__all__ = ["aggregate", "aggregate_in_two_steps", "can_have_two_steps", "has_two_steps_by_itself"]

_SECOND = {  # what brings together what a function gave of parts
    AggregateFunction.COUNT: AggregateFunction.SUM,
    AggregateFunction.SUM: AggregateFunction.SUM,
    AggregateFunction.MIN: AggregateFunction.MIN,
    AggregateFunction.MAX: AggregateFunction.MAX,
    AggregateFunction.FIRST: AggregateFunction.FIRST,
    AggregateFunction.LAST: AggregateFunction.LAST,
}


_IN_ANY_ORDER = (AggregateFunction.COUNT, AggregateFunction.SUM, AggregateFunction.MIN, AggregateFunction.MAX)


def aggregate(
    up: Upstream,
    name: str,
    aggregates: Mapping[str, AggregateSpec | TopK],
    emit: str | Emit = Emit.FINAL,
    ttl: object = None,
) -> OperatorSpec:
    """See ``Stream.aggregate``."""
    with NewOperator(name, up.operators) as location:
        try:
            when = Emit(emit)
        except ValueError:
            raise GraphError(f"emit={emit!r}", hint="Choose 'final' or 'update'") from None
        wanted = expanded(aggregates)
        gives = aggregated_schema(name, up.schema, up.keys, wanted)
        check_updates(ttl, when)
        lives = up.time_to_live(ttl, None if up.keys else "key_by(...)")
        if lives is not None and lives.since == "change":
            raise GraphError("each tuple changes an aggregate", hint="Use since='last', or 'first'")
        return up.operator(
            name,
            OperatorKind.AGGREGATE,
            StateKind.PARTITIONED if up.keys else StateKind.STATEFUL,
            Aggregation(tuple(wanted.items()), when),
            location,
            (OutputPort(OUT, gives),),
            keys=up.keys,
            ttl=lives,
        )


def aggregate_in_two_steps(
    up: Upstream, name: str, aggregates: Mapping[str, AggregateSpec | TopK], emit: str | Emit, ttl: object
) -> tuple[OperatorSpec, OperatorSpec]:
    """See ``Stream.aggregate`` with two_steps=True: `NAME.partial`, and the one that is called as it was declared."""
    with NewOperator(name, up.operators):
        if emit not in (Emit.FINAL, Emit.FINAL.value) or ttl is not None:
            raise GraphError(
                "two_steps=True is for what is given at the end: updates follow each tuple",
                hint="Leave two_steps=, or emit= and ttl=, out",
            )
        wanted = expanded(aggregates)
        single = [f"{output}={spec}" for output, spec in wanted.items() if spec.function not in _SECOND]
        if single:
            raise GraphError(
                f"two_steps=True, but {', '.join(single)} can't be made of what parts of the tuples give",
                hint="Use count, sum, min, max, first or last: a mean is a sum and a count",
            )
    with NewOperator(f"{name}.partial", up.operators) as location:
        gives = aggregated_schema(f"{name}.partial", up.schema, up.keys, wanted)
        partial = up.operator(
            f"{name}.partial",
            OperatorKind.AGGREGATE,
            StateKind.STATELESS,
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
    """Tell whether an operator is an aggregate that could be declared in two steps, and isn't.

    Args:
        spec: the operator.
        operators: of its topology.
    """
    body = spec.body
    if not isinstance(body, Aggregation) or body.own or body.partial or body.emit is not Emit.FINAL:
        return False
    above = [operators[name].body for name in spec.upstream]
    if any(isinstance(one, Aggregation) and one.partial for one in above):
        return False
    return all(one.function in _SECOND for _, one in body.aggregates)


def has_two_steps_by_itself(spec: OperatorSpec, operators: Mapping[str, OperatorSpec]) -> bool:
    """Tell whether an aggregate gets two steps though nobody asked for them: where they help, and nobody notices.

    They help behind a Python function right behind a source: without them the function may have to go by the keys, too.
    Beside a call of Python the first step costs little. Nobody notices where results are the same in any
    order of the tuples, to the last bit.

    Args:
        spec: the aggregate in one step.
        operators: declared before it.
    """
    if not spec.keys or f"{spec.name}.partial" in operators or not can_have_two_steps(spec, operators):
        return False
    body, gives = spec.body, spec.output_schema
    if not isinstance(body, Aggregation) or gives is None:
        return False
    exact = all(
        one.function in _IN_ANY_ORDER
        and not (one.function is AggregateFunction.SUM and gives.field(output).type is DataType.FLOAT64)
        for output, one in body.aggregates
    )
    return exact and _is_behind_python(spec, operators)


def _is_behind_python(spec: OperatorSpec, operators: Mapping[str, OperatorSpec]) -> bool:
    """Tell whether an operator takes what a Python function gives, and all between a source and it runs anywhere."""
    above = [operators[name] for name in spec.upstream]
    python = len(above) == 1 and runs_anywhere(above[0]) and above[0].lane.needs_python
    while len(above) == 1 and runs_anywhere(above[0]):
        above = [operators[name] for name in above[0].upstream]
    return python and len(above) == 1 and above[0].kind is OperatorKind.SOURCE
