"""The order that an operator without state keeps when it has several replicas: the argument `ordered=`.

Knows neither regions nor replicas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from rayelastic.errors import ErrorCode, GraphError
from rayelastic.graph.records.shown import invalid
from rayelastic.graph.spec.operator_spec import OperatorSpec, Ordered
from rayelastic.graph.spec.ports import operator_of

OrderChoice = Literal[True, False, "key"] | None


def with_order(
    spec: OperatorSpec, choice: object, keys: tuple[str, ...], operators: Mapping[str, OperatorSpec]
) -> OperatorSpec:
    """Return the operator with the order that the program asks for; None: the default.

    Args:
        spec: The operator, while it is declared.
        choice: `ordered=` of the program.
        keys: The key fields of its stream; empty: there was no key_by.
        operators: The operators declared before.

    Raises:
        GraphError: The choice is unknown, the operator keeps state or emits out of order, or its input has no such
            order.
    """
    if choice is None:
        return spec
    if not isinstance(choice, bool) and choice != "key":
        raise invalid("ordered", choice, "Choose True, 'key' or False", ErrorCode.UNKNOWN_CHOICE)
    if spec.has_state:
        raise GraphError(
            f"ordered={choice!r}, and it keeps state, which decides the order",
            hint="Leave ordered= out: each key keeps its order, and an operator without keys that of its input",
            code=ErrorCode.CONFLICTING_ARGUMENTS,
        )
    ordered = Ordered(choice)
    calls = spec.body.concurrent
    if ordered is not Ordered.ANY and calls is not None and not calls.ordered:
        raise GraphError(
            f"ordered={choice!r}, and its concurrent calls emit in the order of completion",
            hint="Write rel.concurrent(ordered=True), or ordered=False",
            code=ErrorCode.CONFLICTING_ARGUMENTS,
        )
    if ordered is Ordered.BY_KEY:
        return _by_key(spec, keys)
    if ordered is Ordered.AS_INPUT and (why := _why_unordered(operators, spec)):
        raise GraphError(
            f"ordered=True, and its input has no order: {why}",
            hint="Write it upstream of where the order ends, or leave ordered= out: each stream keeps its own order",
            code=ErrorCode.NO_ORDER,
        )
    return replace(spec, ordered=ordered)


def _by_key(spec: OperatorSpec, keys: tuple[str, ...]) -> OperatorSpec:
    if len(spec.inputs) > 1:
        raise GraphError(
            "ordered='key', and it has several input ports",
            hint="Leave ordered= out: an operator with several ports has one replica",
            code=ErrorCode.CONFLICTING_ARGUMENTS,
        )
    if not keys:
        raise GraphError(
            "ordered='key', and its stream has no key",
            hint="Write .key_by(field, ...) before it, or ordered=True or False",
            code=ErrorCode.NO_KEY,
        )
    return replace(spec, ordered=Ordered.BY_KEY, inputs=(replace(spec.inputs[0], keys=keys),))


def _why_unordered(operators: Mapping[str, OperatorSpec], spec: OperatorSpec) -> str:
    """Say why the input of an operator has no order as a whole; empty: it has one."""
    while spec.inputs:
        streams = [stream for port in spec.inputs for stream in (*port.streams, *port.feedback)]
        if spec.body.takes_rules:
            streams = list(spec.inputs[0].streams)
        if len(streams) > 1:
            return f"{' and '.join(sorted(streams))} meet there"
        above = operators.get(operator_of(streams[0]))
        if above is None:
            return f"'{operator_of(streams[0])}' returns to itself"
        if above.ordered is Ordered.ANY:
            return f"'{above.name}' has ordered=False"
        if above.replicas_share_keys:
            return f"'{above.name}' keeps the order of each key only"
        if above.body.concurrent is not None and not above.body.concurrent.ordered:
            return f"concurrent calls of '{above.name}' emit in the order of completion"
        if above.has_state:
            return ""  # it emits in one place
        spec = above
    return ""
