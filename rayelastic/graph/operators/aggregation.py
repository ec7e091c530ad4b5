"""`aggregate`: an operator that aggregates the tuples of each key, or of the whole stream. What runs is native.

Knows no threads, PEs or native code.
"""

from __future__ import annotations

from collections.abc import Mapping

from rayelastic.errors import GraphError
from rayelastic.graph.operators.aggregates import (
    AggregateSpec,
    Aggregation,
    Emit,
    TopK,
    aggregated_schema,
    check_updates,
    expanded,
)
from rayelastic.graph.spec.declaration import NewOperator
from rayelastic.graph.spec.operator_spec import OperatorKind, OperatorSpec, StateKind
from rayelastic.graph.spec.ports import OUT, OutputPort
from rayelastic.graph.spec.upstream import Upstream

__all__ = ["aggregate"]


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
            raise GraphError(f"emit={emit!r}", way_out="Choose 'final' or 'update'") from None
        wanted = expanded(aggregates)
        gives = aggregated_schema(name, up.schema, up.keys, wanted)
        check_updates(ttl, when)
        lives = up.time_to_live(ttl, None if up.keys else "key_by(...)")
        if lives is not None and lives.since == "change":
            raise GraphError("each tuple changes an aggregate", way_out="Use since='last', or 'first'")
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
