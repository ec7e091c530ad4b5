"""`map`, `filter` and `flat_map`: operators of a user-defined function, with or without keyed state.

Knows no threads, PEs or native code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from rayelastic.errors import ErrorCode, GraphError
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.concurrency import concurrency_of, is_async
from rayelastic.graph.spec.dead_letters import OnError, dead_letters, on_error_of
from rayelastic.graph.spec.declaration import NewOperator, check_function, check_state, lane_of
from rayelastic.graph.spec.operator_spec import FunctionRequest, Lane, OperatorKind, OperatorSpec, StateKind
from rayelastic.graph.spec.ports import OUT, OutputPort, side_ports
from rayelastic.graph.spec.upstream import Upstream
from rayelastic.graph.spec.user_objects import LIFE, check_object

__all__ = ["NO_SIDES", "deduplicate", "function_operator"]

NO_SIDES: Mapping[str, object] = MappingProxyType({})


def function_operator(
    up: Upstream,
    kind: OperatorKind,
    name: str,
    function: Callable[..., Any],
    *,
    state: Callable[[], Any] | None = None,
    ttl: object = None,
    schema: object = None,
    lane: object = "auto",
    on_error: object = OnError.FAIL,
    sides: Mapping[str, object] = NO_SIDES,
    concurrent: object = None,
    drops_none: bool = False,
) -> OperatorSpec:
    """See ``Stream.map``, ``Stream.filter_map`` and ``KeyedStream.map``; without state it doesn't depend on keys."""
    with NewOperator(name, up.operators) as location:
        if state is not None:
            check_state(state)
        how = concurrency_of(function, concurrent)
        check_function(function, kind, state, concurrent=how is not None, returns=drops_none)
        check_object(function, () if drops_none else LIFE, awaited=is_async(function))
        lives = up.time_to_live(ttl, None if state is not None else "state=")
        output = None if schema is None else Schema.of(schema)
        policy = on_error_of(on_error)
        further = side_ports(sides)
        keys = () if state is None else up.keys
        request = FunctionRequest(
            name, kind, function, up.schema, output, keys, state, lane_of(lane), location,
            tuple(port.name for port in further), how, drops_none,
        )  # fmt: skip
        compiled = up.compiler.compile(request)
        if lives is not None and lives.since == "change" and compiled.lane is not Lane.COMPILED:
            raise GraphError(
                f"a ttl since the last change needs the compiled lane: {compiled.reason}",
                hint="Use since='last' or 'first', or a function that compiles",
                code=ErrorCode.UNSUPPORTED_TTL,
            )
        gives = up.schema if kind is OperatorKind.FILTER else compiled.output_schema
        if policy is OnError.DIVERT:
            further += (dead_letters(up.schema),)
        return up.operator(
            name,
            kind,
            StateKind.STATELESS if state is None else StateKind.PARTITIONED,
            compiled,
            location,
            (OutputPort(OUT, gives), *further),
            keys=keys,
            on_error=policy,
            ttl=lives,
        )


class _Seen(NamedTuple):
    """Whether a key has occurred."""

    seen: bool = False


def _is_first(_tuple: Any, state: Any) -> bool:
    if state.seen:
        return False
    state.seen = True
    return True


def deduplicate(up: Upstream, name: str, ttl: object) -> OperatorSpec:
    """See ``KeyedStream.deduplicate``."""
    return function_operator(up, OperatorKind.FILTER, name, _is_first, state=_Seen, ttl=ttl)
